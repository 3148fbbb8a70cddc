"""Keeps findings by what their evaluations read: a review that reads the same is not evaluated again.

The compiler tells what decides each constraint. Those that match together are put in *circles*: those
of a circle have one digest of a review, over all that decides any of them. Under it is kept that there
is no violation, or the violations where all that they tell is part of what decides. Nothing is kept of
an evaluation that failed, nor of one that depends on anything else.

A memo belongs to one thread and takes no lock. What it keeps is dropped when policies change.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson

from webhook.constraint.driver import DriverViolation
from webhook.reads.projection import TooManyParts, projection, widened
from webhook.reads.read_set import ReadSet
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.entry import Entry
    from webhook.constraint.plan import Planned
    from webhook.constraint.template import Template
    from webhook.reads.projection import Projection
    from webhook.reads.read_set import PolicyReads, ReadPath

    _Violations = Sequence[DriverViolation]
    _Evaluate = Callable[[Any, Any, Any], _Violations]
    _Group = tuple[Constraint, ...]
    _Matching = tuple[tuple[Entry, tuple[_Group, ...]], ...]

DERIVE_AFTER: Final = 50
"""Reviews of a selection before it is derived what its constraints read, which takes some 8 ms each:
about what as many evaluations of one take, and nothing where few objects are reviewed."""

DIGEST_BYTES: Final = 16
"""Keyed by a secret, so that nobody can look for two reviews of one digest; by chance there are two
among 2^64."""

SELECTIONS_MAX: Final = 4_096
MEMBERS_MAX: Final = 8_192
PLANS_MAX: Final = 1_024
"""Selections, constraints and sets of them that are known; beyond this all are met anew."""

RESTS_KEPT_MAX: Final = 64
"""The most remainders kept of a selection, each for a set of circles that find nothing."""

WINDOW: Final = 128
"""Looks of a circle after which it is judged."""

RESTS_MIN, RESTS_MAX = 4_096, 16_384
"""Reviews for which a circle that does not pay is left out, doubled each time. A window is a
thirtieth of the first: trying costs a review that much of a digest."""

SAMPLE_EVERY: Final = 16
"""Of so many reviews one is timed: a look at the clock takes as long as a small digest."""

KEPT_BYTES: Final = 250
"""The memory of an entry without violations, in bytes, in CPython: a digest, a pair, and places in
two dicts."""

PROTECTED_PART: Final = 0.8
"""Of the memory, for what was asked for again: what is seen once cannot push it out."""

_NAMES: Final = (
    "name",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
)
_VOLATILE: Final[Mapping[str, tuple[ReadPath, ...]]] = {
    "identity": (
        ("uid",),
        ("name",),
        *(("object", "metadata", name) for name in _NAMES),
    ),
    "labels": (("object", "metadata", "labels", "*"),),
    "annotations": (("object", "metadata", "annotations", "*"),),
    # Each Pod is given a volume with a token, of a name of its own.
    "volumes": (
        ("object", "spec", "volumes", "*", "name"),
        ("object", "spec", "containers", "*", "volumeMounts", "*", "name"),
    ),
    "status": (("object", "status"),),
    "old": (("oldObject",),),
    "requester": (("userInfo",),),
}
"""Fields in which reviews of much the same differ. Who looks at one shares no digest with who does
not: a label that is new does not have all evaluated that images decide."""

WHOLE_BELOW: Final = 5
"""Levels of a review below which what is read of a container is all of it: it takes a tenth of the time
to write a container's limits or ports than to choose among them."""

_APART: Final = frozenset({"labels", "annotations", "volumes", "volumeMounts"})
"""Fields that differ from Pod to Pod: only the parts of them that a policy reads go into a digest."""

_NOTHING: Final[tuple[Any, ...]] = ()


@dataclass(slots=True, eq=False)
class MemoMember:
    """A constraint as its results depend on it: an evaluator, and what that is given."""

    evaluator: Evaluator
    given: Any
    template: Template
    parameters: Any
    reads: PolicyReads | None = None
    is_derived: bool = False

    def derive(self) -> None:
        """Find out what it reads; nothing where no result of it can be kept."""
        # Here and not above: who keeps nothing shall not pay for the compiler.
        from webhook.constraint.drivers.reads import dependencies_of_evaluator  # noqa: PLC0415

        if self.is_derived:
            return
        self.is_derived = True
        reads = dependencies_of_evaluator(self.evaluator, self.template, self.parameters)
        if reads is None or not reads.deterministic or reads.providers:
            return
        if reads.reads.at("data", "inventory") is None and not self._review(reads.deciding).whole:
            self.reads = reads

    @staticmethod
    def _review(reads: ReadSet) -> ReadSet:
        return reads.at("input", "review") or ReadSet(scalar=False)

    @property
    def deciding(self) -> ReadSet:
        """Return the parts of a review that decide whether there is a violation."""
        assert self.reads is not None
        return self._review(self.reads.deciding)

    @property
    def keeps_violations(self) -> bool:
        """Whether that is all that its violations depend on."""
        return self.reads is not None and self.deciding == self._review(self.reads.reads)


@dataclass(slots=True, eq=False)
class Circle:
    """Members that share a digest."""

    places: tuple[int, ...]
    """Of its members among those that match together."""
    keeps: tuple[bool, ...]
    """Whether violations of each are kept."""
    project: Projection
    hashed: Any
    """The keyed hash, after what tells this circle from others."""
    looks: int = 0
    saved: float = 0.0
    """Evaluations of all its members that were spared, in this window."""
    rests: int = 0
    """Reviews for which it is still left out."""
    next_rest: int = RESTS_MIN
    look_ns: float = 0.0
    evaluation_ns: float = 0.0
    """Of one look, and of evaluating all members: moving averages, 0 before the first."""

    def digest(self, document: Any) -> bytes | None:
        """The digest of what decides its members; None where that is no plain JSON."""
        try:
            data = orjson.dumps(self.project(document), option=orjson.OPT_SORT_KEYS)
        except (TypeError, RecursionError):  # integers beyond 64 bits, or nested too deeply
            return None
        hashed = self.hashed.copy()
        hashed.update(data)
        digest: bytes = hashed.digest()
        return digest

    def judge(self) -> None:
        """At the end of a window: rest where what is saved is less than what looking takes."""
        if self.evaluation_ns and self.saved * self.evaluation_ns < self.looks * self.look_ns:
            self.rests, self.next_rest = self.next_rest, min(2 * self.next_rest, RESTS_MAX)
        else:
            self.next_rest = RESTS_MIN
        self.looks, self.saved = 0, 0.0


@dataclass(slots=True, eq=False)
class MemoPlan:
    """Members that match together; ``circles`` is None until it is derived what they read."""

    members: tuple[MemoMember, ...]
    seen: int = 0
    circles: tuple[Circle, ...] | None = None
    idle: int = 0
    """Reviews for which all circles rest."""

    def rest(self) -> None:
        """Nothing was looked for: as long as no circle is tried again nothing has to be asked."""
        self.idle = min((circle.rests for circle in self.circles or ()), default=0)
        for circle in self.circles or ():
            circle.rests -= self.idle


class MemoPace(NamedTuple):
    """When a memo does what takes time."""

    derive_after: int = DERIVE_AFTER
    window: int = WINDOW


class RememberedSnapshot(Protocol):
    """The parts of a snapshot by which kept findings are still valid."""

    @property
    def digest(self) -> str:
        """Of its templates and constraints."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The templates in force."""


class _Rest(NamedTuple):
    """The rest of a selection where some circles are known to find nothing."""

    matching: _Matching
    """The templates with at least one constraint whose results are not kept, with all their constraints."""
    evaluated: int
    """Constraints of those templates."""
    constraints: int
    """How many constraints have results that are kept."""
    violations: dict[int, _Violations]
    """Nothing, by the identity of each known group that is left."""


class _Known(NamedTuple):
    """A selection of a snapshot, which so keeps its identity."""

    selection: Planned
    plan: MemoPlan
    groups: tuple[_Group, ...]
    """Constraints of one evaluation, a member each."""
    rests: dict[tuple[Circle, ...], _Rest]
    """By the circles that are known to find nothing."""

    def rest(self, circles: tuple[Circle, ...]) -> _Rest:
        """Return the rest of the selection."""
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
        return _Rest(tuple(remaining_steps), evaluated, sum(map(len, known)), kept)


class Recall:
    """The kept findings of one review, and those of the evaluations that were left."""

    __slots__ = (
        "_groups",
        "constraints",
        "evaluated",
        "fresh",
        "matching",
        "missed",
        "spent_ns",
        "violations",
    )

    def __init__(
        self, groups: tuple[_Group, ...], rest: _Rest, missed: Sequence[tuple[Circle, bytes]]
    ) -> None:
        self._groups = groups
        self.matching, self.evaluated, self.constraints, self.violations = rest
        self.missed = missed
        self.fresh: dict[int, _Violations] = {}
        """The violations of evaluations in this review, as ``violations`` has known ones."""
        self.spent_ns: dict[int, int] | None = None
        """How long they took, where that is counted."""

    @property
    def is_open(self) -> bool:
        """Whether evaluations have to be told what is known, or have to tell what they find."""
        return bool(self.violations or self.missed)

    def all_of(self, groups: Sequence[_Group]) -> list[_Violations] | None:
        """Return the findings of groups, where those of each are known."""
        violations = [self.violations.get(id(group)) for group in groups]
        known = [one for one in violations if one is not None]
        return known if len(known) == len(violations) else None

    def evaluating(self, groups: Sequence[_Group], evaluate: _Evaluate) -> _Evaluate:
        """Does what ``evaluate`` does, with kept results where there are; called in the order of groups."""
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
        """Know what is kept of a circle in which something is violated."""
        violations, known = dict(self.violations), 0
        for place, one in zip(circle.places, kept, strict=True):
            if one is not None:
                group = self._groups[place]
                violations[id(group)] = one
                self.constraints += len(group)
                known += 1
        self.violations = violations
        circle.saved += known / len(circle.places)

    def kept_of(self, circle: Circle) -> Sequence[_Violations | None] | None:
        """Return the kept findings of a circle's members; None where there are none."""
        violations = [self.fresh.get(id(self._groups[place])) for place in circle.places]
        if not any(violations) and None not in violations:
            return _NOTHING
        kept = [
            None if one is None or (one and not keeps) else _copied(one)
            for one, keeps in zip(violations, circle.keeps, strict=True)
        ]
        return None if all(one is None for one in kept) else kept

    def evaluation_ns(self, circle: Circle) -> int | None:
        """How long evaluating a circle's members took; None where that was not counted whole."""
        if self.spent_ns is None:
            return None
        spent = [self.spent_ns.get(id(self._groups[place])) for place in circle.places]
        counted = [one for one in spent if one is not None]
        return sum(counted) if len(counted) == len(spent) else None


class MemoCounts(NamedTuple):
    """The counts of a memo since its start."""

    hits: int = 0
    """Constraints that were not evaluated, as it was known what they find."""
    misses: int = 0
    """Constraints that had to be evaluated: no result was kept for what the review holds."""
    bytes: int = 0
    resting: int = 0
    """Constraints for which it does not pay."""


class Memo:
    """The kept findings of one thread."""

    def __init__(
        self,
        bytes_max: int,
        submit: Callable[[Callable[[], None]], object],
        *,
        key: bytes,
        pace: MemoPace = MemoPace(),  # noqa: B008  # never changed
    ) -> None:
        """``submit`` has a job of some milliseconds done beside reviews, one at a time.

        ``key`` is a secret of the process.
        """
        self._pace = pace
        self._submit = submit
        self._key = key
        self._store = _Store(bytes_max)
        self._snapshot: RememberedSnapshot | None = None
        self._selections: dict[int, _Known] = {}
        self._members: dict[tuple[int, int], MemoMember] = {}
        self._plans: dict[tuple[MemoMember, ...], MemoPlan] = {}
        self._made = 0
        self._turn = 0
        self._hits = self._misses = 0

    @property
    def counts(self) -> MemoCounts:
        """Return the counts so far."""
        resting = sum(
            len(circle.places)
            for plan in list(self._plans.values())  # another thread may ask
            for circle in plan.circles or ()
            if circle.rests
        )
        return MemoCounts(self._hits, self._misses, self._store.bytes, resting)

    def recall(
        self, snapshot: RememberedSnapshot, selection: Planned, document: Any
    ) -> Recall | None:
        """Return the kept findings of a review; None where none are ever kept of it, or not yet."""
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
        get = self._store.get
        quiet, violated, missed = [], [], []
        for circle in circles:
            if circle.rests:
                circle.rests -= 1
                continue
            began = time.thread_time_ns() if is_timed else 0
            digest = circle.digest(document)
            if digest is None:
                continue
            kept = get(digest)
            if is_timed:
                circle.look_ns = _average(circle.look_ns, time.thread_time_ns() - began)
            circle.looks += 1
            if kept is None:
                self._misses += len(circle.places)
                missed.append((circle, digest))
                is_timed = is_timed or not circle.evaluation_ns
            elif kept:
                violated.append((circle, kept))
            else:
                circle.saved += 1
                quiet.append(circle)
            if circle.looks >= self._pace.window:
                circle.judge()
        if not (quiet or violated or missed):
            known.plan.rest()
            return None
        recall = Recall(known.groups, known.rest(tuple(quiet)), missed)
        if missed and is_timed:
            recall.spent_ns = {}
        for circle, kept in violated:
            recall.take(circle, kept)
        self._hits += recall.constraints
        return recall

    def keep(self, recall: Recall) -> None:
        """Keep what evaluations found of a review."""
        for circle, digest in recall.missed:
            kept = recall.kept_of(circle)
            if kept is not None:
                self._store.put(digest, kept, KEPT_BYTES + sum(map(_bytes, kept)))
            spent = recall.evaluation_ns(circle)
            if spent is not None:
                circle.evaluation_ns = _average(circle.evaluation_ns, spent)

    # --- what is met for the first time --------------------------------------------------------

    def _adopt(self, snapshot: RememberedSnapshot) -> None:
        """Go over to a snapshot: where its policies are others, nothing is kept."""
        before, self._snapshot = self._snapshot, snapshot
        self._selections.clear()
        if before is None or before.digest == snapshot.digest:
            return
        evaluators = {id(entry.evaluator) for entry in snapshot.entries}
        self._members = {key: one for key, one in self._members.items() if key[0] in evaluators}
        self._plans = {}
        self._store.clear()

    def _meet(self, selection: Planned) -> _Known:
        """Know a selection, as others of the same constraints are known."""
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
        """Find out what members read, beside reviews; there are no circles where that fails."""
        circles: tuple[Circle, ...] = ()
        try:
            for member in plan.members:
                member.derive()
            circles = self._circles(plan.members)
        finally:
            plan.circles = circles

    def _circles(self, members: tuple[MemoMember, ...]) -> tuple[Circle, ...]:
        by_fields: dict[tuple[str, ...], list[int]] = {}
        for place, member in enumerate(members):
            if member.reads is not None:
                fields = tuple(name for name in _VOLATILE if _looks_at(member.deciding, name))
                by_fields.setdefault(fields, []).append(place)
        circles = []
        for places in by_fields.values():
            reads = ReadSet(scalar=False)
            for place in places:
                reads = reads | members[place].deciding
            try:
                project = projection(widened(reads, WHOLE_BELOW, _APART))
            except (TooManyParts, RecursionError):
                continue
            self._made += 1
            hashed = hashlib.blake2b(
                self._made.to_bytes(8, "big"), digest_size=DIGEST_BYTES, key=self._key
            )
            keeps = tuple(members[place].keeps_violations for place in places)
            circles.append(Circle(tuple(places), keeps, project, hashed))
        return tuple(circles)


class _Store:
    """A segmented LRU: what was asked for again has a segment of its own."""

    __slots__ = ("_bytes_max", "_new", "_protected", "_protected_bytes", "bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._new: dict[bytes, tuple[Any, int]] = {}
        self._protected: dict[bytes, tuple[Any, int]] = {}
        self._protected_bytes = 0
        self.bytes = 0

    def get(self, key: bytes) -> Any:
        """Return the value under a key, None for nothing."""
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
        """Keep something, in place of what is oldest; nothing that takes an eighth of all."""
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
        """Keep nothing."""
        self._new.clear()
        self._protected.clear()
        self.bytes = self._protected_bytes = 0


def _looks_at(reads: ReadSet, name: str) -> bool:
    """Whether more is read of volatile fields than that they are there."""
    return any(
        at.whole or at.scalar or bool(at.children)
        for path in _VOLATILE[name]
        if (at := reads.at(*path)) is not None
    )


def _average(before: float, now: float) -> float:
    """Moving: what a measurement takes beside what is measured makes it longer, never shorter."""
    if before == 0.0:
        return now
    return (before + now) / 2 if now < before else before + (min(now, 4 * before) - before) / 8


def _copied(violations: _Violations) -> _Violations | None:
    """Violations that hold no part of the object that they are about; None where JSON lacks them."""
    if not violations:
        return _NOTHING
    try:
        return [
            DriverViolation(msg, orjson.loads(orjson.dumps(details))) for msg, details in violations
        ]
    except TypeError:
        return None


def _bytes(violations: _Violations | None) -> int:
    """Estimate the bytes of violations: their texts, and what CPython needs beside."""
    return sum(200 + 2 * len(repr(one)) for one in violations) if violations else 16
