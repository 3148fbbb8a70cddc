"""Violations that are made deep, large or odd, so that the call fails and Ignore lets them in."""

from collections.abc import Iterator

from loadtest.drill.attacks.bytes_in_flight import MIB, body
from loadtest.drill.drill import Row, server

TEXTS = {
    "1,100 levels": lambda: b'{"f:a":' * 1_100 + b"{}" + b"}" * 1_100,
    "9,900 levels": lambda: b'{"f:a":' * 9_900 + b"{}" + b"}" * 9_900,
    "11,000 levels": lambda: b'{"f:a":' * 11_000 + b"{}" + b"}" * 11_000,
    "1.3 MB of <": lambda: b'"' + b"\\u003c" * 1_300_000 + b'"',
    "6 MiB of <": lambda: b'"' + b"\\u003c" * 6 * MIB + b'"',
    "41 MiB": lambda: b'"' + b"a" * 41 * MIB + b'"',
    "5,000 digits": lambda: b"1" * 5_000,
}


def run() -> Iterator[Row]:
    """Each must be denied."""
    with server() as running:
        for name, make in TEXTS.items():
            answer = running.post(body(make()))
            denied = answer.status == 200 and not answer.verdict["allowed"]
            yield Row(name, "violations let through", 0 if denied else 1, 0)
