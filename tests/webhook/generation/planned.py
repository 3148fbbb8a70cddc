"""Plans of policies for the API server."""

from typing import Any

from tests import policies
from webhook.generation.plan import Enforced, Options, Planner
from webhook.generation.scope import PolicyScope

ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def template(name="Named", operations=(), **source: Any) -> dict[str, Any]:
    """A template in CEL."""
    return policies.template(
        name,
        cel={"validations": [{"expression": "true", "message": "no"}], **source},
        schema=ANY,
        target={"operations": list(operations)} if operations else {},
        metadata={"uid": "t-uid", "generation": 3},
    )


def constraint(name="one", kind="Named", **spec: Any) -> dict[str, Any]:
    """A constraint of it."""
    metadata = {"uid": "c-uid", "generation": 2}
    return policies.constraint(kind, name, metadata=metadata, **spec)


def plan_of(
    of_template, *of_constraints, options=None, scope=None, action="deny", waits=lambda _: ""
):
    planner = Planner(options or Options(), "v1")
    templates = {} if of_template is None else {of_template["metadata"]["name"]: of_template}
    constraints = {
        (one["kind"], one["metadata"]["name"]): Enforced(one, action) for one in of_constraints
    }
    return planner.plan(templates, constraints, scope or PolicyScope(), waits)


ODD_TEXTS = [
    ({"validations": [{"expression": "true", "message": "a\nb"}]}, "has line breaks"),
    ({"validations": [{"expression": "true", "message": "a\rb"}]}, "has line breaks"),
    ({"variables": [{"name": "a-b", "expression": "1"}]}, '"a-b", which is not an identifier'),
    ({"variables": [{"name": "namespace", "expression": "1"}]}, "is not an identifier of CEL"),
    ({"variables": [{"expression": "1"}]}, '"", which is not an identifier'),
    ({"matchCondition": [{"expression": "true"}]}, "name part must be non-empty"),
    ({"matchCondition": [{"name": "a b", "expression": "true"}]}, "name part must consist of"),
]
"""Sources that the webhook takes, and the statuses of their policies."""
