"""What an audit is about: policies of one moment, and which part of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.constraint.expansion import Expansion
from webhook.mutation.snapshot import MutationSnapshot

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
