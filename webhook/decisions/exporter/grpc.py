"""The grpc:// transport: batches of records over one bidirectional stream.

Importing this costs 14 MiB and is done only for a ``grpc://`` address.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import grpc
import grpc.aio

from webhook.decisions.wire import decisions_pb2 as pb
from webhook.decisions.wire.framing import SUPPORTED, Ack, ProtocolError, Refusal, ServerHello
from webhook.proxies import grpc_options

if TYPE_CHECKING:
    from webhook.decisions.exporter.transport import Address, SidecarConnection, TLSFiles
    from webhook.decisions.wire.framing import Bye, ClientHello, ServerFrame

METHOD: Final = "/waddle.decisions.v1.DecisionLog/Stream"

_OPTIONS: Final = (
    # Replicas that reconnect at the same time must not wait for gRPC's own back-off as well.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class GRPCTransport:
    """Connects to a host and port, with TLS if a CA or a certificate is configured."""

    def __init__(self, address: Address) -> None:
        self._target = address.netloc
        self._tls = address.tls

    async def connect(self) -> SidecarConnection:
        """Connects; raises :class:`OSError`. Certificates are read again each time."""
        channel = self._channel()
        try:
            await channel.channel_ready()
        except BaseException:  # mostly a cancellation: an open channel would go on connecting
            await channel.close(None)
            raise
        method = channel.stream_stream(
            METHOD,
            request_serializer=pb.ClientFrame.SerializeToString,
            response_deserializer=pb.ServerFrame.FromString,
        )
        return _GRPCConnection(channel, method(None))

    def _channel(self) -> grpc.aio.Channel:
        tls = self._tls
        place = urlsplit(f"//{self._target}")
        by = grpc_options(place.hostname or "", place.port or 0)
        options: list[tuple[str, Any]] = [*_OPTIONS, *by]
        if not (tls.ca or tls.certificate):
            return grpc.aio.insecure_channel(self._target, options=options)
        if tls.server_name:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
        return grpc.aio.secure_channel(self._target, _credentials(tls), options=options)


def _credentials(tls: TLSFiles) -> grpc.ChannelCredentials:
    def read(path: str) -> bytes | None:
        return Path(path).read_bytes() if path else None

    return grpc.ssl_channel_credentials(read(tls.ca), read(tls.key), read(tls.certificate))


class _GRPCConnection:
    def __init__(self, channel: grpc.aio.Channel, call: Any) -> None:
        self._channel = channel
        self._call = call

    async def hello(self, hello: ClientHello) -> None:
        frame = pb.ClientHello(
            protocols=hello.protocols,
            pod_uid=hello.stream.pod_uid,
            process=hello.stream.process,
            pod=hello.pod,
            acknowledged=hello.acknowledged,
        )
        await self._write(pb.ClientFrame(hello=frame))

    async def send(self, lines: bytes | memoryview) -> None:
        await self._write(pb.ClientFrame(batch=pb.Batch(ndjson=bytes(lines))))

    async def bye(self, bye: Bye) -> None:
        await self._write(pb.ClientFrame(bye=pb.Bye(last_sequence=bye.last_sequence)))
        try:
            await self._call.done_writing()
        except _ENDED as error:
            raise ConnectionResetError(f"the stream has ended: {error}") from None

    async def receive(self) -> ServerFrame:
        try:
            frame = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise _lost(error) from None
        if frame is grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs have no EOF
            raise ConnectionResetError("the receiver ended the stream")
        match frame.WhichOneof("frame"):
            case "ack":
                return Ack(frame.ack.sequence)
            case "hello" if frame.hello.protocol in SUPPORTED:
                return ServerHello(frame.hello.acknowledged, frame.hello.protocol)
            case "error":
                return Refusal(frame.error.code, frame.error.message)
            case other:
                raise ProtocolError("bad_frame", f"not a frame of this version: {other}")

    async def close(self) -> None:
        self._call.cancel()
        await self._channel.close(None)

    async def _write(self, frame: pb.ClientFrame) -> None:
        try:
            await self._call.write(frame)
        except grpc.aio.AioRpcError as error:
            raise _lost(error) from None
        except _ENDED as error:
            raise ConnectionResetError(f"the stream has ended: {error}") from None


_ENDED: Final = (grpc.aio.UsageError, asyncio.InvalidStateError)
"""The exceptions that grpcio raises, besides its errors of calls, for a call that ended
meanwhile."""


def _lost(error: grpc.aio.AioRpcError) -> ConnectionError:
    """Returns the error of a stream that ended while a frame was written.

    grpcio then gives an INTERNAL error instead of the receiver's own status, also to the reader.
    """
    return ConnectionResetError(f"the stream has ended: {error.code().name}: {error.details()}")
