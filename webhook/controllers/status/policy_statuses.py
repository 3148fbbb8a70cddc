"""What this replica says of a template or constraint, as the object in which it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api import pod_status
from webhook.api.pod_status import StatusError
from webhook.constraint.entry import ELSEWHERE
from webhook.controllers.requirements import missing_text
from webhook.controllers.revisions.revisions import origin_fields
from webhook.controllers.status.fault_fields import SUSPENDED, UNESTABLISHED, fault_fields
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.isolation import FaultView
    from webhook.controllers.revisions.policy_state import State


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What stands around an object's state when its status is made.

    ``no_crd`` says why a template's constraints have no place yet, ``observed``
    are the fields of what was met since, ``now`` the time in RFC 3339; ``retry_at`` is when
    the template is compiled again that the machine could not compile, in seconds since the epoch.
    """

    fault: FaultView | None
    breaker: BreakerView | None
    no_crd: str
    observed: Json
    now: str
    retry_at: float | None = None
    elsewhere: str = ""
    """Why no review asks the template; empty where one may."""


def _why(fault: FaultView) -> str:
    """Why a constraint is not enforced that is well itself."""
    if fault.cause == "engine":
        return f"its template is {fault.message}"
    if fault.cause == "environment":
        return f"its template's newest generation waits to be compiled again: {fault.message}"
    return "its template's newest generation is broken"


def policy_status(
    pod: Pod, state: State, around: Circumstances, *, is_template: bool
) -> Json | None:
    """The status object; None for a name that Gatekeeper has no status for either."""
    fault, breaker = around.fault, around.breaker
    enforced: bool | None
    if is_template:
        kind, enforced = pod_status.TEMPLATE, None
    else:
        kind, enforced = pod_status.CONSTRAINT, state.active > 0
    in_force = state.in_force
    if fault is not None and fault.answer != "lastGood":
        in_force, enforced = None, None if enforced is None else False
    errors = [] if state.error is None else [state.error]
    if enforced is False and fault is not None and not errors:
        errors.append(StatusError(fault.cause, _why(fault)))
    if breaker is not None and breaker.state != "closed":
        enforced = False
        errors.append(StatusError(SUSPENDED, breaker.message))
    if around.elsewhere and not errors:
        in_force, enforced = None, None if enforced is None else False
        errors.append(
            StatusError(
                ELSEWHERE, around.elsewhere if is_template else f"its template {around.elsewhere}"
            )
        )
    active = 0 if in_force is None else in_force.generation
    additions: Json = {"activeGeneration": active, "since": around.now}
    additions |= origin_fields(in_force)
    additions |= fault_fields(
        fault, breaker, state.missing, no_crd=bool(around.no_crd), retry_at=around.retry_at
    )
    additions |= around.observed
    if state.missing:
        errors.append(StatusError("missing_data", missing_text(state.missing)))
    if around.no_crd:
        errors.append(StatusError(UNESTABLISHED, f"its constraints' CRD: {around.no_crd}"))
    subject = pod_status.status_subject(kind, state.document)
    try:
        return pod_status.pod_status(
            pod, subject, errors=errors, enforced=enforced, additions=additions
        )
    except pod_status.InvalidName:
        return None
