"""The metrics of following a cluster; :mod:`webhook.metrics` lists them with all others."""

from __future__ import annotations

from typing import Final

from webhook.metric import Metric

_G = "gatekeeper_"
_W = "waddle_"

WATCHED_KINDS: Final = Metric(
    f"{_G}watch_manager_watched_gvk", "gauge", "Kinds that are watched.", gatekeeper=True
)
INTENDED_KINDS: Final = Metric(
    f"{_G}watch_manager_intended_watch_gvk",
    "gauge",
    "Kinds that are to be watched, those not served included.",
    gatekeeper=True,
)
SYNCED: Final = Metric(
    f"{_G}sync",
    "gauge",
    "Objects of synced kinds, which policies may read.",
    ("status", "kind"),
    gatekeeper=True,
)
SYNCED_DATA: Final = Metric(
    f"{_W}synced_data_info",
    "gauge",
    "Always 1; the label names the data that policies may read, equal on replicas that have the "
    "same.",
    ("digest",),
)
WATCH_LISTS: Final = Metric(f"{_W}watch_lists", "counter", "Whole lists taken from the API server.")
WATCH_STARTS: Final = Metric(f"{_W}watch_starts", "counter", "Watches begun.")
WATCH_EVENTS: Final = Metric(f"{_W}watch_events", "counter", "Events of all watches.")
WATCH_GONE: Final = Metric(
    f"{_W}watch_gone",
    "counter",
    "Times that the API server had forgotten where a watch or list stood (410).",
)
WATCH_ERRORS: Final = Metric(f"{_W}watch_errors", "counter", "Lists and watches that failed.")
WATCH_SILENCES: Final = Metric(
    f"{_W}watch_silences", "counter", "Watches given up because nothing came, not even a bookmark."
)
UNSERVED_OBJECTS: Final = Metric(
    f"{_W}unserved_objects",
    "gauge",
    "Objects of Gatekeeper's kinds that have no effect here: mutators, Providers, "
    "ExpansionTemplates, Connections.",
    ("kind",),
)
ADMISSION_EVENTS: Final = Metric(
    f"{_W}admission_events",
    "counter",
    "Events of violations in admissions, by what became of them.",
    ("outcome",),
)
CONSTRAINTS_WITHOUT_ENGINE: Final = Metric(
    f"{_W}constraints_without_engine",
    "gauge",
    "Constraints that are not enforced because the engine of their template (CEL) is not here: what "
    "they would decide is warned about and recorded.",
)
WATCH_MALFORMED: Final = Metric(
    f"{_W}watch_malformed",
    "counter",
    "Objects in lists and watches that were left out because they are none (no metadata, no name).",
)
OBJECT_FAULTS: Final = Metric(
    f"{_W}object_faults",
    "counter",
    "Times that following one object of the cluster raised what nobody foresaw; all others are "
    "followed, and the log names it.",
    ("follower",),
)
OBJECTS_SPOILED: Final = Metric(
    f"{_W}objects_spoiled",
    "gauge",
    "Objects of the cluster that cannot be followed as they are.",
    ("follower",),
)
API_REQUESTS: Final = Metric(f"{_W}api_requests", "counter", "Requests to the API server.")
API_UNAUTHORIZED: Final = Metric(
    f"{_W}api_unauthorized",
    "counter",
    "Requests refused with 401, after which the credentials were read anew.",
)
API_TOKENS_ROTATED: Final = Metric(
    f"{_W}api_tokens_rotated",
    "counter",
    "Times that the token for the API server was found to be another than before.",
)
API_WRITES: Final = Metric(
    f"{_W}api_writes",
    "counter",
    "Writes to the API server: own statuses, CRDs of constraints, byPod with conditions, Events, "
    "revisions, certificate. None in a steady state.",
    ("what",),
)
API_WRITE_FAILURES: Final = Metric(
    f"{_W}api_write_failures", "counter", "Writes that failed, conflicts excepted.", ("what",)
)
STATUS_FIELDS_PRUNED: Final = Metric(
    f"{_W}status_fields_pruned",
    "gauge",
    "Fields of ours that the cluster's CRD does not keep in statuses: it is Gatekeeper's own.",
    ("kind",),
)

FOLLOWING_METRICS: Final = (
    WATCHED_KINDS,
    INTENDED_KINDS,
    SYNCED,
    SYNCED_DATA,
    WATCH_LISTS,
    WATCH_STARTS,
    WATCH_EVENTS,
    WATCH_GONE,
    WATCH_ERRORS,
    WATCH_SILENCES,
    UNSERVED_OBJECTS,
    CONSTRAINTS_WITHOUT_ENGINE,
    ADMISSION_EVENTS,
    WATCH_MALFORMED,
    OBJECT_FAULTS,
    OBJECTS_SPOILED,
    API_REQUESTS,
    API_UNAUTHORIZED,
    API_TOKENS_ROTATED,
    API_WRITES,
    API_WRITE_FAILURES,
    STATUS_FIELDS_PRUNED,
)
"""In the order in which documentation lists them."""
