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

MUTATOR_OUTCOMES: Final = Metric(
    "waddle_mutator_outcomes",
    "counter",
    "Requests by mutator and what became of it: applied (the object was changed), skipped, and of "
    "those that are only previewed previewed (it would be changed) and preview_failed; beyond "
    "--max-constraint-series mutators they are counted under mutator_name=_other.",
    ("mutator_kind", "mutator_name", "outcome"),
)

MUTATORS_FIGHTING: Final = Metric(
    "waddle_mutators_fighting",
    "gauge",
    "Mutators that made the same change to the same object more than --mutation-fights-per-hour "
    "times within an hour: somebody undoes it each time.",
    ("mutator_kind", "mutator_name"),
)

MUTATION_DRIFT: Final = Metric(
    "waddle_mutation_drift_objects",
    "gauge",
    "Objects of the last sweep that a mutator, also one that is only previewed, would change if they "
    "were written now, with --report-mutation-drift; with several audits, of this one's share.",
    ("mutator_kind", "mutator_name"),
)

INGESTIONS: Final = Metric(
    "gatekeeper_mutator_ingestion_count",
    "counter",
    "Mutators taken in, each version of each: active, or error for those that cannot be used.",
    ("status",),
    gatekeeper=True,
)

INGESTION_DURATION: Final = Metric(
    "gatekeeper_mutator_ingestion_duration_seconds",
    "histogram",
    "Time to take a mutator in.",
    ("status",),
    gatekeeper=True,
    buckets=INGESTION_SECONDS,
)

EXPANSION_TEMPLATES: Final = Metric(
    "gatekeeper_expansion_templates",
    "gauge",
    "Known ExpansionTemplates: active, or error for those that cannot be used.",
    ("status",),
    gatekeeper=True,
)
