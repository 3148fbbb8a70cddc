"""The scope of an audit: policies of one moment, and this audit's part of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.audit.kinds import is_matchable
from webhook.mutation.drift import names_kind
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.expansion import Expansion
    from webhook.constraint.snapshot import Snapshot
    from webhook.mutation.snapshot import MutationSnapshot
    from webhook.review.policy_set import PolicySet


def everything(gvk: GroupVersionKind, namespace: str) -> bool:
    """Returns true: the share of a single audit."""
    del gvk, namespace
    return True


def _any_kind(gvk: GroupVersionKind) -> bool:
    del gvk
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a sweep.

    ``share`` of a kind and namespace (empty for cluster-scoped objects) is whether this audit
    reviews it. ``kinds`` are the kinds to list now: constraints that may match others, too, get no
    total from this sweep.
    """

    policies: PolicySet
    share: Callable[[GroupVersionKind, str], bool] = everything
    kinds: Callable[[GroupVersionKind], bool] = _any_kind
    reports_drift: bool = False
    """Whether the changes that mutators would make to each object are reported."""

    @property
    def snapshot(self) -> Snapshot:
        """Templates, constraints and data."""
        return self.policies.snapshot

    @property
    def expansion(self) -> Expansion:
        """Returns the expansion of objects."""
        return self.policies.expansion

    @property
    def mutations(self) -> MutationSnapshot:
        """Returns the mutators of implied resources, before these are reviewed."""
        return self.policies.mutations

    @property
    def is_excluded(self) -> Callable[[str], bool]:
        """Returns whether Config excludes a namespace from the audit."""
        return self.policies.exclusions.audit

    @property
    def is_unmutated(self) -> Callable[[str], bool]:
        """Returns whether Config excludes a namespace from mutation."""
        return self.policies.exclusions.mutation

    def is_listed(self, gvk: GroupVersionKind) -> bool:
        """Returns whether objects of a kind are listed: a policy of any kind matches them."""
        if is_matchable(self.snapshot, self.expansion, gvk) or self.policies.foreign.concerns(gvk):
            return True
        return self.reports_drift and (
            names_kind(self.mutations, gvk) or self.policies.foreign.may_change(gvk)
        )
