"""`waddle conftest test` beside conftest: ``python -m loadtest.configurations``.

1,000 manifests and 50 policies, once with a rule name for each policy and once with one for all,
and one file alone. The two take turns; the least of the rounds is quoted, of the whole process:
wall time, CPU (user and system) and memory, by the kernel's account. Writes
``results/configurations.md``.
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

from tests.programs import ROOT, build

RESULTS: Final = ROOT / "loadtest" / "results" / "configurations.md"
MANIFESTS: Final = 1000
POLICIES: Final = 50
FIRST_SECONDS_MAX: Final = 0.5

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
    for name in ("manifests", "many", "one"):
        (folder / name).mkdir()
    for number in range(MANIFESTS):
        text = _MANIFEST.format(
            number=number,
            replicas=number % 5,
            tag="v1" if number % 10 else "latest",
            non_root="true" if number % 3 else "false",
        )
        (folder / "manifests" / f"{number}.yaml").write_text(text)
    for number in range(POLICIES):
        condition = _CONDITIONS[number % len(_CONDITIONS)]
        for kind, rule in (("many", f"deny_{number}"), ("one", "deny")):
            text = _POLICY.format(rule=rule, condition=condition, number=number)
            (folder / kind / f"{number}.rego").write_text(text)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
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
        "| what | waddle | conftest | wall | CPU | memory |",
        "|---|---|---|---|---|---|",
    ]
    asked = {
        f"{MANIFESTS:,} manifests, {POLICIES} policies of names of their own": (
            "many",
            "manifests",
        ),
        f"{MANIFESTS:,} manifests, {POLICIES} policies of one name": ("one", "manifests"),
        f"one manifest, {POLICIES} policies": ("many", "manifests/0.yaml"),
        "one manifest, one policy": ("many/0.rego", "manifests/0.yaml"),
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder)
        for title, (policy, files) in asked.items():
            mine, other = Cost(), Cost()
            arguments = ["test", "--no-color", "-p", policy, files]
            for _ in range(runs):
                mine.measure([*ours, *arguments], folder)
                other.measure([*theirs, *arguments], folder)
            assert mine.answer == other.answer, (mine.answer, other.answer)
            lines.append(
                f"| {title} | {mine.wall:.2f} s, {mine.memory / 1e6:.0f} MB "
                f"| {other.wall:.2f} s, {other.memory / 1e6:.0f} MB | {mine.wall / other.wall:.2f} "
                f"| {mine.cpu / other.cpu:.2f} | {mine.memory / other.memory:.2f} |"
            )
            print(lines[-1], flush=True)
    first = f"The first result of one file is wanted within {FIRST_SECONDS_MAX} s."
    RESULTS.write_text("\n".join([*lines, "", first]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
