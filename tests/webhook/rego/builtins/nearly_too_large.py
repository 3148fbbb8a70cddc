"""Every built-in, and what else writes values, with values just below what may be written at once.

``python -m tests.webhook.rego.builtins.nearly_too_large [--few] [DEPTH]...`` evaluates templates
that call each built-in with such values in each operand's place, as a replica does, with its budget,
and prints a line of JSON before and after each: its outcome, the processor time that it took and how
much memory at most. With ``--few`` each value is tried beside one choice of the other operands.
"""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from tests.webhook.rego.builtins import small_in_memory
from tests.webhook.rego.builtins.small_in_memory import cases
from webhook.app.process import GC_THRESHOLDS
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate, PolicyError
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.template import Code
from webhook.garbage import running
from webhook.rego.builtins.registry import BUILTINS

BUDGET_SECONDS = 0.1
"""The default budget of a replica, in seconds."""

DEPTHS = (12, 13, 14, 15, 16)
"""From a thousandth of a second's work to twice what may be written at once."""

LITERALS = [
    ('x := sprintf("%v", [a])', "array"),
    ("x := {a}", "array"),
    ("x := {a: 1}", "object"),
    ("x := {a, b}", "set"),
    ("a == b", "array"),
    ("a == b", "object"),
    ("a == b", "set"),
    ("a < b", "object"),
    ("a in {b}", "array"),
    ("a in [b]", "object"),
    ("print(a)", "array"),
    ('x := $"{a}"', "object"),
    ("x := {y | some y in [a, b]}", "object"),
    ("x := {y: 1 | some y in [a, b]}", "array"),
    ("x := [y | some y in [a, b]; y == a]", "array"),
]

HEADS = [
    ('violation contains {"msg": "x", "details": input.review.a} if true', "array"),
    ('violation contains {"msg": "x", "details": input.review.a} if true', "set"),
    ('violation contains {"msg": input.review.a} if true', "object"),
    ("violation contains input.review.a if true", "object"),
    (
        'q contains x if some x in input.review\nviolation contains {"msg": "x"} if count(q) == 1',
        "array",
    ),
]


def equal_pair(kind):
    """Two values of a kind that are equal, and no parts of each other."""
    make = small_in_memory.MADE[kind][0]
    return make(), make()


def is_large(operands):
    """Whether one of them is no scalar."""
    return any(not isinstance(value, (str, int, float, bool, type(None))) for value in operands)


def evaluators(*, few):
    """Templates with what they are given: of each built-in, then of each form."""
    for name in sorted(BUILTINS):
        builtin = BUILTINS[name]
        if name in ("http.send", "print", "opa.runtime") or name.startswith("internal."):
            continue
        for number, operands in enumerate(cases(builtin, few=few)):
            if few and not is_large(operands):
                continue
            given = ", ".join(f"input.review.a[{at}]" for at in range(len(operands)))
            call = f"{name}({given}, x)" if builtin.relation else f"x := {name}({given})"
            yield f"{name} {number}", body(f"{call}; x != 9.5"), {"a": operands}
    for text, kind in LITERALS:
        a, b = equal_pair(kind)
        rule = body(f"a := input.review.a; b := input.review.b; {text}")
        yield f"{text} of {kind}", rule, {"a": a, "b": b}
    for text, kind in HEADS:
        a, b = equal_pair(kind)
        yield f"{text} of {kind}", text, {"a": a, "b": b}


FIRST = 'violation contains {"msg": "x"} if not graphql.is_valid("", "")', {}, "v1"
"""A family that is read when it is asked for first, which is not to count."""


def body(text):
    """A rule of these literals."""
    return f'violation contains {{"msg": "x"}} if {{ {text} }}'


@cache
def compiled(rule, version):
    """The template of a rule."""
    source = f"package p\nimport future.keywords\n{rule}\n"
    template: Any = None  # code is compiled without one
    return RegoDriver().compile(template, Code("Rego", {"rego": source, "version": version}))


def outcome_of(rule, review, version):
    """Returns a replica's result for a rule and a review, with the processor time."""
    try:
        evaluator = compiled(rule, version)
    except InvalidTemplate as error:
        return f"refused: {error}", 0.0
    written = []
    limits = Limits(
        budget=Budget.of(BUDGET_SECONDS), print_=lambda _, line: written.append(len(line))
    )
    state = evaluator.begin(limits, {})
    began = time.process_time()
    found: int | str
    try:
        found = len(list(evaluator.evaluate({}, review, state)))
    except PolicyError as error:
        found = "overrun" if error.overrun else str(error)[:80]
    return found, time.process_time() - began


def memory_mib():
    """The most that was used at once since this was reset."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main():
    """Evaluate them all at every depth."""
    resource.setrlimit(resource.RLIMIT_CPU, (1800, 1800))
    running(GC_THRESHOLDS)
    few = "--few" in sys.argv
    chosen = [int(depth) for depth in sys.argv[1:] if depth != "--few"] or DEPTHS
    outcome_of(*FIRST)
    gc.freeze()
    for depth in chosen:
        small_in_memory.DEPTH = depth
        for name, rule, review in evaluators(few=few):
            print(json.dumps([depth, name]), flush=True)
            gc.collect(0 if few else 2)
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            before = memory_mib()
            # Deprecated built-ins are only there for Rego of old.
            version = "v0" if name[-1].isdigit() else "v1"
            outcome, seconds = outcome_of(rule, review, version)
            row = [depth, name, outcome, round(seconds, 4), round(memory_mib() - before, 1)]
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
