"""Six connections without credentials, with the largest bodies that are taken, beside usual Pods."""

from collections.abc import Iterator

from loadtest.drill.attacks.bytes_in_flight import MIB, body
from loadtest.drill.drill import Row, library, limited, server
from loadtest.drill.floods import Flood, beside

SECONDS = 10
CONNECTIONS = 6
NOTES = 95_000
"""Of the others' Pods, which are 100 KB so."""


def text() -> bytes:
    """Returns a text of 38 MiB."""
    return body(b'"' + b"x" * (38 * MIB) + b'"')


def keys() -> bytes:
    """450,000 keys in 5 MB."""
    return body(b"{" + b",".join(b'"k%06d":1' % number for number in range(450_000)) + b"}")


BODIES = {
    "6 bodies of 38 MiB at a time": text,
    "6 bodies of 450,000 keys at a time": keys,
}


def run() -> Iterator[Row]:
    """Each body in turn; then one alone."""
    for name, make in BODIES.items():
        flood = Flood(make, CONNECTIONS, seconds=SECONDS, path="/v1/admit")
        with server(documents=library()) as running, limited(running):
            yield from beside(name, running, flood, notes=NOTES)
            unanswered = running.post(keys(), "/v1/admit?timeout=10s").status != 200
        yield Row(name, "450,000 keys alone that are not decided", unanswered, 0)
