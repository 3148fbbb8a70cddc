"""Telemetry in the process; the sending modules are imported only if it is switched on."""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING

from webhook import __version__
from webhook.app.priority import stand_behind
from webhook.extras import install_command
from webhook.printable import reason_of
from webhook.settings.telemetry import read_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.app.decisions import DecisionLog
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.trace import Tracing
    from webhook.settings.serve import ServeSettings
    from webhook.telemetry.sending import Sending


class UnusableTelemetry(Exception):
    """Nothing can be sent with these settings; the message has the remedy."""


class Telemetry:
    """The sending to a collector, if configured; ``tracing`` is the admission thread's part."""

    def __init__(
        self,
        settings: ServeSettings,
        decisions: DecisionLog | None,
        registry: Registry,
        log: Logger,
        *,
        refresh: Callable[[], None],
    ) -> None:
        """``refresh`` brings gauges up to date. Raises :class:`UnusableTelemetry`."""
        self.tracing: Tracing | None = None
        self._sending: Sending | None = None
        traces = settings.telemetry.enable_tracing and settings.serves_admission
        if not traces and not settings.telemetry.sends_metrics:
            return
        # Imported here: an unused module would cost memory and start-up time.
        try:
            from webhook.serving.trace import CurrentTrace, Tracing  # noqa: PLC0415
            from webhook.telemetry.context import SampledTracer  # noqa: PLC0415
            from webhook.telemetry.delivery import CollectorAddress  # noqa: PLC0415
            from webhook.telemetry.sending import Sending, SendingOptions  # noqa: PLC0415
        except ImportError as error:
            raise UnusableTelemetry(
                f"--otlp-endpoint needs an extra: {install_command('otlp')} ({error})"
            ) from None
        tracer = None
        if traces:
            tracer = SampledTracer(settings.telemetry.trace_samples_per_million)
            exports = None if decisions is None else decisions.await_exports(tracer)
            self.tracing = Tracing(tracer, CurrentTrace(), exports)
        scheme, host, port, path = read_endpoint(settings.telemetry.otlp_endpoint)
        try:
            self._sending = Sending(
                CollectorAddress(
                    "grpc" if scheme.startswith("grpc") else "http",
                    tls=scheme.endswith("s"),
                    host=host,
                    port=port,
                    path=path,
                    ca_file=settings.telemetry.otlp_ca_file,
                ),
                SendingOptions(
                    _resource(settings),
                    settings.telemetry.otlp_metric_interval_seconds
                    if settings.telemetry.sends_metrics
                    else 0.0,
                ),
                tracer,
                registry,
                log,
                refresh=refresh,
                begin=stand_behind,
            )
        except OSError as error:
            raise UnusableTelemetry(
                f"--otlp-ca-file={settings.telemetry.otlp_ca_file}: {reason_of(error)}"
            ) from None

    def start(self) -> None:
        """Begins to send."""
        if self._sending is not None:
            self._sending.start()

    def refresh(self) -> None:
        """Updates its own metrics for a scrape."""
        if self._sending is not None:
            self._sending.count()

    async def stop(self) -> None:
        """Sends the remaining data, within a moment."""
        if self._sending is not None:
            await asyncio.to_thread(self._sending.stop)


def _resource(settings: ServeSettings) -> dict[str, str]:
    """This replica, by OpenTelemetry's conventions for resources."""
    return {
        "service.name": "waddle",
        "service.version": __version__,
        "service.namespace": settings.pod.namespace,
        "service.instance.id": settings.pod.uid or uuid.uuid4().hex,
        "k8s.namespace.name": settings.pod.namespace,
        "k8s.pod.name": settings.pod.name,
        "k8s.pod.uid": settings.pod.uid,
        "k8s.node.name": os.environ.get("NODE_NAME", ""),
    }
