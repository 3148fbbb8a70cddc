"""Sources of any kind cost their own template: it is refused in the framework's words, others load.

``WADDLE_MUTATIONS`` says how many random ones are tried; ``make fuzz`` tries many.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.webhook.constraint.policies import constraint, template
from tests.webhook.trials.tried import Replica, cel, literals
from webhook.constraint.errors import InvalidTemplate

MUTATIONS = int(os.environ.get("WADDLE_MUTATIONS", "60"))

SEEDS = 4

RULE = 'package p\nviolation[{{"msg": "x"}}] {{ {} }}'

DEPTHS = (50, 300, 900)
"""Within what is parsed, near Python's own stack, and beyond it."""

NESTED = {
    "array": ("[", "1", "]"),
    "object": ('{"a": ', "1", "}"),
    "set": ("{", "1", "}"),
    "parentheses": ("(", "1", ")"),
    "comprehension": ("[x | x := ", "1", "]"),
    "set comprehension": ("{x | x := ", "1", "}"),
    "call": ("abs(", "1", ")"),
    "minus": ("1 - (", "1", ")"),
    "every": ("every x in [1] { ", "true", " }"),
    "reference": ("input[", "1", "]"),
    "some": ("some x in ", "[1]", ""),
}

ODD = {
    "a number too large": "x := 1e99999999999; x == 1",
    "a number too small": "x := 0.1e1000000; x == 1",
    "a number of many digits": f"x := {'9' * 9000}; x == 1",
    "a fraction of many digits": f"x := 0.{'1' * 9000}; x == 1",
    "a surrogate": 'x := "\ud800"; x == "a"',
    "an escaped surrogate": 'x := "\\ud800"; x == "a"',
    "a name beyond ASCII": "é := 1; é == 1",
    "nothing but a zero byte": "\x00",
    "many negations": f"{'not ' * 900}true",
    "many dots": f"input{'.a' * 2000} == 1",
    "many variables of a reference": f"input{'[_]' * 900} == 1",
    "many conditions": "; ".join(["input.a == 1"] * 600),
    "many variables": "; ".join(f"x{i} := {i}" for i in range(600)),
    "many modifiers": f"input.a == 1{' with input.a as 1' * 300}",
    "a long text": f'x := "{"a" * 9000}"; x == "b"',
    "a long sum": f"x := {' + '.join(['1'] * 2000)}; x == 1",
    "a long pattern": f'regex.match("{"(a|" * 900}b{")" * 900}", "a")',
    "a pattern that repeats itself": 'regex.match("((((a{1000}){1000}){1000}){1000})", "a")',
    "a pattern without an end": 'regex.match("(", "a")',
    "a glob without an end": 'glob.match("[", [], "a")',
    "a large range": "count(numbers.range(1, 100000000000)) == 1",
    "a large shift": "bits.lsh(1, 100000000000) == 1",
    "a large format": 'sprintf("%1000000000d", [1]) == "1"',
}

LARGE = {
    "438 KB of literals": literals(26_000),
    "five MB of one text": RULE.format(f'x := "{"a" * 5_000_000}"; x == "b"'),
    "five MB of rules": "package p\n" + 'violation[{"msg": "x"}] { input.a == 1 }\n' * 120_000,
    "five MB of brackets": RULE.format("[" * 5_000_000),
    "five MB of noise": "package p\n" + "\x00\ud800é$`" * 800_000,
    "a sum of a million": RULE.format(f"x := {'+'.join(['1'] * 1_000_000)}; x == 1"),
    "rules of large references": "package p\n"
    + "".join(f'violation[{{"msg": "{i}"}}] {{ input{"[_]" * 900} == 1 }}\n' for i in range(200)),
}

EXPRESSIONS = {
    "brackets": "[" * 5_000,
    "parentheses": f"{'(' * 5_000}true{')' * 5_000}",
    "negations": f"{'!' * 5_000}true",
    "conditions": f"{'true ? ' * 2_000}true{' : true' * 2_000}",
    "fields": f"object{'.a' * 5_000} == 1",
    "indices": f"object{'[0]' * 3_000} == 1",
    "macros": f"{'[1].all(x, ' * 300}true{')' * 300}",
    "a number": f"{'9' * 5_000} == 1",
    "an exponent": "1e99999999999 == 1.0",
    "a text": f"'{'a' * 9_000}' == 'b'",
    "noise": "\x00\ud800é$`",
    "a pattern": "'a'.matches('((((a{1000}){1000}){1000}){1000})')",
}


def nested(name, depth):
    """A condition that nests so deep."""
    before, inner, after = NESTED[name]
    text = before * depth + inner + after * depth
    return text if name == "every" else f"x := {text}; x == 1"


def with_another(replica):
    """A replica with another policy in force."""
    replica.client.add_template(template("K8sOther"))
    replica.client.add_constraint(constraint("K8sOther"))
    return replica


@pytest.fixture(scope="module")
def tried():
    """A replica that tries everything before, within a second of a processor."""
    made = with_another(Replica(cpu_seconds=1))
    yield made
    made.trials.stop()


@pytest.fixture(scope="module", params=["tried", "here"])
def replica(request, tried):
    """Returns a replica with trials, or one that compiles small sources itself, as at its start."""
    if request.param == "tried":
        return tried
    return with_another(Replica(tries_all=lambda: False))


def is_refused(replica, document):
    """Whether it is, in words of the framework's; what is in force stays, and decides."""
    try:
        replica.client.add_template(document)
    except InvalidTemplate as error:
        assert error.bug is None, error.bug  # noqa: PT017  # either may be
        refused = True
        assert str(error)  # noqa: PT017
        assert error.stage != "environment", str(error)  # noqa: PT017
    else:
        refused = False
    replica.client.add_template(template("K8sNext"))
    replica.client.remove_template("k8snext")
    assert "no" in replica.messages()
    replica.client.remove_template("k8sdeny")
    return refused


@pytest.mark.parametrize("name", NESTED)
def test_what_nests_deep_costs_its_own_template(replica, name):
    for depth in DEPTHS:
        refused = is_refused(replica, template(rego=RULE.format(nested(name, depth))))
        assert refused or depth < DEPTHS[-1] or name == "some"


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_costs_its_own_template(replica, name):
    is_refused(replica, template(rego=RULE.format(ODD[name])))


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_costs_its_own_template(tried, name):
    refused = is_refused(tried, template(rego=LARGE[name]))
    assert refused or name in {"438 KB of literals", "five MB of one text"}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_is_odd_in_cel_costs_its_own_template(replica, name):
    is_refused(replica, cel(EXPRESSIONS[name]))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_noise_costs_its_own_template(replica, seed):
    """Any characters, those that Rego and CEL mean something by, and words of theirs."""
    chance = random.Random(seed)
    signs = "[](){}|,.:;=<>!+-*/%&\"'`\\_ \n\tabx019e$#@\x00\x7f\u2028é\ud800\U0001d4d0"
    words = ["package ", "import ", "default ", "else ", "with ", "some ", "every ", "not ", ":= "]
    for _ in range(MUTATIONS // SEEDS):
        length = chance.choice([3, 30, 300])
        alphabet = chance.choice([list(signs), [*signs, *words], [chr(i) for i in range(256)]])
        text = "".join(chance.choices(alphabet, k=length))
        is_refused(replica, template(rego=chance.choice([text, RULE.format(text)])))
        is_refused(replica, cel(text))
