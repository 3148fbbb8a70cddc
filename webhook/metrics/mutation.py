"""The metrics of mutation: requests, passes, mutators; and of expansion."""

from __future__ import annotations

from typing import Final

from webhook.metrics.admission import REQUEST_SECONDS
from webhook.metrics.declaration import Metric

MUTATION_REQUESTS: Final = Metric(
    "gatekeeper_mutation_request_count",
    "counter",
    "Requests to the mutation webhook: success, skip (an excluded namespace) or error.",
    ("mutation_status",),
    gatekeeper=True,
)

MUTATION_SECONDS: Final = Metric(
    "gatekeeper_mutation_request_duration_seconds",
    "histogram",
    "Time from a request's last byte to its answer.",
    ("mutation_status",),
    gatekeeper=True,
    buckets=REQUEST_SECONDS,
)

MUTATION_ITERATIONS: Final = Metric(
    "gatekeeper_mutation_system_iterations",
    "histogram",
    "Passes of the mutators over an object, the last, quiet one included; 0 where nothing changed.",
    ("success",),
    gatekeeper=True,
    buckets=(0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500),
)

MUTATORS: Final = Metric(
    "gatekeeper_mutators",
    "gauge",
    "Known mutators: active, or error for those that cannot be used.",
    ("status",),
    gatekeeper=True,
)

MUTATORS_CONFLICTING: Final = Metric(
    "gatekeeper_mutator_conflicting_count",
    "gauge",
    "Mutators that are not applied because their schemas conflict.",
    gatekeeper=True,
)

MUTATORS_SKIPPED: Final = Metric(
    "waddle_mutators_skipped",
    "counter",
    "Times that a mutator could not be applied to an object, and was left out or refused the "
    "request, by kind of mutator.",
    ("mutator_kind",),
)

EXPANSION_TEMPLATES: Final = Metric(
    "gatekeeper_expansion_templates",
    "gauge",
    "Known ExpansionTemplates: active, or error for those that cannot be used.",
    ("status",),
    gatekeeper=True,
)
