"""One revision of policy and data, immutable, and the review of a thing against it.

Cost follows the constraints that match. For each key of the index (group and
kind) and each enforcement point the snapshot keeps a *plan*, made when first
asked for: the templates with constraints that may match, and the distinct
matchers among those constraints, each run once for a review however many
constraints share it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import enforcement
from webhook.constraint.errors import (
    MatchError,
    PolicyError,
    ReviewError,
    UnsupportedEnforcementPoint,
)
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import Fault, Responses, Result, answer_order

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.limits import Limits
    from webhook.constraint.result import ResultCause
    from webhook.constraint.review import Review
    from webhook.constraint.target import CompiledMatch, Matcher, Target
    from webhook.constraint.template import Template

PLANS_MAX: Final = 4096
"""Plans kept: kinds times points of a large cluster, and a bound on what requests can make."""

SELECTIONS_MAX: Final = 256
"""Selections kept for a plan: each is a tuple for each template that applies."""

AUTOREJECT: Final = "unable to match constraints"


@dataclass(frozen=True, slots=True)
class Entry:
    """A template in force, with its constraints in order of name."""

    template: Template
    target: Target
    evaluator: Evaluator
    constraints: tuple[Constraint, ...]
    crd: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """What a plan does for one template: constraints, each with its matcher's number or -1."""

    entry: Entry
    constraints: tuple[tuple[Constraint, int], ...]


@dataclass(frozen=True, slots=True)
class _Selection:
    """What is to be done for one outcome of the matchers.

    ``matching`` are the constraints to evaluate, template by template and those
    of equal parameters together: what they find is equal too, so one evaluation
    serves them all. ``unmatchable`` are those whose matcher failed, with the
    reason.
    """

    matching: tuple[tuple[Entry, tuple[tuple[Constraint, ...], ...]], ...]
    unmatchable: tuple[tuple[Constraint, str], ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The distinct matchers and the templates that may apply, with selections made before."""

    matchers: tuple[Matcher, ...]
    steps: tuple[_Step, ...]
    selections: dict[tuple[Any, ...], _Selection] = field(default_factory=dict)

    def select(self, outcomes: tuple[bool | str, ...], operation: str | None) -> _Selection:
        """The selection for these outcomes of the matchers; reviews mostly repeat a few."""
        selection = self.selections.get((operation, outcomes))
        if selection is None:
            selection = self._select(outcomes, operation)
            # Reasons name objects: kept, they would only fill the memory.
            if not selection.unmatchable:
                if len(self.selections) >= SELECTIONS_MAX:
                    self.selections.clear()
                self.selections[operation, outcomes] = selection
        return selection

    def _select(self, outcomes: tuple[bool | str, ...], operation: str | None) -> _Selection:
        matching = []
        unmatchable: list[tuple[Constraint, str]] = []
        for step in self.steps:
            if operation is not None and not step.entry.template.matches_operation(operation):
                continue
            chosen: dict[bytes, list[Constraint]] = {}
            for constraint, number in step.constraints:
                outcome = True if number < 0 else outcomes[number]
                if outcome is True:
                    chosen.setdefault(constraint.parameters_key, []).append(constraint)
                elif outcome is not False:
                    unmatchable.append((constraint, outcome))
            if chosen:
                matching.append((step.entry, tuple(map(tuple, chosen.values()))))
        return _Selection(tuple(matching), tuple(unmatchable))


class Snapshot:
    """Templates, constraints and data at one moment; safe to share, never changed.

    Its plans are a cache: two reviews that make the same plan make equal ones.
    """

    __slots__ = (
        "_entries",
        "_plans",
        "digest",
        "enforcement_points",
        "error_is_violation",
        "inventory",
        "namespaces",
        "revision",
        "targets",
    )

    def __init__(
        self,
        *,
        targets: Mapping[str, Target],
        entries: Sequence[Entry] = (),
        inventory: Mapping[str, Any] | None = None,
        namespaces: Mapping[str, Any] | None = None,
        enforcement_points: Sequence[str] = enforcement.POINTS,
        error_is_violation: bool = True,
        digest: str = "",
        revision: int = 0,
    ) -> None:
        self.targets = dict(targets)
        self._entries = {entry.template.kind: entry for entry in entries}
        self.inventory = {} if inventory is None else inventory
        self.namespaces = {} if namespaces is None else namespaces
        self.enforcement_points = tuple(enforcement_points)
        self.error_is_violation = error_is_violation
        self.digest = digest
        self.revision = revision
        self._plans: dict[tuple[str, str, Hashable], _Plan] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The templates in force with their constraints, in order of kind."""
        return tuple(entry for _, entry in sorted(self._entries.items()))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Every constraint in force, in order of kind and name."""
        return tuple(constraint for entry in self.entries for constraint in entry.constraints)

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """Review a thing (see :mod:`webhook.constraint.review`) against every constraint.

        Raises :class:`~webhook.constraint.errors.UnsupportedEnforcementPoint`.
        """
        if enforcement_point != enforcement.ALL and (
            enforcement_point not in self.enforcement_points
        ):
            raise UnsupportedEnforcementPoint(
                "enforcement point not supported by client, supported enforcement points: "
                f"[{' '.join(self.enforcement_points)}]"
            )
        found = _Findings(self, enforcement_point, limits)
        for target in self.targets.values():
            try:
                review = target.handle_review(value, self.namespaces)
            except ReviewError as error:
                message = f"target.HandleReview failed for target {_quote(target.name)}: {error}"
                found.faults.append(Fault(target.name, "", message))
                continue
            if review is not None:
                found.review(review)
                if found.deadline_exceeded:
                    break
        return found.responses()

    def plan(self, point: str, target: str, key: Hashable) -> _Plan:
        """The plan for a key of the index; None as key is for what no index can serve."""
        plan = self._plans.get((point, target, key))
        if plan is None:
            plan = self._make_plan(point, target, key)
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            self._plans[point, target, key] = plan
        return plan

    def _make_plan(self, point: str, target_name: str, key: Hashable) -> _Plan:
        points = self.enforcement_points if point == enforcement.ALL else (point,)
        numbers: dict[str, int] = {}
        matchers: list[Matcher] = []
        steps: list[_Step] = []
        for entry in self.entries:
            if entry.target.name != target_name:
                continue
            chosen: list[tuple[Constraint, int]] = []
            for constraint in entry.constraints:
                if not enforcement.applies(constraint, points):
                    continue
                match = constraint.match
                if match is None:
                    chosen.append((constraint, -1))
                elif key is None:
                    chosen.append((constraint, len(matchers)))
                    matchers.append(match.full)
                elif match.selects(key):
                    chosen.append((constraint, _number(match, numbers, matchers)))
            if chosen:
                steps.append(_Step(entry, tuple(chosen)))
        return _Plan(tuple(matchers), tuple(steps))


def _number(match: CompiledMatch, numbers: dict[str, int], matchers: list[Matcher]) -> int:
    """The number of this match's residual in the plan, shared by equal ones; -1 for none."""
    if match.residual is None:
        return -1
    number = numbers.get(match.residual_key)
    if number is None:
        number = numbers[match.residual_key] = len(matchers)
        matchers.append(match.residual)
    return number


class _Findings:
    """One review as it proceeds."""

    __slots__ = (
        "deadline_exceeded",
        "evaluated",
        "faults",
        "limits",
        "point",
        "results",
        "snapshot",
    )

    def __init__(self, snapshot: Snapshot, point: str, limits: Limits) -> None:
        self.snapshot = snapshot
        self.point = point
        self.limits = limits
        self.results: list[Result] = []
        self.faults: list[Fault] = []
        self.deadline_exceeded = False
        self.evaluated = 0

    def review(self, review: Review) -> None:
        plan = self.snapshot.plan(self.point, review.target, review.key)
        outcomes = tuple([_outcome(matcher, review) for matcher in plan.matchers])
        operation = review.operation if self.point == enforcement.WEBHOOK else None
        selection = plan.select(outcomes, operation)
        for constraint, reason in selection.unmatchable:
            self._add(review.target, constraint, f"{AUTOREJECT}: {reason}", None, "autoreject")
        deadline = self.limits.deadline
        for entry, groups in selection.matching:
            self._evaluate(entry, groups, review)
            if deadline is not None and (self.deadline_exceeded or time.monotonic() > deadline):
                self.deadline_exceeded = True
                return

    def _evaluate(
        self, entry: Entry, groups: tuple[tuple[Constraint, ...], ...], review: Review
    ) -> None:
        """Evaluate one template for its matching constraints.

        An evaluation that fails becomes a violation of *every* matching
        constraint of the template, whatever the others found: Gatekeeper asks
        one query for them all, and it failed.
        """
        evaluate = entry.evaluator.evaluate
        mark = len(self.results)
        try:
            state = entry.evaluator.begin(self.limits, self.snapshot.inventory)
            for group in groups:
                self.evaluated += len(group)
                found = evaluate(group[0].parameters, review.document, state)
                for msg, details in found:
                    for constraint in group:
                        self._add(review.target, constraint, msg, details)
        except PolicyError as error:
            del self.results[mark:]
            deadline = self.limits.deadline
            if deadline is not None and time.monotonic() > deadline:
                self.deadline_exceeded = True
            elif self.snapshot.error_is_violation and not error.no_verdict:
                for group in groups:
                    for constraint in group:
                        self._add(review.target, constraint, str(error), None, "error")
            else:
                self.faults.append(Fault(review.target, entry.template.kind, str(error)))

    def _add(
        self,
        target: str,
        constraint: Constraint,
        msg: str,
        details: Any,
        cause: ResultCause = "violation",
    ) -> None:
        scoped = enforcement.scoped_actions(
            constraint, self.point, self.snapshot.enforcement_points
        )
        action = constraint.enforcement_action
        self.results.append(Result(target, constraint, msg, details, action, scoped, cause))

    def responses(self) -> Responses:
        # A stable sort: a constraint's violations of one message keep their own order.
        self.results.sort(key=answer_order)
        return Responses(
            tuple(self.results), tuple(self.faults), self.deadline_exceeded, self.evaluated
        )


def _outcome(matcher: Matcher, review: Review) -> bool | str:
    """True or False, or why it cannot be told."""
    try:
        return matcher(review)
    except MatchError as error:
        return str(error)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
