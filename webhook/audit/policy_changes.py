"""What a change of policy makes worth reviewing again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.audit.kinds import group_kinds
from webhook.constraint import enforcement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot


def changed_constraints(before: Snapshot, after: Snapshot) -> tuple[Constraint, ...]:
    """The constraints that decide otherwise than before, or did not exist.

    Of one that is gone nothing is to be reviewed: its results go with it.
    """
    # By identity: a client makes another object of each only where something changed.
    known = {
        (id(constraint), id(entry.evaluator))
        for entry in before.entries
        for constraint in entry.constraints
    }
    return tuple(
        constraint
        for entry in after.entries
        for constraint in entry.constraints
        if (id(constraint), id(entry.evaluator)) not in known
    )


def touched_kinds(
    constraints: Iterable[Constraint], expansion: Expansion, kinds: Iterable[GroupVersionKind]
) -> frozenset[GroupVersionKind]:
    """The kinds that these constraints may match, or that would make what they match."""
    audited = [item for item in constraints if enforcement.applies(item, (enforcement.AUDIT,))]
    return frozenset(
        gvk
        for gvk in kinds
        if any(
            constraint.match is None or constraint.match.selects(key)
            for constraint in audited
            for key in group_kinds(expansion, gvk)
        )
    )
