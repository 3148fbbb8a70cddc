"""Config and SyncSets of the cluster, and the referential data that they select.

The controller keeps every object of a kind that a Config or SyncSet names. It passes
an object to the client unless Config excludes its namespace from ``sync``: so an object
can be added once the exclusion ends. A kind is synced once all its objects have come.
Without a Config or SyncSet nothing is synced, and nothing excluded.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from webhook.api import config, pod_status
from webhook.api.config import AUDIT_PROCESS, MUTATION_PROCESS, SYNC_PROCESS, WEBHOOK_PROCESS
from webhook.constraint import wildcard
from webhook.controllers.object_faults import described
from webhook.review.policy_set import Exclusions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.client import Client
    from webhook.readiness import Tracker

CONFIG: Final = "Config"
SYNC_SETS: Final = "SyncSet"
"""The names of both kinds in readiness."""


_Key = tuple[str, str]

_DIGEST_BYTES: Final = 16
_DIGEST_RANGE: Final = 1 << (8 * _DIGEST_BYTES)


def data_kind(gvk: GroupVersionKind) -> str:
    """Return a synced kind's name in readiness: ``v1/Pod``, ``apps/v1/Deployment``."""
    return f"{gvk.group_version}/{gvk.kind}"


class SyncController:
    """Applies referential data, and knows which kinds to watch for it."""

    def __init__(self, client: Client, tracker: Tracker, pod: Pod) -> None:
        self._client = client
        self._tracker = tracker
        self._pod = pod
        self._config: Mapping[str, Any] | None = None
        self._config_error = ""
        self._config_kinds: frozenset[GroupVersionKind] = frozenset()
        self._sync_sets: dict[str, frozenset[GroupVersionKind]] = {}
        """The kinds that each SyncSet names: read once, so that a broken one affects no other."""
        self._objects: dict[GroupVersionKind, dict[_Key, Mapping[str, Any]]] = {}
        self._synced: set[GroupVersionKind] = set()
        self._digest = 0
        self._excluded_patterns: tuple[str, ...] = ()
        self._excluded: Callable[[str], bool] = wildcard.any_of(())
        self.exclusions = Exclusions()
        """The namespaces that Config excludes, by process."""
        self.excluded: tuple[str, ...] = ()
        """The patterns of namespaces that Config excludes from admission."""

    # --- Config and SyncSets -------------------------------------------------------------------

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds whose objects policies may read."""
        return frozenset().union(self._config_kinds, *self._sync_sets.values())

    @property
    def synced(self) -> frozenset[GroupVersionKind]:
        """The kinds whose objects have all come."""
        return frozenset(self._synced)

    def config(self, document: Mapping[str, Any] | None) -> None:
        """Take the Config; None where there is none."""
        self._config, self._config_error = document, ""
        self._take_config(document or {})
        self._tracker.observe(CONFIG, config.CONFIG_NAME)

    def take_config_fault(self, document: Mapping[str, Any], error: Exception) -> None:
        """Report an unforeseen error of the Config in its status; the last good Config stays in force."""
        self._config, self._config_error = document, described(error)

    def _take_config(self, given: Mapping[str, Any]) -> None:
        kinds = config.synced_kinds(given)
        excluded, mutation, audit, sync = (
            config.excluded_namespaces(given, process)
            for process in (WEBHOOK_PROCESS, MUTATION_PROCESS, AUDIT_PROCESS, SYNC_PROCESS)
        )
        self._config_kinds, self.excluded = kinds, excluded
        self.exclusions = Exclusions(*map(wildcard.any_of, (excluded, audit, mutation)))
        self._exclude(sync)
        self._follow()

    def sync_set(self, name: str, document: Mapping[str, Any] | None) -> None:
        """Take a SyncSet; None where it is gone."""
        if document is None:
            self._sync_sets.pop(name, None)
        else:
            self._sync_sets[name] = config.synced_kinds(document)
        self._follow()
        self._tracker.observe(SYNC_SETS, name)

    def _follow(self) -> None:
        """Drop the data of kinds that nothing names any more; let readiness wait for that of others."""
        kinds = self.kinds
        for gvk in self._objects.keys() - kinds:
            for key, document in self._objects.pop(gvk).items():
                if not _hides(self._excluded, gvk, *key):
                    self._remove(document)
            self._synced.discard(gvk)
            self._tracker.forget(data_kind(gvk))
        for gvk in sorted(kinds):
            self._objects.setdefault(gvk, {})
            self._tracker.track(data_kind(gvk))

    def _exclude(self, patterns: tuple[str, ...]) -> None:
        """Exclude the objects of namespaces by these patterns, and add those no longer excluded."""
        if patterns == self._excluded_patterns:
            return
        before = self._excluded
        self._excluded_patterns, self._excluded = patterns, wildcard.any_of(patterns)
        for gvk, objects in self._objects.items():
            for key, document in objects.items():
                was, now = _hides(before, gvk, *key), _hides(self._excluded, gvk, *key)
                if now and not was:
                    self._remove(document)
                elif was and not now:
                    self._add(document)

    # --- data ----------------------------------------------------------------------------------

    def data(self, gvk: GroupVersionKind, key: _Key, document: Mapping[str, Any] | None) -> None:
        """Take an object of a synced kind; ``document`` is None where it is gone.

        There are three cases: an object that is gone leaves the client; an excluded one is only kept
        here; any other is added to the client, in the place of what was there.
        """
        objects = self._objects.get(gvk)
        if objects is None:
            return
        known = objects.pop(key, None)
        hidden = _hides(self._excluded, gvk, *key)
        if hidden or document is None:
            if document is not None:
                objects[key] = document
            elif known is not None and not hidden:
                self._remove(known)
            return
        if known is not None:
            self._add_to_digest(known, -1)
        try:
            self._add(document)
        except Exception:
            if known is not None:
                self._client.remove_data(known)  # the cluster has this version no more
            raise
        objects[key] = document

    def listed(self, gvk: GroupVersionKind) -> None:
        """Note that all objects of the first list of a kind have come."""
        if gvk in self._objects:
            self._synced.add(gvk)
            self._tracker.expect(data_kind(gvk), ())

    @property
    def counts(self) -> Mapping[GroupVersionKind, int]:
        """The number of objects of each kind."""
        return {gvk: len(objects) for gvk, objects in self._objects.items()}

    @property
    def digest(self) -> str:
        """A digest of the data in the client, of 32 hexadecimal digits.

        It is the sum of its objects' hashes, so the order in which they came does not matter. An
        object's hash is of its name and ``resourceVersion``.
        """
        return f"{self._digest:0{2 * _DIGEST_BYTES}x}"

    def _add(self, document: Mapping[str, Any]) -> None:
        self._client.add_data(document)
        self._add_to_digest(document, 1)

    def _remove(self, document: Mapping[str, Any]) -> None:
        self._client.remove_data(document)
        self._add_to_digest(document, -1)

    def _add_to_digest(self, document: Mapping[str, Any], sign: int) -> None:
        self._digest = (self._digest + sign * _fingerprint(document)) % _DIGEST_RANGE

    # --- status --------------------------------------------------------------------------------

    def statuses(self) -> Mapping[str, Json]:
        """Return the status object of this replica for the Config, by name; empty without a Config."""
        if self._config is None:
            return {}
        subject = pod_status.status_subject(pod_status.CONFIG, self._config)
        errors = [{"type": "internal_error", "message": self._config_error}]
        additions = {"errors": errors} if self._config_error else {}
        document = pod_status.pod_status(self._pod, subject, additions=additions)
        return {document["metadata"]["name"]: document}


def _hides(
    excluded: Callable[[str], bool], gvk: GroupVersionKind, namespace: str, name: str
) -> bool:
    """Return whether an object is excluded. A Namespace is in itself, as in Gatekeeper."""
    return excluded(name if gvk.group_kind == ("", "Namespace") else namespace)


def _fingerprint(document: Mapping[str, Any]) -> int:
    """Return the hash of an object's kind, name, UID and ``resourceVersion``."""
    metadata = document["metadata"]
    identity = (
        document["apiVersion"],
        document["kind"],
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
        metadata.get("resourceVersion", ""),
    )
    # No part can hold a zero byte, so no two objects have the same text.
    text = "\0".join(identity).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest())
