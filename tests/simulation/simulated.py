"""Runs a coroutine in a simulated world."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def simulate(*arguments: str) -> tuple[int, str]:
    """The exit code and what was printed: a process of its own, as doors are put in at its start."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr
