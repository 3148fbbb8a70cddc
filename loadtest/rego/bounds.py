"""What the engine's bounds cost: each template with them and without, on one core in turn.

`python -m loadtest.rego.bounds LIBRARY` compiles each template as it is and once more
with every charge and every look at the clock taken out of the generated code, and prints
the ratio of processor time. Medians of alternated rounds, as `loadtest.rego.bench` has them.
What is outside of generated code (a built-in that charges for its work) stays in both.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from loadtest.rego.cases import Case, load_cases
from webhook.rego.engine import CompileOptions, Entrypoint, EvaluationContext, compile_modules
from webhook.rego.run.text import argument_text
from webhook.rego.syntax.parser import parse_module
from webhook.rego.write.generate import NAMESPACE, compile_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

ROUNDS = 9
ROUND_SECONDS = 0.03
RESULTS = Path(__file__).parent.parent / "results" / "rego-bounds.json"

_BOUNDS: Final = (
    re.compile(r"^ *(?:if P.*?: )?(?:P = S\[5\] = )?S\[2\]\.pay\(.*\)\n", re.MULTILINE),
    re.compile(r"^ *if (?:P or )?len\(\w+\) > \d+: (?:made|too_long)\(.*\)\n", re.MULTILINE),
    re.compile(r"^ *if P and .*: too_large\(\)\n", re.MULTILINE),
    re.compile(r"^ *(?:P = )?S\[5\](?: = True(?:; X = S\[2\])?)?\n", re.MULTILINE),
    re.compile(r"^ *X\.left -= .*\n *if X\.left < X\.next_check: X\.check\(\)\n", re.MULTILINE),
)
"""Matches the bounds in generated code."""

_FREE: Final = {
    "join1": lambda _, first, a, last: f"{first}{a if type(a) is str else argument_text(a)}{last}",
    "join2": lambda _, first, a, second, b, last: (
        f"{first}{a if type(a) is str else argument_text(a)}"
        f"{second}{b if type(b) is str else argument_text(b)}{last}"
    ),
    "join3": lambda _, first, a, second, b, third, c, last: (
        f"{first}{a if type(a) is str else argument_text(a)}"
        f"{second}{b if type(b) is str else argument_text(b)}"
        f"{third}{c if type(c) is str else argument_text(c)}{last}"
    ),
}
"""Functions that generated code calls, without their charges."""


class Unbounded:
    """Compiles generated code without its bounds, and counts what it took out."""

    def __init__(self) -> None:
        self.removed = 0

    def __call__(self, parts: Sequence[str]) -> tuple[CodeType, ...]:
        """The code of the parts."""
        return compile_parts([self._strip(part) for part in parts])

    def _strip(self, part: str) -> str:
        for pattern in _BOUNDS:
            part, count = pattern.subn("", part)
            self.removed += count
        return part


def entry(case: Case, options: CompileOptions) -> Entrypoint:
    """The case's rule."""
    modules = [
        parse_module(text, f"m{number}.rego", "v1" if case.version == "v1" else "v0")
        for number, text in enumerate(case.modules)
    ]
    return compile_modules(modules, options=options).rule(case.query)


def microseconds(rule: Entrypoint, case: Case, iterations: int) -> float:
    """Processor time of an evaluation."""
    data, value = {"inventory": case.inventory}, case.input
    began = time.process_time()
    for _ in range(iterations):
        rule(value, data, EvaluationContext(time.monotonic() + 10))
    return (time.process_time() - began) * 1e6 / iterations


def measure(case: Case) -> dict[str, Any]:
    """The medians with and without, and their ratio."""
    unbounded = Unbounded()
    bounded_rule = entry(case, CompileOptions(level="1.17.1"))
    with patch.dict(NAMESPACE, _FREE):
        free_rule = entry(case, CompileOptions(level="1.17.1", compile_parts=unbounded))
    once = microseconds(bounded_rule, case, 200)
    iterations = max(20, int(ROUND_SECONDS * 1e6 / once))
    microseconds(free_rule, case, 200)
    rounds = [
        (microseconds(bounded_rule, case, iterations), microseconds(free_rule, case, iterations))
        for _ in range(ROUNDS)
    ]
    bounded, free = (statistics.median(column) for column in zip(*rounds, strict=True))
    return {
        "case": case.name,
        "charges": unbounded.removed,
        "bounded_us": round(bounded, 3),
        "unbounded_us": round(free, 3),
        "ratio": round(statistics.median(one / other for one, other in rounds), 4),
    }


def main() -> None:
    """Measure, print, and save if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("library", type=Path)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    gc.disable()
    results = []
    for case in load_cases(arguments.library):
        found = measure(case)
        results.append(found)
        print(f"{found['case']:<60} {found['bounded_us']:>9.2f} µs  {found['ratio']:.3f}")
    mean = math.exp(statistics.fmean(math.log(item["ratio"]) for item in results))
    print(f"geometric mean of the ratios: {mean:.4f} (with bounds / without), {len(results)} cases")
    if arguments.save:
        command = "python -m loadtest.rego.bounds LIBRARY --save"
        document = {"command": command, "geometric_mean": round(mean, 4), "cases": results}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
