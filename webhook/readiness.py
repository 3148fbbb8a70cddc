"""Tracks the objects that a replica waits for before it answers admissions.

At start a replica lists the existing objects, which it then *expects*. It is ready once each
expected object has been *observed* in the snapshot that answers admissions. The terms and rules are
Gatekeeper's (pkg/readiness):

- an object may be observed before it is expected;
- a deleted object, or one that was given up, is *cancelled* and not waited for again;
- a satisfied expectation stays satisfied: a ready replica never becomes unready because a policy
  was added or deleted later.

Each awaited object has the time of its expectation and its last error. So ``/readyz?verbose`` can
name the object that a replica waits for, and the reason. Only one task may change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Awaited:
    """One awaited object, or (with an empty name) the list of a kind."""

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
    """The start of the wait for an object, and its last error."""

    since: float
    error: str = ""


@dataclass(slots=True)
class ObjectTracker:
    """The expectations of one kind.

    ``populated`` is set once the whole list has been expected; until then the kind is not
    satisfied, however few objects are awaited.
    """

    kind: str
    since: float
    error: str = ""
    populated: bool = False
    satisfied: bool = False
    waiting: dict[str, _Wait] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def expect(self, names: Iterable[str], now: float) -> None:
        """Adds expected objects, except those already seen or cancelled."""
        if self.satisfied:
            return
        for name in names:
            if name not in self.seen:
                self.waiting.setdefault(name, _Wait(now))

    def settle(self, name: str) -> None:
        """Stops the wait for an object that was observed, deleted or given up on."""
        if not self.satisfied:
            self.waiting.pop(name, None)
            self.seen.add(name)
            self._latch()

    def populate(self) -> None:
        """Records that all objects at the start have been expected."""
        self.populated = True
        self._latch()

    def _latch(self) -> None:
        if self.populated and not self.waiting:
            self.satisfied = True
            self.seen.clear()  # satisfied for good


class Tracker:
    """All expectations of readiness, by kind.

    A kind is any readable name: ``ConstraintTemplate``,
    ``K8sRequiredLabels.constraints.gatekeeper.sh``, ``Pod``.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds that never go back, as ``time.monotonic`` does."""
        self._clock = clock
        self._kinds: dict[str, ObjectTracker] = {}
        self._satisfied = False

    def track(self, kind: str) -> None:
        """Waits for the list of a kind; does nothing if the kind is tracked already.

        Once all kinds are satisfied, further kinds are ignored: they were absent at the start.
        """
        if not self._satisfied and kind not in self._kinds:
            self._kinds[kind] = ObjectTracker(kind, self._clock())

    def forget(self, kind: str) -> None:
        """Stops the wait for a kind that is no longer served."""
        self._kinds.pop(kind, None)

    def expect(self, kind: str, names: Iterable[str]) -> None:
        """Expects exactly these objects of a tracked kind: its list is complete."""
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
        """Cancels the wait for an object that was deleted or given up on."""
        self._settle(kind, name)

    def take(self, kind: str, name: str, error: str, *, waits: bool) -> None:
        """Records whether an object can be used; a broken one stays awaited only with ``waits``."""
        if error:
            self.fail(kind, name, error)
        if not (error and waits):
            self._settle(kind, name)

    def fail(self, kind: str, name: str, error: str) -> None:
        """Records the error of an object, which stays awaited. An empty name means the list."""
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
        """Returns whether everything was observed, now or earlier."""
        if not self._satisfied and self._kinds:
            self._satisfied = all(tracker.satisfied for tracker in self._kinds.values())
            if self._satisfied:
                self._kinds.clear()
        return self._satisfied

    def awaited(self) -> list[Awaited]:
        """Returns the awaited objects, the longest wait first; empty once satisfied."""
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
