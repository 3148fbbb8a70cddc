"""Logs violations, with Gatekeeper's messages and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of
from webhook.constraint import enforcement
from webhook.constraint.result import Responses, logged_violation
from webhook.server import submission

if TYPE_CHECKING:
    from webhook.api.admission import AdmissionRequest

KNOWN_ACTIONS: Final = frozenset(enforcement.SCOPED_ACTIONS)
"""The known enforcement actions; others are reported as an error of the constraint."""


EVENTS_MAX: Final = 100
"""The most log events of one request: answer and decision record list all violations, and one Pod
of thousands of containers would write 9 MB of log.
"""


def denials(request: AdmissionRequest, responses: Responses) -> list[dict[str, Any]]:
    """One log event for each violation, with Gatekeeper's message and fields."""
    document = submission.submitted(request)
    # On CREATE the client may leave the name to the server.
    name = request.name or (name_of(document) if document else "")
    events: list[dict[str, Any]] = []
    for number, result in enumerate(responses.results):
        if len(events) == EVENTS_MAX:
            events.append(
                {
                    "message": "denied admission: more violations than are logged of one request",
                    "hookType": "validation",
                    "process": "admission",
                    "violations": len(responses.results),
                    "notLogged": len(responses.results) - number,
                    "resource_kind": request.kind.kind,
                    "resource_namespace": request.namespace,
                    "resource_name": name,
                    "request_username": request.username,
                }
            )
            break
        if not KNOWN_ACTIONS.intersection(result.actions):
            continue
        events.append(
            {
                "message": f"denied admission: {result.msg}",
                "hookType": "validation",
                "semantic": True,
                "process": "admission",
                "details": result.details,
                "event_type": "violation",
                **logged_violation(result, request.kind, request.namespace, name),
                "constraint_enforcement_actions": list(result.scoped_actions),
                "request_username": request.username,
            }
        )
    return events
