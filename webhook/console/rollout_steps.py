"""How a policy's roll-out goes on, and what would be typed to steer it: nothing is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.revision import ROLLBACK
from webhook.api.shapes import object_of
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.rollout import ABORT, ANNOTATION, PAUSE, read_rollout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.console.picture import ShownPolicy

_ENDS: Final = {PAUSE: "go on with the roll-out", ABORT: "begin the roll-out anew"}


def commands(item: ShownPolicy) -> list[dict[str, Any]]:
    """What would be typed to roll a policy back, to pause or abort its roll-out, or to undo that."""
    set_ = _annotations(item.document)
    offered = [
        _command(item, f"roll back to generation {one.generation}", f"{ROLLBACK}={one.generation}")
        for one in item.revisions
        if one.generation != item.generation and set_.get(ROLLBACK) != str(one.generation)
    ]
    if ROLLBACK in set_:
        offered.append(_command(item, "enforce the spec again", f"{ROLLBACK}-"))
    if item.rollout is None:
        return offered
    for name, what in ((PAUSE, "pause the roll-out"), (ABORT, "abort the roll-out")):
        if set_.get(name) == "true":
            offered.append(_command(item, _ENDS[name], f"{name}-"))
        else:
            offered.append(_command(item, what, f"{name}=true"))
    return offered


def to_come(item: ShownPolicy) -> list[str]:
    """The present stage and those after it, each as it was written, and the spec's action last.

    Empty where there is no roll-out, where it is over, or where it cannot be read.
    """
    try:
        rollout = read_rollout(item.document)
    except InvalidConstraint:
        return []
    if rollout is None or item.rollout is None:
        return []
    written = [part.strip() for part in _annotations(item.document)[ANNOTATION].split(",")]
    action = item.rollout.get("action")
    actions = rollout.actions
    if action not in actions or action == actions[-1]:
        return []
    return [*written, rollout.final][actions.index(action) :]


def _command(item: ShownPolicy, what: str, annotation: str) -> dict[str, Any]:
    overwrite = "" if annotation.endswith("-") else " --overwrite"
    command = f"kubectl annotate {item.kind.lower()} {item.name} {annotation}{overwrite}"
    return {"what": what, "command": command}


def _annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_of(object_of(document.get("metadata")).get("annotations"))
