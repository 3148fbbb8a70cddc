"""The OpenAPI schema of ConstraintGroups, equal to their CRD in manifests/crds."""

from __future__ import annotations

from typing import Any, Final

from webhook.constraint.names import POLICY_NAME_MAX
from webhook.constraint.schema import SCOPED_ACTIONS
from webhook.constraint.targets.match_schema import MATCH_SCHEMA, OBJECT_MATCH_SCHEMA


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_MEMBER: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A template with parameters, or a constraint.",
    "properties": {
        "kind": _text("The constraint kind of a template."),
        "parameters": {
            "description": "Its parameters, as a constraint of it would have them.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "constraint": {
            "type": "object",
            "description": "A constraint. Its parameters count, its match and its action do not.",
            "required": ["kind", "name"],
            "properties": {
                "kind": _text("The constraint's kind."),
                "name": _text("The constraint's name."),
            },
        },
    },
}

_CASE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "match": {
            **OBJECT_MATCH_SCHEMA,
            "description": "Which objects the case is for. The last case has none.",
        },
        "member": _text("The member that decides."),
        "accept": {"type": "boolean", "description": "Nothing is asked of these objects."},
    },
}

SPEC: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["members"],
    "properties": {
        "match": MATCH_SCHEMA,
        "enforcementAction": {"type": "string", "default": "deny"},
        "scopedEnforcementActions": SCOPED_ACTIONS,
        "message": _text("The violation's message, in the place of the members' messages."),
        "members": {
            "type": "object",
            "description": "What the group is made of, by names that are identifiers.",
            "minProperties": 1,
            "additionalProperties": _MEMBER,
        },
        "expression": _text(
            "Calls of members, as id(), with &&, ||, !, ==, != and parentheses: true accepts."
        ),
        "firstMatch": {
            "type": "array",
            "description": "Cases: the first that matches decides. The last has no match.",
            "minItems": 1,
            "items": _CASE,
        },
    },
}

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Several policies that are decided as one constraint.",
    "required": ["spec"],
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": POLICY_NAME_MAX}},
        },
        "spec": SPEC,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
