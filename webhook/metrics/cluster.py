"""The metrics of following a cluster: watches, synced data, requests and writes."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

CLUSTER_FAULTS: Final = Metric(
    "waddle_cluster_faults",
    "counter",
    "Times that the replica restarted its watches, or a part of them, because of a bug.",
)

WATCHED_KINDS: Final = Metric(
    "gatekeeper_watch_manager_watched_gvk", "gauge", "Kinds that are watched.", gatekeeper=True
)

INTENDED_KINDS: Final = Metric(
    "gatekeeper_watch_manager_intended_watch_gvk",
    "gauge",
    "Kinds that should be watched, including those that the API server does not serve.",
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
    "Bytes of JSON kept of synced objects. whole is false if only the fields that "
    "templates read are kept. Absent with --sync-projection=false.",
    ("kind", "whole"),
)

SYNCED_DATA: Final = Metric(
    "waddle_synced_data_info",
    "gauge",
    "Always 1. The label names the data that policies may read; it is equal on replicas "
    "with the same data.",
    ("digest",),
)

WATCH_LISTS: Final = Metric(
    "waddle_watch_lists", "counter", "Complete lists requested from the API server."
)

WATCH_STARTS: Final = Metric("waddle_watch_starts", "counter", "Watches begun.")

WATCH_EVENTS: Final = Metric("waddle_watch_events", "counter", "Events of all watches.")

WATCH_GONE: Final = Metric(
    "waddle_watch_gone",
    "counter",
    "Times that the API server no longer had the version of a watch or list (410).",
)

WATCH_ERRORS: Final = Metric("waddle_watch_errors", "counter", "Lists and watches that failed.")

WATCH_SILENCES: Final = Metric(
    "waddle_watch_silences",
    "counter",
    "Watches that were closed because nothing arrived, not even a bookmark.",
)

WATCH_RESTORES: Final = Metric(
    "waddle_watch_restores",
    "counter",
    "Times that the API server had an older version than a watch, as after a restore of "
    "etcd. The kind was then listed again.",
)

WATCH_MALFORMED: Final = Metric(
    "waddle_watch_malformed",
    "counter",
    "Items in lists and watches that were left out because they have no metadata or no name.",
)

OBJECT_FAULTS: Final = Metric(
    "waddle_object_faults",
    "counter",
    "Unexpected errors while following one object of the cluster. The log names the "
    "object; all others are followed.",
    ("follower",),
)

OBJECTS_SPOILED: Final = Metric(
    "waddle_objects_spoiled",
    "gauge",
    "Objects of the cluster that cannot be followed, because of an error in them.",
    ("follower",),
)

API_REQUESTS: Final = Metric("waddle_api_requests", "counter", "Requests to the API server.")

API_UNAUTHORIZED: Final = Metric(
    "waddle_api_unauthorized",
    "counter",
    "Requests refused with 401, after which the credentials were read again.",
)

API_TOKENS_ROTATED: Final = Metric(
    "waddle_api_tokens_rotated",
    "counter",
    "Times that the token for the API server changed.",
)

API_WRITES: Final = Metric(
    "waddle_api_writes",
    "counter",
    "Writes to the API server: own statuses, CRDs of constraints, byPod with conditions, "
    "Events, revisions, certificate. In a steady state there are none.",
    ("what",),
)

API_WRITE_FAILURES: Final = Metric(
    "waddle_api_write_failures", "counter", "Writes that failed, without conflicts.", ("what",)
)

STATUS_FIELDS_PRUNED: Final = Metric(
    "waddle_status_fields_pruned",
    "gauge",
    "Status fields of Waddle's that the cluster's CRD does not keep, because it is "
    "Gatekeeper's own.",
    ("kind",),
)

CLOCK_SKEW: Final = Metric(
    "waddle_clock_skew_seconds",
    "gauge",
    "How far this node's clock is ahead of the API server's, by the Date of its answers; negative "
    "if it is behind, 0 if they differ by less than a second.",
)
