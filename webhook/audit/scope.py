"""What an audit is about: policies of one moment, and which part of the cluster."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from webhook.audit.kinds import is_matchable
from webhook.constraint.expansion import Expansion
from webhook.mutation.drift import names_kind
from webhook.mutation.snapshot import MutationSnapshot
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.snapshot import Snapshot


def everything(gvk: GroupVersionKind, namespace: str) -> bool:
    """The share of an audit that is alone."""
    del gvk, namespace
    return True


def _any_kind(gvk: GroupVersionKind) -> bool:
    del gvk
    return True


def _nothing(namespace: str) -> bool:
    del namespace
    return False


@dataclass(frozen=True, slots=True)
class Scope:
    """What a sweep is about.

    ``is_excluded`` says of a namespace whether Config takes it out of the audit;
    ``share`` of a kind and namespace (empty for cluster-scoped objects) whether
    this audit is to look at it: of what is not its share it tells nobody.
    ``kinds`` are those to look at now: of constraints that may match others, too,
    the sweep tells no total.
    """

    snapshot: Snapshot
    is_excluded: Callable[[str], bool] = _nothing
    expansion: Expansion = field(default_factory=Expansion)
    share: Callable[[GroupVersionKind, str], bool] = everything
    kinds: Callable[[GroupVersionKind], bool] = _any_kind
    mutations: MutationSnapshot = field(default_factory=MutationSnapshot)
    """What changes the resources that are implied, before they are reviewed."""
    is_unmutated: Callable[[str], bool] = _nothing
    """Whether Config takes a namespace out of mutation."""
    tells_drift: bool = False
    """Whether it is told of each object what mutators would change in it."""

    def is_listed(self, gvk: GroupVersionKind) -> bool:
        """Whether objects of a kind are looked at: some constraint, or mutator, is about it."""
        if is_matchable(self.snapshot, self.expansion, gvk):
            return True
        return self.tells_drift and names_kind(self.mutations, gvk)
