"""Encodes a record by the settings in force: left out, masked, shortened, written."""

from __future__ import annotations

import uuid
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.api.encoding import encode
from webhook.decisions.exporter.record import SPEC_VERSION
from webhook.decisions.exporter.rows import ROWS_RECORD_BYTES_MIN, RowWriter
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.decisions.exporter.settings import ExporterSettings


@dataclass(frozen=True, slots=True)
class Origin:
    """The process that decides: its Pod, and this start of it."""

    pod_uid: str = ""
    pod: str = ""
    namespace: str = ""
    node: str = ""
    process: str = field(default_factory=lambda: uuid.uuid4().hex[:16])


def origin_from_environment(environment: Mapping[str, str]) -> Origin:
    """Reads the Pod's identity from the downward API: POD_UID, POD_NAME, POD_NAMESPACE, NODE_NAME."""
    return Origin(
        pod_uid=environment.get("POD_UID", ""),
        pod=environment.get("POD_NAME", ""),
        namespace=environment.get("POD_NAMESPACE", ""),
        node=environment.get("NODE_NAME", ""),
    )


MASKED_ALWAYS: Final = ("mutation", "externalData")
"""Fields that may hold values of an object even if objects are not included."""

USER_FIELDS: Final = ("requestUsername", "requestUserUID", "requestUserGroups", "userInfo")


_SHORT_OF_ANSWERS: Final = frozenset({"provider", "statusCode", "cached", "millis"})
"""The fields kept of each request to a provider in a record that is too long."""


def encode_bounded(record: dict[str, Any], bytes_max: int) -> bytes | None:
    """Encodes a record in at most ``bytes_max`` bytes, if necessary without large fields.

    Else None.
    """
    line = _encode(record)
    if line is None or len(line) > bytes_max:
        line = _shorten(record, bytes_max)
    return line


def _encode(record: dict[str, Any]) -> bytes | None:
    try:
        return encode(record)
    except (TypeError, ValueError, RecursionError):
        return None


def _shorten(record: dict[str, Any], bytes_max: int) -> bytes | None:
    """Removes large fields until the record fits, and lists them in ``truncated``."""
    truncated = [name for name in ("object", "oldObject") if record.pop(name, None) is not None]
    mutation = record.get("mutation", {})
    truncated += [
        f"mutation.{name}"
        for name in ("patch", "previewPatch")
        if mutation.pop(name, None) is not None
    ]
    if "externalData" in record:
        truncated.append("externalData")
        record["externalData"] = [
            {name: value for name, value in call.items() if name in _SHORT_OF_ANSWERS}
            for call in record["externalData"][:64]
        ]
    names = ["results", "excused"] if "excused" in record else ["results"]
    for violations in names:
        record[violations] = [{**result, "details": {}} for result in record.get(violations, ())]
    record["truncated"] = [*truncated, "results.details"]
    line = _encode(record)
    if line is not None and len(line) <= bytes_max:
        return line
    for name in ("resourceLabels", "requestUserGroups"):
        record.pop(name, None)
        truncated.append(name)
    for violations in names:
        record[violations] = [
            {
                **result,
                "message": str(result.get("message", ""))[:256].encode("utf-8", "replace").decode(),
            }
            for result in record[violations][:64]
        ]
    record["truncated"] = [*truncated, "results.details", "results.message", "results"]
    line = _encode(record)
    return line if line is not None and len(line) <= bytes_max else None


class RecordEncoder:
    """Encodes the records of one process by its settings."""

    __slots__ = (
        "_constant",
        "_line_bytes_max",
        "_masks",
        "_prefix",
        "_settings",
        "as_made",
        "in_rows",
        "rows",
    )

    def __init__(self, settings: ExporterSettings, origin: Origin) -> None:
        self._settings = settings
        constant = {
            "specVersion": SPEC_VERSION,
            "podUID": origin.pod_uid,
            "pod": origin.pod,
            "podNamespace": origin.namespace,
            "node": origin.node,
            "process": origin.process,
        }
        if settings.labels:
            constant["labels"] = dict(settings.labels)  # type: ignore[assignment]
        encoded = orjson.dumps(constant)
        self.rows = RowWriter(constant)
        self._prefix = encoded[:-1] + b',"sequence":'
        # As the value of specVersion, this fragment also writes all other constant fields.
        self._constant = orjson.Fragment(encoded[len(b'{"specVersion":') : -1])
        self._line_bytes_max = settings.max_record_bytes + len(self._prefix) + len("9" * 16)
        masking = settings.masking
        self._masks = bool(masking.paths or masking.of_kinds or settings.include_objects)
        self.as_made = not (self._masks or settings.rules.rules) and settings.include_user_info
        """Whether records of reviews are queued unchanged."""
        self.in_rows = (
            self.as_made
            and settings.acknowledged
            and settings.max_record_bytes >= ROWS_RECORD_BYTES_MIN
        )
        """Whether they may be rows."""

    def left_out(self, record: dict[str, Any]) -> str:
        """Returns why a record is left out; otherwise masks it, and returns an empty text."""
        settings = self._settings
        if settings.rules.rules and (reason := settings.rules.drop_reason(record)):
            return reason
        if not settings.include_user_info:
            for name in USER_FIELDS:
                record.pop(name, None)
        if self._masks or not record.keys().isdisjoint(MASKED_ALWAYS):
            settings.masking.apply(record)
        return ""

    def line(self, record: dict[str, Any], sequence: int) -> bytes | None:
        """Returns the line of a record; None if it is too long, or orjson cannot encode it."""
        record["specVersion"] = self._constant
        record["sequence"] = sequence
        try:
            line = orjson.dumps(record)
        except TypeError:
            line = b""
        if line and len(line) <= self._line_bytes_max:
            return line
        del record["specVersion"], record["sequence"]
        return None

    def body(self, record: dict[str, Any]) -> bytes | None:
        """Returns a record's own part; None if it exceeds the limit of one record."""
        return encode_bounded(record, self._settings.max_record_bytes)

    def with_body(self, body: bytes, sequence: int) -> bytes:
        """Returns the line of a record from its own part."""
        return b"%s%d,%s" % (self._prefix, sequence, body[1:])
