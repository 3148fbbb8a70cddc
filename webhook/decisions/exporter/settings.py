"""The exporter client's configuration file, read into frozen values."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from webhook.decisions.declaration import setting
from webhook.decisions.exporter import transport
from webhook.decisions.exporter.masking import Masking, Path, parse_path
from webhook.decisions.rules import RecordRule, RecordRules
from webhook.decisions.wire.framing import MAX_LINE_BYTES
from webhook.extras import install_command
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.decisions.configuration import Section


@dataclass(frozen=True, slots=True)
class ExporterSettings:
    """Settings for recording, queueing and sending decisions.

    ``acknowledged`` is False for receivers that never answer (``?ack=none``). With ``audit_allows``
    an audit also records objects without a violation.
    """

    address: transport.Address
    acknowledged: bool = True
    max_records: int = setting(10_000, "queue.maxRecords")
    max_bytes: int = setting(16 * 1024 * 1024, "queue.maxBytes", least=1024)
    max_record_bytes: int = setting(256 * 1024, least=1024)
    flush_seconds: float = setting(0.05)
    connect_seconds: float = setting(5.0, least=0.01)
    acknowledge_seconds: float = setting(30.0, least=0.01)
    backoff_initial_seconds: float = setting(0.1, "backoff.initialSeconds", least=0.001)
    backoff_max_seconds: float = setting(10.0, "backoff.maxSeconds", least=0.001)
    include_objects: bool = setting(default=False)
    include_answers: bool = setting(default=False)
    include_user_info: bool = setting(default=True)
    audit_allows: bool = setting(default=False)
    masking: Masking = field(default_factory=Masking)
    rules: RecordRules = field(default_factory=RecordRules)
    labels: Mapping[str, str] = setting(dict)


def read_settings(section: Section) -> ExporterSettings:
    """Reads a whole file; raises InvalidConfiguration."""
    address, acknowledged = _address(section)
    settings = section.read(
        ExporterSettings,
        address=address,
        acknowledged=acknowledged,
        masking=_masking(section),
        rules=RecordRules(tuple(part.read(RecordRule) for part in section.sections("rules"))),
    )
    section.finish()
    if settings.max_record_bytes > MAX_LINE_BYTES - 1024:
        raise section.error("maxRecordBytes", "the protocol's longest line is 1 MiB")
    return settings


def _address(section: Section) -> tuple[transport.Address, bool]:
    parts = section.url("sidecarURL")
    query = parse_qs(parts.query)
    ack = query.pop("ack", ["durable"])[-1]
    if ack not in {"durable", "none"} or query:
        raise section.error("sidecarURL", "the only parameter is ack=durable or ack=none")
    if parts.scheme not in transport.schemes():
        known = ", ".join(f"{scheme}://" for scheme in transport.schemes())
        raise section.error("sidecarURL", f"unknown scheme {parts.scheme!r}, known are {known}")
    has_path = bool(parts.path) and not parts.netloc
    has_port = bool(parts.hostname) and parts.port is not None
    if not {"unix": has_path, "grpc": has_port}.get(parts.scheme, True):
        raise section.error("sidecarURL", "expected unix:///path or grpc://host:port")
    try:
        transport.load(parts.scheme)
    except ImportError as error:
        raise section.error(
            "sidecarURL",
            f"{parts.scheme}:// needs an extra: {install_command(parts.scheme)} ({error})",
        ) from None
    tls = section.section("tls")
    files = transport.TLSFiles(
        ca=tls.text("caFile", ""),
        certificate=tls.text("certFile", ""),
        key=tls.text("keyFile", ""),
        server_name=tls.text("serverName", ""),
    )
    return transport.Address(parts.scheme, parts.netloc, parts.path, files), ack == "durable"


def _masking(section: Section) -> Masking:
    of_kinds = []
    for part in section.sections("maskKinds"):
        kinds, paths = part.texts("kinds"), _paths(part, "paths")
        part.finish()
        if not paths:  # most likely a misspelt key: nothing would be masked, silently
            raise part.error("paths", "expected a list with at least one path")
        of_kinds.append((kinds, paths))
    return Masking(_paths(section, "mask"), tuple(of_kinds))


def _paths(section: Section, key: str) -> tuple[Path, ...]:
    try:
        return tuple(parse_path(text) for text in section.texts(key))
    except ValueError as error:
        raise section.error(key, str(error)) from None
