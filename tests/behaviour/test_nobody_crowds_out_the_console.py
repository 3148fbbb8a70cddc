"""Clients that send unfinished requests before any login do not keep others from the console."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.behaviour.serving import read_all
from tests.patience import PATIENCE_SECONDS
from tests.webhook.console.folder import console_over, write_folder
from tests.webhook.console.running import RunningConsole
from webhook.console.process import CONNECTIONS_MAX

HALF = b"GET /healthz HTTP/1.1\r\nHost: local"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    with console_over(write_folder(tmp_path_factory.mktemp("console"))) as running:
        yield running


def connect(console: RunningConsole) -> socket.socket:
    return socket.create_connection(("127.0.0.1", console.port), PATIENCE_SECONDS)


def test_half_sent_heads_are_closed_and_hold_up_nobody(console: RunningConsole) -> None:
    with ExitStack() as stack:
        for number in range(1_200):
            connection = stack.enter_context(connect(console))
            with contextlib.suppress(ConnectionError):
                connection.sendall(HALF)
            if number % 100 == 99:
                assert console.get("/healthz").status == 200
                assert console.get("/policies").status == 200
        held = Path(f"/proc/{console.process.pid}/fd")
        assert len(list(held.iterdir())) < CONNECTIONS_MAX + 100


def test_a_half_sent_head_is_answered_when_its_time_is_over(console: RunningConsole) -> None:
    with connect(console) as connection:
        connection.sendall(HALF)
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_an_endless_header_is_refused_before_it_takes_memory(console: RunningConsole) -> None:
    part = b"x" * 65536
    sent = 0
    with connect(console) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
        with contextlib.suppress(ConnectionError):
            while sent < 200 * 1024 * 1024:
                sent += connection.send(part)
        with contextlib.suppress(ConnectionError):
            assert read_all(connection).startswith(b"HTTP/1.1 431 ")
    for line in Path(f"/proc/{console.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            assert int(line.split()[1]) < 250 * 1024, line
    assert console.get("/healthz").status == 200
