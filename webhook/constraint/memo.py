"""Caches findings by the values that their evaluations read, to avoid repeated evaluations.

The compiler derives the paths that decide each constraint. Constraints that match together form
*circles* by the volatile fields that they read. What all of them read beside these fields is hashed
once for a review; each circle adds its volatile fields to a copy. An entry states that there is no
violation, or holds the violations if they contain only values of these paths. Failed evaluations
are not cached, nor those that depend on anything else. As nothing is found in most reviews, an entry
for all circles together states that first: it takes half the time of looking each of them up.

A memo belongs to one thread and has no lock. It is emptied when policies change.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook.constraint.driver import DriverViolation
from webhook.constraint.memo_circles import (
    Circle,
    MemoMember,
    MemoPlan,
    awake,
    circles_of,
    encode_reads,
    moving_average,
    project_reads,
)
from webhook.reads.projection import TooManyParts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.entry import Entry
    from webhook.constraint.plan import Planned
    from webhook.constraint.snapshot import Snapshot

    _Violations = Sequence[DriverViolation]
    _Evaluate = Callable[[Any, Any, Any], _Violations]
    _Group = tuple[Constraint, ...]
    _Matching = tuple[tuple[Entry, tuple[_Group, ...]], ...]

DERIVE_AFTER: Final = 50
"""Reviews of a selection before its read sets are derived. Deriving takes about 8 ms a constraint,
as long as this many evaluations; nothing is spent where few objects are reviewed.
"""

DIGEST_BYTES: Final = 16
"""The digest size, in bytes. A secret is the key, so that users cannot search for collisions; by
chance two of 2^64 collide.
"""

SELECTIONS_MAX: Final = 4_096
MEMBERS_MAX: Final = 8_192
PLANS_MAX: Final = 1_024
"""The most selections, constraints and sets of them; beyond this all are dropped."""

UNIONS_MAX: Final = 16
"""The most unions of circles of a plan; beyond this all are dropped."""

RESTS_KEPT_MAX: Final = 64
"""The most cached remainders of a selection, one for each set of circles without findings."""

WINDOW: Final = 128
"""Look-ups of a circle between two judgements of its benefit."""

SAMPLE_EVERY: Final = 16
"""One of so many reviews is timed: reading the clock takes as long as a small digest."""

KEPT_BYTES: Final = 250
"""The memory of an entry without violations in CPython, in bytes: a digest, a pair, and slots in
two dicts.
"""

PROTECTED_PART: Final = 0.8
"""The part of the memory for entries that were used again, which new entries cannot push out."""

_NOTHING: Final[tuple[Any, ...]] = ()


class MemoPace(NamedTuple):
    """The intervals of a memo's costly steps."""

    derive_after: int = DERIVE_AFTER
    window: int = WINDOW


class _Rest(NamedTuple):
    """The remainder of a selection after circles without findings."""

    matching: _Matching
    """The templates with a constraint to evaluate, with all their constraints."""
    evaluated: int
    """The number of constraints of those templates."""
    constraints: int
    """The number of constraints with cached results."""
    violations: dict[int, _Violations]
    """No violations, by the identity of each remaining known group."""
    recall: Recall | None = None
    """The recall of a review about which nothing else is known; None if it may be added to."""


class _LookUps(NamedTuple):
    """The results of looking up circles."""

    quiet: tuple[Circle, ...]
    """The circles without findings."""
    violated: Sequence[tuple[Circle, Sequence[_Violations | None]]]
    """The circles with findings, and these."""
    missed: Sequence[tuple[Circle, bytes]]
    """The circles of which nothing is cached, with their digests."""


class _Known(NamedTuple):
    """A selection of a snapshot, kept to keep its identity."""

    selection: Planned
    plan: MemoPlan
    groups: tuple[_Group, ...]
    """The constraints grouped by evaluation, one member each."""
    rests: dict[tuple[Circle, ...], _Rest]
    """The remainders by the circles without findings."""

    def rest(self, circles: tuple[Circle, ...]) -> _Rest:
        """Returns the remainder of the selection."""
        rest = self.rests.get(circles)
        if rest is None:
            if len(self.rests) >= RESTS_KEPT_MAX:
                self.rests.clear()
            rest = self.rests[circles] = self._rest(circles)
        return rest

    def _rest(self, circles: tuple[Circle, ...]) -> _Rest:
        known = [self.groups[place] for circle in circles for place in circle.places]
        violations: dict[int, _Violations] = {id(group): _NOTHING for group in known}
        remaining_steps, evaluated = [], 0
        for step in self.selection.matching:
            if all(id(group) in violations for group in step[1]):
                evaluated += sum(map(len, step[1]))
            else:
                remaining_steps.append(step)
        ids = {id(group) for _, groups in remaining_steps for group in groups}
        kept = {at: nothing for at, nothing in violations.items() if at in ids}
        rest = _Rest(tuple(remaining_steps), evaluated, sum(map(len, known)), kept)
        return rest if kept else rest._replace(recall=Recall(self.groups, rest, ()))


class Recall:
    """The cached findings of one review, and those of the remaining evaluations."""

    __slots__ = (
        "_groups",
        "constraints",
        "evaluated",
        "fresh",
        "matching",
        "missed",
        "spent_ns",
        "union",
        "violations",
    )

    def __init__(
        self, groups: tuple[_Group, ...], rest: _Rest, missed: Sequence[tuple[Circle, bytes]]
    ) -> None:
        self._groups = groups
        self.matching, self.evaluated, self.constraints, self.violations, _ = rest
        self.missed = missed
        self.fresh: dict[int, _Violations] = {}
        """The violations found in this review, in the form of ``violations``."""
        self.spent_ns: dict[int, int] | None = None
        """The duration of these evaluations, if it is measured."""
        self.union: bytes | None = None
        """The digest that is cached if these evaluations, too, find nothing."""

    @property
    def is_open(self) -> bool:
        """Whether evaluations still need cached results, or must add theirs."""
        return bool(self.violations or self.missed)

    def all_of(self, groups: Sequence[_Group]) -> list[_Violations] | None:
        """Returns the findings of groups if all of them are cached."""
        violations = [self.violations.get(id(group)) for group in groups]
        known = [of_group for of_group in violations if of_group is not None]
        return known if len(known) == len(violations) else None

    def evaluating(self, groups: Sequence[_Group], evaluate: _Evaluate) -> _Evaluate:
        """Returns ``evaluate`` with cached results; it must be called in the order of groups."""
        remaining = iter(groups)

        def evaluated(given: Any, review: Any, state: Any) -> _Violations:
            at = id(next(remaining))
            known = self.violations.get(at)
            if known is not None:
                return known
            if self.spent_ns is None:
                violations = evaluate(given, review, state)
            else:
                began = time.thread_time_ns()
                violations = evaluate(given, review, state)
                self.spent_ns[at] = time.thread_time_ns() - began
            self.fresh[at] = violations
            return violations

        return evaluated

    def take(self, circle: Circle, kept: Sequence[_Violations | None]) -> None:
        """Adds the cached findings of a circle with violations."""
        violations, known = dict(self.violations), 0
        for place, of_group in zip(circle.places, kept, strict=True):
            if of_group is not None:
                group = self._groups[place]
                violations[id(group)] = of_group
                self.constraints += len(group)
                known += 1
        self.violations = violations
        circle.saved += known / len(circle.places)

    def kept_of(self, circle: Circle) -> Sequence[_Violations | None] | None:
        """Returns the cached findings of a circle's members; None without any."""
        violations = [self.fresh.get(id(self._groups[place])) for place in circle.places]
        if not any(violations) and None not in violations:
            return _NOTHING
        kept = [
            None if of_group is None or (of_group and not keeps) else _copied(of_group)
            for of_group, keeps in zip(violations, circle.keeps, strict=True)
        ]
        return None if all(of_group is None for of_group in kept) else kept

    def evaluation_ns(self, circle: Circle) -> int | None:
        """Returns the time of evaluating a circle's members.

        None if it was not measured completely.
        """
        if self.spent_ns is None:
            return None
        spent = [self.spent_ns.get(id(self._groups[place])) for place in circle.places]
        counted = [ns for ns in spent if ns is not None]
        return sum(counted) if len(counted) == len(spent) else None


class MemoCounts(NamedTuple):
    """The counters of a memo since its start."""

    hits: int = 0
    """Constraints with a cached result."""
    misses: int = 0
    """Constraints that were evaluated, because no cached result matched."""
    bytes: int = 0
    resting: int = 0
    """Constraints that are skipped, because caching does not pay."""


class Memo:
    """The cached findings of one thread."""

    def __init__(
        self,
        bytes_max: int,
        submit: Callable[[Callable[[], None]], object],
        *,
        key: bytes,
        pace: MemoPace = MemoPace(),  # noqa: B008  # never changed
    ) -> None:
        """``submit`` runs jobs of some milliseconds on another thread, one at a time.

        ``key`` is a secret of the process.
        """
        self._pace = pace
        self._submit = submit
        self._hashed = hashlib.blake2b(digest_size=DIGEST_BYTES, key=key)
        self._store = _Store(bytes_max)
        self._snapshot: Snapshot | None = None
        self._selections: dict[int, _Known] = {}
        self._members: dict[tuple[int, int], MemoMember] = {}
        self._plans: dict[tuple[MemoMember, ...], MemoPlan] = {}
        self._marks = 0
        self._turn = 0
        self._hits = self._misses = 0

    @property
    def counts(self) -> MemoCounts:
        """Returns the counts so far."""
        resting = sum(
            len(circle.places)
            for plan in list(self._plans.values())  # another thread may ask
            for circle in plan.circles or ()
            if circle.rests
        )
        return MemoCounts(self._hits, self._misses, self._store.bytes, resting)

    def recall(self, snapshot: Snapshot, selection: Planned, document: Any) -> Recall | None:
        """Returns the cached findings of a review.

        None if its findings are never cached, or not yet.
        """
        if snapshot is not self._snapshot:
            self._adopt(snapshot)
        known = self._selections.get(id(selection))
        if known is None or known.selection is not selection:
            known = self._meet(selection)
        plan = known.plan
        circles = plan.circles
        if circles is None:
            plan.seen += 1
            if plan.seen == self._pace.derive_after:
                self._submit(lambda: self._derive(plan))
            return None
        if not circles:
            return None
        if plan.idle:
            plan.idle -= 1
            return None
        return self._looked(known, circles, document)

    def _looked(self, known: _Known, circles: tuple[Circle, ...], document: Any) -> Recall | None:
        self._turn += 1
        is_timed = self._turn % SAMPLE_EVERY == 0
        looking = awake(circles)
        if not looking:
            known.plan.rest()
            return None
        is_quiet, union = self._looked_together(known.plan, looking, document, is_timed=is_timed)
        if is_quiet:
            look_ups = _LookUps(looking, (), ())
        else:
            look_ups = self._looked_each(known.plan, looking, document, is_timed=is_timed)
        quiet, violated, missed = look_ups
        if is_quiet or len(quiet) + len(missed) < len(looking):
            union = None  # It is cached, or there are findings.
        rest = known.rest(quiet)
        if not (missed or violated or rest.violations):  # As most often: nothing is added to it.
            if union is not None:
                self._store.put(union, _NOTHING, KEPT_BYTES)
            self._hits += rest.constraints
            return rest.recall
        recall = Recall(known.groups, rest, missed)
        recall.union = union
        if missed and (is_timed or any(not circle.evaluation_ns for circle, _ in missed)):
            recall.spent_ns = {}
        for circle, kept in violated:
            recall.take(circle, kept)
        self._hits += recall.constraints
        return recall

    def _looked_together(
        self, plan: MemoPlan, looking: tuple[Circle, ...], document: Any, *, is_timed: bool
    ) -> tuple[bool, bytes | None]:
        """Returns whether an entry of all these circles states that nothing is found, and its digest.

        The digest is None if such an entry is not worth its time.
        """
        union = self._union(plan, looking)
        if union is None:
            return False, None
        if union.rests:
            union.rests -= 1
            return False, None
        began = time.thread_time_ns() if is_timed else 0
        digest = union.digest(self._hashed, document)
        if is_timed:
            # A hit saves the look-ups of each.
            union.look_ns = moving_average(union.look_ns, time.thread_time_ns() - began)
            union.evaluation_ns = sum(circle.look_ns for circle in looking)
        is_quiet = digest is not None and self._store.get(digest) is not None
        union.count(self._pace.window, float(is_quiet))
        if is_quiet:
            for circle in looking:
                circle.count(self._pace.window, 1.0)
        return is_quiet, digest

    def _union(self, plan: MemoPlan, looking: tuple[Circle, ...]) -> Circle | None:
        """Returns a circle that reads what these circles read; None before another thread wrote it."""
        if looking not in plan.unions and len(looking) > 1 and len(plan.unions) < UNIONS_MAX:
            plan.unions[looking] = None
            self._submit(lambda: self._unite(plan, looking))
        return plan.unions.get(looking)

    def _unite(self, plan: MemoPlan, circles: tuple[Circle, ...]) -> None:
        """Adds the union of circles to a plan, unless it reads too many parts."""
        reads = functools.reduce(operator.or_, (circle.reads for circle in circles))
        with contextlib.suppress(TooManyParts, RecursionError):
            project = project_reads(reads)
            plan.unions[circles] = Circle((), (), project, self._next_mark(), reads)

    def _looked_each(
        self, plan: MemoPlan, looking: tuple[Circle, ...], document: Any, *, is_timed: bool
    ) -> _LookUps:
        """Returns the findings of each circle; none of circles that read more than plain JSON."""
        began = time.thread_time_ns() if is_timed else 0
        common = self._common(plan, document)
        if common is None:
            return _LookUps((), (), ())
        # Each circle pays its share of what they have in common.
        shared_ns = (time.thread_time_ns() - began) // len(looking) if is_timed else 0
        quiet, violated, missed = [], [], []
        for circle in looking:
            began = time.thread_time_ns() if is_timed else 0
            digest = circle.digest(common, document)
            if digest is None:
                continue
            kept = self._store.get(digest)
            if is_timed:
                taken = time.thread_time_ns() - began + shared_ns
                circle.look_ns = moving_average(circle.look_ns, taken)
            if kept is None:
                self._misses += len(circle.places)
                missed.append((circle, digest))
            elif kept:
                violated.append((circle, kept))
            else:
                quiet.append(circle)
            circle.count(self._pace.window, 0.0 if kept or kept is None else 1.0)
        return _LookUps(tuple(quiet), violated, missed)

    def _common(self, plan: MemoPlan, document: Any) -> Any | None:
        """Returns the hash of what all circles of a plan read; None if it is no plain JSON."""
        assert plan.project is not None  # It has circles.
        data = encode_reads(plan.project, document)
        if data is None:
            return None
        hashed = self._hashed.copy()
        hashed.update(data)
        return hashed

    def keep(self, recall: Recall, *, has_distinct_keys: bool) -> None:
        """Caches the findings of a review's evaluations.

        ``has_distinct_keys`` is whether these never found two values for one key of an object.
        """
        finds_nothing = True
        for circle, digest in recall.missed:
            is_kept = has_distinct_keys or not circle.needs_distinct_keys
            kept = recall.kept_of(circle) if is_kept else None
            finds_nothing = finds_nothing and kept is _NOTHING
            if kept is not None:
                self._store.put(digest, kept, KEPT_BYTES + sum(map(_bytes, kept)))
            spent = recall.evaluation_ns(circle)
            if spent is not None:
                circle.evaluation_ns = moving_average(circle.evaluation_ns, spent)
        if finds_nothing and recall.union is not None:
            self._store.put(recall.union, _NOTHING, KEPT_BYTES)

    # --- first use -----------------------------------------------------------------------------

    def _adopt(self, snapshot: Snapshot) -> None:
        """Switches to a snapshot; empties the cache if its policies differ."""
        before, self._snapshot = self._snapshot, snapshot
        self._selections.clear()
        if before is None or before.digest == snapshot.digest:
            return
        evaluators = {id(entry.evaluator) for entry in snapshot.entries}
        self._members = {
            key: member for key, member in self._members.items() if key[0] in evaluators
        }
        self._plans = {}
        self._store.clear()

    def _meet(self, selection: Planned) -> _Known:
        """Returns the known selection of the same constraints, or a new one."""
        steps = [(entry, group) for entry, groups in selection.matching for group in groups]
        members = tuple(self._member(entry, group[0]) for entry, group in steps)
        plan = self._plans.get(members)
        if plan is None:
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            plan = self._plans[members] = MemoPlan(members)
        groups = tuple(group for _, group in steps)
        known = _Known(selection, plan, groups, {})
        if len(self._selections) >= SELECTIONS_MAX:
            self._selections.clear()
        self._selections[id(selection)] = known
        return known

    def _member(self, entry: Entry, constraint: Constraint) -> MemoMember:
        given, evaluator = entry.given(constraint), entry.evaluator
        assert evaluator is not None  # else it is not evaluated
        member = self._members.get((id(evaluator), id(given)))
        if member is None:
            if len(self._members) >= MEMBERS_MAX:
                self._members.clear()
            parameters = constraint.parameters or {}
            member = MemoMember(evaluator, given, entry.template, parameters)
            self._members[id(evaluator), id(given)] = member
        return member

    def _derive(self, plan: MemoPlan) -> None:
        """Derives the members' read sets on another thread; there are no circles if that fails."""
        circles: tuple[Circle, ...] = ()
        try:
            for member in plan.members:
                member.derive()
            circles, plan.project = circles_of(plan.members, self._next_mark)
        finally:
            plan.circles = circles

    def _next_mark(self) -> bytes:
        """Returns bytes for a circle; JSON never begins with them."""
        self._marks += 1
        return self._marks.to_bytes(8, "big")


class _Store:
    """A segmented LRU cache: entries that were used again have a segment of their own."""

    __slots__ = ("_bytes_max", "_new", "_protected", "_protected_bytes", "bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._new: dict[bytes, tuple[Any, int]] = {}
        self._protected: dict[bytes, tuple[Any, int]] = {}
        self._protected_bytes = 0
        self.bytes = 0

    def get(self, key: bytes) -> Any:
        """Returns the value of a key, None without one."""
        entry = self._protected.pop(key, None)
        if entry is None:
            entry = self._new.pop(key, None)
            if entry is None:
                return None
            self._protected_bytes += entry[1]
            while self._protected_bytes > PROTECTED_PART * self._bytes_max and self._protected:
                oldest = next(iter(self._protected))
                demoted = self._new[oldest] = self._protected.pop(oldest)
                self._protected_bytes -= demoted[1]
        self._protected[key] = entry
        return entry[0]

    def put(self, key: bytes, value: Any, size: int) -> None:
        """Stores a value, evicting the oldest ones.

        Ignores a value of an eighth of all memory or more.
        """
        if size > self._bytes_max // 8 or key in self._new or key in self._protected:
            return
        self._new[key] = value, size
        self.bytes += size
        while self.bytes > self._bytes_max:
            segment = self._new or self._protected
            _, evicted = segment.pop(next(iter(segment)))
            self.bytes -= evicted
            if segment is self._protected:
                self._protected_bytes -= evicted

    def clear(self) -> None:
        """Removes everything."""
        self._new.clear()
        self._protected.clear()
        self.bytes = self._protected_bytes = 0


def _copied(violations: _Violations) -> _Violations | None:
    """Returns a copy without references to the object; None if the violations are no JSON."""
    if not violations:
        return _NOTHING
    try:
        return [
            DriverViolation(msg, orjson.loads(orjson.dumps(details))) for msg, details in violations
        ]
    except TypeError:
        return None


def _bytes(violations: _Violations | None) -> int:
    """Returns the estimated bytes of violations: their texts, and CPython's overhead."""
    return sum(200 + 2 * len(repr(violation)) for violation in violations) if violations else 16
