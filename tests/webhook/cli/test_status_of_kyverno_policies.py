"""What `waddle status` says of Kyverno's policies and exceptions."""

from __future__ import annotations

from typing import Any

from webhook.cli.cluster_policies import standings_of
from webhook.cli.status.report import ClusterStanding, as_table


def document(kind: str, name: str, namespace: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    head = {"apiVersion": "policies.kyverno.io/v1", "kind": kind}
    return {**head, "metadata": metadata, "spec": spec}


def policy(name: str, expression: str, **spec: Any) -> dict[str, Any]:
    return document("ValidatingPolicy", name, validations=[{"expression": expression}], **spec)


def test_each_is_usable_or_not_with_what_is_odd_about_it() -> None:
    refs = [{"kind": "ValidatingPolicy", "name": "gone"}]
    told = standings_of(
        [
            policy("unusable", "random() == ''"),
            policy("about-nothing", "true", validationActions=["Audit", "Warn"]),
            policy("http", "true", evaluation={"mode": "HTTP"}),
            document("PolicyException", "of-none", "shop", policyRefs=refs),
        ]
    )
    assert [(one.title, one.state) for one in told] == [
        ("PolicyException/shop/of-none", "Usable"),
        ("ValidatingPolicy/about-nothing", "Usable"),
        ("ValidatingPolicy/http", "Unusable"),
        ("ValidatingPolicy/unusable", "Unusable"),
    ]
    assert all(one.notes for one in told)
    shown = as_table(ClusterStanding([], [], [], {}, (), told), "waddle-system")
    assert "Audit+Warn" in shown
    assert "ValidatingPolicy/http: spec.evaluation.mode HTTP: " in shown
    assert "PolicyException/shop/of-none: none of the policies that it names is there" in shown
