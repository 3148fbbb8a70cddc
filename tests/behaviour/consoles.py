"""Consoles over a cluster, and what they follow there."""

from typing import Any

from tests.webhook.console.assembled import KIND
from tests.webhook.console.pictures import template as shown_template
from webhook.policy_kinds.known import constraints_of

NAMESPACE = "waddle-system"
CONSTRAINTS = constraints_of(KIND)


def template() -> dict[str, Any]:
    rego = 'package requiredlabel\nviolation[{"msg": "no"}] { input.parameters.label == "new" }\n'
    document = dict(shown_template("requiredlabel", rego=rego).document)
    spec = document["spec"]["crd"]["spec"]
    spec["names"]["kind"] = KIND
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    spec["validation"] = {"openAPIV3Schema": schema}
    return document


def in_namespace(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "namespace": NAMESPACE}}
