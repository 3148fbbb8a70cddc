"""`waddle conftest test` beside conftest: ``python -m loadtest.configurations``.

1,000 manifests and 50 policies, once with a rule name for each policy and once with one for all,
and one file alone. The two take turns; the least of the rounds is quoted, of the whole process:
wall time, CPU (user and system) and memory, by the kernel's account. A process that checks one file
has written its first result before it ends. Writes ``results/configurations.md``; ends with 1 where
more is taken than is wanted.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.bytecode import compile_modules
from tests.programs import ROOT, build

RESULTS: Final = ROOT / "loadtest" / "results" / "configurations.md"
MANIFESTS: Final = 1000
POLICIES: Final = 50
ALL: Final = "manifests"
MISSED: Final = "DOES NOT HOLD"
FIRST_SECONDS_MAX: Final = 0.5
"""From the start of one file's process to its end."""
RATIO_MAX: Final = 1.0
"""Of conftest's wall time and of its memory, for all manifests."""

_MANIFEST: Final = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  namespace: ns-{number}
  labels:
    app: app-{number}
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app: app-{number}
  template:
    metadata:
      labels:
        app: app-{number}
    spec:
      containers:
      - name: main
        image: registry.example.com/app-{number}:{tag}
        ports:
        - containerPort: 8080
        resources:
          limits:
            cpu: 100m
            memory: 128Mi
        securityContext:
          runAsNonRoot: {non_root}
"""
_CONDITIONS: Final = (
    'endswith(c.image, ":latest")',
    "not c.securityContext.runAsNonRoot",
    "input.spec.replicas < 2",
)
_POLICY: Final = """package main

{rule} contains msg if {{
    input.kind == "Deployment"
    some c in input.spec.template.spec.containers
    {condition}
    msg := sprintf("{number}: %s in %s", [c.name, input.metadata.name])
}}
"""


@dataclass(slots=True)
class Cost:
    """The least of each that was seen, in seconds and bytes."""

    wall: float = float("inf")
    cpu: float = float("inf")
    memory: float = float("inf")
    answer: str = ""

    def measure(self, command: list[str], folder: Path) -> None:
        """Run once more."""
        output = folder / "output"
        with output.open("wb") as stream:
            begun = time.monotonic()
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0  # it was waited for
        self.wall = min(self.wall, time.monotonic() - begun)
        self.cpu = min(self.cpu, usage.ru_utime + usage.ru_stime)
        self.memory = min(self.memory, usage.ru_maxrss * 1024)
        self.answer = output.read_text(encoding="utf-8").splitlines()[-1]


def prepare(folder: Path) -> None:
    """Write the manifests and both kinds of policies."""
    for name in (ALL, "many", "one"):
        (folder / name).mkdir()
    for number in range(MANIFESTS):
        text = _MANIFEST.format(
            number=number,
            replicas=number % 5,
            tag="v1" if number % 10 else "latest",
            non_root="true" if number % 3 else "false",
        )
        (folder / ALL / f"{number}.yaml").write_text(text)
    for number in range(POLICIES):
        condition = _CONDITIONS[number % len(_CONDITIONS)]
        for kind, rule in (("many", f"deny_{number}"), ("one", "deny")):
            text = _POLICY.format(rule=rule, condition=condition, number=number)
            (folder / kind / f"{number}.rego").write_text(text)


def verdict(mine: Cost, other: Cost, files: str) -> str:
    """Whether what is wanted of this run holds."""
    if files == ALL:
        holds = max(mine.wall / other.wall, mine.memory / other.memory) <= RATIO_MAX
        goal = f"{RATIO_MAX} of its wall time and memory"
    else:
        holds = mine.wall <= FIRST_SECONDS_MAX
        goal = f"{FIRST_SECONDS_MAX} s"
    return f"at most {goal}: {'holds' if holds else MISSED}"


def main() -> int:
    """Measure and write the table; 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    compile_modules()
    ours = [str(Path(sys.executable).with_name("waddle")), "conftest"]
    theirs = [str(build("conftest"))]
    how = (
        f"Least of {runs} runs in turns, of the whole process, Python {platform.python_version()}. "
        "`make bench-configurations`"
    )
    lines = [
        "# Configuration files, beside conftest",
        "",
        how,
        "",
        "| what | waddle | conftest | wall | CPU | memory | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    measured = {
        f"{MANIFESTS:,} manifests, {POLICIES} policies of names of their own": (
            "many",
            ALL,
        ),
        f"{MANIFESTS:,} manifests, {POLICIES} policies of one name": ("one", ALL),
        f"one manifest, {POLICIES} policies": ("many", f"{ALL}/0.yaml"),
        "one manifest, one policy": ("many/0.rego", f"{ALL}/0.yaml"),
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder)
        for title, (policy, files) in measured.items():
            mine, other = Cost(), Cost()
            arguments = ["test", "--no-color", "-p", policy, files]
            for _ in range(runs):
                mine.measure([*ours, *arguments], folder)
                other.measure([*theirs, *arguments], folder)
            assert mine.answer == other.answer, (mine.answer, other.answer)
            lines.append(
                f"| {title} | {mine.wall:.2f} s, {mine.memory / 1e6:.0f} MB "
                f"| {other.wall:.2f} s, {other.memory / 1e6:.0f} MB | {mine.wall / other.wall:.2f} "
                f"| {mine.cpu / other.cpu:.2f} | {mine.memory / other.memory:.2f} "
                f"| {verdict(mine, other, files)} |"
            )
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if any(MISSED in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
