"""Waddle's Rego engine beside OPA's and Gatekeeper's, template by template.

`python -m loadtest.rego.bench LIBRARY` evaluates each template of a library (in
gatekeeper-library's layout) on an object that it allows and on one that it
denies, by three engines on one core in turn: ours, OPA's prepared query over
parsed input, and Gatekeeper's Rego driver as it is called for each admission. A
case counts only when all three find the same number of violations. Medians of
alternated rounds; ratios below 1 mean that ours needs less time.

Ours is measured twice: by the template's code, which a constraint begins with (what its
parameters alone decide was computed when it was added), and by
code written for the constraint, which it has from its 5,000th evaluation on
(``--specialise-after``), as a constraint that is in force for a while has. There the
parameters are known, and nothing else is: the review is another one each time as far as
the code can tell. Both engines get the same input, decoded; each evaluation has a deadline
and a context of its own. OPA's partial evaluation (``PartialResult``, ``opa build -O``) is
not used: Gatekeeper does not use it, and its driver has constraints in data.
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
from webhook.rego.engine import (
    CompileOptions,
    Entrypoint,
    EvaluationContext,
    Program,
    compile_modules,
    specialise_modules,
)
from webhook.rego.syntax.parser import parse_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.syntax.ast import Module

ROUND_SECONDS = 0.02  # long enough that reading the clock and the pipe costs below 1 %
MAX_ITERATIONS = 20_000
RESULTS = Path(__file__).parent.parent / "results"
GENERAL, OWN = "waddle_general", "waddle"
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
    """A case's measurements, in microseconds for each evaluation."""

    name: str
    violations: int
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, engine: str) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds[engine])

    def ratio(self, peer: str, engine: str = OWN) -> float:
        """Our time divided by the peer's."""
        return self.median(engine) / self.median(peer)


def compile_case(case: Case) -> Program:
    """Parse and compile a case's modules."""
    return compile_modules(_modules(case), options=LEVEL)


def general_case(case: Case) -> Entrypoint:
    """The code that a case's constraint begins with."""
    return compile_case(case).document(case.query).for_parameters(case.input["parameters"])


def specialise_case(case: Case) -> Program:
    """Parse and compile a case's modules for its constraint's parameters."""
    program = specialise_modules(_modules(case), case.input["parameters"], options=LEVEL)
    assert program is not None, f"{case.name} replaces the input"
    return program


def _modules(case: Case) -> list[Module]:
    return [
        parse_module(text, f"module{index}.rego", "v1" if case.version == "v1" else "v0")
        for index, text in enumerate(case.modules)
    ]


def ours(case: Case, entrypoint: Entrypoint) -> Callable[[int], tuple[float, int]]:
    """Run our engine so many times: microseconds for each, and the violations found."""
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
        GENERAL: ours(case, general_case(case)),
        OWN: ours(case, specialise_case(case).rule(case.query)),
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
    timing = Timing(case.name, found[OWN], {name: [] for name in engines})
    for _ in range(rounds):
        for name, run in engines.items():
            timing.rounds[name].append(run(iterations[name])[0])
    return timing


def compile_times(
    cases: list[Case], compile_: Callable[[Case], Program], rounds: int = 5
) -> list[tuple[str, float]]:
    """Each template's time from source to functions, in milliseconds: the median of rounds.

    All of it: read, checked, written as Python, compiled by CPython.
    """
    result = []
    for case in cases:
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            compile_(case).rule(case.query)
            times.append((time.perf_counter() - started) * 1e3)
        result.append((case.name.split()[0], statistics.median(times)))
    return result


def memory(cases: list[Case], compile_: Callable[[Case], Program]) -> float:
    """KiB that what is compiled keeps, on average."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    programs = [compile_(case).rule(case.query) for case in cases]
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / len(programs) / 1024


def summary(timings: list[Timing], cases: list[Case]) -> dict[str, Any]:
    """The figures that the goals speak of."""
    figures: dict[str, Any] = {}
    for engine, compile_ in ((GENERAL, compile_case), (OWN, specialise_case)):
        times = [milliseconds for _, milliseconds in compile_times(cases, compile_)]
        figures[engine] = {
            "compile_ms": {"median": statistics.median(times), "max": max(times)},
            "memory_kib": memory(cases, compile_),
        }
        for peer in ("opa", "driver"):
            ratios = {timing.name: timing.ratio(peer, engine) for timing in timings}
            worst = max(ratios, key=ratios.__getitem__)
            figures[engine][peer] = {
                "geometric_mean": statistics.geometric_mean(ratios.values()),
                "worst": ratios[worst],
                "worst_case": worst,
            }
    return figures


def report(timings: list[Timing], figures: dict[str, Any]) -> None:
    """Print a line for each case, then the figures."""
    print(
        f"{'case':52} {'n':>3} {'general µs':>10} {'own µs':>8} {'OPA µs':>8} {'driver µs':>9} "
        f"{'gen/OPA':>8} {'own/OPA':>8} {'own/driver':>10}"
    )
    for timing in timings:
        print(
            f"{timing.name:52} {timing.violations:3} {timing.median(GENERAL):10.1f} "
            f"{timing.median(OWN):8.1f} {timing.median('opa'):8.1f} "
            f"{timing.median('driver'):9.1f} {timing.ratio('opa', GENERAL):8.3f} "
            f"{timing.ratio('opa'):8.3f} {timing.ratio('driver'):10.4f}"
        )
    for engine, label in ((GENERAL, "a template's code"), (OWN, "a constraint's own code")):
        found = figures[engine]
        for peer in ("opa", "driver"):
            print(
                f"{label} / {peer}: geometric mean {found[peer]['geometric_mean']:.4f}, "
                f"worst {found[peer]['worst']:.3f} ({found[peer]['worst_case']})"
            )
        compiled = found["compile_ms"]
        print(
            f"{label}: compiled in {compiled['median']:.2f} ms (median), "
            f"{compiled['max']:.2f} ms at most; {found['memory_kib']:.1f} KiB"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}/rego.json")
    arguments = parser.parse_args()
    gc.set_threshold(1_000, 5, 4_000)  # as `waddle serve` has it
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
    figures = summary(timings, once)
    report(timings, figures)
    if arguments.save:
        RESULTS.mkdir(exist_ok=True)
        document = {
            "command": "make bench-rego",
            "engines": {
                GENERAL: "a template's code, with which a constraint begins",
                OWN: "code written for the constraint after 5,000 evaluations: its parameters stand in it",
                "opa": "OPA, prepared query, parsed input",
                "driver": "Gatekeeper's Rego driver",
            },
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
