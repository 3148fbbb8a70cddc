"""Templates whose values are small in memory and enormous when written, evaluated in a process.

``python -m tests.webhook.constraint.doubling`` prints a line of JSON before and after each.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any

from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import InvalidTemplate, PolicyError
from webhook.constraint.limits import Budget, Limits
from webhook.constraint.template import Code

NO_TEMPLATE: Any = None
"""Code is compiled without one."""


DEPTH = 39

BUDGET_SECONDS = 0.1
"""The default budget of a replica, in seconds."""

CPU_SECONDS = 120

MEMORY_BYTES = 64 << 20

CONDITIONS = [
    'msg := sprintf("%v", [c39])',
    'msg := sprintf("%v %d", [o39, 1])',
    'trace(sprintf("%v", [s39])); msg := "x"',
    "msg := json.marshal(c39)",
    'x := {c39}; count(x) == 1; msg := "x"',
    'x := {c39, d39}; count(x) == 1; msg := "x"',
    'x := {c39: 1}; x[d39]; msg := "x"',
    'c39 == d39; msg := "x"',
    'o39 == p39; msg := "x"',
    's39 == t39; msg := "x"',
    'c39 != d39; msg := "x"',
    'c39 < d39; msg := "x"',
    'o39 < p39; msg := "x"',
    's39 < t39; msg := "x"',
    'c39 in [d39]; msg := "x"',
    'c39 in {d39}; msg := "x"',
    '0, c39 in [d39]; msg := "x"',
    'c39 = d39; msg := "x"',
    'print(c39); msg := "x"',
    'x := {y | y := [c39, d39][_]}; count(x) == 1; msg := "x"',
    'x := {y: 1 | y := [c39, d39][_]}; count(x) == 1; msg := "x"',
    'max([c39, d39]); msg := "x"',
    'object.remove({"a": 1}, [c39]); msg := "x"',
    'msg := strings.render_template("{{.a}}", {"a": o39})',
    'graph.reachable({"a": [c39, d39]}, ["a"]); msg := "x"',
    'sort([o39, p39])[_]; msg := "x"',
    'walk(c39, [["x"], _]); msg := "x"',
    'f(c39) == f(d39); msg := "x"',
    '{"a": c39} == {"a": d39}; msg := "x"',
    'every x in [c39] { x == d39 }; msg := "x"',
    "msg := c39",
    "msg := base64.encode(json.marshal(c39))",
    'io.jwt.encode_sign({"alg": "HS256"}, {"a": c39}, {"kty": "oct", "k": "Zm9v"}); msg := "x"',
    'msg := $"{c39}"',
    'msg := concat(",", [json.marshal(o39)])',
]

HEADS = [
    'violation contains {"msg": "x", "details": c39} if true',
    'violation contains {"msg": "x", "details": {"a": [c39, d39][_]}} if true',
    'violation contains [{"msg": "x"}, c39][_] if true',
    'violation contains {"msg": "x", c39: 1} if true',
    'q[x] := 1 if { x := [c39, d39][_] }\nviolation contains {"msg": "x"} if count(q) == 1',
    'q := c39\nq := d39\nviolation contains {"msg": "x"} if q',
    'g(x) := c39\ng(x) := d39\nviolation contains {"msg": "x"} if g(1)',
]

DOUBLING = "\n".join(
    f"""c{i} := [c{i - 1}, c{i - 1}]
d{i} := [d{i - 1}, d{i - 1}]
o{i} := {{"a": o{i - 1}, "b": o{i - 1}}}
p{i} := {{"a": p{i - 1}, "b": p{i - 1}}}
s{i} := {{[s{i - 1}, s{i - 1}], {i}}}
t{i} := {{[t{i - 1}, t{i - 1}], {i}}}"""
    for i in range(1, DEPTH + 1)
)


def sources():
    """Each rule with values that are constants, and with some of the review."""
    rules = [f'violation contains {{"msg": msg}} if {{ {text} }}' for text in CONDITIONS] + HEADS
    for first in ('"aaaaaaaa"', "input.review.a"):
        for rule in rules:
            yield f"""package p
import future.keywords
c0 := ["aaaaaaaa"]
d0 := [{first}]
o0 := {{"x": "aaaaaaaa"}}
p0 := {{"x": {first}}}
s0 := {{"aaaaaaaa"}}
t0 := {{{first}}}
{DOUBLING}
f(x) := [x, x]
{rule}
"""


def evaluate(source):
    """Returns the result of a review."""
    try:
        evaluator = RegoDriver().compile(
            NO_TEMPLATE, Code("Rego", {"rego": source, "version": "v1"})
        )
    except InvalidTemplate as error:
        return str(error)
    limits = Limits(budget=Budget.of(BUDGET_SECONDS), print_=lambda *_: None)
    state = evaluator.begin(limits, {})
    try:
        return len(list(evaluator.evaluate({}, {"a": "aaaaaaaa"}, state)))
    except PolicyError as error:
        return "overrun" if error.overrun else str(error)


def main():
    """Evaluate them all."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    used = int(pages) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    for source in sources():
        rule = source.splitlines()[-1]
        print(json.dumps([rule]), flush=True)
        began = time.process_time()
        outcome = evaluate(source)
        print(json.dumps([rule, outcome, time.process_time() - began]), flush=True)


if __name__ == "__main__":
    main()
