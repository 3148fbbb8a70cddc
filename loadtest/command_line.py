"""CPU of the command line from start to end: ``python -m loadtest.command_line``.

Each command runs in a process of its own, several times; the least CPU (user and system, by
the kernel's account) is quoted, for whatever else the machine does only adds to it. gator's
beside it where it has the command. Writes ``results/command_line.md``.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.bytecode import compile_modules
from tests.programs import ROOT, program

RESULTS: Final = ROOT / "loadtest" / "results" / "command_line.md"
FOR_CLUSTERS: Final = (
    "general",
    "pod-security-baseline",
    "pod-security-restricted",
    "constraints.yaml",
)

POD: Final = """apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: web, image: web:1}]}
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, the CPU it may take, and gator's arguments where gator has it."""

    title: str
    arguments: tuple[str, ...]
    seconds_max: float
    gator: tuple[str, ...] = ()
    complete: bool = False
    cache: bool = True
    """Whether what an earlier run compiled may be used."""


def commands(pod: Path, library: Path) -> list[Command]:
    """Returns the measured commands."""
    # Gator knows no policies for files.
    folders = [str(ROOT / "policies" / name) for name in FOR_CLUSTERS]
    ours = ("test", *(part for folder in folders for part in ("-f", folder)), "-f", str(pod))
    theirs = ("test", "-f", str(library), "-f", str(pod))
    return [
        Command("help", ("--help",), 0.25, ("--help",)),
        Command("help of a command", ("test", "--help"), 0.25, ("test", "--help")),
        Command("completion", ("waddle te",), 0.25, complete=True),
        Command("an error of usage", ("test", "--zork"), 0.25, ("test", "--zork")),
        Command("a missing file", ("test", "-f", "/none"), 0.25, ("test", "-f", "/none")),
        Command("one pod and policies/ for clusters, compiled before", ours, 0.6, ours),
        Command("one pod and gatekeeper-library, compiled before", theirs, 0.6),
        Command("one pod and policies/ for clusters, without a cache", ours, 0.6, cache=False),
        Command("one pod and gatekeeper-library, without a cache", theirs, 0.6, cache=False),
    ]


def cpu_seconds(command: list[str], environment: dict[str, str], runs: int) -> float:
    """The least CPU of some runs, in seconds."""
    least = float("inf")
    for _ in range(runs):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for
        least = min(least, usage.ru_utime + usage.ru_stime)
    return least


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="gatekeeper-library's folder")
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    compile_modules()
    waddle = str(Path(sys.executable).with_name("waddle"))
    gator = str(program("gator"))
    how = f"Least of {arguments.runs} runs, user and system time of the whole process"
    lines = [
        "# CPU of the command line",
        "",
        f"{how}, Python {platform.python_version()}. `make bench-command-line`",
        "",
        "| command | CPU | at most | | gator |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        pod = Path(folder, "pod.yaml")
        pod.write_text(POD)
        for item in commands(pod, arguments.library):
            words = {"_WADDLE_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
            environment = {**words, "COMP_WORDS": item.arguments[0]} if item.complete else {}
            environment["WADDLE_CACHE"] = str(Path(folder, "cache")) if item.cache else ""
            command = [waddle] if item.complete else [waddle, *item.arguments]
            seconds = cpu_seconds(command, environment, arguments.runs)
            theirs = ""
            if item.gator:
                theirs = f"{cpu_seconds([gator, *item.gator], {}, arguments.runs):.2f} s"
            verdict = "holds" if seconds <= item.seconds_max else "**does not hold**"
            lines.append(
                f"| {item.title} | {seconds:.2f} s | {item.seconds_max} s | {verdict} | {theirs} |"
            )
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
