"""The grpc:// transport and receivers that misbehave: real streams on a port of the system's choice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import orjson
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.decisions.exporting import balanced, converse, make
from webhook import log
from webhook.decisions.exporter.grpc import METHOD
from webhook.decisions.wire import decisions_pb2 as pb

Script = Callable[[AsyncIterator[pb.ClientFrame], Any], Awaitable[None]]

HELLO = pb.ServerFrame(hello=pb.ServerHello(protocol=1, acknowledged=0))


async def obliging(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
    """Acknowledges each record."""
    async for frame in requests:
        if frame.WhichOneof("frame") == "hello":
            acknowledged = frame.hello.acknowledged
            hello = pb.ServerHello(protocol=1, acknowledged=acknowledged)
            await context.write(pb.ServerFrame(hello=hello))
        for line in frame.batch.ndjson.splitlines():
            ack = pb.Ack(sequence=orjson.loads(line)["sequence"])
            await context.write(pb.ServerFrame(ack=ack))


def saying(*frames: pb.ServerFrame) -> Script:
    """Says these to whoever says hello, and ends the stream."""

    async def script(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
        await anext(aiter(requests))
        for frame in frames:
            await context.write(frame)

    return script


async def aborting(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
    """Is not what is asked for."""
    await anext(aiter(requests))
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "another service")


async def aborting_at_once(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
    """Ends the stream while the hello is being written, or after it: its reason may not be heard."""
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "another service")


async def ending(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
    """Ends while records are sent."""
    await context.write(HELLO)
    async for frame in requests:
        if frame.WhichOneof("frame") == "batch":
            return


MISBEHAVIOURS: dict[str, tuple[Script, str]] = {
    "no answer": (saying(), "the receiver ended the stream"),
    "a frame of no kind": (saying(pb.ServerFrame()), "not a frame of this version: None"),
    "a version that is not spoken": (
        saying(pb.ServerFrame(hello=pb.ServerHello(protocol=99))),
        "not a frame of this version: hello",
    ),
    "a refusal": (saying(pb.ServerFrame(error=pb.Refusal(code="busy", message="later"))), "later"),
    "an end after the hello": (saying(HELLO), "stream"),
    "an end in the middle": (ending, "stream"),
    "another service": (aborting, "the stream has ended: UNIMPLEMENTED: another service"),
    "another service, at once": (aborting_at_once, "the stream has ended: "),
}


@pytest.mark.parametrize(("script", "message"), MISBEHAVIOURS.values(), ids=MISBEHAVIOURS.keys())
def test_a_receiver_that_misbehaves_is_reported_and_nothing_is_lost(
    tmp_path: Path, script: Script, message: str
) -> None:
    """Its stream is made anew, and all that it has not acknowledged sent again."""
    lines: list[bytes] = []

    async def run() -> None:
        scripts = [script]

        async def stream(requests: AsyncIterator[pb.ClientFrame], context: Any) -> None:
            await (scripts.pop() if scripts else obliging)(requests, context)

        server = grpc.aio.server()
        _, service, name = METHOD.split("/")
        handler = grpc.stream_stream_rpc_method_handler(
            stream,
            request_deserializer=pb.ClientFrame.FromString,
            response_serializer=pb.ServerFrame.SerializeToString,
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {name: handler}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        exporter = make(
            tmp_path,
            logger=log.Log(lines.append).logger("test"),
            sidecarURL=f"grpc://127.0.0.1:{port}",
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            await converse(exporter, {"id": "one"}, {"id": "two"})
        await server.stop(0)
        assert exporter.counters.acknowledged == 2
        assert balanced(exporter)

    asyncio.run(run())
    assert any(message.encode() in line for line in lines), lines
