"""The OpenAPI schema of the admission target's ``spec.match``.

The fields, types and patterns are those of Gatekeeper's match CRD; the
descriptions are ours.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.api.config import PROCESSES

WILDCARD_PATTERN: Final = r"^\*?[-:a-z0-9]*\*?$"


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": {"type": "string"}}


def _wildcards(description: str) -> dict[str, Any]:
    items = {"type": "string", "pattern": WILDCARD_PATTERN}
    return {"type": "array", "description": description, "items": items}


def selector_schema(description: str) -> dict[str, Any]:
    """Returns the schema of a label selector."""
    requirement = {
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {"type": "string", "description": "The label's name."},
            "operator": {"type": "string", "description": "In, NotIn, Exists or DoesNotExist."},
            "values": {
                **_texts("What In and NotIn compare with."),
                "x-kubernetes-list-type": "atomic",
            },
        },
    }
    return {
        "type": "object",
        "description": description,
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "description": "Requirements, all of which must hold.",
                "items": requirement,
                "x-kubernetes-list-type": "atomic",
            },
            "matchLabels": {
                "type": "object",
                "description": "Labels that must be there with these values.",
                "additionalProperties": {"type": "string"},
            },
        },
    }


MATCH_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Which objects the constraint applies to. All criteria must hold.",
    "properties": {
        "excludedNamespaces": _wildcards(
            "Namespaces to leave out; a * in front or at the end stands for anything."
        ),
        "kinds": {
            "type": "array",
            "description": "Groups with kinds; one must hold. None at all means everything.",
            "items": {
                "type": "object",
                "properties": {
                    "apiGroups": _texts("API groups; * is all of them, as is none."),
                    "kinds": _texts("Kinds; * is all of them, as is none."),
                },
            },
        },
        "labelSelector": selector_schema("Selects by the object's labels."),
        "name": {
            "type": "string",
            "description": "The object's name; a * in front or at the end stands for anything.",
            "pattern": WILDCARD_PATTERN,
        },
        "namespaceSelector": selector_schema(
            "Selects by the labels of the object's Namespace, or of the object if it is one."
        ),
        "namespaces": _wildcards(
            "Namespaces to keep to; a * in front or at the end stands for anything."
        ),
        "processes": {
            "type": "array",
            "description": "Where excludedNamespaces holds; everywhere without any.",
            "items": {"type": "string", "enum": list(PROCESSES)},
        },
        "scope": {"type": "string", "description": "*, Cluster or Namespaced."},
        "source": {
            "type": "string",
            "description": "Whether objects as they came, or those made by expansion: All, "
            "Original or Generated.",
            "enum": ["All", "Generated", "Original"],
        },
    },
}

OWN_FIELDS: Final = ("processes",)
"""Fields that Gatekeeper's match does not have."""

OBJECT_MATCH_SCHEMA: Final[dict[str, Any]] = {
    **MATCH_SCHEMA,
    "properties": {
        name: schema
        for name, schema in MATCH_SCHEMA["properties"].items()
        if name not in OWN_FIELDS
    },
}
"""The schema of a match with the criteria that are the same for every process."""
