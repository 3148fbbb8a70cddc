"""Delivers messages to a collector: OTLP by gRPC, or by HTTP like Gatekeeper's metrics."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from typing import Any, Final, Literal, Protocol, TypeAlias

from webhook.proxies import grpc_options, route
from webhook.values import dataclass

Signal: TypeAlias = Literal["traces", "metrics"]

TIMEOUT_SECONDS: Final = 10.0
"""OpenTelemetry's default timeout of an exporter (OTEL_EXPORTER_OTLP_TIMEOUT)."""

_METHODS: Final[dict[Signal, str]] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
_PATHS: Final[dict[Signal, str]] = {"traces": "/v1/traces", "metrics": "/v1/metrics"}

_PASSING: Final = frozenset({429, 502, 503, 504})
"""HTTP status codes after which a message is sent again (OTLP, "Retryable Response Codes")."""

_PASSING_GRPC: Final = frozenset(
    {
        *("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE"),
        *("DATA_LOSS", "RESOURCE_EXHAUSTED"),
    }
)
"""gRPC status codes after which a message is sent again (OTLP, "Failures")."""


class CollectorUnavailable(Exception):
    """The delivery failed; the message may be sent again."""


class MessageRefused(Exception):
    """The collector refuses this message for good."""


@dataclass(frozen=True, slots=True)
class CollectorAddress:
    """The transport, host, port and path of a collector, and whether it uses TLS."""

    transport: Literal["grpc", "http"]
    tls: bool
    host: str
    port: int
    path: str = ""
    """The path prefix for HTTP, before ``/v1/traces``."""
    ca_file: str = ""
    """The file with the authorities of its certificate; empty for the system's."""


class Delivery(Protocol):
    """Delivers messages to one collector; for one thread."""

    def send(self, signal: Signal, message: bytes) -> None:
        """Delivers a message; raises :class:`CollectorUnavailable` or :class:`MessageRefused`."""

    def close(self) -> None:
        """Closes the connection, and aborts a delivery in progress; safe on any thread."""


def make_delivery(collector: CollectorAddress) -> Delivery:
    """Returns the delivery to a collector.

    Raises :class:`OSError` for an unreadable CA file and for an invalid proxy.
    """
    return GRPCDelivery(collector) if collector.transport == "grpc" else HTTPDelivery(collector)


class GRPCDelivery:
    """OTLP/gRPC."""

    def __init__(self, collector: CollectorAddress) -> None:
        import grpc  # noqa: PLC0415  # takes 10 MiB, so imported only if used

        self._grpc = grpc
        target = f"{collector.host}:{collector.port}"
        if ":" in collector.host:
            target = f"[{collector.host}]:{collector.port}"
        options = grpc_options(collector.host, collector.port)
        if not collector.tls:
            self._channel = grpc.insecure_channel(target, options=options)
        else:
            authorities = None
            if collector.ca_file:
                with open(collector.ca_file, "rb") as file:  # noqa: PTH123  # a path as given
                    authorities = file.read()
            self._channel = grpc.secure_channel(
                target, grpc.ssl_channel_credentials(authorities), options=options
            )
        self._calls: dict[Signal, Any] = {
            signal: self._channel.unary_unary(
                method, request_serializer=None, response_deserializer=bytes
            )
            for signal, method in _METHODS.items()
        }

    def send(self, signal: Signal, message: bytes) -> None:
        """Delivers a message; raises :class:`CollectorUnavailable` or :class:`MessageRefused`."""
        try:
            self._calls[signal](message, timeout=TIMEOUT_SECONDS)
        except self._grpc.RpcError as error:
            code = error.code().name
            error_text = f"{code}: {error.details()}"
            if code in _PASSING_GRPC:
                raise CollectorUnavailable(error_text) from None
            raise MessageRefused(error_text) from None
        except ValueError as error:  # gRPC raises it for a closed channel
            raise CollectorUnavailable(str(error)) from None

    def close(self) -> None:
        """Closes the connection, and aborts a delivery in progress; safe on any thread."""
        self._channel.close()


class HTTPDelivery:
    """OTLP/HTTP in protobuf."""

    def __init__(self, collector: CollectorAddress) -> None:
        self._path = collector.path.rstrip("/")
        context = None
        if collector.tls:
            context = ssl.create_default_context(cafile=collector.ca_file or None)
        by = route(
            "https" if collector.tls else "http",
            collector.host,
            collector.port,
            timeout=TIMEOUT_SECONDS,
            context=context,
        )
        self._connection = by.connection
        self._path = by.prefix + self._path
        self._headers = {"Content-Type": "application/x-protobuf", **by.headers}

    def send(self, signal: Signal, message: bytes) -> None:
        """Delivers a message; raises :class:`CollectorUnavailable` or :class:`MessageRefused`."""
        try:
            path = self._path + _PATHS[signal]
            self._connection.request("POST", path, message, self._headers)
            answer = self._connection.getresponse()
            answer.read(READ_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise CollectorUnavailable(f"{type(error).__name__}: {error}") from None
        if answer.will_close or not answer.isclosed():
            self._connection.close()
        if answer.status in _PASSING:
            raise CollectorUnavailable(f"{answer.status} {answer.reason}")
        if not 200 <= answer.status < 300:
            raise MessageRefused(f"{answer.status} {answer.reason}")

    def close(self) -> None:
        """Closes the connection, and aborts a delivery in progress; safe on any thread."""
        if (connected := self._connection.sock) is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        self._connection.close()


READ_BYTES_MAX: Final = 64 * 1024
"""The most bytes read of an answer, which contains at most the number of rejected items."""
