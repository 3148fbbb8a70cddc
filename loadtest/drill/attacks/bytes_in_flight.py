"""Much memory for few bytes: 64 connections, each with the same body."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator

from loadtest.drill.drill import Bystander, Row, elsewhere, server
from tests.behaviour.serving import pod, read_all, review, unverified
from tests.patience import PATIENCE_SECONDS

CONNECTIONS = 64
MEMORY_MIB_MAX = 256
ANSWER_MS_MAX = 250
HEAD = b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
MIB = 1024 * 1024


def body(text: bytes) -> bytes:
    """A review of a Pod in which this stands."""
    subject = pod()
    subject["metadata"]["managedFields"] = "@here@"
    found = review(subject)
    ordered = {
        "kind": found["kind"],
        "apiVersion": found["apiVersion"],
        "request": found["request"],
    }
    return json.dumps(ordered, separators=(",", ":")).encode().replace(b'"@here@"', text)


def without_kind() -> bytes:
    """A review of 2 MB without a kind."""
    document = review(pod())
    document["request"]["object"] = {"data": "x" * 2 * MIB}
    return json.dumps(document).encode()


def whole(raw: bytes) -> bytes:
    """The request with a body."""
    return HEAD + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(raw) + raw


BODIES = {
    "14 MB in chunks of 2 bytes": lambda: (
        HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + b"2\r\n[]\r\n" * 2 * MIB
    ),
    "2 MB without a kind": lambda: whole(without_kind()),
    "7 MiB with a long number": lambda: whole(
        body(b"[" + b"0," * (7 * MIB // 2) + b"12345678901234567890]")
    ),
    "6 MiB of empty arrays": lambda: whole(body(b"[" + b"[]," * 2 * MIB + b"[]]")),
    "36 MiB of what Go escapes": lambda: whole(body(b'"' + b"\\u003c" * 6 * MIB + b'"')),
    "9,900 levels": lambda: whole(body(b'{"f:a":' * 9_900 + b"{}" + b"}" * 9_900)),
}


def send(port: int, raw: bytes) -> None:
    """Send it, and read whatever comes back."""
    with contextlib.suppress(OSError):
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        with unverified().wrap_socket(plain) as connection:
            connection.sendall(raw)
            read_all(connection)


def flood(port: int, name: str) -> None:
    """The same from all connections at once."""
    raw = BODIES[name]()
    threads = [threading.Thread(target=send, args=(port, raw)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run() -> Iterator[Row]:
    """Each body in turn."""
    for name in BODIES:
        with (
            server() as running,
            Bystander(running=running) as others,
            elsewhere(flood, running.ports["admission"], name),
        ):
            pass  # Until the flood is over.
        yield Row(name, "memory above rest", others.more_mib, MEMORY_MIB_MAX, "MiB")
        yield Row(name, "p99 of the others", others.milliseconds(0.99), ANSWER_MS_MAX, "ms")
        yield Row(name, "others answered wrongly", others.wrong, 0)
