"""Brings the counts of watches and of writes to the API server into the metrics."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from webhook.metrics.cluster import (
    API_REQUESTS,
    API_TOKENS_ROTATED,
    API_UNAUTHORIZED,
    API_WRITE_FAILURES,
    API_WRITES,
    INTENDED_KINDS,
    STATUS_FIELDS_PRUNED,
    SYNCED,
    SYNCED_BYTES,
    SYNCED_DATA,
    WATCH_ERRORS,
    WATCH_EVENTS,
    WATCH_GONE,
    WATCH_LISTS,
    WATCH_MALFORMED,
    WATCH_RESTORES,
    WATCH_SILENCES,
    WATCH_STARTS,
    WATCHED_KINDS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.reflector import ReflectorStatistics
    from webhook.metrics.registry import Metric, Registry
    from webhook.watch.manager import Manager


_COUNTED: Final = (
    ("lists", WATCH_LISTS),
    ("watches", WATCH_STARTS),
    ("events", WATCH_EVENTS),
    ("gone", WATCH_GONE),
    ("errors", WATCH_ERRORS),
    ("malformed", WATCH_MALFORMED),
    ("silences", WATCH_SILENCES),
    ("restores", WATCH_RESTORES),
)

_counts = attrgetter(*(field for field, _ in _COUNTED))
_NOTHING: Final = (0,) * len(_COUNTED)


class WatchMetrics:
    """Sums the counts of all watches, including ended ones."""

    def __init__(self, registry: Registry, client: ClusterClient, manager: Manager) -> None:
        self._registry = registry
        self._client = client
        self._manager = manager
        self._seen: dict[GroupVersionKind, tuple[int, ...]] = {}
        for _, metric in _COUNTED:  # present from the beginning, as 0
            registry.count(metric, by=0)
        self._counted: dict[tuple[Metric, tuple[str, ...]], int] = {}
        self._requests: tuple[object, ...] = ()
        """Requests and writes as they were counted last."""

    def refresh(
        self,
        *,
        synced: Mapping[GroupVersionKind, int],
        kept: Mapping[GroupVersionKind, tuple[int, bool]],
        data_digest: str,
        writes: Mapping[str, tuple[int, int]],
        pruned: Mapping[tuple[str, ...], float],
    ) -> None:
        """Updates the metrics; called on the watches' loop.

        ``kept`` are the kept bytes of the objects of each kind, and whether whole objects are kept.
        """
        statistics = self._manager.statistics()
        registry = self._registry
        for (_, metric), growth in zip(_COUNTED, self._growth(statistics), strict=True):
            if growth:
                registry.count(metric, by=growth)
        absent = sum([item.absent for item in statistics.values()])
        registry.set(WATCHED_KINDS, len(statistics) - absent)
        registry.set(INTENDED_KINDS, len(statistics))
        objects: dict[tuple[str, ...], float] = {}
        for gvk, number in synced.items():
            objects["active", gvk.kind] = objects.get(("active", gvk.kind), 0) + number
        registry.replace(SYNCED, objects)
        sizes: dict[tuple[str, ...], float] = {}
        for gvk, (size, is_whole) in kept.items():
            labels = gvk.kind, str(is_whole).lower()
            sizes[labels] = sizes.get(labels, 0) + size
        registry.replace(SYNCED_BYTES, sizes)
        registry.replace(SYNCED_DATA, {(data_digest,): 1})
        registry.replace(STATUS_FIELDS_PRUNED, pruned)
        self._count_requests(writes)

    def _growth(self, statistics: Mapping[GroupVersionKind, ReflectorStatistics]) -> list[int]:
        """Returns how much each count has grown over all watches since the last call."""
        grown, seen = list(_NOTHING), self._seen
        for gvk, item in statistics.items():
            now, known = _counts(item), seen.get(gvk, _NOTHING)
            if now != known:
                seen[gvk] = now
                for at, (count, was) in enumerate(zip(now, known, strict=True)):
                    # A watch that ended and began again counts from nothing.
                    grown[at] += count - was if count >= was else count
        for gvk in seen.keys() - statistics.keys():
            del seen[gvk]
        return grown

    def _count_requests(self, writes: Mapping[str, tuple[int, int]]) -> None:
        client = self._client
        requests = client.requests, client.unauthorized, client.credentials.rotations, {**writes}
        if requests == self._requests:
            return
        self._requests = requests
        self._count(API_REQUESTS, client.requests)
        self._count(API_UNAUTHORIZED, client.unauthorized)
        self._count(API_TOKENS_ROTATED, client.credentials.rotations)
        for verb, (number, failures) in writes.items():
            self._count(API_WRITES, number, verb)
            self._count(API_WRITE_FAILURES, failures, verb)

    def _count(self, metric: Metric, now: int, *labels: str) -> None:
        before = self._counted.get((metric, labels))
        if now != before:  # present from the first look on, as 0
            self._counted[metric, labels] = now
            self._registry.count(metric, *labels, by=now - (before or 0))
