"""The values that a review answers with."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.constraint.causes import UndecidedCause
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.isolation import FaultAnswer
    from webhook.external_data.exchange import ProviderAnswers, ProviderRequest

ResultCause = Literal["violation", "autoreject", "error"]
"""``autoreject``: the constraint could not be matched. ``error``: its template failed."""

ExcuseEffect = Literal["skip", "warn", "dryrun"]
"""The effect on an excused violation: it is left out, or counts with a weaker action."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """The exception that excuses a violation, with what records, reports and pages show of it.

    ``namespace`` is empty for one of the cluster, ``expires`` (RFC 3339) for one that never ends.
    """

    kind: str
    namespace: str
    name: str
    effect: ExcuseEffect
    reason: str
    expires: str = ""
    ticket: str = ""
    owner: str = ""

    @property
    def title(self) -> str:
        """The exception's kind and name."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


# One object may have thousands: a named tuple, at half of what a frozen dataclass takes.
class Result(NamedTuple):
    """One violation of one constraint.

    ``enforcement_action`` is the constraint's own (``scoped`` among them) and
    ``scoped_actions`` are those it scopes to the enforcement point that asked,
    sorted; :attr:`actions` is what counts. ``details`` is the rule's, ``{}``
    where it gave none, and None for what no rule reported. ``excuse`` is the exception that
    excuses it, or that weakened its action.
    """

    target: str
    constraint: Constraint
    msg: str
    details: Any
    enforcement_action: str
    scoped_actions: tuple[str, ...] = ()
    cause: ResultCause = "violation"
    excuse: Excuse | None = None
    existing: bool = False
    """Whether the object had it before the update, and its constraint lets it stay."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions to take: one, or the scoped ones."""
        return (
            self.scoped_actions
            if self.enforcement_action == "scoped"
            else (self.enforcement_action,)
        )

    @property
    def autoreject(self) -> bool:
        """Whether the constraint could not be matched and counts as violated."""
        return self.cause == "autoreject"

    @property
    def error(self) -> bool:
        """Whether the template's evaluation failed and counts as a violation."""
        return self.cause == "error"


@dataclass(frozen=True, slots=True)
class Undecided:
    """A constraint that matched and could not be decided, and what is answered for it."""

    target: str
    constraint: Constraint
    cause: UndecidedCause
    answer: FaultAnswer
    message: str

    def __str__(self) -> str:
        return f"{self.constraint.kind}/{self.constraint.name} ({self.cause}): {self.message}"


@dataclass(frozen=True, slots=True)
class Remark:
    """A message of a policy beside its verdict.

    ``ignored``: an error that the policy is told to pass over. ``annotation``: what it has written
    into an audit log.
    """

    constraint: Constraint
    cause: Literal["ignored", "annotation"]
    message: str

    def __str__(self) -> str:
        return f"{self.constraint.kind}/{self.constraint.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A template or target without a verdict, where that is no violation."""

    target: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.target}: {self.kind}: {self.message}" if self.kind else self.message


class Responses(NamedTuple):
    """Everything one review found.

    ``results`` are in Gatekeeper's order of an answer: enforcement action, then
    message, ties by constraint kind and name; :meth:`by_constraint` gives the
    order of kind and name. ``evaluated`` counts the constraints that matched.
    ``undecided`` are those that matched and gave no verdict, each with its
    answer. ``excused`` are violations that exceptions take out of the results. With ``faults``, or
    when ``deadline_exceeded`` with a constraint that denies undecided, the review has no verdict
    unless something denies. With ``requests`` it is to be made again once providers have answered
    them: what is here is a part.
    """

    results: tuple[Result, ...] = ()
    faults: tuple[Fault, ...] = ()
    deadline_exceeded: bool = False
    evaluated: int = 0
    undecided: tuple[Undecided, ...] = ()
    excused: tuple[Result, ...] = ()
    requests: tuple[ProviderRequest, ...] = ()
    answers: ProviderAnswers | None = None
    """The answers of providers, if any were asked."""
    remarks: tuple[Remark, ...] = ()
    recalled: int = 0
    """How many constraints that matched took their result from the memo, without an evaluation."""

    def by_constraint(self) -> tuple[Result, ...]:
        """The results sorted by constraint kind and name."""
        return tuple(sorted(self.results, key=_constraint_order))


DEFERRED: Final = Responses(deadline_exceeded=True)
"""The answer, compared by identity, of a review that takes too long where it was begun: nothing was
decided, and it is to be begun anew where it may take more (``Budget.deferrable``)."""


def _constraint_order(result: Result) -> tuple[str, str]:
    return result.constraint.kind, result.constraint.name


answer_order: Final = attrgetter("enforcement_action", "msg", "constraint.kind", "constraint.name")
"""Gatekeeper's order of an answer (frameworks, types.Responses.Results), ties decided."""
