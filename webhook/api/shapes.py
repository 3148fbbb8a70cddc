"""Reads untrusted JSON values as the types that they should have.

The status of a constraint has no schema (Gatekeeper's CRDs keep whatever stands
there), and whoever may write it may make it a text, a number, or a list of
anything. Who reads it reads it here: what is of another shape is as if it were not
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

DEPTH_MAX: Final = 500
"""Levels of nesting in a file: evaluations recurse over what is read. Go stops at 10,000."""


def object_of(value: object) -> Json:
    """The object, or an empty one."""
    return value if type(value) is dict else {}


def objects_of(value: object) -> list[Json]:
    """Returns the items of a list that are objects."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def texts_of(value: object) -> list[str]:
    """Returns the items of a list that are texts."""
    return [item for item in value if type(item) is str] if type(value) is list else []


def integer_of(value: object) -> int:
    """A value that is an integer, and 0 for anything else, booleans among it."""
    return value if type(value) is int else 0


def annotations_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object's annotations, whatever it has in their place."""
    return object_of(object_of(document.get("metadata")).get("annotations"))


def status_of(document: Mapping[str, Any] | None) -> Json:
    """An object's status."""
    return {} if document is None else object_of(document.get("status"))


def conditions_of(status: Mapping[str, Any]) -> list[Json]:
    """The conditions in a status: objects whose type is a text."""
    return [item for item in objects_of(status.get("conditions")) if type(item.get("type")) is str]


def is_deleted(document: Mapping[str, Any] | None) -> bool:
    """Whether an object is being deleted: only its finalizers keep it."""
    return document is not None and bool(
        object_of(document.get("metadata")).get("deletionTimestamp")
    )


Json: TypeAlias = dict[str, Any]
"""A JSON object."""
