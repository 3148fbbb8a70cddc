"""Circles of constraints: those that match together and share a digest.

Constraints form *circles* by the volatile fields that they read. What all circles of a plan read
beside these fields is hashed once for a review; each circle adds its volatile fields to a copy.
For example constraints about resources form one circle, and constraints about images another: a new
image does not change the digest of the first, nor a new tag that of the second if all tests of the
image have the same results.
"""

from __future__ import annotations

from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.reads.projection import Projection, TooManyParts, projection, widened
from webhook.reads.read_set import PolicyReads, ReadPath, ReadSet
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.constraint.driver import Evaluator
    from webhook.constraint.template import Template

RESTS_MIN, RESTS_MAX = 4_096, 16_384
"""Reviews for which a circle that does not pay is skipped, doubled each time. A window is a
thirtieth of the first: trying costs this part of a digest for each review.
"""

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
    "images": tuple(
        ("object", "spec", name, "*", "image")
        for name in ("containers", "initContainers", "ephemeralContainers")
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
"""Fields that differ between otherwise similar reviews. A constraint that reads one shares no
digest with those that do not: a new image does not invalidate findings about resources.
"""

WHOLE_BELOW: Final = 5
"""The depth of a review below which containers are digested whole: that takes a tenth of the time
of selecting fields.
"""

_APART: Final = frozenset({"labels", "annotations", "volumes", "volumeMounts"})
"""Fields that differ from Pod to Pod: only the parts that a policy reads are digested."""


@dataclass(slots=True, eq=False)
class MemoMember:
    """A constraint as results depend on it: its evaluator with the input from the constraint."""

    evaluator: Evaluator
    given: Any
    template: Template
    parameters: Any
    reads: PolicyReads | None = None
    needs_distinct_keys: bool = False
    """Whether these are the reads of evaluations that find one value for each key of an object."""
    is_derived: bool = False

    def derive(self) -> None:
        """Derives the read set; does nothing if results cannot be cached."""
        # Imported here: a replica without a memo does not need the compiler.
        from webhook.constraint.drivers.reads import dependencies_of_evaluator  # noqa: PLC0415

        if self.is_derived:
            return
        self.is_derived = True
        reads = dependencies_of_evaluator(self.evaluator, self.template, self.parameters)
        if reads is None or not reads.deterministic or reads.providers:
            return
        if reads.distinct is not None:
            reads, self.needs_distinct_keys = reads.distinct, True
        if reads.reads.at("data", "inventory") is None and not self._review(reads.deciding).whole:
            self.reads = reads

    @staticmethod
    def _review(reads: ReadSet) -> ReadSet:
        return reads.at("input", "review") or ReadSet(scalar=False)

    @property
    def deciding(self) -> ReadSet:
        """Returns the paths of a review that decide whether there is a violation."""
        assert self.reads is not None
        return self._review(self.reads.deciding)

    @property
    def keeps_violations(self) -> bool:
        """Whether its violations depend on these paths only."""
        return self.reads is not None and self.deciding == self._review(self.reads.reads)


@dataclass(slots=True, eq=False)
class Circle:
    """Members that share a digest."""

    places: tuple[int, ...]
    """The positions of its members among those that match together."""
    keeps: tuple[bool, ...]
    """For each member, whether violations are cached."""
    project: Projection | None
    """Takes its volatile fields; None if it reads none."""
    mark: bytes
    """Bytes in its digests that no other circle has."""
    reads: ReadSet
    """The paths of a review that decide its members."""
    needs_distinct_keys: bool = False
    """Whether a member does, so that nothing of an evaluation with two values for a key is cached."""
    looks: int = 0
    saved: float = 0.0
    """Evaluations of its members that were saved in this window."""
    rests: int = 0
    """The number of reviews for which it is still skipped."""
    next_rest: int = RESTS_MIN
    look_ns: float = 0.0
    evaluation_ns: float = 0.0
    """The time of a look-up, and of evaluating all members: moving averages, 0 before the first."""

    def digest(self, common: Any, document: Any) -> bytes | None:
        """Returns the digest of its members' paths, by the hash of what all circles read.

        None if they hold more than plain JSON.
        """
        hashed = common.copy()
        hashed.update(self.mark)
        if self.project is not None:
            data = encode_reads(self.project, document)
            if data is None:
                return None
            hashed.update(data)
        digest: bytes = hashed.digest()
        return digest

    def count(self, window: int, saved: float = 0.0) -> None:
        """Counts a look-up, and judges the circle at the end of a window."""
        self.looks += 1
        self.saved += saved
        if self.looks >= window:
            self.judge()

    def judge(self) -> None:
        """Ends a window: skips the circle for a while if look-ups cost more than they save."""
        if self.evaluation_ns and self.saved * self.evaluation_ns < self.looks * self.look_ns:
            self.rests, self.next_rest = self.next_rest, min(2 * self.next_rest, RESTS_MAX)
        else:
            self.next_rest = RESTS_MIN
        self.looks, self.saved = 0, 0.0


@dataclass(slots=True, eq=False)
class MemoPlan:
    """Members that match together; ``circles`` is None until read sets are derived."""

    members: tuple[MemoMember, ...]
    seen: int = 0
    circles: tuple[Circle, ...] | None = None
    project: Projection | None = None
    """Takes what circles read beside their volatile fields."""
    idle: int = 0
    """The number of reviews for which all circles are skipped."""
    unions: dict[tuple[Circle, ...], Circle | None] = field(default_factory=dict)
    """For circles that are looked up together a circle of them all; None until it is there."""

    def rest(self) -> None:
        """Counts a review without look-ups, until a circle is tried again."""
        self.idle = min((circle.rests for circle in self.circles or ()), default=0)
        for circle in self.circles or ():
            circle.rests -= self.idle


def circles_of(
    members: tuple[MemoMember, ...], next_mark: Callable[[], bytes]
) -> tuple[tuple[Circle, ...], Projection | None]:
    """Returns the circles of members, and what takes the reads that they have in common.

    Members that read too many parts have no circle; the others keep theirs. ``next_mark`` returns
    bytes that no other circle has.
    """
    by_fields: dict[tuple[str, ...], list[int]] = {}
    for place, member in enumerate(members):
        if member.reads is not None:
            fields = tuple(name for name in _VOLATILE if _looks_at(member.deciding, name))
            by_fields.setdefault(fields, []).append(place)
    circles = []
    common, take_common = ReadSet(scalar=False), None
    for fields, places in by_fields.items():
        every = apart = ReadSet(scalar=False)
        for place in places:
            reads, volatile = _parted(members[place].deciding, fields)
            every, apart = every | reads, apart | volatile
        beside = common | every
        try:
            project = project_reads(apart) if fields else None
            take_common = project_reads(beside)
        except (TooManyParts, RecursionError):
            continue
        common = beside
        keeps = tuple(members[place].keeps_violations for place in places)
        needs = any(members[place].needs_distinct_keys for place in places)
        circles.append(Circle(tuple(places), keeps, project, next_mark(), every | apart, needs))
    return tuple(circles), take_common


def awake(circles: Sequence[Circle]) -> tuple[Circle, ...]:
    """Returns the circles that are not skipped for this review, which is counted for the others."""
    awake = []
    for circle in circles:
        if circle.rests:
            circle.rests -= 1
        else:
            awake.append(circle)
    return tuple(awake)


def _looks_at(reads: ReadSet, name: str) -> bool:
    """Whether more of a volatile field is read than its presence."""
    return any(
        at.whole or at.scalar or bool(at.children) or bool(at.tests)
        for path in _VOLATILE[name]
        if (at := reads.at(*path)) is not None
    )


def _parted(reads: ReadSet, fields: tuple[str, ...]) -> tuple[ReadSet, ReadSet]:
    """Returns the reads beside volatile fields, and those of them.

    Reads of every key of an object may include a volatile field: then all are of volatile fields.
    """
    beside, volatile = reads, ReadSet(scalar=False)
    for path in chain.from_iterable(_VOLATILE[name] for name in fields):
        rest, at = beside.split(*path)
        if at is not None:
            assert rest is not None  # No review is read whole.
            beside, volatile = rest, volatile | at
    if any(_looks_at(beside, name) for name in fields):
        return ReadSet(scalar=False), reads
    # What hardly differs between reviews is faster digested than tested.
    return beside.untested, volatile


def project_reads(reads: ReadSet) -> Projection:
    """Returns what takes these paths of a review; raises :class:`TooManyParts`."""
    return projection(widened(reads, WHOLE_BELOW, _APART))


def encode_reads(project: Projection, document: Any) -> bytes | None:
    """Returns the read parts of a review as JSON; None if they hold more than plain JSON."""
    try:
        return orjson.dumps(project(document), option=orjson.OPT_SORT_KEYS)
    except (TypeError, RecursionError):  # integers beyond 64 bits, or nested too deeply
        return None


def moving_average(before: float, now: float) -> float:
    """Returns the moving average.

    Outliers are capped, since interruptions only lengthen measurements.
    """
    if before == 0.0:
        return now
    return (before + now) / 2 if now < before else before + (min(now, 4 * before) - before) / 8
