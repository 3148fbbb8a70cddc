"""The exceptions of a picture, each with its state: from its status, or judged here for files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of, name_of, namespace_of, text
from webhook.api.shapes import integer_of, object_of, status_of
from webhook.console.picture import ShownPolicy
from webhook.console.sorts import shown_name
from webhook.exceptions.exception import CLUSTER_KIND
from webhook.exceptions.stage import Excusing
from webhook.exceptions.state import ExceptionFacts, judge
from webhook.policy_kinds.table import EXCEPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.console.picture import PictureState
    from webhook.review.policy_set import PolicySet

_STATES: Final[Mapping[str, PictureState]] = {
    "Active": "active",
    "Unused": "active",
    "Pending": "pending",
    "Expired": "not for admission",
    "Invalid": "error",
}


def shown_exception(document: Mapping[str, Any]) -> ShownPolicy:
    """Returns an exception as its status describes it."""
    metadata, status = object_of(document["metadata"]), status_of(document)
    state, message = text(status, "state"), text(status, "message")
    messages = (message,) if message else ()
    return ShownPolicy(
        EXCEPTIONS.name,
        gvk_of(document).kind,
        shown_name(document),
        document,
        _STATES.get(state, "pending"),
        generation=integer_of(metadata.get("generation")),
        resource_version=text(metadata, "resourceVersion"),
        faults=messages if state == "Invalid" else (),
        advice=() if state == "Invalid" else messages,
    )


def judged(shown: ShownPolicy, policies: PolicySet, now: float) -> ShownPolicy:
    """Returns an exception of a file in the state that a cluster would report; others unchanged.

    Call it after the reviews, which find the faults of conditions.
    """
    if shown.category != EXCEPTIONS.name:
        return shown
    document, snapshot = shown.document, policies.snapshot
    if shown.faults:
        status = {"state": "Invalid", "message": "; ".join(shown.faults)}
        return replace(shown, document={**document, "status": status})
    excusing = next(stage for stage in policies.stages if isinstance(stage, Excusing))
    place = "" if shown.kind == CLUSTER_KIND else namespace_of(document)
    title = f"{shown.kind} {f'{place}/' if place else ''}{name_of(document)}"
    broken = (constraint for constraint, _ in snapshot.broken)
    facts = ExceptionFacts(
        excusing.by_title[title],
        {item.key: item for item in (*snapshot.constraints, *broken)},
        used_at=now,  # Nobody counts the uses of a file's.
        condition_fault=excusing.condition_faults.get(title, ""),
    )
    verdict = judge({**document, "status": {}}, facts, now)
    status = {"state": verdict.state, "message": verdict.message}
    return replace(shown_exception({**document, "status": status}), place=shown.place)
