"""The answer to a request if a matching constraint could not be decided.

A policy's fault affects only that policy's decisions. Its owner chooses the answer (``onError``):
docs/isolation.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

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

ANNOTATION: Final = "waddle.dev/on-error"
"""The annotation ``onError`` of a constraint, or of a template as the default of its constraints.
"""

ON_UNDECIDABLE_ANNOTATION: Final = "waddle.dev/on-undecidable"
"""The annotation ``onUndecidable``, on the same objects."""


FaultAnswer: TypeAlias = Literal["reject", "warn", "record"]
"""``reject`` refuses the request, ``warn`` adds a warning, ``record`` only records it."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The operator's defaults about policy faults.

    ``on_error`` is the default ``onError``. ``error_is_violation`` gives errors Gatekeeper's
    meaning; without it the request has no verdict. ``on_undecidable`` is for objects that no policy
    can be decided for. Nothing in ``spared_namespaces`` is refused because of a fault.
    """

    on_error: OnError = "lastGood"
    on_undecidable: OnUndecidable = "refuse"
    error_is_violation: bool = True
    spared_namespaces: frozenset[str] = frozenset()


DEFAULT: Final = Isolation()


@dataclass(frozen=True, slots=True)
class FaultView:
    """The fault of a policy's newest revision, and the resulting answer.

    ``answer`` is the answer to matching requests; ``lastGood`` if the last good revision decides.
    """

    cause: FaultStage
    on_error: OnError
    answer: Literal["lastGood", "reject", "warn", "record"]
    message: str = ""


class InvalidOnError(ValueError):
    """An annotation has an unknown value; the message lists the known ones."""


def on_error_of(document: Mapping[str, Any]) -> OnError | None:
    """Reads an object's annotation, None without one; raises :class:`InvalidOnError`."""
    return cast("OnError | None", _annotated(document, ANNOTATION, ON_ERROR))


def on_undecidable_of(document: Mapping[str, Any]) -> OnUndecidable | None:
    """Reads the annotation ``on-undecidable``, None without one; raises :class:`InvalidOnError`."""
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
    """Returns a template's ``onError``; raises :class:`~webhook.constraint.errors.InvalidTemplate`."""
    try:
        on_undecidable_of(document)
        return on_error_of(document)
    except InvalidOnError as error:
        raise InvalidTemplate(f"invalid ConstraintTemplate: {error}") from None


def readable_on_error(document: Mapping[str, Any]) -> OnError | None:
    """Returns an object's ``onError``; None if the annotation is invalid."""
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
    """Returns ``onUndecidable`` of the constraint, else of the template, else the operator's.

    It is read from the documents, because it is rarely needed.
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
    """Returns the answer for an undecided constraint with these actions.

    Only a denying constraint can refuse, never a ``spared`` review, and an audit refuses nothing.
    ``lastGood`` has been tried before. A missing engine refuses only if ``reject`` is set
    explicitly: the policy is not broken, and a cluster taken over from Gatekeeper must go on
    working.
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
    """Returns the answer if the request itself left no time for a constraint with these actions."""
    on_error: OnError = "allow" if on_undecidable == "ignore" else "reject"
    return answer_to(actions, on_error, point=point, spared=spared, cause="object")
