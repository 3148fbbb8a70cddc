"""Pipes as a shell makes them."""

import contextlib
import os
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def substituted(text: str) -> Iterator[str]:
    """Yields the path that a shell substitutes for `<(command)`."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "w") as stream:
            stream.write(text)

    threading.Thread(target=write, daemon=True).start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@contextlib.contextmanager
def standard_input(text: str) -> Iterator[None]:
    """The process' own standard input, of which /dev/stdin is the name."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    os.close(reading)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
