"""All components at once, beside the chart with all of their values: each meets every other."""

import json
from typing import Any

import pytest
import yaml

from tests.manifests import (
    DECISIONS,
    MANIFESTS,
    helmed,
    read_texts,
    with_components,
    without_namespace,
)

TOGETHER = (
    *("components/mutation", "components/validate-policy", "components/telemetry"),
    *("components/alerts", "components/pod-monitor", "components/service-monitor", "dashboards"),
    *("components/console", "components/console-login", "components/console-live-review"),
    *("reports/audit", "reports/admission", "components/api-server-only"),
    *("decisions/sidecar", "decisions/persistent", "decisions/audit-report", "decisions/alerts"),
    *("components/image-provider", "components/openshift", "components/provider-trust"),
    *("components/kyverno-policies", "components/admission-policies"),
)
TOGETHER_VALUES = {
    "webhook": {"failClosed": True},
    "audit": {"admissionPolicies": True},
    "mutation": {"enabled": True},
    "validatePolicy": {"enabled": True},
    "telemetry": {
        "endpoint": "grpc://opentelemetry-collector.opentelemetry:4317",
        "metrics": True,
        "tracing": True,
    },
    **{
        name: {"enabled": True} for name in ("alerts", "podMonitor", "serviceMonitor", "dashboards")
    },
    "console": {
        "enabled": True,
        "liveReview": True,
        "oidc": {
            "issuerURL": "https://issuer.example.com",
            "clientID": "waddle-console",
            "redirectURL": "https://waddle.example.com/oidc/callback",
        },
    },
    "imageProvider": {"enabled": True},
    "reports": {"audit": True, "admission": True},
    "externalData": {"trust": {"namespace": "providers"}},
    "kyverno": {"policies": "enforce"},
    "networkPolicy": {"apiServers": [{"ipBlock": {"cidr": "192.0.2.10/32"}}]},
    "decisions": {
        "mode": "sidecar",
        "queue": {"persistent": True},
        "auditReport": {"enabled": True},
    },
    "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
}


EXCLUSIVE = (
    ("components/failure-policy-by-constraint", {"failurePolicyByConstraint": True}),
    ("components/webhook-rules-from-policies", {"rules": "policies"}),
)
"""Components that exclude others, each with its value of ``webhook``."""


@pytest.mark.parametrize(
    ("components", "overlay", "values"),
    [
        (TOGETHER, "overlays/fail-closed", TOGETHER_VALUES),
        *(((name,), "base", {"webhook": value}) for name, value in EXCLUSIVE),
    ],
    ids=["together", *(name.removeprefix("components/") for name, _ in EXCLUSIVE)],
)
@pytest.mark.usefixtures("program")
def test_the_chart_renders_what_all_components_make_together(tmp_path, components, overlay, values):
    """Rights, NetworkPolicies, Secrets and all else, where each meets every other."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    found = helmed("--include-crds", "--values", str(tmp_path / "values.yaml"))
    objects = with_components(tmp_path, *components, onto=overlay)

    made = read_texts(without_namespace(objects))
    assert found.keys() == made.keys()
    differing = [
        identity
        for identity, item in read_texts(found).items()
        if in_order(item) != in_order(made[identity])
    ]
    assert differing == []


def test_each_component_is_compared_with_the_chart():
    found = {
        str(file.parent.relative_to(MANIFESTS))
        for file in MANIFESTS.rglob("kustomization.yaml")
        if "kind: Component" in file.read_text()
    }
    apart = {name for components, _ in DECISIONS for name in components}
    apart |= {"components/autoscaling", "components/host-network"}
    apart |= {name for name, _ in EXCLUSIVE}
    # The chart has no Vector: sinks of the sidecar do what it did.
    assert found - {*TOGETHER, *apart} == {"decisions/vector"}


def in_order(value: Any) -> Any:
    """Without the order in which components were added: of flags, volumes and such."""
    if isinstance(value, dict):
        return {name: in_order(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted(map(in_order, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value
