"""Makes this replica's status object of a template or constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError
from webhook.constraint.entry import ELSEWHERE
from webhook.controllers.requirements import missing_text
from webhook.controllers.revisions.revisions import origin_fields
from webhook.controllers.status.fault_fields import SUSPENDED, UNESTABLISHED, fault_fields
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.isolation import FaultView
    from webhook.controllers.revisions.policy_state import State


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """The inputs of a status beside the object's :class:`State`.

    ``no_crd`` is why the CRD of a template's constraints is not established; empty if it is.
    ``observed`` are fields of later events, such as audit results. ``now`` is the time in RFC 3339.
    ``retry_at`` is when a template is compiled again that failed for lack of machine resources, in
    seconds since the epoch.
    """

    fault: FaultView | None
    breaker: BreakerView | None
    no_crd: str
    observed: Json
    now: str
    retry_at: float | None = None
    elsewhere: str = ""
    """Why no review evaluates the template; empty if reviews may."""


def _why(fault: FaultView) -> str:
    """Returns why a constraint without an error of its own is not enforced."""
    if fault.cause == "engine":
        return f"its template is {fault.message}"
    if fault.cause == "environment":
        return f"its template's newest generation waits to be compiled again: {fault.message}"
    return "its template's newest generation is broken"


def policy_status(
    pod: Pod, state: State, inputs: StatusInputs, *, is_template: bool
) -> Json | None:
    """Returns the status object; None for a name that no status object can have, as in Gatekeeper.

    An object in force by its state is still not enforced in three cases: its newest revision is
    faulty and ``onError`` is not ``lastGood``; its breaker is open; no review evaluates it.
    """
    fault, breaker = inputs.fault, inputs.breaker
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
    if inputs.elsewhere and not errors:
        in_force, enforced = None, None if enforced is None else False
        errors.append(
            StatusError(
                ELSEWHERE, inputs.elsewhere if is_template else f"its template {inputs.elsewhere}"
            )
        )
    active = 0 if in_force is None else in_force.generation
    additions: Json = {"activeGeneration": active, "since": inputs.now}
    additions |= origin_fields(in_force)
    additions |= fault_fields(
        fault, breaker, state.missing, waits_for_crd=bool(inputs.no_crd), retry_at=inputs.retry_at
    )
    additions |= inputs.observed
    if state.missing:
        errors.append(StatusError("missing_data", missing_text(state.missing)))
    if inputs.no_crd:
        errors.append(StatusError(UNESTABLISHED, f"its constraints' CRD: {inputs.no_crd}"))
    subject = pod_status.status_subject(kind, state.document)
    try:
        return pod_status.pod_status(
            pod, subject, errors=errors, enforced=enforced, additions=additions
        )
    except pod_status.InvalidName:
        return None
