"""The chart: its values are described and checked, its names can be chosen, its hooks are whole."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests import chart_pages
from tests.manifests import CHART, NAMESPACE, RELEASE_LABELS, Object, helmed, run, templated
from tests.programs import ROOT
from webhook.cli.main import waddle
from webhook.decisions import configuration
from webhook.decisions.exporter.settings import read_settings
from webhook.settings.reading import read

VALUES = (CHART / "values.yaml").read_text()


# --- values: nothing but Python -------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(chart_pages.pages()))
def test_what_is_made_of_the_values_is_as_it_would_be_made_now(name):
    assert (CHART / name).read_text() == chart_pages.pages()[name], (
        "python -m tests.chart_pages makes it anew"
    )


def test_every_bound_is_of_a_value_that_there_is():
    paths = {value.path: value for value in chart_pages.values(VALUES)}
    assert paths.keys() >= chart_pages.FREE | chart_pages.BOUNDS.keys()


def test_a_value_without_a_comment_is_an_error():
    with pytest.raises(chart_pages.UndescribedError, match=r"a\.b"):
        list(chart_pages.values("a:\n  # it\n  c: 1\n\n  b: 2\n"))


def test_no_value_is_declared_that_no_template_reads():
    texts = [file.read_text() for file in (CHART / "templates").rglob("*.*")]
    leaves = [value.path for value in chart_pages.values(VALUES) if not value.is_group]
    joined = "\n".join(texts)
    aliased = joined.replace("$decisions.", ".Values.decisions.")
    assert [path for path in leaves if f".Values.{path}" not in aliased] == []


@pytest.mark.parametrize(
    ("inside", "outside"), [("crds", "manifests/crds"), ("dashboards", "manifests/dashboards")]
)
def test_the_chart_holds_files_and_no_links_equal_to_their_source(inside, outside):
    """Packers of charts from repositories may leave links out, as Flux does."""
    files = sorted((CHART / inside).iterdir())
    assert not [file for file in files if file.is_symlink()]
    named = {file.name for file in files}
    assert named == {file.name for file in (ROOT / outside).iterdir() if file.name in named}
    differing = [
        file.name
        for file in files
        if file.read_bytes() != (ROOT / outside / file.name).read_bytes()
    ]
    assert differing == [], "cp manifests/crds/* and manifests/dashboards/* into the chart"


def test_nothing_that_is_installed_listens_by_ipv4_alone():
    """Pods of a cluster of IPv6 alone have no such address: neither probes nor scrapes reach it."""
    files = [
        file
        for file in (ROOT / "manifests").rglob("*")
        if file.suffix in {".yaml", ".tpl", ".yml"} and "0.0.0.0" in file.read_text()
    ]
    assert files == []


# --- what Helm makes of them ----------------------------------------------------------------------


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("webhook.failurePolicy=Ingore", "'/webhook/failurePolicy': value must be one of"),
        ("mutation.failurePolicy=fail", "'/mutation/failurePolicy': value must be one of"),
        ("webhook.failurPolicy=Fail", "'/webhook': additional properties 'failurPolicy' not allow"),
        ("replica=5", "additional properties 'replica' not allowed"),
        ("replicas=many", "'/replicas': got string, want integer"),
        ("webhook.timeoutSeconds=31", "'/webhook/timeoutSeconds': maximum: got 31, want 30"),
        ("operations={webhok}", "'/operations/0': value must be one of"),
        ("operations={status}", "'/operations': no items match contains schema"),
        ("fullnameOverride=my.guard", "'/fullnameOverride':"),
        ("console.oidc.secret=", "'/console/oidc/secret': minLength"),
        ("decisions.exporter.serverSecret=", "'/decisions/exporter/serverSecret': minLength"),
        (
            r"podLabels.gatekeeper\.sh/operation=a",
            "podLabels must not have gatekeeper.sh/operation",
        ),
        ("extraEnv[0].name=POD_UID", "extraEnv must not have POD_UID"),
        ("resourceQuota.pods=3", "resourceQuota.pods is less than the 4 Pods"),
        (
            "autoscaling.enabled=true,autoscaling.maxReplicas=100",
            "resourceQuota.pods is less than the 101 Pods",
        ),
        ("decisions.queue.storage=much", "'/decisions/queue/storage':"),
        ("decision.mode=sidecar", "'decision' not allowed"),
        # Values that a sidecar or a server would refuse at its start:
        ("decisions.server.includeObject=true", "'includeObject' not allowed"),
        ("decisions.server.includeObjects=yes", "'/decisions/server/includeObjects': got string"),
        ("decisions.server.queue.maxRecord=7", "'/decisions/server/queue': additional"),
        ("decisions.server.rules[0].verdict={deny}", "'/decisions/server/rules/0': additional"),
        ("decisions.server.rules[0].verdicts={denied}", "verdicts/0': value must be one of"),
        ("decisions.server.maskKinds[0].kinds={Secret}", "missing property 'paths'"),
        ("decisions.sinks[0].select.action={deny}", "'/decisions/sinks/0/select': additional"),
        ("decisions.sinks[0].batch.maxRecord=1", "'/decisions/sinks/0/batch': additional"),
        ("decisions.queue.maxBytes=5000000", "'/decisions/queue/maxBytes': minimum"),
        ("decisions.exporter.maxBytes=5000000", "'/decisions/exporter/maxBytes': minimum"),
        ("decisions.enabled=true", "'enabled' not allowed"),
        ("mutation.enable=true", "'enable' not allowed"),
        ("alerts=true", "'/alerts'"),
        ("operations=webhook", "'/operations'"),
        ("webhook.failurePolicy=fail", "'/webhook/failurePolicy'"),
        ("replicas=two", "'/replicas'"),
        ("telemetry.endpoint=collector", "'/telemetry/endpoint'"),
        ("telemetry.samplesPerMillion=-1", "'/telemetry/samplesPerMillion'"),
        ("telemetry.tracing=true", "telemetry.endpoint is needed"),
        ("ports.health=8443", "ports.health=8443 is also the port of ports.admission"),
        ("ports.metrics=9090", "ports.metrics=9090 is also the port of ports.health"),
        (
            "decisions.mode=sidecar,ports.metrics=8889",
            "ports.metrics=8889 is also the port of the decision log's sidecar",
        ),
        (
            "autoscaling.enabled=true,autoscaling.minReplicas=11",
            "autoscaling.minReplicas is more than autoscaling.maxReplicas",
        ),
    ],
)
def test_a_typo_in_a_value_fails_the_install_and_says_where(value, complaint):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        templated("--set", value)
    assert complaint in refused.value.stderr


EVERYTHING = (
    "alerts.enabled=true,autoscaling.enabled=true,podMonitor.enabled=true,mutation.enabled=true,"
    "serviceMonitor.enabled=true,reports.audit=true,reports.admission=true,"
    "validatePolicy.enabled=true,dashboards.enabled=true,console.enabled=true,decisions.mode=sidecar,decisions.auditReport.enabled=true,"
    "decisions.queue.persistent=true,webhook.failClosed=true,"
    "telemetry.endpoint=grpc://collector:4317,telemetry.metrics=true,telemetry.tracing=true"
)
TOLERANT = "tolerations[0].operator=Exists,image.pullSecrets[0].name=r,image.pullPolicy=Always"


@pytest.mark.parametrize(
    "values", ["replicas=3", EVERYTHING, "decisions.mode=exporter,alerts.enabled=true", TOLERANT]
)
def test_helm_s_own_lint_finds_nothing(program, values):
    finished = run(program("helm"), "lint", "--strict", CHART, "--set", values)
    assert "0 chart(s) failed" in finished


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("release", "values", "prefix"),
    [
        ("r", "fullnameOverride=guard", "guard"),
        ("r", "nameOverride=guard", "r-guard"),
        ("my-guard", "nameOverride=guard", "my-guard"),
        ("r", "", "waddle"),
    ],
)
@pytest.mark.parametrize("more", [EVERYTHING, "decisions.mode=exporter"])
def test_the_names_of_all_objects_can_be_chosen(release, values, prefix, more):
    options = ["--set", ",".join(filter(None, (values, more)))]
    found = templated(*options, release=release)
    strange = [name for _, _, name in found if name != prefix and not name.startswith(f"{prefix}-")]
    assert strange == []
    everywhere = yaml.safe_dump(list(found.values()))
    webhook = found["Deployment", NAMESPACE, f"{prefix}-webhook"]["spec"]["template"]["spec"]
    settings = read(webhook["containers"][0]["args"][1:], {"POD_NAME": "p", "POD_NAMESPACE": "n"})
    named = {
        ("Service", NAMESPACE, settings.tls.cert_service_name),
        ("Secret", NAMESPACE, settings.tls.cert_secret_name),
        ("ServiceAccount", NAMESPACE, webhook["serviceAccountName"]),
        ("ValidatingWebhookConfiguration", "", settings.tls.validating_webhook_configuration_name),
    }
    if settings.mutates:
        name = settings.tls.mutating_webhook_configuration_name
        named.add(("MutatingWebhookConfiguration", "", name))
    assert named <= found.keys()
    assert everywhere.count(f"system:serviceaccount:{NAMESPACE}:") == everywhere.count(
        f"system:serviceaccount:{NAMESPACE}:{webhook['serviceAccountName']}"
    )
    for reference in references(everywhere):
        assert reference in found, f"nothing is named so: {reference}"


def references(text: str) -> set[tuple[str, str, str]]:
    """Returns the names in references: roles, accounts, claims, ConfigMaps."""
    found = set()
    for item in yaml.safe_load(text):
        if item["kind"].endswith("Binding"):
            role, namespace = item["roleRef"], item["metadata"].get("namespace", "")
            found.add((role["kind"], namespace if role["kind"] == "Role" else "", role["name"]))
            found |= {("ServiceAccount", NAMESPACE, one["name"]) for one in item["subjects"]}
        if item["kind"] == "Deployment":
            for volume in item["spec"]["template"]["spec"].get("volumes") or ():
                if claim := volume.get("persistentVolumeClaim"):
                    found.add(("PersistentVolumeClaim", NAMESPACE, claim["claimName"]))
                if config := volume.get("configMap"):
                    found.add(("ConfigMap", NAMESPACE, config["name"]))
    return found - {("ClusterRole", "", "view")}


@pytest.mark.usefixtures("program")
def test_no_selector_has_a_label_that_an_upgrade_changes():
    for item in templated("--set", EVERYTHING).values():
        for selector in selectors_of(item):
            assert not RELEASE_LABELS & selector.keys()


def selectors_of(value: Any) -> list[Object]:
    if isinstance(value, list):
        return [found for item in value for found in selectors_of(item)]
    if not isinstance(value, dict):
        return []
    here = [value["matchLabels"]] if isinstance(value.get("matchLabels"), dict) else []
    if isinstance(plain := value.get("selector"), dict) and "matchLabels" not in plain:
        here.append(plain)
    return here + [found for item in value.values() for found in selectors_of(item)]


@pytest.mark.usefixtures("program")
def test_replicas_spread_as_configured():
    values = '[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]'
    found = helmed("--set-json", f"topologySpreadConstraints={values}")
    pod = found["Deployment", NAMESPACE, "waddle-webhook"]["spec"]["template"]["spec"]
    assert pod["topologySpreadConstraints"] == yaml.safe_load(values)


@pytest.mark.usefixtures("program")
def test_the_job_before_an_uninstall_asks_for_what_waddle_understands():
    found = templated("--set", "fullnameOverride=guard")
    job = found["Job", NAMESPACE, "guard-uninstall"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = waddle.get_command(None, container["args"][0])  # type: ignore[arg-type]
    context = command.make_context("uninstall", container["args"][1:])
    assert context.params["webhooks"]
    assert context.params["yes"]
    assert not context.params["policies"]
    assert context.params["name"] == "guard"
    without = templated("--set", "uninstallHook.enabled=false")
    assert not [name for _, _, name in without if "uninstall" in name]


@pytest.mark.usefixtures("program")
def test_every_pod_runs_where_the_values_say():
    """The exporter's was left where nodes of its kind may not be."""
    where = "nodeSelector.disk=fast,tolerations[0].operator=Exists"
    found = templated("--set", f"{where},decisions.mode=exporter,console.enabled=true")
    pods = {
        name: item["spec"]["template"]["spec"] if kind != "Pod" else item["spec"]
        for (kind, _, name), item in found.items()
        if kind in ("Deployment", "Job", "Pod")
    }
    assert len(pods) >= 5
    for name, pod in pods.items():
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "disk": "fast"}, name
        assert pod["tolerations"] == [{"operator": "Exists"}], name


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("replicas", "strategy", "mode"),
    [(1, "Recreate", "ReadWriteOnce"), (2, "RollingUpdate", "ReadWriteMany")],
)
def test_several_audits_are_replaced_one_by_one_and_share_their_reports_volume(
    replicas, strategy, mode
):
    values = "decisions.mode=sidecar,decisions.auditReport.enabled=true"
    found = templated("--set", f"audit.replicas={replicas},{values}")
    assert found["Deployment", NAMESPACE, "waddle-audit"]["spec"]["strategy"] == {"type": strategy}
    claim = found["PersistentVolumeClaim", NAMESPACE, "waddle-audit-report"]
    assert claim["spec"]["accessModes"] == [mode]


@pytest.mark.usefixtures("program")
def test_what_the_page_shows_of_the_servers_configuration_are_values_of_the_chart(tmp_path):
    """Each key of docs/decisions.md, and what the chart makes of them is read by the server."""
    page = (ROOT / "docs" / "decisions.md").read_text()
    (shown,) = [
        yaml.safe_load(text.replace("…", "x"))
        for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        if text.startswith("sidecarURL")
    ]
    shown.pop("sidecarURL")
    shown.pop("tls")
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"decisions": {"mode": "sidecar", "server": shown}}))
    found = templated("--values", values)
    text = found["ConfigMap", NAMESPACE, "waddle-decisions"]["data"]["exporter.yaml"]
    assert read_settings(configuration.parse(text.encode(), "exporter.yaml")).include_user_info
    assert yaml.safe_load(text).items() >= shown.items()


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("mode", ["sidecar", "exporter"])
def test_a_server_without_settings_of_its_own_can_read_its_file(mode):
    """Null takes the only default away, and `{}` stood behind the address."""
    found = templated("--set", f"decisions.mode={mode},decisions.server.rules=null")
    text = found["ConfigMap", NAMESPACE, "waddle-decisions"]["data"]["exporter.yaml"]
    read_settings(configuration.parse(text.encode(), "exporter.yaml"))


@pytest.mark.usefixtures("program")
def test_helm_s_test_reaches_the_port_that_is_closed_to_pods():
    """With the API server's addresses alone in the NetworkPolicy it waited in vain."""
    value = "networkPolicy.apiServers[0].ipBlock.cidr=192.0.2.7/32"
    found = templated("--set", value)
    pod = found["Pod", NAMESPACE, "waddle-answers"]["metadata"]["labels"]
    policy = found["NetworkPolicy", NAMESPACE, "waddle-answers"]
    assert policy["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (rule,) = policy["spec"]["ingress"]
    assert pod.items() >= rule["from"][0]["podSelector"]["matchLabels"].items()
    without = templated()
    assert ("NetworkPolicy", NAMESPACE, "waddle-answers") not in without


@pytest.mark.usefixtures("program")
def test_every_pod_has_the_labels_of_the_values():
    values = "podLabels.team=a,console.enabled=true,imageProvider.enabled=true"
    found = templated("--set", f"{values},decisions.mode=exporter")
    pods = {
        name: item["metadata"] if kind == "Pod" else item["spec"]["template"]["metadata"]
        for (kind, _, name), item in found.items()
        if kind in ("Deployment", "Job", "Pod")
    }
    assert len(pods) == 7
    assert [name for name, metadata in pods.items() if metadata["labels"].get("team") != "a"] == []


@pytest.mark.usefixtures("program")
def test_both_webhooks_of_a_cluster_that_fails_closed_keep_what_the_values_say():
    """Conditions, labels and operations stood in the one that is open, and nowhere else."""
    values = (
        "webhook.failClosed=true,webhook.operations={CREATE,UPDATE,DELETE},"
        "webhook.objectSelector.matchLabels.asked=yes,"
        "webhook.matchConditions[0].name=mine,webhook.matchConditions[0].expression=true"
    )
    configuration = templated("--set", values)[
        "ValidatingWebhookConfiguration", "", "waddle-validating-webhook-configuration"
    ]
    others, label, closed = configuration["webhooks"]
    assert label["name"] == "check-ignore-label.gatekeeper.sh"
    for webhook in (others, closed):
        assert webhook["objectSelector"] == {"matchLabels": {"asked": "yes"}}
        assert "mine" in [condition["name"] for condition in webhook["matchConditions"]]
        for rule in webhook["rules"]:
            assert rule["operations"] == ["CREATE", "UPDATE", "DELETE"]


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("other", ["webhook.failClosed=true", "webhook.failurePolicy=Fail"])
def test_constraints_say_what_fails_closed_or_kinds_do(other):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        templated("--set", f"webhook.failurePolicyByConstraint=true,{other}")
    assert f"webhook.failurePolicyByConstraint and {other.removesuffix('=true')}" in str(
        refused.value.stderr
    )


@pytest.mark.usefixtures("program")
def test_workloads_of_the_network_are_reviewed_and_not_refused_where_nobody_answers():
    values = "webhook.failClosed=true,webhook.failClosedExcludedNamespaces={my-network}"
    configuration = templated("--set", values)[
        "ValidatingWebhookConfiguration", "", "waddle-validating-webhook-configuration"
    ]
    others, _, closed = configuration["webhooks"]
    (excluded,) = (
        expression
        for expression in closed["namespaceSelector"]["matchExpressions"]
        if expression["operator"] == "NotIn"
    )
    assert "my-network" in excluded["values"]
    conditions = {one["name"]: one["expression"] for one in others["matchConditions"]}
    assert '"my-network"' in conditions["exclude-fail-closed"]


@pytest.mark.usefixtures("program")
def test_annotations_reach_both_configurations():
    """cert-manager writes the caBundle of a configuration that says so, and of no other."""
    found = templated("--set", "mutation.enabled=true,webhook.annotations.a=b")
    annotated = [
        value["metadata"].get("annotations")
        for (kind, _, _), value in found.items()
        if kind.endswith("WebhookConfiguration")
    ]
    assert annotated == [{"a": "b"}, {"a": "b"}]


@pytest.mark.usefixtures("program")
def test_autoscaling_begins_with_its_fewest_replicas_and_not_with_one():
    found = templated("--set", "autoscaling.enabled=true,autoscaling.minReplicas=4")
    assert found["Deployment", NAMESPACE, "waddle-webhook"]["spec"]["replicas"] == 4
