"""Overlays take the components that the base takes, and the chart has those for other clusters."""

import pytest

from tests.manifests import (
    ENVIRONMENT,
    MANIFESTS,
    NAMESPACE,
    helmed,
    pod_of,
    with_components,
    without_namespace,
)
from webhook.settings.reading import read

pytestmark = pytest.mark.usefixtures("program")

DECISIONS = ("decisions/sidecar", "decisions/exporter", "decisions/vector")


@pytest.mark.parametrize("component", DECISIONS)
@pytest.mark.parametrize("overlay", ["overlays/beside-gatekeeper", "overlays/fail-closed"])
def test_each_overlay_takes_the_decision_log(tmp_path, overlay, component):
    """The way from Gatekeeper to Waddle has it beside Gatekeeper (docs/migrating.md)."""
    objects = with_components(tmp_path, component, onto=overlay)
    has_audit = overlay == "overlays/fail-closed"
    assert (("Deployment", NAMESPACE, "waddle-audit") in objects) is has_audit
    for name in ("waddle-webhook", "waddle-audit")[: 1 + has_audit]:
        (container,) = pod_of(objects, name)["spec"]["containers"]
        settings = read(container["args"][1:], ENVIRONMENT)
        assert settings.logging.decision_log_config == "/etc/waddle/decisions/exporter.yaml"


def test_beside_gatekeeper_every_component_can_be_had_that_needs_no_audit(tmp_path):
    found = sorted(
        str(file.parent.relative_to(MANIFESTS))
        for file in MANIFESTS.rglob("kustomization.yaml")
        if "kind: Component" in file.read_text()
    )
    assert len(found) > 15
    # One decision log at a time, tried above; a report of audits has no audit there.
    chosen = [name for name in found if not name.startswith("decisions/")]
    objects = with_components(
        tmp_path,
        *sorted(chosen, key=lambda name: name.startswith("components/console-")),
        *("decisions/sidecar", "decisions/persistent", "decisions/alerts"),
        onto="overlays/beside-gatekeeper",
    )
    assert ("Deployment", NAMESPACE, "waddle-audit") not in objects


def test_the_chart_renders_what_the_component_of_the_host_s_network_adds(tmp_path):
    objects = with_components(tmp_path, "components/host-network")

    assert helmed("--include-crds", "--set", "hostNetwork=true") == without_namespace(objects)


def test_the_chart_renders_what_the_component_for_openshift_takes_away(tmp_path):
    objects = with_components(tmp_path, "components/console", "components/openshift")
    ours = [f"podSecurityContext.{name}=null" for name in ("runAsUser", "runAsGroup", "fsGroup")]
    values = ",".join(["console.enabled=true", *ours])

    assert helmed("--include-crds", "--set", values) == without_namespace(objects)
    for name in ("waddle-webhook", "waddle-audit", "waddle-console"):
        assert pod_of(objects, name)["spec"]["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
