"""A template of values that double with every line costs its own verdict, and no time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

CPU_SECONDS_MAX = 5
"""With compiling, which is nearly all of it, and ten times what it takes."""


def test_values_that_double_are_an_overrun_wherever_they_are_written_or_compared():
    """In messages, details, keys, members, prints and comparisons of every form."""
    command = [sys.executable, "-m", "tests.webhook.constraint.doubling"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended in {lines[-1]}: {done.stderr[-500:]}"
    ended = [line for line in lines if len(line) == 3]
    assert [line for line in ended if line[1] != "overrun"] == []
    assert [line for line in ended if line[2] > CPU_SECONDS_MAX] == []
