"""Plans the evaluations of reviews of one kind at one enforcement point.

A plan holds the templates with constraints that may match, and their distinct matchers. Each
matcher runs once in a review, however many constraints share it. The plan caches a selection for
each outcome of the matchers, and a narrower plan for each namespace, without the constraints that
cannot match there.
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import enforcement
from webhook.constraint.driver import asks_providers
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from webhook.constraint.causes import OnError
    from webhook.constraint.constraint import Broken, Constraint
    from webhook.constraint.entry import Entry
    from webhook.constraint.target import CompiledMatch, Matcher

SELECTIONS_MAX: Final = 256
"""Cached selections of a plan: each is a tuple for each template that applies."""

PLACED_MAX: Final = 20_000
"""Constraints in the cached narrower plans of a plan, at about 100 bytes each; narrowing takes a
tenth of the time of making a plan.
"""

PLANS_MAX: Final = 4096
"""The limit of cached plans: kinds times points, or operations, of a large cluster. It also bounds
the plans that requests can create.
"""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A template in a plan: its constraints, each with its matcher's number or -1."""

    entry: Entry
    constraints: tuple[tuple[Constraint, int], ...]


@dataclass(frozen=True, slots=True)
class BrokenStep:
    """A constraint that cannot be evaluated, with its matcher's number or -1."""

    entry: Entry
    constraint: Constraint
    number: int
    broken: Broken


@dataclass(frozen=True, slots=True)
class Planned:
    """The evaluations for one outcome of the matchers.

    ``matching`` are the constraints to evaluate, by template, and with equal parameters together,
    since one evaluation serves them all. Constraints that may deny come first, because the time may
    run out. Within these, constraints that ask providers come first, so that the providers answer
    while others are evaluated; ``asking`` are those of them that come before all of ``matching``.
    ``unmatchable`` are constraints whose matcher failed, with the
    reason; ``broken`` are matching constraints that cannot be evaluated.
    """

    asking: tuple[tuple[Entry, tuple[tuple[Constraint, ...], ...]], ...]
    matching: tuple[tuple[Entry, tuple[tuple[Constraint, ...], ...]], ...]
    unmatchable: tuple[tuple[Constraint, str], ...]
    broken: tuple[BrokenStep, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct matchers and the templates that may apply, with cached selections."""

    matchers: tuple[Matcher, ...]
    steps: tuple[PlanStep, ...]
    broken: tuple[BrokenStep, ...]
    denying: frozenset[tuple[str, str]]
    """Kind and name of each constraint that may deny at this point."""
    selections: dict[tuple[Any, ...], Planned] = field(default_factory=dict)
    places: dict[str, Plan] = field(default_factory=dict)
    is_of_key: bool = True
    """Whether the plan is for one kind, so that matchers need not check kinds."""

    @property
    def is_empty(self) -> bool:
        """Whether no constraint is about reviews of this key."""
        return not (self.steps or self.broken)

    def at(self, place: str | None) -> Plan:
        """Returns the plan for a namespace; None for none in particular."""
        if place is None:
            return self
        plan = self.places.get(place)
        if plan is None:
            plan = self._narrowed(place)
            size = len(self.broken) + sum(len(step.constraints) for step in self.steps)
            if len(self.places) >= max(1, PLACED_MAX // max(1, size)):
                self.places.clear()
            self.places[place] = plan
        return plan

    def _narrowed(self, place: str) -> Plan:
        """Returns this plan without the constraints that cannot match in a namespace."""
        numbers = {-1: -1}
        steps = []
        for step in self.steps:
            chosen = tuple(
                (
                    constraint,
                    numbers.setdefault(self._matcher_of(constraint, number), len(numbers) - 1),
                )
                for constraint, number in step.constraints
                if _may_match(constraint, place)
            )
            if chosen:
                steps.append(PlanStep(step.entry, chosen))
        broken = tuple(
            replace(
                item,
                number=numbers.setdefault(
                    self._matcher_of(item.constraint, item.number), len(numbers) - 1
                ),
            )
            for item in self.broken
            if _may_match(item.constraint, place)
        )
        matchers = tuple(self.matchers[number] for number in numbers if number >= 0)
        return Plan(matchers, tuple(steps), broken, self.denying, is_of_key=self.is_of_key)

    def _matcher_of(self, constraint: Constraint, number: int) -> int:
        """Returns the number of a constraint's matcher in a namespace.

        -1 if it always matches there.
        """
        match = constraint.match
        is_settled = self.is_of_key and match is not None and match.is_decided_by_namespace
        return -1 if is_settled else number

    def select(self, outcomes: tuple[bool | str, ...], operation: str | None) -> Planned:
        """Returns the selection for these outcomes of the matchers; it is cached."""
        selection = self.selections.get((operation, outcomes))
        if selection is None:
            selection = self._select(outcomes, operation)
            # Reasons name objects: kept, they would only fill the memory.
            if not selection.unmatchable:
                if len(self.selections) >= SELECTIONS_MAX:
                    self.selections.clear()
                self.selections[operation, outcomes] = selection
        return selection

    def _select(self, outcomes: tuple[bool | str, ...], operation: str | None) -> Planned:
        matching = []
        unmatchable: list[tuple[Constraint, str]] = []
        for step in self.steps:
            if not _is_for(step.entry, operation):
                continue
            chosen: dict[bytes, list[Constraint]] = {}
            for constraint, number in step.constraints:
                outcome = True if number < 0 else outcomes[number]
                if outcome is True:
                    key = step.entry.group_of(constraint)
                    chosen.setdefault(key, []).append(constraint)
                elif outcome is not False:
                    unmatchable.append((constraint, outcome))
            if chosen:
                groups = sorted(map(tuple, chosen.values()), key=self._allows)
                matching.append((step.entry, tuple(groups)))
        matching.sort(
            key=lambda item: (self._allows(item[1][0]), not asks_providers(item[0].evaluator))
        )
        broken = []
        for item in self.broken:
            outcome = True if item.number < 0 else outcomes[item.number]
            if outcome is False or not _is_for(item.entry, operation):
                continue
            if outcome is True:
                broken.append(item)
            else:
                unmatchable.append((item.constraint, outcome))
        asking = tuple(takewhile(lambda step: asks_providers(step[0].evaluator), matching))
        others = tuple(matching[len(asking) :])
        return Planned(asking, others, tuple(unmatchable), tuple(broken))

    def _allows(self, group: tuple[Constraint, ...]) -> bool:
        return not any(constraint.key in self.denying for constraint in group)


def _may_match(constraint: Constraint, place: str) -> bool:
    match = constraint.match
    return match is None or match.admits_namespace is None or match.admits_namespace(place)


def _is_for(entry: Entry, operation: str | None) -> bool:
    return operation is None or entry.template.matches_operation(operation)


def make_plan(
    entries: Iterable[Entry],
    key: Hashable,
    *,
    point: str,
    client_points: Sequence[str],
    on_error: OnError,
) -> Plan:
    """Returns the plan of a target's entries for a key; None as key is for reviews without one."""
    points = client_points if point == enforcement.ALL else (point,)
    numbers: dict[str, int] = {}
    matchers: list[Matcher] = []
    steps: list[PlanStep] = []
    broken: list[BrokenStep] = []
    denying = set()
    for entry in entries:
        chosen: list[tuple[Constraint, int]] = []
        for written in entry.constraints:
            if not enforcement.applies(written, points):
                continue
            constraint = _at_point(written, point)
            match = constraint.match
            if match is None:
                number = -1
            elif key is None:
                number = len(matchers)
                matchers.append(match.full)
            elif match.selects(key):
                number = _number(match, numbers, matchers)
            else:
                continue
            if "deny" in enforcement.actions_at(constraint, point, client_points):
                denying.add(constraint.key)
            fault = entry.fault_of(constraint, on_error)
            if fault is None:
                chosen.append((constraint, number))
            else:
                broken.append(BrokenStep(entry, constraint, number, fault))
        if chosen:
            steps.append(PlanStep(entry, tuple(chosen)))
    return Plan(
        tuple(matchers),
        tuple(steps),
        tuple(broken),
        frozenset(denying),
        is_of_key=key is not None,
    )


def _at_point(constraint: Constraint, point: str) -> Constraint:
    """Returns a constraint with its match at a point."""
    match = constraint.match
    if match is None or match.audited is None or point != enforcement.AUDIT:
        return constraint
    return replace(constraint, match=match.audited)


def _number(match: CompiledMatch, numbers: dict[str, int], matchers: list[Matcher]) -> int:
    """Returns the number of a match's residual, shared by equal ones; -1 for none."""
    if match.residual is None:
        return -1
    number = numbers.get(match.residual_key)
    if number is None:
        number = numbers[match.residual_key] = len(matchers)
        matchers.append(match.residual)
    return number
