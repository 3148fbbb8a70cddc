"""The values that a review returns."""

from __future__ import annotations

from dataclasses import field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.causes import UndecidedCause
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.isolation import FaultAnswer
    from webhook.external_data.exchange import ProviderAnswers, ProviderRequest

ResultCause = Literal["violation", "autoreject", "error"]
"""``autoreject``: the constraint could not be matched. ``error``: its template failed."""

ExcuseEffect = Literal["skip", "warn", "dryrun"]
"""The effect of an exception: the violation is dropped, or has a weaker action."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """The exception that excuses a violation, with the fields that records, reports and pages show.

    ``namespace`` is empty for a cluster-scoped one; ``expires`` (RFC 3339) is empty for one without
    an end. ``report_result`` is the result of an excused violation in reports. ``others`` are the
    exceptions that excuse the violation only together with this one.
    """

    kind: str
    namespace: str
    name: str
    effect: ExcuseEffect
    reason: str
    expires: str = ""
    ticket: str = ""
    owner: str = ""
    report_result: Literal["skip", "pass"] = "skip"
    others: tuple[Excuse, ...] = field(default=(), repr=False)

    @property
    def needed(self) -> tuple[Excuse, ...]:
        """Returns all exceptions that the violation needs: this one, and its others."""
        return (self, *self.others)

    @property
    def title(self) -> str:
        """The exception's kind and name."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


# One object may have thousands: a named tuple, at half of what a frozen dataclass takes.
class Result(NamedTuple):
    """One violation of one constraint.

    ``enforcement_action`` is the constraint's own action, which may be ``scoped``;
    ``scoped_actions`` are its sorted actions at the enforcement point of the review;
    :attr:`actions` are the effective ones. ``details`` come from the rule, ``{}`` by default, and
    None if no rule reported it. ``excuse`` is the exception that excuses it or weakened its action.
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
    """Whether the old object had the violation already, and the constraint tolerates that."""

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
    """A constraint that matched and could not be decided, with the resulting answer."""

    target: str
    constraint: Constraint
    cause: UndecidedCause
    answer: FaultAnswer
    message: str

    def __str__(self) -> str:
        return f"{self.constraint.kind}/{self.constraint.name} ({self.cause}): {self.message}"


@dataclass(frozen=True, slots=True)
class Remark:
    """A message of a policy that does not affect its verdict.

    ``ignored``: an error with failurePolicy Ignore. ``annotation``: an audit annotation.
    """

    constraint: Constraint
    cause: Literal["ignored", "annotation"]
    message: str

    def __str__(self) -> str:
        return f"{self.constraint.kind}/{self.constraint.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Fault:
    """The error of a template or target that leaves the review without a verdict."""

    target: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.target}: {self.kind}: {self.message}" if self.kind else self.message


class Responses(NamedTuple):
    """The findings of one review.

    ``results`` are in Gatekeeper's order of an answer: enforcement action, then message, then
    constraint kind and name; :meth:`by_constraint` sorts by kind and name. ``evaluated`` counts the
    constraints that matched. ``undecided`` are those without a verdict, each with its answer.
    ``excused`` are violations that exceptions removed. With ``faults``, or with
    ``deadline_exceeded`` and an undecided denying constraint, the review has no verdict unless
    something denies. With ``requests`` the findings are incomplete: the review must run again with
    the providers' responses.
    """

    results: tuple[Result, ...] = ()
    faults: tuple[Fault, ...] = ()
    deadline_exceeded: bool = False
    evaluated: int = 0
    undecided: tuple[Undecided, ...] = ()
    excused: tuple[Result, ...] = ()
    requests: tuple[ProviderRequest, ...] = ()
    answers: ProviderAnswers | None = None
    """The responses of providers, if requests were sent."""
    remarks: tuple[Remark, ...] = ()
    recalled: int = 0
    """The number of constraints with a result from the memo."""

    def by_constraint(self) -> tuple[Result, ...]:
        """Returns the results sorted by constraint kind and name."""
        return tuple(sorted(self.results, key=_constraint_order))


DEFERRED: Final = Responses(deadline_exceeded=True)
"""The result of a review that takes too long on this thread, compared by identity. Nothing was
decided; the review must start again where it may take longer (``Budget.deferrable``).
"""

NOTHING_FOUND: Final = Responses()
"""The result of a review that no constraint is about."""


def _constraint_order(result: Result) -> tuple[str, str]:
    return result.constraint.kind, result.constraint.name


def logged_violation(
    result: Result, gvk: GroupVersionKind, namespace: str, name: str
) -> dict[str, str]:
    """Returns a violation of an object as the fields of Gatekeeper's log lines and Events."""
    constraint = result.constraint
    return {
        **constraint.logged_fields,
        "constraint_action": result.enforcement_action,
        "resource_group": gvk.group,
        "resource_api_version": gvk.version,
        "resource_kind": gvk.kind,
        "resource_namespace": namespace,
        "resource_name": name,
    }


answer_order: Final = attrgetter("enforcement_action", "msg", "constraint.kind", "constraint.name")
"""Gatekeeper's order of an answer (frameworks, types.Responses.Results), ties decided."""
