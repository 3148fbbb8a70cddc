"""The manifests: kustomize and Helm render the same objects, and the code agrees with them."""

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart_pages import FREE
from tests.manifests import (
    CHART,
    DECISIONS,
    ENVIRONMENT,
    MANIFESTS,
    NAMESPACE,
    Objects,
    helmed,
    kustomized,
    pod_of,
    read_texts,
    with_components,
    without_namespace,
)
from tests.programs import ROOT, ProgramUnavailableError, gatekeeper_sources
from webhook import __version__
from webhook.api import pod_status
from webhook.cli.console.command import command
from webhook.constraint.selector import compile_selector
from webhook.policy_kinds.known import STATUS_KINDS
from webhook.policy_kinds.table import KYVERNO_KINDS, POLICY_KINDS
from webhook.settings.reading import read

pytestmark = pytest.mark.usefixtures("program")  # kustomize and Helm

CONDITIONS = {"conditions", "additionalPrinterColumns"}
# Gatekeeper is about to have `processes` in a match.
# Signatures stay in the statuses that are signed.
DEPLOYMENT = ("Deployment", "waddle-system", "waddle-webhook")
SHOWN = pod_status.MUTATOR.own_fields - {pod_status.SIGNATURE}
MUTATOR = {"rollout", "processes", *SHOWN, *CONDITIONS}
OWN_STATUSES = {row.status.plural for row in POLICY_KINDS if row.status} - {
    row.status.plural for row in POLICY_KINDS if row.status and row.group.endswith("gatekeeper.sh")
}
"""The statuses of kinds that Gatekeeper does not have."""

ADDITIONS = {
    **{
        kind.plural: kind.own_fields
        for kind in STATUS_KINDS
        if kind != pod_status.CONFIG and kind.plural not in OWN_STATUSES
    },
    # Of a Config replicas say nothing of their own; its CRDs have room for two fields all the same.
    "configpodstatuses": {"activeGeneration", "since"},
    "configs": {"activeGeneration", "since"},
    "constrainttemplates": CONDITIONS,
    "syncsets": set(),
    **dict.fromkeys(("assign", "assignimage", "assignmetadata", "modifyset"), MUTATOR),
    "expansiontemplate": {*pod_status.EXPANSION.own_fields, *CONDITIONS},
    "providers": {*pod_status.PROVIDER.own_fields, *CONDITIONS},
}
"""The fields of ours in Gatekeeper's CRDs."""


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        ("base", ["--include-crds"]),
        ("overlays/fail-closed", ["--include-crds", "--set", "webhook.failClosed=true"]),
        ("overlays/beside-gatekeeper", ["--set", "operations={webhook},audit.enabled=false"]),
    ],
)
def test_the_chart_renders_what_kustomize_builds(folder, options):
    assert helmed(*options) == without_namespace(kustomized(MANIFESTS / folder))


def test_the_chart_renders_what_the_components_add(tmp_path):
    objects = with_components(tmp_path, "components/autoscaling", "components/alerts")
    options = ("--include-crds", "--set", "autoscaling.enabled=true,alerts.enabled=true")
    rendered = helmed(*options)
    # Helm knows how many there are, and says so; what is applied has no count, or two would set it.
    assert rendered["Deployment", "waddle-system", "waddle-webhook"]["spec"].pop("replicas") == 3

    assert rendered == without_namespace(objects)


def test_the_chart_renders_what_the_component_of_a_service_monitor_adds(tmp_path):
    objects = with_components(tmp_path, "components/service-monitor")
    options = ("--include-crds", "--set", "serviceMonitor.enabled=true")

    assert helmed(*options) == without_namespace(objects)


def test_the_chart_renders_what_the_component_of_failure_policies_adds(tmp_path):
    objects = with_components(tmp_path, "components/failure-policy-by-constraint")
    options = ("--include-crds", "--set", "webhook.failurePolicyByConstraint=true")

    assert helmed(*options) == without_namespace(objects)


def test_the_chart_renders_what_the_component_of_rules_from_policies_adds(tmp_path):
    objects = with_components(tmp_path, "components/webhook-rules-from-policies")
    options = ("--include-crds", "--set", "webhook.rules=policies")
    rendered, built = helmed(*options), without_namespace(objects)
    # The order of flags is each one's own.
    for one in (rendered, built):
        (container,) = one[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
        container["args"].sort()

    assert rendered == built
    (container,) = pod_of(objects, "waddle-webhook")["spec"]["containers"]
    assert "--webhook-rules=policies" in container["args"]


def test_the_chart_renders_what_the_component_of_dashboards_adds(tmp_path):
    objects = with_components(tmp_path, "dashboards")
    options = ("--include-crds", "--set", "dashboards.enabled=true")

    assert read_texts(helmed(*options)) == read_texts(without_namespace(objects))


def test_the_chart_renders_what_the_components_of_reports_add(tmp_path):
    objects = with_components(tmp_path, "reports/audit", "reports/admission")
    options = ("--include-crds", "--set", "reports.audit=true,reports.admission=true")

    assert helmed(*options) == without_namespace(objects)
    for name in ("waddle-audit", "waddle-webhook"):
        (container,) = pod_of(objects, name)["spec"]["containers"]
        assert read(container["args"][1:], ENVIRONMENT).reports.enabled


def test_the_chart_renders_what_the_component_that_validates_policies_adds(tmp_path):
    objects = with_components(tmp_path, "components/validate-policy")
    options = ("--include-crds", "--set", "validatePolicy.enabled=true")

    assert helmed(*options) == without_namespace(objects)
    (container,) = pod_of(objects, "waddle-webhook")["spec"]["containers"]
    assert read(container["args"][1:], ENVIRONMENT).deciding.enable_validate_policy


SERVERS = {"waddle-webhook": "waddle", "waddle-audit": "waddle-audit"}
"""The Deployments of `waddle serve`, and their ClusterRoles."""


ADMISSION_POLICIES = [
    ("admissionregistration.k8s.io", f"{kind}admissionpolic{ending}")
    for kind in ("validating", "mutating")
    for ending in ("ies", "ybindings")
]


def rights(objects: Objects, role: str, group: str, resource: str) -> set[str]:
    """Returns the verbs that a ClusterRole permits on a resource."""
    verbs: set[str] = set()
    for rule in objects["ClusterRole", "", role]["rules"]:
        if {group, "*"} & {*rule["apiGroups"]} and {resource, "*"} & {*rule["resources"]}:
            verbs |= {*rule["verbs"]}
    return verbs


def test_audits_go_by_the_cluster_s_admission_policies_by_a_component_or_a_value(tmp_path):
    objects = with_components(tmp_path, "components/admission-policies")
    values = "audit.admissionPolicies=true,reports.audit=true,reports.admission=true"
    rendered = helmed("--set", values)
    for made in (objects, rendered):
        for name, role in SERVERS.items():
            (container,) = pod_of(made, name)["spec"]["containers"]
            assert read(container["args"][1:], ENVIRONMENT).policies.admission_policies == "audit"
            for resource in ADMISSION_POLICIES:
                assert {"list", "*"} & rights(made, role, *resource), (name, resource)


@pytest.mark.parametrize(
    ("values", "group", "resources", "verbs"),
    [
        (
            "audit.admissionPolicies=true",
            "admissionregistration.k8s.io",
            tuple(resource for _, resource in ADMISSION_POLICIES),
            {"list"},
        ),
        (
            "kyverno.policies=audit",
            "policies.kyverno.io",
            tuple(row.plural for row in KYVERNO_KINDS),
            {"get", "list", "watch"},
        ),
    ],
)
def test_an_audit_that_may_not_read_everything_reads_the_policies_that_it_goes_by(
    values, group, resources, verbs
):
    limited = ("--set", "audit.readEverything=false")
    with_policies, without = helmed(*limited, "--set", values), helmed(*limited)
    for resource in resources:
        assert rights(with_policies, "waddle-audit", group, resource) == verbs, resource
        assert not rights(without, "waddle-audit", group, resource), resource


def test_the_chart_renders_what_the_component_for_the_api_server_s_addresses_adds(tmp_path):
    objects = with_components(tmp_path, "components/api-server-only")
    peers = json.dumps([{"ipBlock": {"cidr": "192.0.2.10/32"}}])
    options = ("--include-crds", "--set-json", f"networkPolicy.apiServers={peers}")

    assert helmed(*options) == without_namespace(objects)
    (policy,) = (
        item
        for item in objects.values()
        if item["kind"] == "NetworkPolicy" and item["metadata"]["name"] == "waddle-webhook"
    )
    reached = {
        port["port"]: rule.get("from")
        for rule in policy["spec"]["ingress"]
        for port in rule["ports"]
    }
    assert reached["webhook"] == json.loads(peers)
    assert reached["health"] is None


def test_the_chart_renders_what_the_component_of_mutation_adds(tmp_path):
    objects = with_components(tmp_path, "components/mutation")
    options = ("--include-crds", "--set", "mutation.enabled=true")

    assert helmed(*options) == without_namespace(objects)
    (container,) = pod_of(objects, "waddle-webhook")["spec"]["containers"]
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.mutates
    name = settings.tls.mutating_webhook_configuration_name
    assert ("MutatingWebhookConfiguration", "", name) in objects


def test_the_chart_renders_what_the_component_of_providers_trust_adds(tmp_path):
    objects = with_components(tmp_path, "components/provider-trust")
    value = "externalData.trust.namespace=providers"

    assert helmed("--include-crds", "--set", value) == without_namespace(objects)


def test_the_chart_renders_what_the_component_of_kyverno_s_policies_adds(tmp_path):
    objects = with_components(tmp_path, "components/kyverno-policies")

    made = helmed("--include-crds", "--set", "kyverno.policies=enforce")
    assert made == without_namespace(objects)
    for name, role in SERVERS.items():
        (container,) = pod_of(objects, name)["spec"]["containers"]
        assert read(container["args"][1:], ENVIRONMENT).policies.kyverno_policies == "enforce"
        for row in KYVERNO_KINDS:
            found = rights(objects, role, "policies.kyverno.io", row.plural)
            assert {"get", "list", "watch"} <= found, (role, row.plural)


def test_the_page_s_kustomization_has_that_copy_in_another_namespace(tmp_path):
    page = (ROOT / "docs" / "external-data.md").read_text()
    kustomization = page.partition("kind: Kustomization")[2].partition("```")[0]
    (tmp_path / "manifests").symlink_to(MANIFESTS)
    (tmp_path / "kustomization.yaml").write_text(f"kind: Kustomization{kustomization}")
    objects = kustomized(tmp_path)

    value = "externalData.trust.namespace=signing"
    made = helmed("--include-crds", "--set", value)
    assert made.keys() == without_namespace(objects).keys()
    kept = ("Secret", "signing", "gatekeeper-webhook-server-cert")
    assert made[kept] == objects[kept]
    (container,) = pod_of(objects)["spec"]["containers"]
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.tls.provider_ca_secret == "/".join(kept[1:])


def test_the_chart_renders_what_the_component_of_telemetry_adds(tmp_path):
    objects = with_components(tmp_path, "components/telemetry")
    endpoint = "grpc://opentelemetry-collector.opentelemetry:4317"
    values = f"telemetry.endpoint={endpoint},telemetry.metrics=true,telemetry.tracing=true"

    assert helmed("--include-crds", "--set", values) == without_namespace(objects)
    for name in ("waddle-audit", "waddle-webhook"):
        (container,) = pod_of(objects, name)["spec"]["containers"]
        settings = read(container["args"][1:], ENVIRONMENT)
        assert settings.telemetry.otlp_endpoint == endpoint
        assert settings.telemetry.sends_metrics
        assert settings.telemetry.enable_tracing is (name == "waddle-webhook")


def test_the_chart_renders_what_the_component_of_the_console_adds(tmp_path):
    objects = with_components(tmp_path, "components/console")
    options = ("--include-crds", "--set", "console.enabled=true")

    assert helmed(*options) == without_namespace(objects)
    (container,) = pod_of(objects, "waddle-console")["spec"]["containers"]
    assert container["args"][0] == "console"
    with command.make_context("console", container["args"][1:]) as context:
        assert (context.params["kubernetes"], context.params["namespace"]) == (True, NAMESPACE)
        (port,) = container["ports"]
        assert context.params["port"] == port["containerPort"]


def test_the_chart_renders_what_the_console_s_login_and_live_review_add(tmp_path):
    names = ("console", "console-login", "console-live-review")
    objects = with_components(tmp_path, *(f"components/{name}" for name in names))
    values = {
        "enabled": "true",
        "liveReview": "true",
        "oidc.issuerURL": "https://issuer.example.com",
        "oidc.clientID": "waddle-console",
        "oidc.redirectURL": "https://waddle.example.com/oidc/callback",
    }
    settings = ",".join(f"console.{name}={value}" for name, value in values.items())

    assert helmed("--include-crds", "--set", settings) == without_namespace(objects)
    pod = pod_of(objects, "waddle-console")["spec"]
    [container] = pod["containers"]
    mounts = {one["mountPath"] for one in container["volumeMounts"]}
    assert mounts == {"/login"}
    given = [
        one
        for one in container["args"][1:]
        if not one.startswith(("--oidc-client-secret-file", "--cookie-key-file"))
    ]
    with command.make_context("console", given) as context:
        assert context.params["oidc_issuer_url"] == values["oidc.issuerURL"]
        assert context.params["session_minutes"] == 60


def test_the_chart_renders_what_the_component_of_the_image_provider_adds(tmp_path):
    objects = with_components(tmp_path, "components/image-provider")

    assert helmed("--include-crds", "--set", "imageProvider.enabled=true") == without_namespace(
        objects
    )
    pod = pod_of(objects, "waddle-images")["spec"]
    [container] = pod["containers"]
    [role] = [
        one
        for (kind, _, name), one in objects.items()
        if name == "waddle-images" and kind == "ClusterRole"
    ]
    [rule] = role["rules"]
    assert (rule["resources"], rule["verbs"]) == (
        ["verificationpolicies"],
        ["get", "list", "watch"],
    )
    accepts(tmp_path, container)


def test_keys_and_credentials_of_the_image_provider_come_from_secrets(tmp_path):
    bundle = base64.b64encode(b"an authority").decode()
    values = (
        "imageProvider.enabled=true,imageProvider.keySecrets={release,security},"
        f"imageProvider.registrySecrets={{pull}},imageProvider.caBundle={bundle}"
    )
    objects = helmed("--set", values)

    pod = pod_of(objects, "waddle-images")["spec"]
    [container] = pod["containers"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    places = {one["mountPath"]: volumes[one["name"]] for one in container["volumeMounts"]}
    for name in ("release", "security"):
        assert places[f"/secrets/{name}"]["secret"]["secretName"] == name
    assert "--registry-config=/registries/0.json" in container["args"]
    accepts(tmp_path, container)
    providers = {
        name: one["spec"] for (kind, _, name), one in objects.items() if kind == "Provider"
    }
    assert providers == {
        name: {
            "url": f"https://waddle-images.{NAMESPACE}.svc:8443{path}",
            "timeout": 3,
            "caBundle": bundle,
        }
        for name, path in (("images", "/"), ("image-digests", "/digest"))
    }


def accepts(folder, container):
    """The provider takes its arguments, and its ports and folders are those of the container."""
    from webhook.cli.images.provider import command as provider

    assert container["args"][:2] == ["provider", "images"]
    paths = {"--secrets": folder, "--cert-dir": folder, "--cache": folder / "known.db"}
    given = [
        f"{name}={paths[name]}" if (name := one.partition("=")[0]) in paths else one
        for one in container["args"][2:]
    ]
    with provider.make_context("images", given) as context:
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        assert ports == {
            "provider": context.params["port"],
            "metrics": context.params["metrics_port"],
        }
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert {"/certs", "/cache", "/secrets"} <= mounted


@pytest.mark.parametrize("more", [(), ("console-login", "console-live-review")])
def test_the_console_reads_and_no_secret(tmp_path, more):
    objects = with_components(tmp_path, *(f"components/{name}" for name in ("console", *more)))
    rules = [
        rule
        for kind, _, name in objects
        if kind in ("Role", "ClusterRole") and name == "waddle-console"
        for rule in objects[kind, NAMESPACE if kind == "Role" else "", name]["rules"]
    ]
    asks = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"]}
    creating = [rule for rule in rules if "create" in rule["verbs"]]
    assert creating == ([{**asks, "verbs": ["create"]}] if more else [])
    rules = [rule for rule in rules if rule["apiGroups"] != asks["apiGroups"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    core = {resource for rule in rules if "" in rule["apiGroups"] for resource in rule["resources"]}
    read = {"services", "serviceaccounts", "persistentvolumeclaims", "replicationcontrollers"}
    assert core == {"namespaces", "pods", "pods/proxy", *(read if more else ())}
    assert not [rule for rule in rules if "*" in rule["apiGroups"]]


@pytest.mark.parametrize(("components", "values"), DECISIONS)
def test_the_chart_renders_what_the_components_of_the_decision_log_add(
    tmp_path, components, values
):
    objects = with_components(tmp_path, *components)
    found = helmed("--include-crds", "--set", values)
    assert read_texts(found) == read_texts(without_namespace(objects))
    for name, of in (("waddle-webhook", "webhook"), ("waddle-audit", "audit")):
        (container,) = pod_of(objects, name)["spec"]["containers"]
        assert container["name"] == of
        configuration = read(container["args"][1:], ENVIRONMENT).logging.decision_log_config
        assert configuration == "/etc/waddle/decisions/exporter.yaml"


@pytest.mark.parametrize(
    "components",
    [
        ("decisions/exporter", "decisions/gatekeeper-format"),
        ("decisions/exporter", "decisions/persistent"),
        ("decisions/exporter", "decisions/audit-report"),
        ("decisions/sidecar", "decisions/exporter-gatekeeper-format"),
    ],
)
def test_a_component_for_what_is_not_there_fails_the_build(tmp_path, components):
    """Gatekeeper's format for sidecars gave the exporter a socket that nobody can reach."""
    with pytest.raises(subprocess.CalledProcessError):
        with_components(tmp_path, *components)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ("decisions.mode=pigeon", "'/decisions/mode'"),
        ("decisions.mode=sidecar,decisions.format=prose", "'/decisions/format'"),
        ("decisions.mode=sidecar,decisions.sinks[0].name=x", "'/decisions/sinks/0'"),
        ("decisions.mode=sidecar,decisions.queue.maxBytes=1e9", "'/decisions/queue/maxBytes'"),
        ("decisions.server.sidecarURL=unix:///x", "decisions.server.sidecarURL is the chart's"),
        ("decisions.mode=exporter,decisions.auditReport.enabled=true", "needs decisions.mode"),
        ("decisions.mode=exporter,decisions.queue.persistent=true", "needs decisions.mode"),
        (
            "decisions.mode=sidecar,decisions.auditReport.enabled=true,audit.enabled=false",
            "needs audit.enabled",
        ),
    ],
)
def test_the_chart_refuses_values_of_the_decision_log_that_make_nothing(values, complaint):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helmed("--set", values)
    assert complaint in refused.value.stderr


def test_the_chart_s_schema_knows_each_of_its_values_and_no_others():
    """All but what a chart that has this one as a part says to it."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def paths(described: Any, value: Any, path: str) -> Iterator[str]:
        if "properties" not in described or path.rstrip(".") in FREE:
            return
        assert described["additionalProperties"] is False, path
        assert described["properties"].keys() == value.keys(), path
        for name, below in described["properties"].items():
            yield f"{path}{name}"
            yield from paths(below, value[name], f"{path}{name}.")

    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {schema["properties"].pop(name)["type"] for name in ("global", "enabled")} == {
        "object",
        "boolean",
    }
    assert len(list(paths(schema, values, ""))) > 100
    assert helmed("--set", "enabled=true,global.image=x") == helmed()


def test_a_queue_of_the_servers_own_takes_the_place_of_the_exporter_s():
    options = ("--set", "decisions.mode=exporter,decisions.server.queue.maxRecords=7")
    data = helmed(*options)["ConfigMap", NAMESPACE, "waddle-decisions"]["data"]

    assert data["exporter.yaml"].count("queue:") == 1
    assert yaml.safe_load(data["exporter.yaml"])["queue"] == {"maxRecords": 7}


@pytest.fixture(scope="module")
def base() -> Objects:
    return kustomized(MANIFESTS / "base")


# --- what the manifests say ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [(), ("--set", "operations={webhook}"), ("--set", "certificates.existingSecret=c")]
)
def test_the_server_accepts_its_arguments(options):
    (container,) = pod_of(helmed(*options))["spec"]["containers"]
    assert container["args"][0] == "serve"
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.notices == ()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "webhook": settings.serving.port,
        "health": int(settings.serving.health_addr.removeprefix(":")),
        "metrics": settings.serving.prometheus_port,
    }


@pytest.mark.parametrize(
    "options",
    [(), ("--set", "audit.fromCache=true,audit.emitEvents=true,audit.intervalSeconds=10")],
)
def test_the_audit_accepts_its_arguments_and_serves_no_admission(options):
    (container,) = pod_of(helmed(*options), "waddle-audit")["spec"]["containers"]
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.notices == ()
    assert settings.audits
    assert not settings.serves_admission
    assert settings.audit.emit_events == settings.audit.from_cache == bool(options)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    health = int(settings.serving.health_addr.removeprefix(":"))
    assert ports == {"health": health, "metrics": settings.serving.prometheus_port}


def test_the_audit_is_one_and_its_successor_waits_for_its_end(base):
    spec = base["Deployment", NAMESPACE, "waddle-audit"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_pod_is_given_the_time_that_its_drain_takes(base):
    pod = pod_of(base)["spec"]
    settings = read(pod["containers"][0]["args"][1:], ENVIRONMENT)
    drain = (
        settings.serving.shutdown_delay_seconds
        + settings.serving.shutdown_grace_seconds
        + settings.logging.decision_log_grace_seconds
    )
    assert drain < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("folder", ["base", "overlays/fail-closed", "overlays/beside-gatekeeper"])
def test_bindings_and_evictions_of_pods_are_not_sent(folder):
    """A policy of all kinds that refused them kept Pods from being placed and nodes from draining."""
    refused = {
        "*/*",
        "pods/*",
        "pods/binding",
        "*/binding",
        "bindings",
        "pods/eviction",
        "*/eviction",
    }
    rules = [
        rule
        for (kind, _, _), item in kustomized(MANIFESTS / folder).items()
        if kind == "ValidatingWebhookConfiguration"
        for webhook in item["webhooks"]
        for rule in webhook["rules"]
    ]
    assert rules
    assert all(refused.isdisjoint(rule["resources"]) for rule in rules)


def test_the_image_and_the_chart_are_of_this_version(base):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert pod_of(base)["spec"]["containers"][0]["image"] == f"waddle:{__version__}"


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_descriptions(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [without_descriptions(item) for item in value] if isinstance(value, list) else value


def added(theirs: Any, ours: Any) -> set[str]:
    """The names that a schema has more than another; it must have all of the other."""
    if isinstance(theirs, dict):
        more = set(ours) - set(theirs)
        return more.union(*(added(item, ours[name]) for name, item in theirs.items()))
    if isinstance(theirs, list):
        assert len(theirs) == len(ours)
        return set().union(*(added(*pair) for pair in zip(theirs, ours, strict=True)))
    assert theirs == ours
    return set()


def test_the_crds_are_gatekeepers_and_have_our_fields_more(base):
    try:
        folder = gatekeeper_sources() / "charts" / "gatekeeper" / "crds"
    except ProgramUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    documents = [yaml.safe_load(file.read_text()) for file in folder.glob("*.yaml")]
    theirs = {item["spec"]["names"]["plural"]: item["spec"] for item in documents}
    ours = {
        item["spec"]["names"]["plural"]: item["spec"]
        for (kind, _, _), item in base.items()
        if kind == "CustomResourceDefinition"
        and item["spec"]["group"].endswith("gatekeeper.sh")
        and item["spec"]["names"]["plural"] not in OWN_STATUSES
    }
    assert ours.keys() == ADDITIONS.keys()
    found = {name: added(without_descriptions(theirs[name]), spec) for name, spec in ours.items()}
    assert found == ADDITIONS


def test_each_write_that_a_replica_may_make_has_its_row_in_the_decision_on_writes(tmp_path):
    """Beside what it may write, the row says why N replicas may do so, and what it costs."""
    (row,) = (ROOT / "docs" / "adr").glob("0028-*.md")
    rows = "".join(line.casefold() for line in row.read_text().splitlines() if line[:2] == "| ")
    components = ("components/mutation", "components/validate-policy")
    writes = {
        resource.partition("/")[0]
        for identity, role in with_components(tmp_path, *components).items()
        if identity[0] in ("ClusterRole", "Role") and not identity[2].startswith("waddle-audit")
        for rule in role.get("rules") or ()
        if {"create", "update", "patch", "delete"}.intersection(rule["verbs"])
        for resource in rule["resources"]
    }

    assert {"constraintpodstatuses", "validatingadmissionpolicies", "tokenreviews"} <= writes
    stems = {
        re.sub("(ie|e)?s$", "", resource) for resource in writes - {"*", "constrainttemplates"}
    }
    assert {stem for stem in stems if stem not in rows} == set()


def test_what_is_removed_at_once_makes_no_role_anew(tmp_path):
    """The controller of aggregated ClusterRoles applies one when a role that it selects goes.

    Helm deletes all ClusterRoles at once, and an apply after the deletion makes one again, which
    nobody removes then.
    """
    names = ("components/mutation", "components/validate-policy", "components/console")
    objects = with_components(tmp_path, *names, "reports/audit", "reports/admission")
    roles = [role for (kind, _, _), role in objects.items() if kind == "ClusterRole"]
    selectors = [
        compile_selector(selector)
        for role in roles
        for selector in role.get("aggregationRule", {}).get("clusterRoleSelectors", ())
    ]
    gathered = [
        role["metadata"]["name"]
        for role in roles
        for selects in selectors
        if selects(role["metadata"]["labels"])
    ]
    assert (len(selectors), gathered) == (2, [])
