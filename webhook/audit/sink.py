"""The sinks of an audit: the interface to statuses, decisions, Events and reports.

All calls are on the audit's own event loop. A sink receives every reviewed object, including those
without violations, so that it can replace all its data about an object.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, namespace_of, text
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.drift import Drift


class Identity(NamedTuple):
    """An object's identity: its name, its reference as an owner, and its UID."""

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
    """Returns the identity of an object as it was listed or watched."""
    return Identity(
        gvk_of(obj),
        namespace_of(obj),
        name_of(obj),
        text(obj, "metadata", "uid"),
        text(obj, "metadata", "resourceVersion"),
    )


@dataclass(frozen=True, slots=True)
class SweepStart:
    """The beginning of a sweep: ``audit_id`` is its time as RFC 3339, also in statuses.

    ``kinds`` are the kinds that will be listed: those that some constraint of ``snapshot`` can
    match. Results of other kinds are obsolete.
    """

    audit_id: str
    snapshot: Snapshot
    kinds: frozenset[GroupVersionKind]


@dataclass(frozen=True, slots=True)
class Audited:
    """One object with the results of every constraint.

    ``audit_id`` is that of the sweep, empty for a watched change. ``object`` must not be changed,
    nor be kept in large numbers: pages are streamed. ``excluded`` is whether Config excludes its
    namespace from the audit: it then has no results. Constraints in ``responses.undecided``, or all
    of a template in ``responses.faults``, have no verdict; their former results stay.
    ``duration_ns`` is the review's duration.
    """

    audit_id: str
    identity: Identity
    object: dict[str, Any]
    responses: Responses
    snapshot: Snapshot
    excluded: bool = False
    duration_ns: int = 0
    drifts: tuple[Drift, ...] = ()
    """The changes that mutators would make to it, if drift is reported."""


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """The end of a sweep.

    ``complete`` are kinds whose every object was reported (none for a kind deleted meanwhile);
    ``failed`` are kinds with unreported objects, with the reason; ``unreadable`` are kinds that the
    audit may not list. ``undecided`` are the constraints, by kind and name, without a total: they
    can match a failed kind, or their template had no verdict on an object. ``violations`` counts
    results, including failed kinds. ``reviewed`` counts objects; ``recalled`` those of them with
    kept results; ``passed_over`` objects of excluded namespaces; ``left_out`` objects that could
    not be audited; ``stranded`` objects without a Namespace. ``unaudited`` counts the last two by
    the constraints, kind and name, that can match them: their totals exclude these objects.
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
    """Whether the sweep was of every kind, not only of changed ones."""
    violations: int = 0
    duration_ns: int = 0


class AuditSink:
    """Receives the results of an audit; a sink defines the calls that it needs.

    Calls are awaited in turn, so that a slow sink slows the sweep and nothing accumulates; a sink
    with I/O has its own bounded queue. An exception is a bug, and ends the sweep: sinks must handle
    and count faults of the environment.
    """

    async def start(self, start: SweepStart) -> None:
        """A sweep begins."""

    async def audited(self, audited: Audited) -> None:
        """Receives a reviewed object, in a sweep or outside of one."""

    async def gone(self, identity: Identity) -> None:
        """Receives a deletion from a watch; sweeps report no deletions."""

    async def end(self, end: SweepEnd) -> None:
        """Receives the end of a sweep; called for each beginning, unless the process is stopped."""


class Sinks(AuditSink):
    """Several sinks as one, called in turn."""

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
