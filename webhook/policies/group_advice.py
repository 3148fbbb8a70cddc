"""Warns of usable ConstraintGroups that are probably not as intended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint import enforcement, group
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL
from webhook.policies.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.snapshot import Snapshot
    from webhook.constraint.template import Template

GROUP: Final = "group"
"""The code of a problem."""

DRYRUN: Final = "dryrun"
WARN: Final = "warn"


def advice_on_groups(
    snapshot: Snapshot, concerned: AbstractSet[tuple[str, str]]
) -> Iterator[Problem]:
    """Warns of members that are enforced themselves, if they or their group are ``concerned``.

    Such a member refuses objects that the group accepts.
    """
    constraints = {constraint.key: constraint for constraint in snapshot.constraints}
    for constraint in snapshot.constraints:
        if constraint.kind != group.TEMPLATE.kind:
            continue
        members = constraint.parameters.members
        keys = {name: (of.kind, of.name) for name, of in members.items() if of.name}
        if constraint.key not in concerned and concerned.isdisjoint(keys.values()):
            continue
        for name, key in keys.items():
            member = constraints.get(key)
            action = "" if member is None else _action(member, members[name].template)
            if action:
                does = "warns of" if action.startswith(WARN) else "refuses"
                message = (
                    f"its member {name}, {'/'.join(key)} ({action}), is enforced itself and {does} "
                    "what the group accepts: set its enforcementAction to dryrun"
                )
                yield Problem(*constraint.key, "warning", GROUP, message)


def _action(member: Constraint, template: Template | None) -> str:
    """Returns a constraint's strongest action, and where it is scoped; empty if it only records.

    The API server enforces constraints of templates in CEL.
    """
    if member.enforcement_action != "scoped":
        return "" if member.enforcement_action == DRYRUN else member.enforcement_action
    is_cel = template is not None and any(code.engine == CEL for code in template.code)
    points = enforcement.KNOWN_POINTS if is_cel else enforcement.POINTS
    actions: dict[str, str] = {}
    for point, of_point in enforcement.points_of(member.document, points).items():
        for action in of_point:
            actions.setdefault(action, point)  # that of admissions comes first
    action = min(actions.keys() - {DRYRUN}, default="")  # deny is before warn
    return f"{action} at {actions[action]}" if action else ""


def advice_on_group(document: Mapping[str, Any]) -> Iterator[str]:
    """Warns of members that are never asked, and of a group that is enforced nowhere."""
    if not group.is_group(document):
        return
    try:
        group.check_group(document)
        known = group.read_group(document, admission.AdmissionTarget())
        is_scoped = enforcement.action_of(document) == "scoped"
        is_idle = is_scoped and not enforcement.points_of(document, enforcement.POINTS)
    except ConstraintFrameworkError:
        return  # Its fault is reported elsewhere.
    for name in sorted(known.members.keys() - set(known.called_members())):
        yield f"its member {name} is never asked"
    if is_idle:
        yield f"it is enforced nowhere: {enforcement.VAP} does not support groups; name another point"
