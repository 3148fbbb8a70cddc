"""Finds the running audits, and this audit's share of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.api.audit_shard import members_digest
from webhook.api.gvk import GroupVersionKind
from webhook.replicas import rendezvous
from webhook.replicas.pods import ready
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class Members:
    """The audits by the UIDs of their Pods, this one among them."""

    uids: frozenset[str]
    uid: str

    @property
    def is_alone(self) -> bool:
        """Returns whether there is no other audit."""
        return len(self.uids) == 1

    @property
    def digest(self) -> str:
        """All of them in a few characters."""
        return members_digest(self.uids)

    def share(self, gvk: GroupVersionKind, namespace: str) -> bool:
        """Returns whether a kind in a namespace is in this audit's share.

        The version does not count: all members must get the same result.
        """
        if self.is_alone:
            return True
        return rendezvous.chosen(f"{gvk.group}/{gvk.kind}/{namespace}", self.uids) == self.uid


def members(pods: Iterable[Mapping[str, Any]], own_name: str) -> Members:
    """Returns the members from the audits' Pods: those that are ready and not terminating.

    This audit is always a member, whatever the kubelet has reported so far.
    """
    return Members(ready(pods) | {own_name}, own_name)
