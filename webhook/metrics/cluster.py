"""The metrics of following a cluster: watches, synced data, requests and writes."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

CLUSTER_FAULTS: Final = Metric(
    "waddle_cluster_faults",
    "counter",
    "Times that a bug made the replica begin following, or a part of that, anew.",
)

WATCHED_KINDS: Final = Metric(
    "gatekeeper_watch_manager_watched_gvk", "gauge", "Kinds that are watched.", gatekeeper=True
)

INTENDED_KINDS: Final = Metric(
    "gatekeeper_watch_manager_intended_watch_gvk",
    "gauge",
    "Kinds that are to be watched, those not served included.",
    gatekeeper=True,
)

SYNCED: Final = Metric(
    "gatekeeper_sync",
    "gauge",
    "Objects of synced kinds, which policies may read.",
    ("status", "kind"),
    gatekeeper=True,
)

SYNCED_BYTES: Final = Metric(
    "waddle_synced_kept_bytes",
    "gauge",
    "Bytes of JSON that are kept of the objects of synced kinds; whole is false where only what "
    "templates read is kept. None with --sync-projection=false.",
    ("kind", "whole"),
)

SYNCED_DATA: Final = Metric(
    "waddle_synced_data_info",
    "gauge",
    "Always 1; the label names the data that policies may read, equal on replicas that have the "
    "same.",
    ("digest",),
)

WATCH_LISTS: Final = Metric(
    "waddle_watch_lists", "counter", "Whole lists taken from the API server."
)

WATCH_STARTS: Final = Metric("waddle_watch_starts", "counter", "Watches begun.")

WATCH_EVENTS: Final = Metric("waddle_watch_events", "counter", "Events of all watches.")

WATCH_GONE: Final = Metric(
    "waddle_watch_gone",
    "counter",
    "Times that the API server had forgotten where a watch or list stood (410).",
)

WATCH_ERRORS: Final = Metric("waddle_watch_errors", "counter", "Lists and watches that failed.")

WATCH_SILENCES: Final = Metric(
    "waddle_watch_silences",
    "counter",
    "Watches given up because nothing came, not even a bookmark.",
)

WATCH_RESTORES: Final = Metric(
    "waddle_watch_restores",
    "counter",
    "Times that the API server was at an older version than a watch knew, as after a restore of "
    "etcd; everything of the kind was listed anew.",
)

WATCH_MALFORMED: Final = Metric(
    "waddle_watch_malformed",
    "counter",
    "Objects in lists and watches that were left out because they are none (no metadata, no name).",
)

OBJECT_FAULTS: Final = Metric(
    "waddle_object_faults",
    "counter",
    "Times that following one object of the cluster raised what nobody foresaw; all others are "
    "followed, and the log names it.",
    ("follower",),
)

OBJECTS_SPOILED: Final = Metric(
    "waddle_objects_spoiled",
    "gauge",
    "Objects of the cluster that cannot be followed as they are.",
    ("follower",),
)

API_REQUESTS: Final = Metric("waddle_api_requests", "counter", "Requests to the API server.")

API_UNAUTHORIZED: Final = Metric(
    "waddle_api_unauthorized",
    "counter",
    "Requests refused with 401, after which the credentials were read anew.",
)

API_TOKENS_ROTATED: Final = Metric(
    "waddle_api_tokens_rotated",
    "counter",
    "Times that the token for the API server was found to be another than before.",
)

API_WRITES: Final = Metric(
    "waddle_api_writes",
    "counter",
    "Writes to the API server: own statuses, CRDs of constraints, byPod with conditions, Events, "
    "revisions, certificate. None in a steady state.",
    ("what",),
)

API_WRITE_FAILURES: Final = Metric(
    "waddle_api_write_failures", "counter", "Writes that failed, conflicts excepted.", ("what",)
)

STATUS_FIELDS_PRUNED: Final = Metric(
    "waddle_status_fields_pruned",
    "gauge",
    "Fields of ours that the cluster's CRD does not keep in statuses: it is Gatekeeper's own.",
    ("kind",),
)
