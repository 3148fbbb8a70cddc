"""Which audits there are, and which share of the cluster is this one's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.audit_shard import members_digest
from webhook.replicas import rendezvous
from webhook.replicas.pods import ready
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind


@dataclass(frozen=True, slots=True)
class Members:
    """The audits by the UIDs of their Pods, this one among them."""

    uids: frozenset[str]
    own: str

    @property
    def is_alone(self) -> bool:
        """Whether there is no other."""
        return len(self.uids) == 1

    @property
    def digest(self) -> str:
        """All of them in a few characters."""
        return members_digest(self.uids)

    def share(self, gvk: GroupVersionKind, namespace: str) -> bool:
        """Whether a kind in a namespace is this audit's to look at.

        The version counts for nothing: all members must come to the same.
        """
        if self.is_alone:
            return True
        return rendezvous.chosen(f"{gvk.group}/{gvk.kind}/{namespace}", self.uids) == self.own


def members(pods: Iterable[Mapping[str, Any]], own_name: str) -> Members:
    """The members by the Pods that audit: those that are ready and not ending.

    This one is always of them: it is here, whatever the kubelet has said so far.
    """
    return Members(ready(pods) | {own_name}, own_name)
