"""Senders that would keep others out of a sidecar, or end it."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.process import Sidecar
from tests.decisions.sender import Sender, connected
from webhook.decisions.sidecar.unix import CONNECTIONS_MAX
from webhook.decisions.wire.framing import MAX_LINE_BYTES


def file_sink(path: Path) -> dict[str, Any]:
    return {"name": "file", "type": "file", "settings": {"path": str(path)}}


@pytest.mark.usefixtures("unmeasured")
def test_lines_that_never_end_take_little_memory_and_stop_nobody(
    tmp_path: Path,
) -> None:
    """A MiB on each of all connections there may be: more than the container has."""
    with (
        Sidecar(tmp_path, [file_sink(tmp_path / "out")]) as sidecar,
        contextlib.ExitStack() as open_,
    ):
        for _ in range(CONNECTIONS_MAX):
            endless = open_.enter_context(connected(sidecar.socket))
            with contextlib.suppress(OSError):  # it may be ended meanwhile
                endless.sendall(b"x" * (MAX_LINE_BYTES - 16))
        sender = Sender(sidecar.socket)
        sender.records(range(1, 11))
        sender.await_ack(10)
        sender.close()
        assert sidecar.memory_kib("VmHWM") < 80 * 1024


def test_connections_that_say_nothing_make_room_for_one_that_does(
    tmp_path: Path,
) -> None:
    """A client with all connections would keep out the server's own; the last speaker stays."""
    with (
        Sidecar(tmp_path, [file_sink(tmp_path / "out")]) as sidecar,
        contextlib.ExitStack() as open_,
    ):
        first = open_.enter_context(connected(sidecar.socket))
        speaks = Sender(sidecar.socket, process="q")
        for _ in range(CONNECTIONS_MAX - 2):
            open_.enter_context(connected(sidecar.socket))
        speaks.records(range(1, 2))
        speaks.await_ack(1)
        sender = Sender(sidecar.socket)
        sender.records(range(1, 11))
        sender.await_ack(10)
        assert b'"code":"busy"' in first.recv(4096)
        speaks.records(range(2, 3))
        speaks.await_ack(2)
        sender.close()
        speaks.close()
