"""Values that are small in memory, and just below or far above what may be written of one at once."""

import json
import subprocess
import sys
from collections.abc import Iterator

from loadtest.drill.drill import Row

CPU_MS = 250
MEMORY_MIB = 64


def run() -> Iterator[Row]:
    """In each operand's place of each built-in, and in each form that writes or compares."""
    command = [sys.executable, "-m", "tests.webhook.rego.builtins.nearly_too_large"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for depth in sorted({row[0] for row in rows}):
        ended = [row for row in rows if row[0] == depth and len(row) == 5]
        attack = f"{len(ended)} values doubled {depth} times"
        yield Row(attack, "processor time of one", max(row[3] for row in ended) * 1e3, CPU_MS, "ms")
        yield Row(attack, "memory of one", max(row[4] for row in ended), MEMORY_MIB, "MiB")
