"""The annotation ``waddle.dev/exceptions`` of a constraint: the exceptions that it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import annotations_of

if TYPE_CHECKING:
    from collections.abc import Mapping

ANNOTATION: Final = "waddle.dev/exceptions"

ALLOWS: Final[dict[Any, frozenset[bool]]] = {
    None: frozenset({True}),
    "none": frozenset(),
    "cluster": frozenset({True}),
    "all": frozenset({True, False}),
}
"""The kinds that an annotation's value allows: True for cluster-wide exceptions, False for others.
"""


def exceptions_allowed(document: Mapping[str, Any]) -> frozenset[bool]:
    """Returns the kinds of exceptions that a constraint allows, as in :data:`ALLOWS`.

    An annotation other than ``none``, ``cluster`` or ``all`` allows none.
    """
    return ALLOWS.get(annotation_of(document), frozenset())


def annotation_of(document: Mapping[str, Any]) -> str | None:
    """Returns the annotation as text, since files may have any value there; None without it."""
    value = annotations_of(document).get(ANNOTATION)
    return value if value is None or type(value) is str else str(value)
