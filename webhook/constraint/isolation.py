"""What a request gets where a constraint that matches it could not be decided.

A fault of a policy costs only what that policy decides. Which answer it is, the
owner of the policy says (``onError``): docs/isolation.md has the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from webhook.constraint import enforcement
from webhook.constraint.causes import ON_ERROR, FaultStage, OnError, UndecidedCause
from webhook.constraint.errors import InvalidTemplate
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ANNOTATION: Final = "waddle.dev/on-error"
"""Of a constraint, or of a template for all its constraints that do not say otherwise."""


FaultAnswer: TypeAlias = Literal["reject", "warn", "record"]
"""``reject`` refuses the request, ``warn`` adds a warning, ``record`` tells the user nothing."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What the operator chose about faults of policies.

    ``on_error`` is for policies that do not say. ``error_is_violation`` gives an
    evaluation's error Gatekeeper's meaning; without it such a request has no
    verdict. Nothing in ``spared_namespaces`` is refused for a fault.
    """

    on_error: OnError = "lastGood"
    error_is_violation: bool = True
    spared_namespaces: frozenset[str] = frozenset()


DEFAULT: Final = Isolation()


@dataclass(frozen=True, slots=True)
class FaultView:
    """What is wrong with the newest revision of a policy, and what that means.

    ``answer`` is what a request gets that it matches at admission; ``lastGood``
    where the revision before decides it.
    """

    cause: FaultStage
    on_error: OnError
    answer: Literal["lastGood", "reject", "warn", "record"]
    message: str = ""


class InvalidOnError(ValueError):
    """An annotation of another value; the message says which there are."""


def on_error_of(document: Mapping[str, Any]) -> OnError | None:
    """What an object's annotation says, None without one. Raises :class:`InvalidOnError`."""
    annotations = (document.get("metadata") or {}).get("annotations")
    value = annotations.get(ANNOTATION) if type(annotations) is dict else None
    if value is None:
        return None
    if value not in ON_ERROR:
        raise InvalidOnError(
            f'annotation {ANNOTATION} must be one of {", ".join(ON_ERROR)}, got "{value}"'
        )
    return cast("OnError", value)


def template_on_error(document: Mapping[str, Any]) -> OnError | None:
    """The same of a template; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
    try:
        return on_error_of(document)
    except InvalidOnError as error:
        raise InvalidTemplate(f"invalid ConstraintTemplate: {error}") from None


def readable_on_error(document: Mapping[str, Any]) -> OnError | None:
    """The same for an object that is known to be broken."""
    try:
        return on_error_of(document)
    except InvalidOnError:
        return None


def answer_to(
    actions: Sequence[str],
    on_error: OnError,
    *,
    point: str,
    spared: bool,
    cause: UndecidedCause = "error",
) -> FaultAnswer:
    """The answer for an undecided constraint with these actions.

    Only one that denies may refuse, and nothing that is ``spared``. An audit
    answers nobody. There is no revision left that ``lastGood`` could ask: that
    was tried before. What an engine would decide that is not there is refused only
    where that was asked for: nobody broke the policy, and a cluster that is taken
    over must go on working.
    """
    if cause == "engine" and on_error == "lastGood":
        on_error = "allow"
    if point == enforcement.AUDIT:
        return "record"
    if "deny" in actions:
        return "warn" if spared or on_error == "allow" else "reject"
    return "warn" if "warn" in actions else "record"
