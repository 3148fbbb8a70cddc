"""OpenTelemetry logs over HTTP, in protobuf: one log record for each record.

Built from opentelemetry-proto's messages: the SDK's own exporter queues in memory and drops,
against the purpose of this sidecar.
"""

from __future__ import annotations

import datetime as dt
import gzip
from typing import TYPE_CHECKING, Any, Final

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import (
    SEVERITY_NUMBER_ERROR,
    SEVERITY_NUMBER_INFO,
    SEVERITY_NUMBER_WARN,
    LogRecord,
    ResourceLogs,
    ScopeLogs,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from webhook import __version__
from webhook.decisions.declaration import setting
from webhook.decisions.sinks.http import GZIP_LEVEL
from webhook.decisions.sinks.http_client import Endpoint, Poster, read_endpoint
from webhook.decisions.sinks.sink import Item, MakeSink, RecordsRefused
from webhook.printable import quantity
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

    from webhook.decisions.configuration import Section

_SEVERITY: Final[dict[Any, tuple[SeverityNumber.ValueType, str]]] = {
    "deny": (SEVERITY_NUMBER_WARN, "WARN"),
    "warn": (SEVERITY_NUMBER_WARN, "WARN"),
    "error": (SEVERITY_NUMBER_ERROR, "ERROR"),
}
_INFO: Final[tuple[SeverityNumber.ValueType, str]] = (SEVERITY_NUMBER_INFO, "INFO")

_RESOURCE: Final = {
    "podUID": "k8s.pod.uid",
    "pod": "k8s.pod.name",
    "podNamespace": "k8s.namespace.name",
    "node": "k8s.node.name",
    "process": "service.instance.id",
}
"""The fields about the deciding process, with their names in OpenTelemetry's conventions."""

_ATTRIBUTES: Final = (
    "verdict",
    "enforcementPoint",
    "operation",
    "resourceGroup",
    "resourceKind",
    "resourceNamespace",
    "resourceName",
    "requestUsername",
    "auditID",
    "id",
    "sequence",
)


@dataclass(frozen=True, slots=True)
class OTLPSettings:
    """Where to post, and whether compressed, which every collector takes."""

    endpoint: Endpoint
    gzip: bool = setting(default=True)


class OTLPSink:
    """Posts ``ExportLogsServiceRequest`` messages."""

    def __init__(self, settings: OTLPSettings) -> None:
        self._poster = Poster(settings.endpoint)
        self._compress = settings.gzip

    def send(self, items: Sequence[Item]) -> None:
        """Posts one batch.

        A partial success counts as refused, so that halving finds the refused records.
        """
        body = encode_request(items).SerializeToString()
        headers = {"Content-Type": "application/x-protobuf"}
        if self._compress:
            body = gzip.compress(body, GZIP_LEVEL)
            headers["Content-Encoding"] = "gzip"
        answer = ExportLogsServiceResponse()
        try:
            answer.ParseFromString(self._poster.post(body, headers))
        except DecodeError:
            return  # accepted, with an answer in another format
        rejected = answer.partial_success.rejected_log_records
        if rejected:
            raise RecordsRefused(
                f"{quantity(rejected, 'record')} rejected: {answer.partial_success.error_message}"
            )

    def close(self) -> None:
        """Closes the connection."""
        self._poster.close()


def encode_request(items: Sequence[Item]) -> ExportLogsServiceRequest:
    """Returns the message for a batch; consecutive records of a process share a resource."""
    request = ExportLogsServiceRequest()
    scope: ScopeLogs | None = None
    previous: dict[str, str] | None = None
    for item in items:
        record = orjson.loads(item.record)
        if type(record) is not dict:
            record = {}
        origin = {name: str(record.get(key, "")) for key, name in _RESOURCE.items()}
        if scope is None or origin != previous:
            previous = origin
            scope = ScopeLogs(scope=InstrumentationScope(name="waddle", version=__version__))
            attributes = [_text("service.name", "waddle")]
            attributes += [_text(name, value) for name, value in origin.items() if value]
            request.resource_logs.append(
                ResourceLogs(resource=Resource(attributes=attributes), scope_logs=[scope])
            )
            scope = request.resource_logs[-1].scope_logs[0]
        scope.log_records.extend(_log_record(line, record) for line in item.lines)
    return request


def _log_record(line: bytes, record: dict[str, Any]) -> LogRecord:
    number, text = _SEVERITY.get(str(record.get("verdict")), _INFO)
    return LogRecord(
        time_unix_nano=_nanoseconds(record.get("timestamp")),
        severity_number=number,
        severity_text=text,
        event_name=f"waddle.{record.get('eventType', 'record')}",
        body=AnyValue(string_value=line.decode("utf-8", "replace")),
        attributes=[
            _text(f"waddle.{name}", str(record[name])) for name in _ATTRIBUTES if name in record
        ],
    )


def _nanoseconds(timestamp: Any) -> int:
    """Returns nanoseconds since 1970; 0, which means unknown, for an invalid time."""
    try:
        moment = dt.datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return 0
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    if moment.tzinfo is None:
        return 0
    return max((moment - epoch) // dt.timedelta(microseconds=1), 0) * 1000


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def configure(section: Section) -> MakeSink:
    """Settings of the endpoint (its URL is complete, ``…/v1/logs``) and ``gzip``."""
    settings = section.read(OTLPSettings, endpoint=read_endpoint(section))
    section.finish()
    return lambda _origin, _logger: OTLPSink(settings)
