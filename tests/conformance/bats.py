"""Runs the tests of a bats file without bats: each is a body for bash, with bats' `run`.

`python -m tests.conformance.bats FILE COMMAND...` runs a file's tests in its folder's copy, where
`./conftest` is the command, and says which fail.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

_TEST = re.compile(r'^@test "(?P<title>[^\n]*)" \{\n(?P<body>.*?)^\}', re.MULTILINE | re.DOTALL)

# Bats merges what a command writes to both streams, and `lines` has none that is empty.
_PRELUDE = """
run() {
  set +e
  output="$(trap - ERR; "$@" 2>&1)"
  status=$?
  mapfile -t lines < <(printf '%s' "$output" | grep -v '^$')
  set -e
}
set -eET
trap 'echo "line: $BASH_COMMAND"; echo "status: ${status:-}"; echo "${output:-}"' ERR
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A test: its title and its lines."""

    title: str
    body: str


def cases(file: Path) -> Iterator[Case]:
    """The tests of a bats file."""
    for match in _TEST.finditer(file.read_text()):
        yield Case(match["title"], match["body"])


def prepare(folder: Path, source: Path, command: Sequence[str]) -> None:
    """Make a folder that holds the examples and `./conftest`, which is the command."""
    shutil.copytree(source / "examples", folder / "examples")
    script = folder / "conftest"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o755)


def run(case: Case, folder: Path) -> str:
    """Returns the failure of a case; empty if there is none."""
    finished = subprocess.run(
        ["bash", "-c", _PRELUDE + case.body],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return "" if finished.returncode == 0 else f"{finished.stdout}{finished.stderr}" or "failed"


def main(arguments: list[str]) -> int:
    file, *command = arguments
    source = Path(file).resolve()
    failures = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder, source.parent, command)
        for case in cases(source):
            if found := run(case, folder):
                failures += 1
                print(f"FAIL {case.title}\n{found}")
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
