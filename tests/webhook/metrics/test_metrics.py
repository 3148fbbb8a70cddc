"""Numbers, and how they are exposed."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from webhook.metrics.admission import (
    GATEKEEPER_SECONDS,
    REQUEST_SECONDS,
    VALIDATION_REQUESTS,
    VALIDATION_SECONDS,
)
from webhook.metrics.exposition import METRICS, Exposition
from webhook.metrics.policies import SNAPSHOT
from webhook.metrics.registry import GROUPS_MAX, Histogram, Metric, ObjectGroup, Registry
from webhook.metrics.server import CONNECTIONS


def exposed(registry: Registry) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every sample of an exposition, by name and labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    body, content_type = Exposition(registry).render()
    assert content_type.startswith("text/plain")
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_gatekeeper_s_bounds_are_all_there_and_some_below_a_millisecond() -> None:
    assert len(GATEKEEPER_SECONDS) == 46
    assert GATEKEEPER_SECONDS[0] == 0.001
    assert GATEKEEPER_SECONDS[-1] == 10
    assert set(GATEKEEPER_SECONDS) < set(REQUEST_SECONDS)
    assert list(REQUEST_SECONDS) == sorted(REQUEST_SECONDS)


def test_counters_and_histograms_have_the_names_that_gatekeeper_s_readers_look_for() -> None:
    registry = Registry()
    registry.count(VALIDATION_REQUESTS, "deny", "false")
    registry.histogram(VALIDATION_SECONDS, "deny").observe(0.25)
    found = exposed(registry)
    labels = (("admission_dryrun", "false"), ("admission_status", "deny"))
    assert found["gatekeeper_validation_request_count_total"][labels] == 1
    seconds = found["gatekeeper_validation_request_duration_seconds_bucket"]
    assert seconds[("admission_status", "deny"), ("le", "0.2")] == 0
    assert seconds[("admission_status", "deny"), ("le", "0.3")] == 1
    assert seconds[("admission_status", "deny"), ("le", "+Inf")] == 1
    sums = found["gatekeeper_validation_request_duration_seconds_sum"]
    assert sums[(("admission_status", "deny"),)] == 0.25


def test_a_value_on_a_bound_belongs_to_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]


def test_replacing_a_gauge_forgets_its_other_series() -> None:
    registry = Registry()
    registry.replace(SNAPSHOT, {("one",): 1})
    registry.replace(SNAPSHOT, {("two",): 1})
    assert exposed(registry)["waddle_snapshot_info"] == {(("digest", "two"),): 1}


def test_series_of_constraints_are_bounded_and_none_is_lost() -> None:
    registry = Registry(constraint_series_max=2)
    for number in range(5):
        registry.violations.count("Kind", f"name{number}", "deny")
        registry.violations.count("Kind", f"name{number}", "warn")
    series = registry.violations.series
    assert len(series) == 6
    assert series["", "_other", "deny"] == 3
    assert series["", "_other", "warn"] == 3
    assert sum(series.values()) == 10


def test_constraints_that_are_gone_make_room() -> None:
    registry = Registry(constraint_series_max=1)
    registry.violations.count("Kind", "old", "deny")
    registry.violations.keep([("Kind", "new")])
    registry.violations.count("Kind", "new", "deny")
    assert registry.violations.series == {("Kind", "new", "deny"): 1}


def test_what_is_counted_together_is_reported_by_object_and_never_less_than_before() -> None:
    registry = Registry(constraint_series_max=2)
    mutators = registry.mutators
    pair = ObjectGroup([("Assign", "a"), ("Assign", "b")])
    mutators.count("Assign", "a", "applied")
    for _ in range(3):
        mutators.count_all(pair, "applied")
    assert mutators.series == {("Assign", "a", "applied"): 4, ("Assign", "b", "applied"): 3}
    for number in range(2 * GROUPS_MAX):
        mutators.count_all(ObjectGroup([("Assign", "a"), ("Assign", f"n{number}")]), "applied")
    mutators.count_all(pair, "applied")
    assert mutators.series == {
        ("Assign", "a", "applied"): 5 + 2 * GROUPS_MAX,
        ("Assign", "b", "applied"): 4,
        ("", "_other", "applied"): 2 * GROUPS_MAX,
    }
    mutators.keep([("Assign", "b")])
    assert mutators.series == {
        ("Assign", "b", "applied"): 4,
        ("", "_other", "applied"): 2 * GROUPS_MAX,
    }


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_ours_or_gatekeeper_s_by_its_name(metric: Metric) -> None:
    assert metric.name.startswith("gatekeeper_" if metric.gatekeeper else "waddle_")
    assert not metric.name.endswith("_total")
    assert bool(metric.buckets) is (metric.kind == "histogram")


def test_gauges_are_brought_up_to_date_before_they_are_read() -> None:
    registry = Registry()
    exposition = Exposition(registry, lambda: registry.set(CONNECTIONS, 7))
    assert b"waddle_connections 7.0" in exposition.render()[0]


def test_the_process_s_own_numbers_are_exposed() -> None:
    assert "process_resident_memory_bytes" in exposed(Registry())
