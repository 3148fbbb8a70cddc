"""The sinks of an audit: the seam to statuses, decisions, Events and reports.

All of it happens on the audit's own event loop. A sink is told of every object
that was reviewed, also of those without a violation, so that what it holds of an
object is replaced whole and nothing stale survives.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, namespace_of, text
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift


class Identity(NamedTuple):
    """An object's identity: enough to name it, to own something by it, and to tell it from a namesake."""

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` in the core group."""
        return self.gvk.group_version

    @property
    def kind(self) -> str:
        """The kind alone."""
        return self.gvk.kind


def identity_of(obj: Mapping[str, Any]) -> Identity:
    """The identity of an object as it was listed or watched."""
    return Identity(
        gvk_of(obj),
        namespace_of(obj),
        name_of(obj),
        text(obj, "metadata", "uid"),
        text(obj, "metadata", "resourceVersion"),
    )


@dataclass(frozen=True, slots=True)
class SweepStart:
    """A sweep begins: ``audit_id`` is its start as RFC 3339, which statuses carry too.

    ``kinds`` are those that will be listed: the ones that some constraint of
    ``snapshot`` can match. Of any other kind there are no results any more.
    """

    audit_id: str
    snapshot: Snapshot
    kinds: frozenset[GroupVersionKind]


@dataclass(frozen=True, slots=True)
class Audited:
    """One object with everything that was found in it, by every constraint.

    ``audit_id`` is that of the sweep, empty where no sweep found it (a change
    that was watched). ``object`` must not be changed, nor be kept by the thousand: pages
    are streamed.
    ``excluded`` says that Config takes its namespace out of the audit: it has no
    results, whatever it had before. Constraints in ``responses.undecided``, or all
    of a template in ``responses.faults``, have no verdict; what was known of those
    stays. ``duration_ns`` is the review's.
    """

    audit_id: str
    identity: Identity
    object: dict[str, Any]
    responses: Responses
    snapshot: Snapshot
    excluded: bool = False
    duration_ns: int = 0
    drifts: tuple[Drift, ...] = ()
    """The changes that mutators would make to it, where these are reported."""


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """A sweep has ended.

    ``complete`` are the kinds of which every object was told of (none, where the
    kind went meanwhile); ``failed`` those with objects that were not told of, with
    the reason; ``unreadable`` those that the audit has no right to list.
    ``undecided`` are the constraints, by kind and name, of which the sweep cannot
    tell a total: they can match a failed kind, or their template gave no verdict on
    an object. ``violations`` counts results, those of failed kinds too;
    ``reviewed`` counts objects, ``recalled`` those of them that are as they were, so that what was
    found before stands, ``passed_over`` those of excluded namespaces, ``left_out``
    those that could not be audited, ``stranded`` those whose Namespace is gone; ``unaudited``
    counts both by the constraints, kind and name, that can match them: their totals are of
    all others.
    """

    audit_id: str
    snapshot: Snapshot
    complete: frozenset[GroupVersionKind]
    failed: Mapping[GroupVersionKind, str] = field(default_factory=dict)
    unreadable: frozenset[GroupVersionKind] = frozenset()
    undecided: frozenset[tuple[str, str]] = frozenset()
    reviewed: int = 0
    recalled: int = 0
    passed_over: int = 0
    left_out: int = 0
    stranded: int = 0
    unaudited: Mapping[tuple[str, str], int] = field(default_factory=dict)
    is_whole: bool = True
    """Whether it was of every kind, and not of some that changed."""
    violations: int = 0
    duration_ns: int = 0


class AuditSink(Protocol):
    """Takes the results of an audit.

    Awaited in turn, so that a slow sink slows the sweep and nothing piles up; a
    sink that does I/O queues it with a bound of its own. What it raises is a bug,
    and ends the sweep: environment faults are the sink's to bear and count.
    """

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""

    async def audited(self, audited: Audited) -> None:
        """An object was reviewed, in a sweep or outside of one."""

    async def gone(self, identity: Identity) -> None:
        """An object was deleted, as a watch tells; a sweep does not tell of it at all."""

    async def end(self, end: SweepEnd) -> None:
        """A sweep has ended; called for every one that began, unless the process is stopped."""


class Sinks:
    """Several sinks as one: each is told in turn."""

    def __init__(self, sinks: Sequence[AuditSink]) -> None:
        self._sinks = tuple(sinks)

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""
        for sink in self._sinks:
            await sink.start(start)

    async def audited(self, audited: Audited) -> None:
        """An object was reviewed."""
        for sink in self._sinks:
            await sink.audited(audited)

    async def gone(self, identity: Identity) -> None:
        """An object was deleted."""
        for sink in self._sinks:
            await sink.gone(identity)

    async def end(self, end: SweepEnd) -> None:
        """A sweep has ended."""
        for sink in self._sinks:
            await sink.end(end)
