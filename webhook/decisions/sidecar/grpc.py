"""The grpc:// receiver: one exporter receives records of replicas elsewhere in the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from webhook.decisions.sidecar.session import Session
from webhook.decisions.wire import decisions_pb2 as pb
from webhook.decisions.wire.framing import (
    MAX_LINE_BYTES,
    ClientHello,
    ProtocolError,
    ServerHello,
    StreamID,
    check_protocols,
    check_stream,
)

if TYPE_CHECKING:
    from webhook.decisions.sidecar.intake import Intake
    from webhook.decisions.sidecar.settings import ListenerSettings
    from webhook.log import Logger

SERVICE: Final = "waddle.decisions.v1.DecisionLog"

STREAMS_MAX: Final = 256
"""The most streams: the replicas of a large cluster; a bound against faulty senders."""

STOP_SECONDS: Final = 1.0

OWNER_CHARACTERS_MAX: Final = 512
"""The most characters kept of a certificate's names; two certificates of one authority differ
before that."""

_INTEGERS: Final = frozenset(
    field.json_name
    for message in (pb.Record, pb.Result, pb.Constraint)
    for field in message.DESCRIPTOR.fields
    if field.cpp_type in {field.CPPTYPE_INT64, field.CPPTYPE_UINT64}
)


class GRPCReceiver:
    """Listens on a port; each stream is one :class:`Session`."""

    def __init__(self, listener: ListenerSettings, intake: Intake, logger: Logger) -> None:
        self._listener = listener
        self._logger = logger
        self._server: grpc.aio.Server | None = None
        self.intake = intake
        self.connections: set[object] = set()
        self.rejected = 0
        self.port = 0

    async def start(self) -> None:
        """Listen; raises :class:`OSError`."""
        server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", 4 * MAX_LINE_BYTES),
                ("grpc.so_reuseport", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ),
            maximum_concurrent_rpcs=STREAMS_MAX,
        )
        handler = grpc.stream_stream_rpc_method_handler(
            self._stream,
            response_serializer=pb.ServerFrame.SerializeToString,
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"Stream": handler}),)
        )
        address = self._listener.address
        try:
            credentials = self._credentials()
            if credentials is None:
                self.port = server.add_insecure_port(address)
            else:
                self.port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"grpc://{address}: {error}") from None
        await server.start()
        self._server = server

    def stop_listening(self) -> None:
        """Reads no more from any stream."""
        for conversation in self._open():
            conversation.stop_reading()

    async def close(self) -> None:
        """Sends the last acknowledgements and ends every stream."""
        for conversation in self._open():
            conversation.end()
        if self._server is not None:
            await self._server.stop(STOP_SECONDS)

    def _open(self) -> list[_Conversation]:
        return [item for item in self.connections if isinstance(item, _Conversation)]

    def _credentials(self) -> grpc.ServerCredentials | None:
        listener = self._listener
        certificate_file, key_file = listener.certificate_file, listener.key_file
        if certificate_file is None or key_file is None:
            return None

        def configuration() -> grpc.ServerCertificateConfiguration:
            ca = listener.client_ca_file
            return grpc.ssl_server_certificate_configuration(
                [(key_file.read_bytes(), certificate_file.read_bytes())],
                root_certificates=None if ca is None else ca.read_bytes(),
            )

        first = configuration()

        def fetch() -> grpc.ServerCertificateConfiguration:
            # Read at each handshake: a rotated Secret needs no restart.
            nonlocal first
            try:
                first = configuration()
            except OSError as error:
                self._logger.fault("the certificate cannot be read", error)
            return first

        return grpc.dynamic_ssl_server_credentials(
            configuration(),
            fetch,
            require_client_authentication=listener.client_ca_file is not None,
        )

    async def _stream(self, _requests: Any, context: Any) -> None:
        """Serves one sender's stream."""
        conversation = _Conversation(self, context)
        self.connections.add(conversation)
        self.intake.listen(conversation, conversation.wake.set)
        try:
            await conversation.run()
        except ProtocolError as error:
            self.rejected += 1
            self._logger.warning(
                "a sender was refused", transport="grpc", reason=f"{error.code}: {error}"
            )
            refusal = pb.Refusal(code=error.code, message=str(error))
            await context.write(pb.ServerFrame(error=refusal))
        finally:
            self.intake.unlisten(conversation)
            self.connections.discard(conversation)
            self.rejected += conversation.session.rejected


class _Conversation:
    """Reads in one task and answers in another: gRPC allows one of each."""

    def __init__(self, receiver: GRPCReceiver, context: Any) -> None:
        self._receiver = receiver
        self._context = context
        self._answer: ServerHello | None = None
        self._reader: asyncio.Task[None] | None = None
        self._fault: ProtocolError | None = None
        self._over = False
        self.session = Session(receiver.intake, _owner(context))
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Converse until the sender or the receiver ends it; raises :class:`ProtocolError`.

        A fault of the sender ends no task that may be writing: gRPC would lose the message, and
        with it the refusal and the end of the stream.
        """
        async with asyncio.TaskGroup() as tasks:
            self._reader = tasks.create_task(self._read_all())
            while not self._over:
                await self._write()
                await self.wake.wait()
            await self._write()
            self._reader.cancel()
        if self._fault is not None:
            raise self._fault

    def stop_reading(self) -> None:
        """Reads no more; received records are still acknowledged."""
        if self._reader is not None:
            self._reader.cancel()

    def end(self) -> None:
        """Acknowledges durable records, and ends the stream."""
        self._over = True
        self.wake.set()

    async def _read_all(self) -> None:
        try:
            await self._read()
        except ProtocolError as error:
            self._fault = error
        self.end()

    async def _read(self) -> None:
        context, session = self._context, self.session
        while (message := await context.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs have no EOF
            frame = _frame(message)
            match frame.WhichOneof("frame"):
                case "hello":
                    self._answer = session.hello(_client_hello(frame.hello))
                case "batch":
                    lines = [line for line in frame.batch.ndjson.split(b"\n") if line]
                    lines += [record_line(record) for record in frame.batch.records]
                    if any(len(line) > MAX_LINE_BYTES for line in lines):
                        raise ProtocolError(
                            "line_too_long", f"a record is longer than {MAX_LINE_BYTES} bytes"
                        )
                    session.lines(lines)
                case "bye":
                    session.bye(frame.bye.last_sequence)
                case other:
                    raise ProtocolError("bad_frame", f"not a frame of this version: {other}")
            self.wake.set()
            await self._receiver.intake.wait_for_room()

    async def _write(self) -> None:
        self.wake.clear()
        answer, self._answer = self._answer, None
        if answer is not None:
            hello = pb.ServerHello(protocol=answer.protocol, acknowledged=answer.acknowledged)
            await self._context.write(pb.ServerFrame(hello=hello))
        ack = self.session.acknowledgement()
        if ack is not None:
            await self._context.write(pb.ServerFrame(ack=pb.Ack(sequence=ack.sequence)))


def _frame(message: bytes) -> pb.ClientFrame:
    """Reads here and not by gRPC, which would take garbage for a bug of ours."""
    try:
        return pb.ClientFrame.FromString(message)
    except DecodeError as error:
        raise ProtocolError("bad_frame", f"not a message: {error}") from None


def _owner(context: Any) -> str:
    """Returns the names in the peer's certificate; without a certificate, its address."""
    identity = context.auth_context()
    names = [
        name.decode("utf-8", "replace")
        for key in ("x509_common_name", "x509_subject_alternative_name")
        for name in sorted(identity.get(key) or ())
    ]
    if names:
        return f"certificate {', '.join(names)}"[:OWNER_CHARACTERS_MAX]
    # ipv4:10.0.0.7:51234, ipv6:%5B::1%5D:51234: another connection has another port.
    return f"address {context.peer().rpartition(':')[0]}"


def _client_hello(frame: pb.ClientHello) -> ClientHello:
    protocols = tuple(frame.protocols)
    check_protocols(protocols)
    stream = StreamID(frame.pod_uid, frame.process)
    check_stream(stream)
    return ClientHello(stream, frame.pod, frame.acknowledged, protocols)


def record_line(record: pb.Record) -> bytes:
    """Converts a typed record to the line that a client of JSON would have sent.

    protobuf's own JSON writes 64-bit integers as strings; ours are numbers.
    """
    return orjson.dumps(_numbers(MessageToDict(record)))


def _numbers(value: dict[str, Any]) -> dict[str, Any]:
    for name, item in value.items():
        if name in _INTEGERS and type(item) is str:
            value[name] = int(item)
    for result in (*value.get("results", ()), *value.get("excused", ())):
        constraint = result.get("constraint", {})
        for holder in (result, constraint):
            for name in _INTEGERS & holder.keys():
                holder[name] = int(holder[name])
    return value
