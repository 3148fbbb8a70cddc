"""Decides whether an exception is allowed, by its constraints, its period and the flags.

The right of its author is checked at the API server (:func:`access_to`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api import names
from webhook.constraint import enforcement
from webhook.constraint.excusable import ALLOWS, ANNOTATION, annotation_of, exceptions_allowed
from webhook.exceptions.exception import ANY, CLUSTER_KIND, GROUP, GROUP_KIND

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.shapes import Json
    from webhook.constraint.constraint import Constraint
    from webhook.exceptions.exception import PolicyException

VERB: Final = "except"
"""The verb that a user needs on a constraint to create exceptions from it."""


class ExceptionFault(NamedTuple):
    """Why an exception is refused; ``code`` is the response's status code."""

    code: int
    message: str


def fault_of_annotation(document: Mapping[str, Any]) -> str:
    """Returns what is wrong with the annotation of a constraint, or an empty text."""
    value = annotation_of(document)
    if value in ALLOWS:
        return ""
    return (
        f'its annotation {ANNOTATION} is "{value}", which allows no exceptions: '
        "it must be none, cluster or all"
    )


def allows(document: Mapping[str, Any], *, of_cluster: bool) -> bool:
    """Returns whether a constraint allows exceptions of the cluster, or of namespaces."""
    return of_cluster in exceptions_allowed(document)


def closed_by(item: PolicyException, constraints: Iterable[Constraint]) -> ExceptionFault | None:
    """Returns why a named constraint does not allow the exception, if one does not."""
    is_of_cluster = item.excuse.kind == CLUSTER_KIND
    for constraint in constraints:
        kind, name = constraint.key
        if (kind, name) not in item.constraints:
            continue  # an exception from a whole kind skips constraints that allow none
        if not allows(constraint.document, of_cluster=is_of_cluster):
            return ExceptionFault(
                403,
                f"{kind} {name} allows {_allowed(constraint)}",
            )
        if is_left_to_api_server(constraint):
            return ExceptionFault(
                422,
                f"{kind} {name} is enforced by the API server alone ({enforcement.VAP}), which knows "
                f"no exceptions: give it the enforcement point {names.WEBHOOK}, too",
            )
    return None


def _allowed(constraint: Constraint) -> str:
    if not allows(constraint.document, of_cluster=True):
        return f"no exceptions: its annotation {ANNOTATION} says so"
    return f"no exceptions of namespaces, only a {CLUSTER_KIND}: it has no annotation {ANNOTATION}: all"


def allowed_by(constraint: Constraint) -> tuple[bool, ...]:
    """Returns what a constraint says about exceptions, to be compared with what it said before."""
    document = constraint.document
    return (
        allows(document, of_cluster=True),
        allows(document, of_cluster=False),
        is_left_to_api_server(constraint),
    )


def is_left_to_api_server(constraint: Constraint) -> bool:
    """Returns whether only an API server policy decides by it at admission."""
    if constraint.enforcement_action != "scoped" or enforcement.WEBHOOK in constraint.points:
        return False
    spec = constraint.document.get("spec") or {}
    return any(
        point.get("name") == enforcement.VAP
        for action in spec.get("scopedEnforcementActions") or ()
        for point in action.get("enforcementPoints") or ()
    )


def fault_of_times(
    item: PolicyException, now: float, longest_seconds: float
) -> ExceptionFault | None:
    """Returns why its period is refused; ``longest_seconds`` is 0 for any length."""
    if item.ends <= now:
        return ExceptionFault(422, f"spec.expires is in the past: {item.excuse.expires}")
    if longest_seconds and item.ends - max(now, item.begins) > longest_seconds:
        days = longest_seconds / 86400
        return ExceptionFault(
            422, f"it would hold for longer than {days:g} days, which this cluster does not allow"
        )
    return None


def access_to(kind: str, name: str) -> Json:
    """Returns the right that a user needs for an exception from a constraint."""
    attributes = {"group": names.CONSTRAINTS, "resource": kind.lower(), "verb": VERB, "name": name}
    if kind == GROUP_KIND:
        attributes |= {"group": GROUP, "resource": f"{kind.lower()}s"}
    if name == ANY:
        del attributes["name"]
    return {"resourceAttributes": attributes}


def denied(username: str, kind: str, name: str) -> ExceptionFault:
    """Returns the refusal of a user without the right."""
    of = f"every {kind}" if name == ANY else f"{kind} {name}"
    rule = access_to(kind, name)["resourceAttributes"]
    return ExceptionFault(
        403,
        f"{username} may not make exceptions from {of}: it takes the verb {VERB} on "
        f"{rule['resource']}.{rule['group']}",
    )
