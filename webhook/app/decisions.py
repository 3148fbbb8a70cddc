"""The decision log in the process; imported only if it is switched on."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from webhook import __version__
from webhook.decisions.configuration import InvalidConfiguration, load
from webhook.decisions.exporter.encoding import origin_from_environment
from webhook.decisions.exporter.exporter import DROP_REASONS, Exporter
from webhook.decisions.exporter.recorder import AdmissionRecorder
from webhook.decisions.exporter.settings import read_settings
from webhook.metrics.decisions import (
    DECISIONS_ACKNOWLEDGED,
    DECISIONS_CONNECT_FAILURES,
    DECISIONS_CONNECTED,
    DECISIONS_DROPPED,
    DECISIONS_FAULTS,
    DECISIONS_OFFERED,
    DECISIONS_QUEUED,
    DECISIONS_QUEUED_BYTES,
    DECISIONS_RETRIED,
    DECISIONS_SENT,
)
from webhook.metrics.policies import RELOAD_FAULT

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from webhook.audit.decision_records import DecisionRecords
    from webhook.decisions.exporter.exporter import AwaitedExports
    from webhook.decisions.exporter.settings import ExporterSettings
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.trace import Tracer


class DecisionLog:
    """The exporter with its configuration file, its metrics and its shutdown.

    Raises :class:`~webhook.decisions.configuration.InvalidConfiguration` for an invalid file at
    start. A file that becomes invalid later is logged, and the previous settings stay.
    """

    def __init__(self, path: Path, grace_seconds: float, registry: Registry, log: Logger) -> None:
        self._path = path
        self._grace_seconds = grace_seconds
        self._registry = registry
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exporter = Exporter(
            read_settings(load(path)), origin_from_environment(os.environ), log
        )
        self.recorder = AdmissionRecorder(self._exporter)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Takes records on this loop from now on; must run before other threads send records."""
        self._loop = loop

    async def run(self) -> None:
        """Sends records until :meth:`drain`."""
        self.recorder.event("started", version=__version__)
        await self._exporter.run()

    def audit_sink(self) -> DecisionRecords | None:
        """Returns the sink of an audit's records, on the audit's own loop.

        None before :meth:`attach`.
        """
        from webhook.audit.decision_records import DecisionRecords  # noqa: PLC0415  # for audits

        return None if self._loop is None else DecisionRecords(self._exporter, self._loop)

    @property
    def includes_objects(self) -> bool:
        """Whether records hold objects whole, as configured now."""
        return self._exporter.settings.include_objects

    def await_exports(self, tracer: Tracer) -> AwaitedExports:
        """Returns the tracker that adds a span for records to traces."""
        from webhook.decisions.exporter.exporter import AwaitedExports  # noqa: PLC0415  # to trace

        return AwaitedExports(self._exporter, tracer)

    def record_event(self, event: str, **details: str | int) -> None:
        """Records an event of this replica, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(partial(self.recorder.event, event, **details))

    async def drain(self) -> None:
        """Waits for acknowledgements within the grace period; call after the last answer."""
        self.recorder.event("stopping")
        await self._exporter.drain(self._grace_seconds)

    def reload(self) -> bool:
        """Reads the file again, from any thread; returns whether it was good."""
        if self._loop is None:
            return True  # read at the start, a moment ago
        try:
            settings = read_settings(load(self._path))
        except InvalidConfiguration as error:
            self._registry.set(RELOAD_FAULT, 1, "decision_log")
            self._log.error(
                "the decision log's configuration was rejected; the last good one stays",
                error=str(error),
            )
            return False
        self._registry.set(RELOAD_FAULT, 0, "decision_log")
        if settings != self._exporter.settings:
            self._loop.call_soon_threadsafe(self._configure, settings)
        return True

    def faults(self) -> tuple[str, ...]:
        """Returns why no record reaches the sidecar, and what to do; any thread may call it."""
        return (fault,) if (fault := self._exporter.fault) else ()

    def refresh(self) -> None:
        """Bring the metrics up to date for a scrape."""
        registry, exporter = self._registry, self._exporter
        counters = exporter.counters
        for metric, number in (
            (DECISIONS_OFFERED, counters.offered),
            (DECISIONS_ACKNOWLEDGED, counters.acknowledged),
            (DECISIONS_SENT, counters.sent),
            (DECISIONS_RETRIED, counters.retried),
            (DECISIONS_CONNECT_FAILURES, counters.connect_failures),
            (DECISIONS_FAULTS, counters.faults),
        ):
            registry.counters[metric] = {(): number}
        registry.counters[DECISIONS_DROPPED] = {
            (reason,): counters.dropped.get(reason, 0) for reason in DROP_REASONS
        }
        registry.set(DECISIONS_QUEUED, exporter.queued)
        registry.set(DECISIONS_QUEUED_BYTES, exporter.queued_bytes)
        registry.set(DECISIONS_CONNECTED, int(exporter.connected))

    def _configure(self, settings: ExporterSettings) -> None:
        self._exporter.configure(settings)
        self._log.info(
            "the decision log's configuration was loaded", scheme=settings.address.scheme
        )
