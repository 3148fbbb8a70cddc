"""The metrics of mutation (requests, passes, mutators), and of expansion."""

from __future__ import annotations

from typing import Final

from webhook.metrics.admission import REQUEST_SECONDS
from webhook.metrics.policies import INGESTION_SECONDS
from webhook.metrics.registry import Metric

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
    "Time from a request's head to its answer.",
    ("mutation_status",),
    gatekeeper=True,
    buckets=REQUEST_SECONDS,
)

MUTATION_ITERATIONS: Final = Metric(
    "gatekeeper_mutation_system_iterations",
    "histogram",
    "Passes of the mutators over an object, including the last one, which changes "
    "nothing; 0 if nothing changed.",
    ("success",),
    gatekeeper=True,
    buckets=(0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500),
)

MUTATORS: Final = Metric(
    "gatekeeper_mutators",
    "gauge",
    "Known mutators by status: active, or error if invalid.",
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
    "Times that a mutator could not be applied to an object, by kind of mutator. It was "
    "then left out, or the request refused.",
    ("mutator_kind",),
)

MUTATOR_OUTCOMES: Final = Metric(
    "waddle_mutator_outcomes",
    "counter",
    "Requests by mutator and outcome: applied, skipped, previewed (a mutator in preview "
    "would change the object) and preview_failed. Beyond --max-constraint-series "
    "mutators they count under mutator_name=_other.",
    ("mutator_kind", "mutator_name", "outcome"),
)

MUTATORS_FIGHTING: Final = Metric(
    "waddle_mutators_fighting",
    "gauge",
    "Mutators that repeated a change to an object more than --mutation-fights-per-hour "
    "times within an hour, because another writer undoes it.",
    ("mutator_kind", "mutator_name"),
)

MUTATION_DRIFT: Final = Metric(
    "waddle_mutation_drift_objects",
    "gauge",
    "Objects of the last sweep that a mutator would change at the next write, also in "
    "preview, with --report-mutation-drift. Each of several audits counts its own share.",
    ("mutator_kind", "mutator_name"),
)

INGESTIONS: Final = Metric(
    "gatekeeper_mutator_ingestion_count",
    "counter",
    "Versions of mutators that were read, by status: active, or error if invalid.",
    ("status",),
    gatekeeper=True,
)

INGESTION_DURATION: Final = Metric(
    "gatekeeper_mutator_ingestion_duration_seconds",
    "histogram",
    "Time to read a mutator.",
    ("status",),
    gatekeeper=True,
    buckets=INGESTION_SECONDS,
)

EXPANSION_TEMPLATES: Final = Metric(
    "gatekeeper_expansion_templates",
    "gauge",
    "Known ExpansionTemplates by status: active, or error if invalid.",
    ("status",),
    gatekeeper=True,
)
