"""The answer to a request where a constraint that matches it could not be decided.

A fault of a policy costs only what that policy decides. Which answer it is, the
owner of the policy says (``onError``): docs/isolation.md has the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from webhook.constraint import enforcement
from webhook.constraint.causes import (
    ON_ERROR,
    ON_UNDECIDABLE,
    FaultStage,
    OnError,
    OnUndecidable,
    UndecidedCause,
)
from webhook.constraint.errors import InvalidTemplate
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ANNOTATION: Final = "waddle.dev/on-error"
"""Of a constraint, or of a template for all its constraints that do not say otherwise."""

ON_UNDECIDABLE_ANNOTATION: Final = "waddle.dev/on-undecidable"
"""Likewise."""


FaultAnswer: TypeAlias = Literal["reject", "warn", "record"]
"""``reject`` refuses the request, ``warn`` adds a warning, ``record`` tells the user nothing."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The operator's choices about faults of policies.

    ``on_error`` is for policies that do not say. ``error_is_violation`` gives an
    evaluation's error Gatekeeper's meaning; without it such a request has no
    verdict. ``on_undecidable`` is about objects that no policy could be decided for.
    Nothing in ``spared_namespaces`` is refused for a fault.
    """

    on_error: OnError = "lastGood"
    on_undecidable: OnUndecidable = "refuse"
    error_is_violation: bool = True
    spared_namespaces: frozenset[str] = frozenset()


DEFAULT: Final = Isolation()


@dataclass(frozen=True, slots=True)
class FaultView:
    """The fault of a policy's newest revision, and what that means.

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
    """Read an object's annotation, None without one; raises :class:`InvalidOnError`."""
    return cast("OnError | None", _annotated(document, ANNOTATION, ON_ERROR))


def on_undecidable_of(document: Mapping[str, Any]) -> OnUndecidable | None:
    """Read the annotation :data:`ON_UNDECIDABLE_ANNOTATION`, None without one; raises :class:`InvalidOnError`."""
    value = _annotated(document, ON_UNDECIDABLE_ANNOTATION, ON_UNDECIDABLE)
    return cast("OnUndecidable | None", value)


def _annotated(document: Mapping[str, Any], name: str, values: Sequence[str]) -> str | None:
    annotations = (document.get("metadata") or {}).get("annotations")
    value = annotations.get(name) if type(annotations) is dict else None
    if value is None:
        return None
    if type(value) is not str or value not in values:
        raise InvalidOnError(f'annotation {name} must be one of {", ".join(values)}, got "{value}"')
    return value


def template_on_error(document: Mapping[str, Any]) -> OnError | None:
    """The first of a template; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
    try:
        on_undecidable_of(document)
        return on_error_of(document)
    except InvalidOnError as error:
        raise InvalidTemplate(f"invalid ConstraintTemplate: {error}") from None


def readable_on_error(document: Mapping[str, Any]) -> OnError | None:
    """Return ``onError`` of an object that may be broken: None where it is."""
    try:
        return on_error_of(document)
    except InvalidOnError:
        return None


def _readable_on_undecidable(document: Mapping[str, Any]) -> OnUndecidable | None:
    try:
        return on_undecidable_of(document)
    except InvalidOnError:
        return None


def on_undecidable_for(
    constraint: Mapping[str, Any], template: Mapping[str, Any], default: OnUndecidable
) -> OnUndecidable:
    """Return the choice for a constraint: its own, else its template's, else the operator's.

    Read from the documents when it is needed, which is rare.
    """
    return _readable_on_undecidable(constraint) or _readable_on_undecidable(template) or default


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


def answer_to_undecidable(
    actions: Sequence[str], on_undecidable: OnUndecidable, *, point: str, spared: bool
) -> FaultAnswer:
    """The answer where the request itself left no time for a constraint with these actions."""
    on_error: OnError = "allow" if on_undecidable == "ignore" else "reject"
    return answer_to(actions, on_error, point=point, spared=spared, cause="object")
