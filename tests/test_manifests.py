"""What is applied to a cluster: kustomize and Helm render the same, and the code agrees with it."""

import subprocess
from typing import Any

import pytest
import yaml

from tests.manifests import (
    CHART,
    ENVIRONMENT,
    MANIFESTS,
    NAMESPACE,
    Objects,
    helmed,
    kustomized,
    pod_of,
    with_components,
)
from tests.programs import ProgramUnavailableError, gatekeeper_sources
from webhook import __version__
from webhook.settings.reading import read

pytestmark = pytest.mark.usefixtures("program")  # kustomize and Helm

ACTIVE = {"activeGeneration", "activeDigest", "activeRevision", "rolledBackTo"}
MUTATED = {"since", "preview", "fighting", *ACTIVE}
CONDITIONS = {"conditions", "additionalPrinterColumns"}
ADDITIONS = {
    "configpodstatuses": {"activeGeneration", "since"},
    "configs": {"activeGeneration", "since"},
    "constraintpodstatuses": {
        *("since", "enforcementAction", "lastViolation", "fault", "breaker", "audit"),
        *ACTIVE,
    },
    "constrainttemplatepodstatuses": {"since", "missingData", "fault", *ACTIVE},
    "constrainttemplates": {"conditions", "additionalPrinterColumns"},
    "syncsets": set(),
    **dict.fromkeys(("assign", "assignimage", "assignmetadata", "modifyset"), MUTATED | CONDITIONS),
    "mutatorpodstatuses": MUTATED,
    "expansiontemplate": {"since", *ACTIVE, *CONDITIONS},
    "expansiontemplatepodstatuses": {"since", *ACTIVE},
}
"""The fields of ours in Gatekeeper's CRDs."""


def without_namespace(objects: Objects) -> Any:
    """Helm makes the release's namespace by itself; the chart's notes say how to label it."""
    return {identity: item for identity, item in objects.items() if identity[0] != "Namespace"}


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

    assert helmed(*options) == without_namespace(objects)


def test_the_chart_renders_what_the_components_of_reports_add(tmp_path):
    objects = with_components(tmp_path, "reports/audit", "reports/admission")
    options = ("--include-crds", "--set", "reports.audit=true,reports.admission=true")

    assert helmed(*options) == without_namespace(objects)
    for name in ("waddle-audit", "waddle-webhook"):
        (container,) = pod_of(objects, name)["spec"]["containers"]
        assert read(container["args"][1:], ENVIRONMENT).reports


def test_the_chart_renders_what_the_component_that_validates_policies_adds(tmp_path):
    objects = with_components(tmp_path, "components/validate-policy")
    options = ("--include-crds", "--set", "validatePolicy.enabled=true")

    assert helmed(*options) == without_namespace(objects)
    (container,) = pod_of(objects, "waddle-webhook")["spec"]["containers"]
    assert read(container["args"][1:], ENVIRONMENT).enable_validate_policy


def test_the_chart_renders_what_the_component_of_mutation_adds(tmp_path):
    objects = with_components(tmp_path, "components/mutation")
    options = ("--include-crds", "--set", "mutation.enabled=true")

    assert helmed(*options) == without_namespace(objects)
    (container,) = pod_of(objects, "waddle-webhook")["spec"]["containers"]
    settings = read(container["args"][1:], ENVIRONMENT)
    assert settings.mutates
    name = settings.mutating_webhook_configuration_name
    assert ("MutatingWebhookConfiguration", "", name) in objects


PERSISTENT = "decisions.mode=sidecar,decisions.queue.persistent=true"
MONITORED = "alerts.enabled=true,podMonitor.enabled=true"
DECISIONS = [
    (("decisions/sidecar",), "decisions.mode=sidecar"),
    (("decisions/exporter",), "decisions.mode=exporter"),
    (
        ("decisions/sidecar", "decisions/persistent"),
        PERSISTENT,
    ),
    (
        ("decisions/sidecar", "decisions/gatekeeper-format"),
        "decisions.mode=sidecar,decisions.format=gatekeeper",
    ),
    (
        (
            *("components/alerts", "components/pod-monitor", "decisions/sidecar"),
            *("decisions/persistent", "decisions/audit-report", "decisions/alerts"),
        ),
        f"{PERSISTENT},decisions.auditReport.enabled=true,{MONITORED}",
    ),
]


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
        configuration = read(container["args"][1:], ENVIRONMENT).decision_log_config
        assert configuration == "/etc/waddle/decisions/exporter.yaml"


def read_texts(objects: Objects) -> Any:
    """With what is in ConfigMaps read: comments and the form are each one's own."""
    found = {}
    for identity, item in objects.items():
        if item["kind"] == "ConfigMap":
            data = {name: yaml.safe_load(text) for name, text in item["data"].items()}
            found[identity] = item | {"data": data}
        else:
            found[identity] = item
    return found


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ("decisions.mode=pigeon", "decisions.mode must be"),
        ("decisions.mode=sidecar,decisions.format=prose", "decisions.format must be"),
        ("decisions.mode=exporter,decisions.auditReport.enabled=true", "needs decisions.mode"),
    ],
)
def test_the_chart_refuses_values_of_the_decision_log_that_make_nothing(values, complaint):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helmed("--set", values)
    assert complaint in refused.value.stderr


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
        "webhook": settings.port,
        "health": int(settings.health_addr.removeprefix(":")),
        "metrics": settings.prometheus_port,
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
    assert settings.emit_audit_events == settings.audit_from_cache == bool(options)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    health = int(settings.health_addr.removeprefix(":"))
    assert ports == {"health": health, "metrics": settings.prometheus_port}


def test_the_audit_is_one_and_its_successor_waits_for_its_end(base):
    spec = base["Deployment", NAMESPACE, "waddle-audit"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_pod_is_given_the_time_that_its_drain_takes(base):
    pod = pod_of(base)["spec"]
    settings = read(pod["containers"][0]["args"][1:], ENVIRONMENT)
    drain = (
        settings.shutdown_delay_seconds
        + settings.shutdown_grace_seconds
        + settings.decision_log_grace_seconds
    )
    assert drain < pod["terminationGracePeriodSeconds"]


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
        if kind == "CustomResourceDefinition" and item["spec"]["group"].endswith("gatekeeper.sh")
    }
    assert ours.keys() == ADDITIONS.keys()
    found = {name: added(without_descriptions(theirs[name]), spec) for name, spec in ours.items()}
    assert found == ADDITIONS
