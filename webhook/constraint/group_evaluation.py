"""Evaluates a ConstraintGroup: one verdict from the verdicts of its members.

There are two kinds of groups. A *formula* (``a && !b``) evaluates a member only if the verdict
depends on it. In a list of *cases*, the first case that matches names the member that decides. Each
member is evaluated at most once in a review. An error of a member leaves the group undecided only
if the verdict depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.shapes import object_of
from webhook.constraint import containment
from webhook.constraint.driver import DriverViolation, Evaluator
from webhook.constraint.errors import MatchError, PolicyError
from webhook.constraint.secrecy import quoting_no_secret
from webhook.external_data.exchange import ProviderRequest, Unanswered
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.formula import Formula, Verdict
    from webhook.constraint.limits import Limits
    from webhook.constraint.review import Review
    from webhook.constraint.target import CompiledMatch
    from webhook.constraint.template import Template

MESSAGES_SHOWN: Final = 3
"""The most messages of a member in the group's own message; its details have all."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A template (``kind``) with parameters, or the constraint ``kind``/``name``.

    ``given`` is the constraint's part of ``evaluator``'s input. ``evaluator`` is None until the group
    is put in force.
    """

    kind: str
    name: str = ""
    parameters: Any = None
    evaluator: Evaluator | None = None
    template: Template | None = None
    given: Any = None


@dataclass(frozen=True, slots=True)
class GroupCase:
    """The member that decides about matching objects; empty: they are accepted."""

    match: CompiledMatch | None
    member: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it was read: a ``formula``, or ``cases`` whose last one matches everything."""

    members: Mapping[str, GroupMember]
    formula: Formula | None
    cases: tuple[GroupCase, ...]
    source: str
    message: str
    compares: bool = False
    """Whether violations are compared with those of the old object: then each member is evaluated
    for an object that the group does not accept. So it is for objects that are being deleted."""
    read: Constraint | None = None
    """The group's constraint before its members were resolved; None for that constraint itself."""

    def called_members(self) -> tuple[str, ...]:
        """Returns the members that can be evaluated, in the order of their first calls."""
        if self.formula is not None:
            return tuple(dict.fromkeys(self.formula.members()))
        return tuple(dict.fromkeys(case.member for case in self.cases if case.member))


class GroupReview(NamedTuple):
    """The review that cases match, with its operation."""

    review: Review
    operation: str | None


class GroupEvaluator:
    """The evaluator of every group; the :class:`Group` is its input."""

    reads_constraint: Final = False

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> _MemberStates:
        """Returns the state of a review: the states of its members' evaluators."""
        return _MemberStates(limits, inventory, shared)

    def evaluate(
        self, given: Group, review: GroupReview, state: _MemberStates
    ) -> Sequence[DriverViolation]:
        """Returns the group's violation, or those of the deciding member of a case without a message."""
        members = _Members(given, review, state)
        if given.formula is not None:
            return _violations_of_formula(given, members)
        return _violations_of_case(given, members)


GROUP_EVALUATOR: Final = GroupEvaluator()


class _MemberStates:
    """The state of each member's evaluator for one review, begun when it is first needed."""

    def __init__(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None
    ) -> None:
        self._arguments = limits, inventory, shared
        self.budget = limits.budget
        self._states: dict[int, Any] = {}

    def state_of(self, evaluator: Any) -> Any:
        key = id(evaluator)
        if key not in self._states:
            self._states[key] = evaluator.begin(*self._arguments)
        return self._states[key]


class _Members:
    """The members during one evaluation of a group; each is evaluated at most once."""

    def __init__(self, group: Group, question: GroupReview, states: _MemberStates) -> None:
        self._group = group
        self.question = question
        self._states = states
        self.violations: dict[str, Sequence[DriverViolation]] = {}
        """The violations of each evaluated member."""
        self.failures: dict[str, PolicyError] = {}
        self._requests: dict[str, tuple[ProviderRequest, ...]] = {}
        """The provider requests that a member needs first, by member."""

    def accepts(self, name: str) -> Verdict:
        """Whether a member accepts the review; None if undecided."""
        if name in self.failures or name in self._requests:
            return None
        if name not in self.violations:
            try:
                self.violations[name] = self._evaluated(name)
            except Unanswered as unanswered:
                self._requests[name] = unanswered.requests
                return None
            except Exception as raised:  # noqa: BLE001  # any error fails this member alone
                error = containment.of_evaluation(raised)
                self.failures[name] = quoting_no_secret(error, self.question.review.document)
                return None
        return not self.violations[name]

    def evaluate_others(self) -> None:
        """Evaluates the members on which the verdict did not depend.

        Raises the error of a member that may take longer on another thread.
        """
        budget = self._states.budget
        for name in self._group.called_members():
            if self.accepts(name) is None and budget is not None and budget.deferrable:
                error = self.failures.get(name)
                if error is not None and error.overrun and not error.too_deep:
                    raise self._error_of(name)

    def check_answers(self) -> None:
        """Raises :class:`~webhook.external_data.exchange.Unanswered` for a missing provider response."""
        if self._requests:
            raise Unanswered([item for requests in self._requests.values() for item in requests])

    def _evaluated(self, name: str) -> Sequence[DriverViolation]:
        member, operation = self._group.members[name], self.question.operation
        evaluator, template = member.evaluator, member.template
        if evaluator is None or template is None:
            raise AssertionError("a group whose members cannot be evaluated is not asked")
        if operation is not None and not template.matches_operation(operation):
            return ()  # a constraint of this template would not be evaluated either
        state = self._states.state_of(evaluator)
        return tuple(evaluator.evaluate(member.given, self.question.review.document, state))

    def member_of_case(self) -> str:
        """Returns the member of the first case that matches; empty if the case accepts everything.

        Cases match the object as it will be: an update cannot keep the case that it leaves.
        """
        review = self.question.review
        if len(review.subject.views) > 1:
            review = replace(
                review, subject=replace(review.subject, views=review.subject.views[:1])
            )
        for number, case in enumerate(self._group.cases):
            try:
                if case.match is None or case.match.full(review):
                    return case.member
            except MatchError as error:
                raise PolicyError(f"unable to match spec.firstMatch[{number}]: {error}") from None
        return ""

    def undecided(self) -> PolicyError:
        """Returns the error of the group: that of its first undecided member."""
        return self._error_of(next(iter(self.failures)))

    def _error_of(self, name: str) -> PolicyError:
        error = self.failures[name]
        return PolicyError(
            f"member {name}: {error}",
            no_verdict=error.no_verdict,
            overrun=error.overrun,
            too_deep=error.too_deep,
            bug=error.bug,
        )

    def details(self) -> dict[str, Any]:
        """Returns ``details`` of a violation: the verdict and violations of each evaluated member."""
        members = {name: self._details_of(name) for name in self.violations}
        for name, error in self.failures.items():
            members[name] = {"kind": self._group.members[name].kind, "error": str(error)}
        return {"members": members}

    def _details_of(self, name: str) -> dict[str, Any]:
        member, violations = self._group.members[name], self.violations[name]
        shown: dict[str, Any] = {"kind": member.kind, "accepts": not violations}
        if member.name:
            shown["name"] = member.name
        if violations:
            shown["violations"] = [_shown(violation) for violation in violations]
        return shown

    def summary(self) -> str:
        """Returns the first messages of each evaluated member, in a line."""
        parts = []
        for name, violations in self.violations.items():
            messages = [violation.msg for violation in violations[:MESSAGES_SHOWN]]
            if len(violations) > MESSAGES_SHOWN:
                messages.append(f"and {len(violations) - MESSAGES_SHOWN} more")
            parts.append(f"{name}: {', '.join(messages)}" if violations else f"{name} accepts")
        return "; ".join(parts)


def _shown(violation: DriverViolation) -> dict[str, Any]:
    return {"msg": violation.msg, "details": violation.details}


def _ends(document: Mapping[str, Any]) -> bool:
    """Whether a request is about an object that is being deleted.

    An update of it may be compared with the old object for any group.
    """
    metadata = object_of(object_of(document.get("object")).get("metadata"))
    return bool(metadata.get("deletionTimestamp") and document.get("operation"))


def _violations_of_formula(group: Group, members: _Members) -> Sequence[DriverViolation]:
    assert group.formula is not None
    verdict = group.formula.verdict(members.accepts)
    members.check_answers()
    if verdict is None:
        raise members.undecided()
    if verdict:
        return ()
    if group.compares or _ends(members.question.review.document):
        members.evaluate_others()
        members.check_answers()
    message = group.message or f"{group.source} is false: {members.summary()}"
    return (DriverViolation(message, members.details()),)


def _violations_of_case(group: Group, members: _Members) -> Sequence[DriverViolation]:
    name = members.member_of_case()
    if not name:
        return ()
    verdict = members.accepts(name)
    members.check_answers()
    if verdict is None:
        raise members.undecided()
    if verdict:
        return ()
    if group.message:
        return (DriverViolation(group.message, members.details()),)
    member: dict[str, Any] = {"kind": group.members[name].kind, "accepts": False}
    return [
        DriverViolation(
            violation.msg, {"members": {name: member | {"violations": [_shown(violation)]}}}
        )
        for violation in members.violations[name]
    ]
