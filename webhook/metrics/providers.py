"""The metrics of external data providers: their number, requests, and cached answers."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

KNOWN_PROVIDERS: Final = Metric(
    "gatekeeper_providers",
    "gauge",
    "Known Providers by status: active, or error if invalid.",
    ("status",),
    gatekeeper=True,
)

PROVIDER_ERRORS: Final = Metric(
    "gatekeeper_provider_error_count",
    "counter",
    "Versions of Providers that were read and are invalid.",
    gatekeeper=True,
)

PROVIDER_REQUESTS: Final = Metric(
    "waddle_provider_requests",
    "counter",
    "Requests to providers by outcome: success, system_error (from the provider), "
    "timeout, transport, redirect, too_large, unreadable, certificate (ours is not "
    "available). Not sent are: suspended (after repeated failures), crowded (too many in "
    "progress), too_many_keys, and unknown (no such Provider; under provider=_other). "
    "Beyond --max-constraint-series providers all count under provider=_other.",
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
    "Keys that policies need from providers: cached, requested, and refreshed in the background.",
    ("answered",),
)

PROVIDER_CACHE_BYTES: Final = Metric(
    "waddle_provider_cache_bytes", "gauge", "Memory for kept answers of providers, about."
)

PROVIDER_CACHE_EVICTIONS: Final = Metric(
    "waddle_provider_cache_evictions",
    "counter",
    "Answers that were dropped for newer ones before they expired.",
)

PROVIDER_FLIGHTS: Final = Metric(
    "waddle_provider_requests_under_way", "gauge", "Requests to providers in progress."
)

PROVIDERS_SUSPENDED: Final = Metric(
    "waddle_providers_suspended",
    "gauge",
    "Providers that get no requests for a while after repeated failures. Policies that "
    "need one get that error at once.",
    ("provider",),
)

PROVIDER_WAITS_ENDED: Final = Metric(
    "waddle_provider_waits_ended",
    "counter",
    "Answers of providers that came too late for a request; its policies decided without them.",
)

PROVIDER_ABANDONED: Final = Metric(
    "waddle_provider_requests_abandoned",
    "counter",
    "Requests to providers that were cancelled because no review waits for them and too "
    "many are in progress.",
)
