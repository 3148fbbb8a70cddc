"""Writes the fields of a replica's status about a faulty policy.

``fault`` has the error of the newest generation, ``onError``, and the answer to a matching request.
``retry`` is ``transient`` if the policy is tried again without a change of the object, otherwise
``permanent``. ``nextRetry`` is the time of the next attempt, if known. ``breaker`` is present while
a constraint is not evaluated because it took too long. docs/isolation.md has the values in each
case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.api import timestamp

if TYPE_CHECKING:
    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.isolation import FaultView
    from webhook.controllers.requirements import Requirements

SUSPENDED: Final = "suspended"
"""Code of the status error of a constraint that is not evaluated."""

UNESTABLISHED: Final = "crd_not_established"
"""Code of the status error of a template whose constraints cannot be stored yet."""

MISSING_DATA: Final = "data"
"""The cause of the fault of a template whose data is not synced yet."""


def fault_fields(
    fault: FaultView | None,
    breaker: BreakerView | None,
    missing: Requirements,
    *,
    waits_for_crd: bool = False,
    retry_at: float | None = None,
) -> Json:
    """Returns the fault fields of a template's or constraint's status; empty without a fault.

    ``missing`` is the data that a template waits for; with ``waits_for_crd`` it waits for the CRD of its
    constraints. ``retry_at`` is when a template is compiled again that failed for lack of machine
    resources, in seconds since the epoch.
    """
    fields: Json = {}
    if missing:
        fields["fault"] = {"cause": MISSING_DATA, "retry": "transient"}
        fields["missingData"] = [
            {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
            for kinds in missing
            for gvk in sorted(kinds)
        ]
    elif fault is not None:
        fields["fault"] = {
            "cause": fault.cause,
            "onError": fault.on_error,
            "answer": fault.answer,
            "retry": "permanent",
        }
        if fault.cause == "environment" and retry_at is not None:
            fields["fault"] |= {"retry": "transient", "nextRetry": timestamp.text_of(retry_at)}
    elif waits_for_crd:
        fields["fault"] = {"cause": "crd", "retry": "transient"}
    if breaker is not None:
        fields["breaker"] = {"state": breaker.state, "message": breaker.message}
    return fields
