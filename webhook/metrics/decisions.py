"""The metrics of the decision log's exporter; the sidecar has its own."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

DECISIONS_OFFERED: Final = Metric(
    "waddle_decisions_offered",
    "counter",
    "Records to export; the sum of those acknowledged, sent, dropped and queued.",
)

DECISIONS_ACKNOWLEDGED: Final = Metric(
    "waddle_decisions_acknowledged", "counter", "Records that a sidecar has stored on disk."
)

DECISIONS_SENT: Final = Metric(
    "waddle_decisions_sent", "counter", "Records sent to a receiver that never acknowledges."
)

DECISIONS_RETRIED: Final = Metric(
    "waddle_decisions_retried", "counter", "Records sent again after a connection was lost."
)

DECISIONS_DROPPED: Final = Metric(
    "waddle_decisions_dropped",
    "counter",
    "Records that will never be exported, by reason.",
    ("reason",),
)

DECISIONS_CONNECT_FAILURES: Final = Metric(
    "waddle_decisions_connect_failures", "counter", "Attempts to reach the sidecar that failed."
)

DECISIONS_FAULTS: Final = Metric(
    "waddle_decisions_export_faults",
    "counter",
    "Connections to the sidecar that ended because of a bug, and were opened again.",
)

DECISIONS_QUEUED: Final = Metric(
    "waddle_decisions_queued", "gauge", "Records not yet acknowledged."
)

DECISIONS_QUEUED_BYTES: Final = Metric(
    "waddle_decisions_queued_bytes", "gauge", "Bytes of records not yet acknowledged."
)

DECISIONS_CONNECTED: Final = Metric(
    "waddle_decisions_connected", "gauge", "1 while connected to the sidecar."
)
