"""The kinds of policies that are followed, each at the version at which it is stored."""

from __future__ import annotations

from typing import Final

from webhook.api.gvk import GroupVersionKind
from webhook.constraint import constraint
from webhook.constraint import expansion as expansions
from webhook.mutation import mutator as mutators

TEMPLATE: Final = GroupVersionKind("templates.gatekeeper.sh", "v1", "ConstraintTemplate")

MUTATORS: Final = tuple(
    GroupVersionKind(mutators.GROUP, versions[0], kind)
    for kind, versions in mutators.VERSIONS.items()
)

EXPANSION: Final = GroupVersionKind(expansions.GROUP, "v1alpha1", expansions.KIND)

EXTENSIONS: Final = (*MUTATORS, EXPANSION)
"""Policies that are neither templates nor constraints."""


def constraint_gvk(kind: str) -> GroupVersionKind:
    """The constraints of a kind."""
    return GroupVersionKind(constraint.GROUP, constraint.STORED_VERSION, kind)
