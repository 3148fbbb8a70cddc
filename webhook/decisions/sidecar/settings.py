"""The sidecar's configuration file, read into frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webhook.decisions.rules import ACTIONS, POINTS, VERDICTS, RecordSelection
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sinks import sink
from webhook.decisions.wire.framing import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import MakeSink

FORMATS = ("decision", "gatekeeper")

QUEUE_BYTES_MIN: Final = 4 * MAX_LINE_BYTES
"""The longest record beside whatever else a queue must hold: none can stop it for ever."""


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """One address to receive on; the files are for ``grpc`` only."""

    scheme: str
    address: str
    certificate_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """One sink: how it is made, fed and formatted."""

    drain: DrainSettings
    make: MakeSink
    format: str = "decision"
    selection: RecordSelection = field(default_factory=RecordSelection)
    dead_letter_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """All of it.

    ``adopt_after_seconds`` is None unless queues that other sidecars left
    beside this one are to be drained.
    """

    listeners: tuple[ListenerSettings, ...]
    directory: Path
    limits: LogLimits
    sinks: tuple[SinkSettings, ...]
    metrics_address: str = ""
    grace_seconds: float = 20.0
    adopt_after_seconds: float | None = None


def read_settings(section: Section) -> SidecarSettings:
    """Read a whole file; raises ConfigurationError."""
    queue = section.section("queue")
    limits = LogLimits(
        segment_bytes=queue.integer("segmentBytes", 8 * 1024 * 1024, least=64 * 1024),
        max_bytes=queue.integer("maxBytes", 1024 * 1024 * 1024, least=QUEUE_BYTES_MIN),
        min_free_bytes=queue.integer("minFreeBytes", 64 * 1024 * 1024, least=0),
        drop_oldest=queue.choice("whenFull", ("block", "dropOldest"), "block") == "dropOldest",
    )
    if limits.max_bytes < 4 * limits.segment_bytes:
        raise queue.error("maxBytes", "must be at least four times segmentBytes")
    adopt: float | None = None
    if queue.boolean("adopt"):
        adopt = queue.number("adoptAfterSeconds", 60.0)
    settings = SidecarSettings(
        listeners=tuple(_listener(part) for part in section.sections("listen")),
        directory=Path(queue.text("directory")),
        limits=limits,
        sinks=tuple(_sink(part) for part in section.sections("sinks")),
        metrics_address=section.text("metricsAddress", ""),
        grace_seconds=section.number("shutdownGraceSeconds", 20.0),
        adopt_after_seconds=adopt,
    )
    queue.finish()
    section.finish()
    if not settings.listeners:
        raise section.error("listen", "expected at least one address")
    if not settings.sinks:
        raise section.error("sinks", "expected at least one sink")
    names = [part.drain.name for part in settings.sinks]
    if len(set(names)) < len(names):
        raise section.error("sinks", "two sinks have the same name")
    return settings


def _listener(section: Section) -> ListenerSettings:
    url = section.text("url")
    parts = urlsplit(url)
    tls = section.section("tls")
    files = {key: tls.text(key, "") for key in ("certFile", "keyFile", "clientCAFile")}
    tls.finish()
    section.finish()
    paths = {key: Path(text) if text else None for key, text in files.items()}
    match parts.scheme:
        case "unix" if parts.path and not parts.netloc:
            if any(files.values()):
                raise section.error("tls", "is for grpc:// only")
            return ListenerSettings("unix", parts.path)
        case "grpc" if parts.hostname and parts.port is not None:
            if bool(files["certFile"]) != bool(files["keyFile"]):
                raise section.error("tls", "certFile and keyFile go together")
            if files["clientCAFile"] and not files["certFile"]:
                raise section.error("tls", "clientCAFile needs certFile and keyFile")
            try:
                import_module("webhook.decisions.sidecar.grpc")
            except ImportError as error:
                raise section.error(
                    "url", f"grpc:// needs waddle-admission[grpc]: {error}"
                ) from None
            return ListenerSettings(
                "grpc", parts.netloc, paths["certFile"], paths["keyFile"], paths["clientCAFile"]
            )
        case _:
            raise section.error("url", "expected unix:///path or grpc://host:port")


def _sink(section: Section) -> SinkSettings:
    name = section.text("name")
    if not all(letter.isalnum() or letter in "-_" for letter in name) or len(name) > 63:
        raise section.error("name", "expected letters, digits, - and _, at most 63")
    kind = section.choice("type", tuple(sink.TYPES), "")
    batch = section.section("batch")
    drain = DrainSettings(
        name=name,
        max_records=batch.integer("maxRecords", 512),
        max_bytes=batch.integer("maxBytes", 512 * 1024, least=1024),
        backoff_initial_seconds=batch.number("backoffInitialSeconds", 0.5, least=0.001),
        backoff_max_seconds=batch.number("backoffMaxSeconds", 60.0, least=0.001),
    )
    batch.finish()
    own = SinkSettings(
        drain=drain,
        make=sink.configure(kind, section.section("settings")),
        format=section.choice("format", FORMATS, "decision"),
        selection=_selection(section.section("select")),
        dead_letter_bytes=section.integer("deadLetterBytes", 16 * 1024 * 1024, least=1024),
    )
    section.finish()
    return own


def _selection(section: Section) -> RecordSelection:
    def words(key: str, known: Iterable[str]) -> frozenset[str]:
        found = frozenset(section.texts(key))
        if unknown := sorted(found - set(known)):
            raise section.error(key, f"unknown {', '.join(unknown)}, known are {', '.join(known)}")
        return found

    selection = RecordSelection(
        verdicts=words("verdicts", VERDICTS),
        namespaces=section.texts("namespaces"),
        kinds=section.texts("kinds"),
        actions=words("actions", ACTIONS),
        points=words("points", POINTS),
    )
    section.finish()
    return selection
