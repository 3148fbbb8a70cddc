"""The metrics of what is sent to a collector."""

from __future__ import annotations

from typing import Final

from webhook.metrics.declaration import Metric

TRACES: Final = Metric(
    "waddle_traces",
    "counter",
    "Traces by what became of them: sent, failed (the collector did not take them), queue_full, or "
    "too_many in their second. Only with --enable-tracing.",
    ("outcome",),
)

TELEMETRY_FAILURES: Final = Metric(
    "waddle_telemetry_failures",
    "counter",
    "Messages that the collector did not take, by signal (traces, metrics). Only with "
    "--otlp-endpoint.",
    ("signal",),
)
