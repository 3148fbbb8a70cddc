"""Enforcement actions and the points where they apply.

``deny``, ``warn`` and ``dryrun`` apply at every point; ``scoped`` defers to
``spec.scopedEnforcementActions``, which lists actions with their points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.constraint.errors import ConstraintFrameworkError, InvalidConstraint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.constraint.constraint import Constraint

ALL: Final = "*"
WEBHOOK: Final = names.WEBHOOK
AUDIT: Final = names.AUDIT
COMMAND_LINE: Final = "gator.gatekeeper.sh"
VAP: Final = "vap.k8s.io"

POINTS: Final = (WEBHOOK, AUDIT, COMMAND_LINE)
"""The points where this client decides."""

KNOWN_POINTS: Final = (WEBHOOK, AUDIT, COMMAND_LINE, VAP)
ACTIONS: Final = ("deny", "dryrun", "warn", "scoped")
SCOPED_ACTIONS: Final = ("deny", "dryrun", "warn")


class InvalidEnforcementAction(ConstraintFrameworkError):
    """An unknown action or enforcement point; the constraint would not be enforced there."""


def action_of(constraint: Mapping[str, Any]) -> str:
    """``spec.enforcementAction``, ``deny`` where absent.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint` when it is no string.
    """
    spec = constraint.get("spec")
    if type(spec) is not dict or "enforcementAction" not in spec:
        return "deny"
    action = spec["enforcementAction"]
    if type(action) is not str:
        raise InvalidConstraint("invalid Constraint: invalid spec.enforcementAction")
    return action


def points_of(constraint: Mapping[str, Any], points: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns the sorted actions of a scoped constraint by enforcement point.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint`.
    """
    actions: dict[str, set[str]] = {point: set() for point in points}
    for scoped in _scoped(constraint):
        action = scoped.get("action") or ""
        for point in scoped.get("enforcementPoints") or ():
            name = point.get("name") or ""
            if name == ALL:
                for everywhere in actions.values():
                    everywhere.add(action)
            elif name in actions:
                actions[name].add(action)
    return {point: tuple(sorted(of_point)) for point, of_point in actions.items() if of_point}


def _scoped(constraint: Mapping[str, Any]) -> list[dict[str, Any]]:
    scoped = (constraint.get("spec") or {}).get("scopedEnforcementActions")
    if type(scoped) is not list:
        raise InvalidConstraint(
            "missing required field: spec.scopedEnforcementActions must be defined"
        )
    if not all(map(_is_scoped_action, scoped)):
        raise InvalidConstraint(f"invalid Constraint: scopedEnforcementActions {_SHAPE}")
    return scoped


_SHAPE: Final = "value must be a [{action: string, enforcementPoints: [{name: string}]}]"


def _is_scoped_action(item: Any) -> bool:
    if type(item) is not dict or type(item.get("action") or "") is not str:
        return False
    points = item.get("enforcementPoints") or []
    return type(points) is list and all(
        type(point) is dict and type(point.get("name") or "") is str for point in points
    )


def applies(constraint: Constraint, points: Sequence[str]) -> bool:
    """Whether the constraint has an action at one of these points."""
    if constraint.enforcement_action != "scoped":
        return True
    return any(point in constraint.points for point in points)


def scoped_actions(
    constraint: Constraint, point: str, client_points: Sequence[str]
) -> tuple[str, ...]:
    """Returns the sorted actions of a scoped constraint at a point; empty if it is not scoped."""
    if constraint.enforcement_action != "scoped":
        return ()
    points = client_points if point == ALL else (point,)
    actions = {action for name in points for action in constraint.points.get(name, ())}
    return tuple(sorted(actions))


def actions_at(constraint: Constraint, point: str, client_points: Sequence[str]) -> tuple[str, ...]:
    """Returns the actions of a constraint at a point, whether scoped or not."""
    if constraint.enforcement_action == "scoped":
        return scoped_actions(constraint, point, client_points)
    return (constraint.enforcement_action,)


def validate(constraint: Mapping[str, Any], action: str | None = None) -> None:
    """Refuses unknown actions and points, with Gatekeeper's messages.

    Raises :class:`InvalidEnforcementAction`. The framework accepts any action; Gatekeeper checks it
    at admission and ingestion, unless ``--disable-enforcementaction-validation``.
    """
    action = action_of(constraint) if action is None else action
    if action == "scoped":
        _validate_scoped(constraint)
    elif action not in SCOPED_ACTIONS:
        raise InvalidEnforcementAction(
            f'unrecognized enforcementAction: "{action}" is not within the supported list '
            f"[{' '.join(ACTIONS)}]"
        )


def fault_of(constraint: Mapping[str, Any]) -> str:
    """Returns the unknown actions and points, which have no effect; empty for none."""
    try:
        validate(constraint)
    except InvalidEnforcementAction as error:
        return str(error)
    return ""


def _validate_scoped(constraint: Mapping[str, Any]) -> None:
    scoped = (constraint.get("spec") or {}).get("scopedEnforcementActions")
    if type(scoped) is not list:
        raise InvalidEnforcementAction(
            "error fetching scopedEnforcementActions: scopedEnforcementActions is required"
        )
    if not all(map(_is_scoped_action, scoped)):
        raise InvalidEnforcementAction(f"error fetching scopedEnforcementActions: {_SHAPE}")
    actions: list[str] = []
    points: list[str] = []
    for item in scoped:
        action = item.get("action") or ""
        if action not in SCOPED_ACTIONS:
            actions.append(action)
        named = [point.get("name") or "" for point in item.get("enforcementPoints") or ()]
        points += [name for name in named or [""] if name not in (*KNOWN_POINTS, ALL)]
    faults = []
    if points:
        faults.append(
            "unrecognized enforcement points: constraint will not be enforced for enforcement "
            f"points [{' '.join(points)}], supported enforcement points are "
            f"[{' '.join(KNOWN_POINTS)}]"
        )
    if actions:
        faults.append(
            f"unrecognized enforcementAction: [{' '.join(actions)}] is not within the supported "
            f"list [{' '.join(SCOPED_ACTIONS)}]"
        )
    if faults:
        raise InvalidEnforcementAction("\n".join(faults))
