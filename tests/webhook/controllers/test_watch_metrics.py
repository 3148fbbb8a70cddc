"""Counters of all watches: ended ones and restarted ones."""

from types import SimpleNamespace
from typing import Any

import pytest

from webhook.api.gvk import GroupVersionKind
from webhook.cluster.reflector import ReflectorStatistics
from webhook.controllers.follow.watch_metrics import WatchMetrics
from webhook.metrics.cluster import SYNCED_BYTES, WATCH_EVENTS, WATCH_LISTS, WATCHED_KINDS
from webhook.metrics.registry import Registry

PODS = GroupVersionKind("", "v1", "Pod")
JOBS = GroupVersionKind("batch", "v1", "Job")


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def refreshed(registry):
    """Brings the metrics up to date with these statistics."""
    seen: dict[GroupVersionKind, ReflectorStatistics] = {}
    client: Any = SimpleNamespace(
        requests=0, unauthorized=0, credentials=SimpleNamespace(rotations=0)
    )
    manager: Any = SimpleNamespace(statistics=lambda: dict(seen))
    metrics = WatchMetrics(registry, client, manager)

    def refresh(statistics):
        seen.clear()
        seen.update(statistics)
        kept = {PODS: (7, False), JOBS: (5, True)}
        metrics.refresh(synced={}, kept=kept, data_digest="", writes={}, pruned={})

    return refresh


def test_counters_are_there_before_anything_happened_and_grow_by_what_each_watch_saw(
    registry, refreshed
):
    refreshed({})
    assert registry.counters[WATCH_EVENTS] == {(): 0}
    refreshed({PODS: ReflectorStatistics(lists=1, events=2), JOBS: ReflectorStatistics(lists=1)})
    refreshed({PODS: ReflectorStatistics(lists=1, events=5), JOBS: ReflectorStatistics(lists=1)})
    assert registry.counters[WATCH_EVENTS] == {(): 5}
    assert registry.counters[WATCH_LISTS] == {(): 2}
    assert registry.gauges[SYNCED_BYTES] == {("Pod", "false"): 7, ("Job", "true"): 5}


def test_a_watch_that_ends_and_begins_again_counts_from_nothing(registry, refreshed):
    refreshed({PODS: ReflectorStatistics(events=5)})
    refreshed({})
    refreshed({PODS: ReflectorStatistics(events=7)})  # as many as before, and two
    refreshed({PODS: ReflectorStatistics(events=1)})  # another reflector, between two looks
    assert registry.counters[WATCH_EVENTS] == {(): 13}


def test_a_kind_that_is_not_served_is_not_watched(registry, refreshed):
    refreshed({PODS: ReflectorStatistics(), JOBS: ReflectorStatistics(absent=True)})
    assert registry.gauges[WATCHED_KINDS] == {(): 1}
