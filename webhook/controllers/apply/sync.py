"""Config and SyncSets of the cluster, and the referential data that they select.

The controller keeps every object of a kind that a Config or SyncSet names. It passes an object to
the client unless Config excludes its namespace from ``sync``: so an object can be added once the
exclusion ends. A kind is synced once all its objects have arrived. Without a Config or SyncSet
nothing is synced or excluded.
"""

from __future__ import annotations

import hashlib
from collections import Counter
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
    from webhook.controllers.apply.projection import SyncProjection
    from webhook.readiness import Tracker

CONFIG: Final = "Config"
SYNC_SETS: Final = "SyncSet"
"""The names of both kinds in readiness."""


_Key = tuple[str, str]

_DIGEST_BYTES: Final = 16
_DIGEST_BITS: Final = 8 * _DIGEST_BYTES
_DIGEST_RANGE: Final = 1 << _DIGEST_BITS

_SIZE_BITS: Final = 32
_SIZE_MAX: Final = (1 << _SIZE_BITS) - 1


def data_kind(gvk: GroupVersionKind) -> str:
    """Returns a synced kind's name in readiness: ``v1/Pod``, ``apps/v1/Deployment``."""
    return f"{gvk.group_version}/{gvk.kind}"


class SyncController:
    """Applies referential data, and selects the kinds to watch for it."""

    def __init__(
        self,
        client: Client,
        tracker: Tracker,
        pod: Pod,
        projection: SyncProjection | None = None,
    ) -> None:
        """``projection`` selects the kept fields of each object; without it whole objects are kept."""
        self.projection = projection
        if projection is not None:
            projection.has_objects = lambda gvk: bool(self._objects.get(gvk))
        self._client = client
        self._tracker = tracker
        self._pod = pod
        self._config: Mapping[str, Any] | None = None
        self._config_error = ""
        self._config_kinds: frozenset[GroupVersionKind] = frozenset()
        self._sync_sets: dict[str, frozenset[GroupVersionKind]] = {}
        """The kinds that each SyncSet names. Each SyncSet is read by itself, so a broken one
        affects no other."""
        self._objects: dict[GroupVersionKind, dict[_Key, int]] = {}
        """The hash of each object and its kept bytes, packed into one number to save memory."""
        self._hidden: dict[GroupVersionKind, dict[_Key, Any]] = {}
        """The objects kept of excluded namespaces, by kind and key."""
        self._sizes: Counter[GroupVersionKind] = Counter()
        """The bytes that are kept of each kind."""
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
        """Returns the kinds whose objects policies may read."""
        return frozenset().union(self._config_kinds, *self._sync_sets.values())

    @property
    def synced(self) -> frozenset[GroupVersionKind]:
        """Returns the kinds whose objects have all arrived."""
        return frozenset(self._synced)

    def config(self, document: Mapping[str, Any] | None) -> None:
        """Takes the Config; None without one."""
        self._config, self._config_error = document, ""
        self._take_config(document or {})
        self._tracker.observe(CONFIG, config.CONFIG_NAME)

    def take_config_fault(self, document: Mapping[str, Any], error: Exception) -> None:
        """Reports an unforeseen error of the Config in its status; the last good one stays in force."""
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
        """Takes a SyncSet; None if it was deleted."""
        if document is None:
            self._sync_sets.pop(name, None)
        else:
            self._sync_sets[name] = config.synced_kinds(document)
        self._follow()
        self._tracker.observe(SYNC_SETS, name)

    def _follow(self) -> None:
        """Drops the data of kinds no longer requested; makes readiness wait for new kinds."""
        kinds = self.kinds
        for gvk in self._objects.keys() - kinds:
            hidden = self._hidden.pop(gvk, {})
            for key, number in self._objects.pop(gvk).items():
                if key not in hidden:
                    self._remove(gvk, key, number)
            self._synced.discard(gvk)
            self._sizes.pop(gvk, None)
            self._tracker.forget(data_kind(gvk))
            if self.projection is not None:
                self.projection.forget(gvk)
        for gvk in sorted(kinds):
            self._objects.setdefault(gvk, {})
            self._tracker.track(data_kind(gvk))
            if self.projection is not None:
                self.projection.follow(gvk)

    def _exclude(self, patterns: tuple[str, ...]) -> None:
        """Excludes the objects of namespaces by these patterns; adds those no longer excluded."""
        if patterns == self._excluded_patterns:
            return
        self._excluded_patterns, self._excluded = patterns, wildcard.any_of(patterns)
        for gvk, objects in self._objects.items():
            hidden = self._hidden.setdefault(gvk, {})
            for key, number in objects.items():
                was, now = key in hidden, _hides(self._excluded, gvk, *key)
                if now and not was:
                    hidden[key] = self._client.data(_named(gvk, key))
                    self._remove(gvk, key, number)
                elif was and not now:
                    self._client.add_data(_named(gvk, key), hidden.pop(key))
                    self._count(number, 1)

    # --- data ----------------------------------------------------------------------------------

    def data(self, gvk: GroupVersionKind, key: _Key, document: Mapping[str, Any] | None) -> None:
        """Takes an object of a synced kind; ``document`` is None if it was deleted.

        There are three cases: a deleted object is removed from the client; an excluded one is only
        kept here; any other object replaces the previous version in the client.
        """
        objects = self._objects.get(gvk)
        if objects is None:
            return
        known, hidden = objects.get(key), self._hidden.setdefault(gvk, {})
        was_seen = known is not None and key not in hidden
        if document is None:
            self._drop(gvk, key)
            if known is not None and was_seen:
                self._remove(gvk, key, known)
            return
        value, size = self._kept(gvk, document)
        number = _fingerprint(document) << _SIZE_BITS | min(size, _SIZE_MAX)
        if _hides(self._excluded, gvk, *key):
            if known is not None and was_seen:
                self._remove(gvk, key, known)
            hidden[key] = value
        else:
            try:
                self._client.add_data(document, value)
            except Exception:
                self._drop(gvk, key)
                if known is not None and was_seen:
                    self._remove(gvk, key, known)  # the cluster has this version no more
                raise
            hidden.pop(key, None)
            if known is not None and was_seen:
                self._count(known, -1)
            self._count(number, 1)
        self._note(gvk, key, number)

    def _note(self, gvk: GroupVersionKind, key: _Key, number: int) -> None:
        objects = self._objects[gvk]
        self._sizes[gvk] += (number & _SIZE_MAX) - (objects.get(key, 0) & _SIZE_MAX)
        objects[key] = number  # in place: the key object is shared with the watch's store

    def _drop(self, gvk: GroupVersionKind, key: _Key) -> None:
        self._sizes[gvk] -= self._objects[gvk].pop(key, 0) & _SIZE_MAX
        self._hidden[gvk].pop(key, None)

    def _kept(self, gvk: GroupVersionKind, document: Any) -> tuple[Any, int]:
        """Returns the kept fields of an object, and their length as JSON; 0 without a projection."""
        if self.projection is None:
            return document, 0
        return self.projection.kept(gvk, document)

    def narrow(self) -> None:
        """Drops the fields that no policy reads any more."""
        for gvk in () if self.projection is None else self.projection.narrow():
            objects, hidden = self._objects[gvk], self._hidden.setdefault(gvk, {})
            for key, number in objects.items():
                named = _named(gvk, key)
                value = hidden[key] if key in hidden else self._client.data(named)
                value, size = self._kept(gvk, value)
                self._note(gvk, key, number >> _SIZE_BITS << _SIZE_BITS | min(size, _SIZE_MAX))
                if key in hidden:
                    hidden[key] = value
                else:
                    self._client.add_data(named, value)

    def listed(self, gvk: GroupVersionKind) -> None:
        """Notes that all objects of the first list of a kind have arrived."""
        if gvk in self._objects:
            self._synced.add(gvk)
            if self.projection is not None:
                self.projection.listed(gvk)
            self._tracker.expect(data_kind(gvk), ())

    @property
    def counts(self) -> Mapping[GroupVersionKind, int]:
        """The number of objects of each kind."""
        return {gvk: len(objects) for gvk, objects in self._objects.items()}

    @property
    def kept(self) -> Mapping[GroupVersionKind, tuple[int, bool]]:
        """The bytes of JSON that are kept of each kind, and whether its objects are whole.

        Empty without a projection.
        """
        if self.projection is None:
            return {}
        sizes = self._sizes
        return {
            gvk: (sizes.get(gvk, 0), reads.whole) for gvk, reads in self.projection.paths.items()
        }

    @property
    def digest(self) -> str:
        """A digest of the data in the client, of 32 hexadecimal digits.

        It is the sum of its objects' hashes, so the order of arrival does not matter. An object's
        hash is of its name and ``resourceVersion``.
        """
        return f"{self._digest:0{2 * _DIGEST_BYTES}x}"

    def _remove(self, gvk: GroupVersionKind, key: _Key, number: int) -> None:
        self._client.remove_data(_named(gvk, key))
        self._count(number, -1)

    def _count(self, number: int, sign: int) -> None:
        """Adds an object to the digest, or removes it."""
        self._digest = (self._digest + sign * (number >> _SIZE_BITS)) % _DIGEST_RANGE

    # --- status --------------------------------------------------------------------------------

    def statuses(self) -> Mapping[str, Json]:
        """Returns this replica's status object for the Config, by name; empty without a Config."""
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
    """Returns whether an object is excluded. A Namespace is in itself, as in Gatekeeper."""
    return excluded(name if gvk.group_kind == ("", "Namespace") else namespace)


def _named(gvk: GroupVersionKind, key: _Key) -> Json:
    """Returns an object with nothing but its kind and name."""
    namespace, name = key
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": gvk.group_version, "kind": gvk.kind, "metadata": metadata}


def _fingerprint(document: Mapping[str, Any]) -> int:
    """Returns the hash of an object's kind, name, UID and ``resourceVersion``."""
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
