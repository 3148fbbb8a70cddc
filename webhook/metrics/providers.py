"""The metrics of external data providers: their number, requests, and cached answers."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

KNOWN_PROVIDERS: Final = Metric(
    "gatekeeper_providers",
    "gauge",
    "Known Providers: active, or error for those that cannot be used.",
    ("status",),
    gatekeeper=True,
)

PROVIDER_ERRORS: Final = Metric(
    "gatekeeper_provider_error_count",
    "counter",
    "Providers taken in that cannot be used, each version of each.",
    gatekeeper=True,
)

PROVIDER_REQUESTS: Final = Metric(
    "waddle_provider_requests",
    "counter",
    "Requests to providers by what came of them: success, system_error (the provider said so), "
    "timeout, transport, redirect, too_large, unreadable, certificate (ours cannot be shown). Not "
    "sent are: suspended (it failed repeatedly), crowded (too many are under way), too_many_keys, "
    "and unknown (there is no such Provider; under provider=_other). Beyond "
    "--max-constraint-series providers all are counted under provider=_other.",
    ("provider", "outcome"),
)

PROVIDER_SECONDS: Final = Metric(
    "waddle_provider_request_duration_seconds",
    "histogram",
    "Time from a request to a provider to the end of its answer, or to its failure.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)

PROVIDER_KEYS: Final = Metric(
    "waddle_provider_keys",
    "counter",
    "Keys that policies asked providers for: cached ones, those that were asked, and refreshed ones, "
    "which were asked for again in the background.",
    ("answered",),
)

PROVIDER_CACHE_BYTES: Final = Metric(
    "waddle_provider_cache_bytes", "gauge", "What is kept of providers' answers, about."
)

PROVIDER_CACHE_EVICTIONS: Final = Metric(
    "waddle_provider_cache_evictions",
    "counter",
    "Answers that made room for newer ones before their time was over.",
)

PROVIDER_FLIGHTS: Final = Metric(
    "waddle_provider_requests_under_way", "gauge", "Requests to providers that are under way."
)

PROVIDERS_SUSPENDED: Final = Metric(
    "waddle_providers_suspended",
    "gauge",
    "Providers that are not asked for a while because they failed repeatedly: what needs one gets "
    "that error at once.",
    ("provider",),
)

PROVIDER_WAITS_ENDED: Final = Metric(
    "waddle_provider_waits_ended",
    "counter",
    "Answers of providers for which a request's time was too short: its policies decided without.",
)

PROVIDER_ABANDONED: Final = Metric(
    "waddle_provider_requests_abandoned",
    "counter",
    "Requests to providers that were ended because too many were under way that nobody waited for.",
)
