"""Torn connections end by themselves, and processes end with the demonstration."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from tests.patience import turns_until, until
from webhook.cli.demo.balancer import carry

PARENT = """
import asyncio, sys
from pathlib import Path
from webhook.cli.demo.processes import Child

async def run():
    async with asyncio.TaskGroup() as tasks:
        arguments = ("serve", "--host=127.0.0.1", "--port=0", "--prometheus-port=0",
            "--health-addr=127.0.0.1:0", "--policies=" + sys.argv[1] + "/policies")
        child = await Child.start(tasks, "replica", Path(sys.argv[1]), *arguments)
        await child.ports()
        print(child.pid, flush=True)
        await child.ended()

asyncio.run(run())
"""

RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request):
    return request.param


@asynccontextmanager
async def reset_by_its_peer() -> AsyncIterator[asyncio.StreamWriter]:
    """A connection whose reset is there; the loop hears of it in its next turn."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, writer = await asyncio.open_connection(*server.getsockname())
        peer, _ = server.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        peer.close()
        yield writer
        writer.transport.abort()


def stream_of(data: bytes) -> asyncio.StreamReader:
    """Returns a stream with a replica's answer, up to the connection's end."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def test_an_end_is_carried_to_a_connection_that_has_just_been_reset(new_loop):
    async def run() -> None:
        async with reset_by_its_peer() as writer:
            await carry(stream_of(b""), writer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("answer", [b"", b"an answer"], ids=["its end", "an answer"])
def test_what_comes_late_is_carried_to_a_connection_that_is_closed(new_loop, answer):
    async def run() -> None:
        async with reset_by_its_peer() as writer:
            await turns_until(writer.transport.is_closing)
            for _ in range(10):
                await asyncio.sleep(0)  # and now its descriptor is closed, too
            await carry(stream_of(answer), writer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_a_replica_ends_with_a_demonstration_that_was_killed(tmp_path):
    (tmp_path / "policies").mkdir()
    command = (sys.executable, "-c", PARENT, str(tmp_path))
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    try:
        until(lambda: not is_running(child), "the replica's end")
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)


def is_running(process: int) -> bool:
    """Whether a process of this id runs; one without a parent to wait for it may stay as a zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
