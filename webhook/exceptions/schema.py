"""The schema of ``spec`` for both kinds of exceptions; a test compares it with their CRDs."""

from __future__ import annotations

from typing import Any, Final

from webhook.constraint.targets.match_schema import OBJECT_MATCH_SCHEMA

TEXT_MAX: Final = 1024
"""The longest text that is shown with an exception, in characters."""

MESSAGE_MAX: Final = 4096
"""The longest pattern of a message, in characters: the longest line of a denial."""

ITEMS_MAX: Final = 100
"""The longest list, as an exception should be narrow."""

NAME_PATTERN: Final = r"^\*?[^*]*\*?$"
"""The pattern of an object's name, with a ``*`` at either end; names of roles may have any
characters."""


def _text(most: int = TEXT_MAX) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": ITEMS_MAX}


_MATCH: Final[dict[str, Any]] = {
    **OBJECT_MATCH_SCHEMA,
    "properties": {
        **OBJECT_MATCH_SCHEMA["properties"],
        "name": {
            **OBJECT_MATCH_SCHEMA["properties"]["name"],
            "pattern": NAME_PATTERN,
        },
    },
}
"""A constraint's match, with a stricter pattern for names."""

_TIME: Final = {"type": "string", "format": "date-time"}

_PERMANENT: Final = {"permanent": {"type": "boolean"}}

_SHARED: Final = {
    "constraints": {
        **_list(_object(("kind", "name"), kind=_text(253), name=_text(253))),
        "minItems": 1,
    },
    "match": _MATCH,
    "subjects": _list(
        _object(
            ("kind", "name"),
            kind={"type": "string", "enum": ["User", "Group", "ServiceAccount"]},
            name=_text(),
            namespace=_text(253),
        )
    ),
    "violations": _list(
        _object(
            message=_text(MESSAGE_MAX),
            details={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        )
    ),
    "parts": _object(containers=_list(_text(253)), images=_list(_text()), paths=_list(_text())),
    "matchConditions": _list(
        _object(("name", "expression"), name=_text(253), expression=_text(16384))
    ),
    "effect": {"type": "string", "enum": ["skip", "warn", "dryrun"]},
    "reason": {**_text(), "minLength": 1},
    "ticket": _text(),
    "owner": _text(),
    "approvedBy": _text(),
    "notBefore": _TIME,
    "expires": _TIME,
}

NAMESPACED: Final = _object(("constraints", "reason", "expires"), **_SHARED)
CLUSTER: Final = _object(("constraints", "reason"), **_SHARED, **_PERMANENT)
