"""The sidecar's configuration file, read into frozen values."""

from __future__ import annotations

from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.decisions.declaration import setting
from webhook.decisions.rules import RecordSelection
from webhook.decisions.sidecar.drain import DrainSettings
from webhook.decisions.sidecar.log import LogLimits
from webhook.decisions.sinks import sink
from webhook.extras import install_command
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import MakeSink

FORMATS = ("decision", "gatekeeper")


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
    """One sink: its factory, its deliveries and its format."""

    drain: DrainSettings
    make: MakeSink
    format: str = setting("decision", words=FORMATS)
    selection: RecordSelection = field(default_factory=RecordSelection)
    dead_letter_bytes: int = setting(16 * 1024 * 1024, least=1024)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings for a full queue, and for queues of other sidecars."""

    when_full: str = setting("block", words=("block", "dropOldest"))
    adopt: bool = setting(default=False)


@dataclass(frozen=True, slots=True)
class AdoptionSettings:
    """The settings that a file may have only together with ``adopt: true``."""

    adopt_after_seconds: float = setting(60.0)


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """All settings of the sidecar.

    ``adopt_after_seconds`` is None unless queues that other sidecars have left are drained.
    """

    listeners: tuple[ListenerSettings, ...]
    directory: Path
    limits: LogLimits
    sinks: tuple[SinkSettings, ...]
    metrics_address: str = setting("")
    grace_seconds: float = setting(20.0, "shutdownGraceSeconds")
    adopt_after_seconds: float | None = None


def read_settings(section: Section) -> SidecarSettings:
    """Reads a whole file; raises InvalidConfiguration."""
    queue = section.section("queue")
    kept = queue.read(QueueSettings)
    limits = queue.read(LogLimits, drop_oldest=kept.when_full == "dropOldest")
    if limits.max_bytes < 4 * limits.segment_bytes:
        raise queue.error("maxBytes", "must be at least four times segmentBytes")
    adopt = queue.read(AdoptionSettings).adopt_after_seconds if kept.adopt else None
    settings = section.read(
        SidecarSettings,
        listeners=tuple(_listener(part) for part in section.sections("listen")),
        directory=Path(queue.text("directory")),
        limits=limits,
        sinks=tuple(_sink(part) for part in section.sections("sinks")),
        adopt_after_seconds=adopt,
    )
    section.finish()
    if settings.metrics_address and not _is_address(settings.metrics_address):
        raise section.error("metricsAddress", "expected host:port")
    if not settings.listeners:
        raise section.error("listen", "expected at least one address")
    if not settings.sinks:
        raise section.error("sinks", "expected at least one sink")
    names = [part.drain.name for part in settings.sinks]
    if len(set(names)) < len(names):
        raise section.error("sinks", "two sinks have the same name")
    return settings


def _is_address(text: str) -> bool:
    _, colon, port = text.rpartition(":")
    return bool(colon) and port.isascii() and port.isdecimal() and int(port) <= 65535


def _listener(section: Section) -> ListenerSettings:
    parts = section.url("url")
    tls = section.section("tls")
    files = [tls.path(key) for key in ("certFile", "keyFile", "clientCAFile")]
    certificate, key, authority = files
    match parts.scheme:
        case "unix" if parts.path and not parts.netloc:
            if any(files):
                raise section.error("tls", "is for grpc:// only")
            return ListenerSettings("unix", parts.path)
        case "grpc" if parts.hostname and parts.port is not None:
            if bool(certificate) != bool(key):
                raise section.error("tls", "certFile and keyFile go together")
            if authority and not certificate:
                raise section.error("tls", "clientCAFile needs certFile and keyFile")
            try:
                import_module("webhook.decisions.sidecar.grpc")
            except ImportError as error:
                raise section.error(
                    "url", f"grpc:// needs an extra: {install_command('grpc')} ({error})"
                ) from None
            return ListenerSettings("grpc", parts.netloc, *files)
        case _:
            raise section.error("url", "expected unix:///path or grpc://host:port")


def _sink(section: Section) -> SinkSettings:
    name = section.text("name")
    if not all(letter.isalnum() or letter in "-_" for letter in name) or len(name) > 63:
        raise section.error("name", "expected letters, digits, - and _, at most 63")
    kind = section.choice("type", tuple(sink.TYPES), "")
    return section.read(
        SinkSettings,
        drain=section.section("batch").read(DrainSettings, name=name),
        make=sink.configure(kind, section.section("settings")),
        selection=section.section("select").read(RecordSelection),
    )
