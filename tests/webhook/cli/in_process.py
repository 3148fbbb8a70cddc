"""Runs the command line within the test's process: a start of its own costs half a second."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Run:
    """The result of a run, as subprocess.CompletedProcess has it."""

    returncode: int
    stdout: str
    stderr: str


def waddle(*arguments: str | Path, cwd: Path | None = None, stdin: Any = None) -> Run:
    """Run the program with these arguments; ``stdin`` is a text file that is open."""
    out, err = io.StringIO(), io.StringIO()
    before, folder = (sys.argv, sys.stdin), os.getcwd()  # noqa: PTH109  # what chdir takes back
    sys.argv = ["waddle", *map(str, arguments)]
    sys.stdin = stdin or io.TextIOWrapper(io.BytesIO())
    try:
        os.chdir(cwd or folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as exit_:
        return Run(int(exit_.code or 0), out.getvalue(), err.getvalue())
    finally:
        os.chdir(folder)
        sys.argv, sys.stdin = before
    raise AssertionError("main returned")
