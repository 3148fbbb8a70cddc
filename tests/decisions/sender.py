"""A sender that speaks the protocol by hand."""

import socket
import time
from pathlib import Path
from typing import Any

import orjson

from tests.patience import PATIENCE_SECONDS


def connected(path: Path) -> socket.socket:
    """A connection, once the sidecar has accepted enough of those before it."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE_SECONDS)
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            client.connect(str(path))
        except BlockingIOError:
            assert time.monotonic() < until
            time.sleep(0.01)
        else:
            return client


class Sender:
    """Speaks the protocol by hand."""

    def __init__(self, path: Path, *, process: str = "p", hello: bool = True) -> None:
        self._socket = connected(path)
        self._file = self._socket.makefile("rwb")
        self._process = process
        self.acknowledged = 0
        if hello:
            self.write({"type": "hello", "protocols": [1], "podUID": "u", "process": process})
            self.acknowledged = self.read()["acknowledged"]

    def write(self, *frames: dict[str, Any]) -> None:
        self._file.write(b"".join(orjson.dumps(frame) + b"\n" for frame in frames))
        self._file.flush()

    def records(self, numbers: range, **fields: Any) -> None:
        self.write(
            *(
                {"podUID": "u", "process": self._process, "sequence": number, **fields}
                for number in numbers
            )
        )

    def read(self) -> dict[str, Any]:
        line = self._file.readline()
        assert line, "the sidecar closed the connection"
        found: dict[str, Any] = orjson.loads(line)
        return found

    def await_ack(self, number: int) -> None:
        while self.acknowledged < number:
            frame = self.read()
            assert frame["type"] == "ack", frame
            self.acknowledged = frame["sequence"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()
