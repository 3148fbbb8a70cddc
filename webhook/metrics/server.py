"""The metrics of the server: connections, handshakes, the admission thread, the process, telemetry."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

IN_FLIGHT: Final = Metric(
    "waddle_requests_in_flight", "gauge", "Requests received and not yet answered."
)

WAITING_BYTES: Final = Metric(
    "waddle_waiting_bytes", "gauge", "Bytes of bodies received and not yet reviewed."
)

CONNECTIONS: Final = Metric("waddle_connections", "gauge", "Open connections to the webhook.")

CLOSED: Final = Metric(
    "waddle_connections_closed",
    "counter",
    "Connections that the server closed, by reason.",
    ("reason",),
)

HANDSHAKES: Final = Metric(
    "waddle_handshakes", "gauge", "Connections to the webhook that are in their TLS handshake."
)

HANDSHAKES_FAILED: Final = Metric(
    "waddle_handshakes_failed",
    "counter",
    "TLS handshakes that failed, by reason (error, timeout, too_many_connections).",
    ("reason",),
)

LAG: Final = Metric(
    "waddle_event_loop_lag_seconds",
    "gauge",
    "Delay of the admission thread at its last tick.",
)

LAG_MAX: Final = Metric(
    "waddle_event_loop_lag_max_seconds",
    "gauge",
    "The largest such delay since the start.",
)

LAG_SECONDS: Final = Metric(
    "waddle_event_loop_delay_seconds",
    "histogram",
    "Delay of the admission thread at a timer that fires ten times a second.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
)

LOG_LINES_DROPPED: Final = Metric(
    "waddle_log_lines_dropped",
    "counter",
    "Log lines that were dropped because the reader of standard error was too slow.",
)

CERT_NOT_AFTER: Final = Metric(
    "waddle_cert_not_after_timestamp_seconds",
    "gauge",
    "When the server's certificate ends, in seconds since 1970.",
)

CERTIFICATE_FAULTS: Final = Metric(
    "waddle_certificate_faults",
    "gauge",
    "Faults of the certificate's Secret and of the webhook configurations, as /readyz?verbose lists "
    "them: one is missing, or cannot be read, written or used.",
)

READY: Final = Metric(
    "waddle_ready",
    "gauge",
    "1 if /readyz reports ready, by process: admission, or audit for an audit alone.",
    ("process",),
)

BUILD: Final = Metric("waddle_build_info", "gauge", "Always 1.", ("version",))


TRACES: Final = Metric(
    "waddle_traces",
    "counter",
    "Traces by outcome: sent, failed (the collector did not accept them), queue_full, or "
    "too_many (in one second). Only with --enable-tracing.",
    ("outcome",),
)

TELEMETRY_FAILURES: Final = Metric(
    "waddle_telemetry_failures",
    "counter",
    "Messages that the collector did not accept, by signal (traces, metrics). Only with "
    "--otlp-endpoint.",
    ("signal",),
)
