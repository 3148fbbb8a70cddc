"""One immutable revision of policies and data, and the review of objects by it.

The cost of a review depends on the number of matching constraints. For each key of the index (group
and kind) and each enforcement point the snapshot caches a *plan* (:mod:`webhook.constraint.plan`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from webhook.constraint import enforcement, group
from webhook.constraint.errors import ReviewError, UnsupportedEnforcementPoint
from webhook.constraint.findings import Findings
from webhook.constraint.isolation import DEFAULT, Isolation
from webhook.constraint.limits import UNLIMITED, Limits, OnBug
from webhook.constraint.plan import PLANS_MAX, Plan, make_plan
from webhook.constraint.result import NOTHING_FOUND, Fault, Responses

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from webhook.constraint.constraint import Broken, Constraint
    from webhook.constraint.entry import Entry
    from webhook.constraint.failure_policy import FailurePolicy
    from webhook.constraint.target import Target
    from webhook.constraint.template import Template
    from webhook.external_data.exchange import ReviewMoment


class Snapshot:
    """Templates, constraints and data at one moment; immutable and shareable.

    Plans are a cache: two threads that make the same plan make equal ones.
    """

    __slots__ = (
        "_entries",
        "_parts",
        "_plans",
        "digest",
        "enforcement_points",
        "inventory",
        "isolation",
        "lets_existing",
        "namespaces",
        "on_bug",
        "revision",
        "spare",
        "targets",
    )

    def __init__(  # noqa: PLR0913  # all that there is at one moment
        self,
        *,
        targets: Mapping[str, Target],
        entries: Sequence[Entry] = (),
        inventory: Mapping[str, Any] | None = None,
        namespaces: Mapping[str, Any] | None = None,
        enforcement_points: Sequence[str] = enforcement.POINTS,
        isolation: Isolation = DEFAULT,
        digest: str = "",
        revision: int = 0,
        on_bug: OnBug | None = None,
    ) -> None:
        """``spare`` are those of ``entries`` for none of ``targets``.

        ``on_bug`` gets faults of Waddle itself that end an evaluation.
        """
        self.on_bug = on_bug
        self.targets = dict(targets)
        self.spare = tuple(entry for entry in entries if entry.target.name not in self.targets)
        self._entries = {
            entry.template.kind: entry for entry in entries if entry.target.name in self.targets
        }
        self.inventory = {} if inventory is None else inventory
        self.namespaces = {} if namespaces is None else namespaces
        self.enforcement_points = tuple(enforcement_points)
        self.isolation = isolation
        self.digest = digest
        self.revision = revision
        self.lets_existing = any(
            constraint.lets_existing
            for entry in self._entries.values()
            for constraint in entry.constraints
        )
        """Whether a constraint tolerates violations that the old object of an update had."""
        self._plans: dict[tuple[str, str, Hashable], Plan] = {}
        self._parts: dict[FailurePolicy, Snapshot] = {}

    def part(self, failure_policy: FailurePolicy) -> Snapshot:
        """Returns a cached snapshot with the constraints of one failure policy."""
        part = self._parts.get(failure_policy)
        if part is None:
            part = self._parts[failure_policy] = self._part_of(failure_policy)
        return part

    def _part_of(self, failure_policy: FailurePolicy) -> Snapshot:
        every = (*self.spare, *self._entries.values())
        entries = [
            replace(
                entry,
                constraints=tuple(
                    constraint
                    for constraint in entry.constraints
                    if constraint.failure_policy == failure_policy
                ),
            )
            for entry in every
        ]
        if all(
            len(entry.constraints) == len(of.constraints)
            for entry, of in zip(entries, every, strict=True)
        ):
            return self  # All constraints are of this failure policy.
        return Snapshot(
            targets=self.targets,
            entries=entries,
            inventory=self.inventory,
            namespaces=self.namespaces,
            enforcement_points=self.enforcement_points,
            isolation=self.isolation,
            digest=self.digest,
            revision=self.revision,
            on_bug=self.on_bug,
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Returns the templates with a revision in force and their constraints, by kind."""
        return tuple(
            entry for _, entry in sorted(self._entries.items()) if entry.evaluator is not None
        )

    @property
    def templates(self) -> tuple[Template, ...]:
        """Returns every template, also without a revision in force, by kind."""
        return tuple(
            entry.template
            for _, entry in sorted(self._entries.items())
            if entry.template is not group.TEMPLATE
        )

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Returns every constraint in force, by kind and name."""
        return tuple(
            constraint
            for entry in self.entries
            for constraint in entry.constraints
            if entry.fault_of(constraint, self.isolation.on_error) is None
        )

    @property
    def broken(self) -> tuple[tuple[Constraint, Broken], ...]:
        """Returns every constraint that is not evaluated, with the reason, by kind and name."""
        return tuple(
            (constraint, fault)
            for _, entry in sorted(self._entries.items())
            for constraint in entry.constraints
            if (fault := entry.fault_of(constraint, self.isolation.on_error)) is not None
        )

    def review(
        self,
        value: Any,
        *,
        enforcement_point: str = enforcement.ALL,
        limits: Limits = UNLIMITED,
    ) -> Responses:
        """Review an object (see :mod:`webhook.constraint.review`) by every constraint.

        Returns :data:`~webhook.constraint.result.DEFERRED` where the limits say so. Raises
        :class:`~webhook.constraint.errors.UnsupportedEnforcementPoint`.
        """
        if enforcement_point != enforcement.ALL and (
            enforcement_point not in self.enforcement_points
        ):
            raise UnsupportedEnforcementPoint(
                "enforcement point not supported by client, supported enforcement points: "
                f"[{' '.join(self.enforcement_points)}]"
            )
        moment = limits.moment
        if moment is not None and moment.begun is not None:
            begun = self._begun(moment, value, enforcement_point)
            if begun is not None:
                begun.go_on(limits)
                return _kept(begun, moment, value)
        findings = None
        for target in self.targets.values():
            plan, key = None, target.key_of(value)
            if key is not None:
                plan = self.plan(enforcement_point, target.name, key)
                if plan.is_empty:  # As for most kinds: then making the review would take longer.
                    _saw(key, value.size, limits)
                    continue
            try:
                review = target.handle_review(value, self.namespaces)
            except ReviewError as error:
                message = f"target.HandleReview failed for target {_quote(target.name)}: {error}"
                findings = findings or Findings(self, enforcement_point, limits)
                findings.faults.append(Fault(target.name, "", message))
                continue
            if review is not None:
                findings = findings or Findings(self, enforcement_point, limits)
                findings.review(review, plan)
                if findings.deadline_exceeded or findings.deferred:
                    break
        if findings is None:
            return NOTHING_FOUND
        if findings.requests and moment is not None:
            return _kept(findings, moment, value)
        return findings.responses()

    def _begun(self, moment: ReviewMoment, value: Any, point: str) -> Findings | None:
        """Returns the findings of a review that waited for providers; None for any other review."""
        assert moment.begun is not None  # Else all begins here.
        reviewed, findings = moment.begun
        if reviewed is not value or findings.snapshot is not self or findings.point != point:
            return None
        moment.begun = None
        return cast("Findings", findings)

    def plan(self, point: str, target: str, key: Hashable) -> Plan:
        """Returns the plan for a key of the index; key None is for reviews without one."""
        plan = self._plans.get((point, target, key))
        if plan is None:
            plan = make_plan(
                (
                    of_target
                    for _, entry in sorted(self._entries.items())
                    if (of_target := entry.for_target(target)) is not None
                ),
                key,
                point=point,
                client_points=self.enforcement_points,
                on_error=self.isolation.on_error,
            )
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            self._plans[point, target, key] = plan
        return plan


def _saw(key: Hashable, size: int, limits: Limits) -> None:
    """Notes the size of a review that no constraint is about."""
    budget = limits.budget
    if budget is not None and budget.guard is not None:
        budget.guard.saw(key, size)


def _kept(findings: Findings, moment: ReviewMoment, value: Any) -> Responses:
    """Returns the responses of a review; keeps its findings if only responses are missing.

    The next attempt continues from the kept findings.
    """
    if findings.requests and moment.begun is None and findings.may_go_on:
        # They refer back to the moment: with them it would stay until a full collection of garbage.
        findings.limits = UNLIMITED
        moment.begun = value, findings
    return findings.responses()


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
