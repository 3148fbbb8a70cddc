"""What a ConstraintGroup finds: its members are asked, as far as the outcome hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.constraint import containment
from webhook.constraint.driver import DriverViolation
from webhook.constraint.errors import MatchError, PolicyError
from webhook.external_data.exchange import Unanswered
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.driver import Evaluator
    from webhook.constraint.formula import Formula, Verdict
    from webhook.constraint.limits import Limits
    from webhook.constraint.review import Review
    from webhook.constraint.target import CompiledMatch
    from webhook.constraint.template import Template
    from webhook.external_data.exchange import ProviderRequest

MESSAGES_SHOWN: Final = 3
"""Of one member in a group's own message; its details have all."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A template (``kind``) with parameters, or the constraint of a ``name``.

    ``given`` is what ``evaluator`` is given; there is none before it was found out.
    """

    kind: str
    name: str = ""
    parameters: Any = None
    evaluator: Evaluator | None = None
    template: Template | None = None
    given: Any = None


@dataclass(frozen=True, slots=True)
class GroupCase:
    """What holds for objects that match: a member, or none (``member`` is empty)."""

    match: CompiledMatch | None
    member: str


@dataclass(frozen=True, slots=True)
class Group:
    """What a group says: either ``formula``, or ``cases`` whose last one holds for all others."""

    members: Mapping[str, GroupMember]
    formula: Formula | None
    cases: tuple[GroupCase, ...]
    source: str
    message: str
    read: Constraint | None = None
    """The group's constraint before its members' evaluators were found out; None for that one."""


class AskedOfGroup(NamedTuple):
    """What a group is asked about: cases match the review; ``operation`` selects templates."""

    review: Review
    operation: str | None


class GroupEvaluator:
    """Evaluates every group; what its members are, a group brings with it."""

    reads_constraint: Final = False

    def begin(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None = None
    ) -> _Begun:
        """What members' evaluations of one review share."""
        return _Begun(limits, inventory, shared)

    def evaluate(
        self, given: Group, review: AskedOfGroup, state: _Begun
    ) -> Sequence[DriverViolation]:
        """One violation, of the group; of a case without a message of its own those of its member."""
        asking = _Asking(given, review, state)
        if given.formula is not None:
            return _of_formula(given, asking)
        return _of_case(given, asking)


GROUP_EVALUATOR: Final = GroupEvaluator()


class _Begun:
    """The states that templates began with, each when it is first needed."""

    def __init__(
        self, limits: Limits, inventory: Mapping[str, Any], shared: dict[str, Any] | None
    ) -> None:
        self._arguments = limits, inventory, shared
        self._states: dict[int, Any] = {}

    def state_of(self, evaluator: Any) -> Any:
        key = id(evaluator)
        if key not in self._states:
            self._states[key] = evaluator.begin(*self._arguments)
        return self._states[key]


class _Asking:
    """One evaluation of one group: each member is asked once at most."""

    def __init__(self, group: Group, asked: AskedOfGroup, begun: _Begun) -> None:
        self._group = group
        self._asked = asked
        self._begun = begun
        self.told: dict[str, Sequence[DriverViolation]] = {}
        """What each member that was asked found."""
        self.failures: dict[str, PolicyError] = {}
        self._wanting: dict[str, tuple[ProviderRequest, ...]] = {}
        """What providers have to be asked before members are decided."""

    def ask(self, name: str) -> Verdict:
        """Whether a member accepts; None where it could not be decided."""
        if name in self.failures or name in self._wanting:
            return None
        if name not in self.told:
            try:
                self.told[name] = self._evaluated(name)
            except Unanswered as wanting:
                self._wanting[name] = wanting.requests
                return None
            except Exception as raised:  # noqa: BLE001  # whatever it is costs this member alone
                self.failures[name] = containment.of_evaluation(raised)
                return None
        return not self.told[name]

    def end(self) -> None:
        """Raise :class:`~webhook.external_data.exchange.Unanswered` if a member misses answers."""
        if self._wanting:
            raise Unanswered([one for of_member in self._wanting.values() for one in of_member])

    def _evaluated(self, name: str) -> Sequence[DriverViolation]:
        member, operation = self._group.members[name], self._asked.operation
        evaluator, template = member.evaluator, member.template
        if evaluator is None or template is None:
            raise AssertionError("a group whose members cannot be evaluated is not asked")
        if operation is not None and not template.matches_operation(operation):
            return ()  # as a constraint of it would not be asked
        state = self._begun.state_of(evaluator)
        return tuple(evaluator.evaluate(member.given, self._asked.review.document, state))

    def member_of_case(self) -> str:
        """The member of the first case that matches; empty for what is accepted unasked."""
        review = self._asked.review
        for number, case in enumerate(self._group.cases):
            try:
                if case.match is None or case.match.full(review):
                    return case.member
            except MatchError as error:
                raise PolicyError(f"unable to match spec.firstMatch[{number}]: {error}") from None
        return ""

    def undecided(self) -> PolicyError:
        """Why the group has no verdict: what its first undecided member met."""
        name, error = next(iter(self.failures.items()))
        return PolicyError(
            f"member {name}: {error}",
            no_verdict=error.no_verdict,
            overrun=error.overrun,
            too_deep=error.too_deep,
            bug=error.bug,
        )

    def details(self) -> dict[str, Any]:
        """Each member that was asked, with its verdict and what it said."""
        members = {name: self._details_of(name) for name in self.told}
        for name, error in self.failures.items():
            members[name] = {"kind": self._group.members[name].kind, "error": str(error)}
        return {"members": members}

    def _details_of(self, name: str) -> dict[str, Any]:
        member, told = self._group.members[name], self.told[name]
        shown: dict[str, Any] = {"kind": member.kind, "accepts": not told}
        if member.name:
            shown["name"] = member.name
        if told:
            shown["violations"] = [{"msg": one.msg, "details": one.details} for one in told]
        return shown


def _of_formula(group: Group, asking: _Asking) -> Sequence[DriverViolation]:
    assert group.formula is not None
    verdict = group.formula.verdict(asking.ask)
    asking.end()
    if verdict is None:
        raise asking.undecided()
    if verdict:
        return ()
    message = group.message or f"{group.source} is false: {_summary(asking)}"
    return (DriverViolation(message, asking.details()),)


def _summary(asking: _Asking) -> str:
    """What the members said that were asked."""
    parts = []
    for name, told in asking.told.items():
        messages = [one.msg for one in told[:MESSAGES_SHOWN]]
        if len(told) > MESSAGES_SHOWN:
            messages.append(f"and {len(told) - MESSAGES_SHOWN} more")
        parts.append(f"{name}: {', '.join(messages)}" if told else f"{name} accepts")
    return "; ".join(parts)


def _of_case(group: Group, asking: _Asking) -> Sequence[DriverViolation]:
    name = asking.member_of_case()
    if not name:
        return ()
    verdict = asking.ask(name)
    asking.end()
    if verdict is None:
        raise asking.undecided()
    told = asking.told[name]
    if not told:
        return ()
    if group.message:
        return (DriverViolation(group.message, asking.details()),)
    member: dict[str, Any] = {"kind": group.members[name].kind, "accepts": False}
    return [
        DriverViolation(
            one.msg,
            {
                "members": {
                    name: member | {"violations": [{"msg": one.msg, "details": one.details}]}
                }
            },
        )
        for one in told
    ]
