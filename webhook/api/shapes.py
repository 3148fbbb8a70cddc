"""Reads untrusted JSON values as the expected types.

The status of a constraint has no schema (Gatekeeper's CRDs keep any content). Any writer of it can
put a text, a number or any list there. Values of an unexpected shape count as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

DEPTH_MAX: Final = 500
"""The deepest nesting in a file: evaluations recurse over the content. Go stops at 10,000."""


def object_of(value: object) -> Json:
    """Returns the object; an empty one for any other value."""
    return value if type(value) is dict else {}


def objects_of(value: object) -> list[Json]:
    """Returns the items of a list that are objects."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def texts_of(value: object) -> list[str]:
    """Returns the items of a list that are texts."""
    return [item for item in value if type(item) is str] if type(value) is list else []


def integer_of(value: object) -> int:
    """Returns an integer; 0 for any other value, booleans included."""
    return value if type(value) is int else 0


def annotations_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an object's annotations, whatever their type."""
    return object_of(object_of(document.get("metadata")).get("annotations"))


def status_of(document: Mapping[str, Any] | None) -> Json:
    """Returns an object's status."""
    return {} if document is None else object_of(document.get("status"))


def conditions_of(status: Mapping[str, Any]) -> list[Json]:
    """Returns the conditions of a status: objects whose type is a text."""
    return [item for item in objects_of(status.get("conditions")) if type(item.get("type")) is str]


def is_deleted(document: Mapping[str, Any] | None) -> bool:
    """Returns whether an object is being deleted: only its finalizers keep it."""
    return document is not None and bool(
        object_of(document.get("metadata")).get("deletionTimestamp")
    )


Json: TypeAlias = dict[str, Any]
"""A JSON object."""
