"""A hostile file ends in a value or an error, within bounds that the system itself enforces."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tests.webhook.parsers.bombs import BOMBS
from webhook import parsers

MEMORY_MAX = 1 << 30
"""Address space above what the interpreter has: the worst file takes a tenth of it."""
PROCESSOR_MAX = 20
"""Seconds: the worst file takes some two, and others share the machine's cores."""

_READ = f"""
import resource, sys
from webhook import parsers
from webhook.parsers.errors import ParseError
name = sys.argv[1]
parse = parsers.parser(name)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY_MAX},) * 2)
resource.setrlimit(resource.RLIMIT_CPU, ({PROCESSOR_MAX},) * 2)
for text in sys.stdin.buffer.read().split(b"\\0\\0"):
    try:
        parse(text, "file")
    except ParseError as error:
        assert len(str(error)) < 100_000
print("ended")
"""


def ends(name: str, text: bytes) -> None:
    """Have a process with bounds read a text; fails where it does not end well."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, name], input=text, capture_output=True, check=False
    )
    assert done.stdout == b"ended\n", (done.returncode, done.stderr[-2000:])


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_in_bounds(bomb):
    name, text = BOMBS[bomb]
    ends(name, text.encode())


@pytest.mark.parametrize("name", parsers.names())
def test_pieces_of_files_in_any_order_end_in_a_value_or_an_error(name):
    chance = random.Random(name)  # the same files each time
    pieces = sorted({text[at : at + 12] for of, text in BOMBS.values() for at in (0, 9) if of})
    pieces += [
        *"\n\"'{}[]()<>&*$%#\\=: ,-",
        "/*",
        "${",
        "<<",
        "9" * 5000,
        "é",
        "\t",
        "a",
        "<a>",
    ]
    texts = ["".join(chance.choices(pieces, k=chance.randint(1, 60))) for _ in range(150)]
    ends(name, b"\0\0".join(text.encode() for text in texts))
