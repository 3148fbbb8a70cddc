"""Waddle's Rego engine beside OPA's and Gatekeeper's, template by template.

`python -m loadtest.rego.bench LIBRARY` evaluates each template of a library (in
gatekeeper-library's layout) on an object that it allows and on one that it
denies, by three engines on one core in turn: ours, OPA's prepared query over
parsed input, and Gatekeeper's Rego driver as it is called for each admission. A
case counts only when all three find the same number of violations. Medians of
alternated rounds; ratios below 1 mean that ours needs less time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from loadtest.rego.cases import Case, load_cases
from tests.programs import build
from webhook.rego.builtins import families
from webhook.rego.engine import CompileOptions, EvaluationContext, Program, compile_modules
from webhook.rego.parser import parse_module

if TYPE_CHECKING:
    from collections.abc import Callable

ROUND_SECONDS = 0.02  # long enough that reading the clock and the pipe costs below 1 %
MAX_ITERATIONS = 20_000
RESULTS = Path(__file__).parent.parent / "results"
LEVEL = CompileOptions(level="1.17.1")  # Gatekeeper's OPA, as templates are compiled


class Peer:
    """The Go program that times OPA and Gatekeeper's driver."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [build("loadtest/rego/peer")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"GOMAXPROCS": "1"},
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer; raises RuntimeError for the peer's errors."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        return _exchange(stdin, stdout, request)

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=10)


def _exchange(stdin: IO[bytes], stdout: IO[bytes], request: dict[str, Any]) -> dict[str, Any]:
    stdin.write(json.dumps(request).encode() + b"\n")
    stdin.flush()
    answer: dict[str, Any] = json.loads(stdout.readline())
    if error := answer.get("error"):
        raise RuntimeError(f"{request['name']}: {error}")
    return answer


@dataclass(slots=True)
class Timing:
    """One case's measurements, in microseconds for each evaluation."""

    name: str
    violations: int
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, engine: str) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds[engine])

    def ratio(self, peer: str) -> float:
        """Our time divided by the peer's."""
        return self.median("waddle") / self.median(peer)


def compile_case(case: Case) -> Program:
    """Parse and compile a case's modules."""
    modules = [
        parse_module(text, f"module{index}.rego", "v1" if case.version == "v1" else "v0")
        for index, text in enumerate(case.modules)
    ]
    return compile_modules(modules, options=LEVEL)


def ours(case: Case) -> Callable[[int], tuple[float, int]]:
    """Run our engine so many times: microseconds for each, and the violations found."""
    entrypoint = compile_case(case).rule(case.query)
    document, data = case.input, {"inventory": case.inventory}

    def run(iterations: int) -> tuple[float, int]:
        started = time.perf_counter()
        for _ in range(iterations):
            result = entrypoint(document, data, EvaluationContext(time.monotonic() + 60))
        elapsed = time.perf_counter() - started
        return elapsed / iterations * 1e6, len(result)

    return run


def peers(peer: Peer, case: Case, engine: str) -> Callable[[int], tuple[float, int]]:
    """Run a peer's engine so many times, likewise."""

    def run(iterations: int) -> tuple[float, int]:
        answer = peer.ask(op=engine, name=case.name, iterations=iterations)
        return answer["nanoseconds"] / 1e3, answer["results"]

    return run


def time_case(peer: Peer, case: Case, rounds: int) -> Timing:
    """Alternate the three engines over one case; raises ValueError where they disagree."""
    peer.ask(
        op="load",
        name=case.name,
        template=case.template,
        constraint=case.constraint,
        review=case.review,
        inventory=case.inventory,
        modules=case.modules,
        query=case.query,
        version=case.version,
    )
    engines = {
        "waddle": ours(case),
        "opa": peers(peer, case, "opa"),
        "driver": peers(peer, case, "driver"),
    }
    found = {name: run(50)[1] for name, run in engines.items()}  # and warm
    if len(set(found.values())) != 1:
        raise ValueError(f"{case.name}: violations differ: {found}")
    iterations = {
        name: max(5, min(MAX_ITERATIONS, int(ROUND_SECONDS * 1e6 / run(20)[0])))
        for name, run in engines.items()
    }
    timing = Timing(case.name, found["waddle"], {name: [] for name in engines})
    for _ in range(rounds):
        for name, run in engines.items():
            timing.rounds[name].append(run(iterations[name])[0])
    return timing


def compile_times(cases: list[Case], rounds: int = 5) -> list[tuple[str, float]]:
    """Each template's time from source to functions, in milliseconds: the median of rounds."""
    result = []
    for case in cases:
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            compile_case(case)
            times.append((time.perf_counter() - started) * 1e3)
        result.append((case.name.split()[0], statistics.median(times)))
    return result


def memory_per_template(cases: list[Case]) -> float:
    """KiB that a loaded template keeps, on average."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    programs = [compile_case(case).rule(case.query) for case in cases]
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(programs) / 1024


def summary(timings: list[Timing], compiles: list[tuple[str, float]], kib: float) -> dict[str, Any]:
    """The figures that the goals speak of."""
    times = [milliseconds for _, milliseconds in compiles]
    figures: dict[str, Any] = {
        "compile_ms": {"median": statistics.median(times), "max": max(times)},
        "memory_kib_per_template": kib,
    }
    for peer in ("opa", "driver"):
        ratios = [timing.ratio(peer) for timing in timings]
        worst = max(timings, key=lambda timing: timing.ratio(peer))
        figures[peer] = {
            "geometric_mean": statistics.geometric_mean(ratios),
            "worst": worst.ratio(peer),
            "worst_case": worst.name,
        }
    return figures


def report(timings: list[Timing], figures: dict[str, Any]) -> None:
    """Print a line for each case, then the figures."""
    print(
        f"{'case':58} {'n':>3} {'waddle µs':>10} {'OPA µs':>9} {'driver µs':>10} {'/OPA':>6} {'/driver':>8}"
    )
    for timing in timings:
        print(
            f"{timing.name:58} {timing.violations:3} {timing.median('waddle'):10.1f} "
            f"{timing.median('opa'):9.1f} {timing.median('driver'):10.1f} "
            f"{timing.ratio('opa'):6.3f} {timing.ratio('driver'):8.4f}"
        )
    for peer in ("opa", "driver"):
        print(
            f"{peer}: geometric mean {figures[peer]['geometric_mean']:.4f}, "
            f"worst {figures[peer]['worst']:.3f} ({figures[peer]['worst_case']})"
        )
    compiled = figures["compile_ms"]
    print(f"compile: median {compiled['median']:.2f} ms, max {compiled['max']:.2f} ms")
    print(f"memory: {figures['memory_kib_per_template']:.1f} KiB a template")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}/rego.json")
    arguments = parser.parse_args()
    assert families
    os.sched_setaffinity(
        0, {max(os.sched_getaffinity(0))}
    )  # the peer inherits it: one core for all
    cases = [case for case in load_cases(arguments.library) if arguments.filter in case.name]
    if not cases:
        sys.exit(f"no cases in {arguments.library}")
    peer = Peer()
    try:
        timings = [time_case(peer, case, arguments.rounds) for case in cases]
    finally:
        peer.close()
    once = list({case.name.split()[0]: case for case in cases}.values())
    figures = summary(timings, compile_times(once), memory_per_template(once))
    report(timings, figures)
    if arguments.save:
        RESULTS.mkdir(exist_ok=True)
        document = {
            "command": "make bench-rego",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "figures": figures,
            "cases": [
                {"name": timing.name, "violations": timing.violations}
                | {f"{name}_us": round(timing.median(name), 2) for name in timing.rounds}
                for timing in timings
            ],
        }
        (RESULTS / "rego.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
