"""What is reviewed: the things a caller hands in, and the one form they are given.

A caller hands a :class:`AugmentedReview`, an :class:`AugmentedObject` or a
:class:`Document` to :meth:`webhook.constraint.snapshot.Snapshot.review`; each
target turns those it understands into a :class:`Review`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from webhook.api.admission import AdmissionRequest

ReviewSource = Literal["Original", "Generated", ""]
"""Whether an object came as it is or out of an expansion; ``""`` where nobody said."""


# These are made for each request: named tuples, at half of what a frozen dataclass takes.
class AugmentedReview(NamedTuple):
    """An admission request with the Namespace it concerns, where the caller has it."""

    request: AdmissionRequest
    namespace: dict[str, Any] | None = None
    source: ReviewSource = "Original"


class AugmentedObject(NamedTuple):
    """An object outside any request: from a manifest, or from a list during audit.

    ``namespace`` is the Namespace that it is in; an empty one says that it is in one that nobody
    has named (:func:`webhook.constraint.placement.namespace_for`).

    ``operation`` is empty unless the caller plays a request; DELETE makes the
    object the old object, as in a request. ``resource`` is the plural that requests
    for the kind name, where the caller knows it. ``size`` is that of the request which implied it.
    """

    object: dict[str, Any]
    namespace: Mapping[str, Any] | None = None
    operation: str = ""
    source: ReviewSource = "Original"
    resource: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """Any JSON value under its name, for the target that it was split for; ``file`` held it."""

    value: Any
    name: str = ""
    target: str = "json"
    file: str = ""


@dataclass(slots=True)
class Review:
    """A thing under review, in the form of its target.

    ``document`` is ``input.review``. ``key`` is what the index of constraints is
    keyed by (group and kind for admission), None where the index cannot serve.
    ``operation`` selects templates at the webhook; None for no operation at all.
    ``subject`` is the target's own reading for its matchers. ``place`` is the
    namespace that constraints name or exclude, None where it makes no difference.
    """

    target: str
    document: Any
    key: Hashable | None = None
    operation: str | None = None
    subject: Any = field(default=None, repr=False)
    place: str | None = None
    size: int = 0
    """In bytes, as it came; 0 where that is not known."""
