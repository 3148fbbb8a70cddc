"""Tracks what a replica waits for before it answers admissions.

At start a replica learns from lists what exists, which is what it *expects*; it
is ready once each expected object has been *observed* in the snapshot that
answers admissions. The terms are Gatekeeper's (pkg/readiness); its rules too:

- an object may be observed before it is expected;
- what is deleted, or given up on, is *cancelled* and not waited for again;
- what is satisfied stays satisfied: a replica that is ready never becomes
  unready because a policy came or went later.

Each awaited object knows since when and, where it failed, the last error, so
that ``/readyz?verbose`` can say which object holds a replica back and why. Not
to be changed by two tasks at once.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Awaited:
    """One thing that readiness waits for: an object, or (with no name) the list of a kind."""

    kind: str
    name: str
    seconds: float
    error: str = ""

    def __str__(self) -> str:
        subject = f"{self.kind} {self.name}" if self.name else f"the list of {self.kind}"
        text = f"{subject}, for {self.seconds:.1f} s"
        return f"{text}: {self.error}" if self.error else text


@dataclass(slots=True)
class _Wait:
    """Since when an object is awaited, and what went wrong last."""

    since: float
    error: str = ""


@dataclass(slots=True)
class ObjectTracker:
    """The expectations of one kind.

    ``populated`` is set once the whole list has been expected; until then the
    kind is not satisfied, however few objects are awaited.
    """

    kind: str
    since: float
    error: str = ""
    populated: bool = False
    satisfied: bool = False
    waiting: dict[str, _Wait] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def expect(self, names: Iterable[str], now: float) -> None:
        """Wait for these objects, but for those seen or cancelled already."""
        if self.satisfied:
            return
        for name in names:
            if name not in self.seen:
                self.waiting.setdefault(name, _Wait(now))

    def settle(self, name: str) -> None:
        """Stop waiting for an object: it was observed, deleted or given up on."""
        if not self.satisfied:
            self.waiting.pop(name, None)
            self.seen.add(name)
            self._latch()

    def populate(self) -> None:
        """Say that everything there was at start has been expected."""
        self.populated = True
        self._latch()

    def _latch(self) -> None:
        if self.populated and not self.waiting:
            self.satisfied = True
            self.seen.clear()  # it will not be asked again


class Tracker:
    """Everything that readiness waits for: a table of kinds.

    A kind is any name that people know: ``ConstraintTemplate``,
    ``K8sRequiredLabels.constraints.gatekeeper.sh``, ``Pod``.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds that never go back, as ``time.monotonic`` does."""
        self._clock = clock
        self._kinds: dict[str, ObjectTracker] = {}
        self._satisfied = False

    def track(self, kind: str) -> None:
        """Wait for the list of a kind; harmless when it is tracked already.

        Nothing is added once everything is satisfied: what appears later was
        not there at start.
        """
        if not self._satisfied and kind not in self._kinds:
            self._kinds[kind] = ObjectTracker(kind, self._clock())

    def forget(self, kind: str) -> None:
        """Stop waiting for a kind altogether: it is served no more."""
        self._kinds.pop(kind, None)

    def expect(self, kind: str, names: Iterable[str]) -> None:
        """Wait for these objects of a tracked kind, and for no other: its list is complete."""
        tracker = self._kinds.get(kind)
        if tracker is not None and not tracker.populated:
            tracker.expect(names, self._clock())
            tracker.populate()

    def awaits_list(self, kind: str) -> bool:
        """Whether the list of a kind is still awaited."""
        tracker = self._kinds.get(kind)
        return tracker is not None and not tracker.populated

    def observe(self, kind: str, name: str) -> None:
        """An object is in the snapshot that answers admissions."""
        self._settle(kind, name)

    def cancel(self, kind: str, name: str) -> None:
        """An object was deleted, or is given up on: it is not waited for."""
        self._settle(kind, name)

    def fail(self, kind: str, name: str, error: str) -> None:
        """An object could not be used; it stays awaited, with its error. No name: the list."""
        tracker = self._kinds.get(kind)
        if tracker is None:
            return
        if not name:
            tracker.error = error
        elif name in tracker.waiting:
            tracker.waiting[name].error = error

    def _settle(self, kind: str, name: str) -> None:
        if (tracker := self._kinds.get(kind)) is not None:
            tracker.settle(name)

    @property
    def satisfied(self) -> bool:
        """Whether everything was observed, now or earlier."""
        if not self._satisfied and self._kinds:
            self._satisfied = all(tracker.satisfied for tracker in self._kinds.values())
            if self._satisfied:
                self._kinds.clear()
        return self._satisfied

    def awaited(self) -> list[Awaited]:
        """Return what is still missing, longest awaited first; empty once satisfied."""
        now = self._clock()
        missing = []
        for tracker in self._kinds.values():
            if not tracker.populated:
                missing.append(Awaited(tracker.kind, "", now - tracker.since, tracker.error))
            missing += [
                Awaited(tracker.kind, name, now - wait.since, wait.error)
                for name, wait in tracker.waiting.items()
            ]
        return sorted(missing, key=lambda item: (-item.seconds, item.kind, item.name))
