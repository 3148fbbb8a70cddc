"""Every evaluation ends: how each hostile policy or input is stopped, and with which error.

``pytest tests/webhook/rego/run/test_limits.py -rP`` shows what stopped each, and after how long.
"""

import time

import pytest

from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.syntax.parser import parse_module

SECONDS_AT_MOST = 30  # of the processor: a hundred times what is allowed


def run(source, input_value=None, version="v1", **limits):
    rule = compile_modules([parse_module(source, "m.rego", version)]).rule("data.a.p")
    started = time.thread_time()
    try:
        return rule(input_value, {}, EvaluationContext(**limits))
    except EvaluationError as error:
        print(f"stopped after {(time.thread_time() - started) * 1000:.1f} ms by: {error}")
        raise
    finally:
        assert time.thread_time() - started < SECONDS_AT_MOST


ENDLESS = {
    "an exponential comprehension": """package a
p := count([1 | some i in r; some j in r; some k in r; some l in r; i + j + k + l == -1])
r := numbers.range(1, 3000)
""",
    "an exponential set": """package a
p := count({[i, j, k] | some i in r; some j in r; some k in r})
r := numbers.range(1, 3000)
""",
    "iteration in a partial set": """package a
p := count(s)
s contains [i, j, k] if { some i in r; some j in r; some k in r }
r := numbers.range(1, 3000)
""",
    "functions that call each other twice": "package a\n"
    + "\n".join(
        f"f{i}(x) := y if {{ y := f{i + 1}(x) + f{i + 1}(x + 1) }} else := 0" for i in range(60)
    )
    + "\nf60(x) := x\np := f0(1)",
    "a negation that has to look at everything": """package a
p if not found
found if { some i in r; some j in r; some k in r; i + j + k == -1 }
r := numbers.range(1, 3000)
""",
    "an every over everything": """package a
p if { every i in r { every j in r { every k in r { i + j + k > 0 } } } }
r := numbers.range(1, 3000)
""",
    "a walk within a walk": """package a
p := count([1 | walk(input, [_, a]); walk(input, [_, b]); walk(input, [_, c]); a == b; b == c])
""",
    "texts that double": "package a\n"
    + "\n".join(f'x{i} := sprintf("%v%v", [x{i + 1}, x{i + 1}])' for i in range(60))
    + '\nx60 := "xxxxxxxxxx"\np := x0',
    "numbers that square": "package a\n"
    + "\n".join(f"x{i} := x{i + 1} * x{i + 1}" for i in range(60))
    + "\nx60 := 12345678901234567890\np := x0",
    "a pattern that backtracks": """package a
p if { some i in numbers.range(1, 100000); regex.match("^(a+)+$", input.text) }
""",
    "a range without end": "package a\np := count(numbers.range(0, 100000000000))",
    "arrays that double": "package a\n"
    + "\n".join(f"x{i} := array.concat(x{i + 1}, x{i + 1})" for i in range(60))
    + "\nx60 := [1]\np := count(x0)",
    "loops of free length inside each other": "package a\np := count([1 | "
    + "; ".join(f"some x{i} in input.few" for i in range(12))
    + "; x0 == 10])",
    "loops of free length, further inside than one function has": "package a\np := count([1 | "
    + "; ".join(f"some x{i} in input.few" for i in range(40))
    + "; x0 == 10])",
    "functions with loops of free length that call each other": "package a\n"
    + "\n".join(f"f{i}(x) if {{ some y in input.few; f{i + 1}(x + y) }}" for i in range(12))
    + "\nf12(x) if x == -1\np if f0(1)",
    "comprehensions of free length in functions that call each other": "package a\n"
    + "\n".join(f"f{i}(x) := sum([f{i + 1}(y) | some y in input.few])" for i in range(12))
    + "\nf12(x) := x\np := f0(1)",
    "sets of objects that are sought in each other": "package a\n"
    + "\n".join(
        f"""s{i} contains {{"a": x, "b": y}} if {{ some x in [1, 2]; s{j}[{{"a": x, "b": y}}] }}
s{i} contains {{"a": x, "b": y}} if {{ some x in [2, 1]; x > 0; s{j}[{{"a": x, "b": y}}] }}"""
        for i, j in ((i, i + 1) for i in range(40))
    )
    + """\ns40 contains {"a": x, "b": y} if { some x in input.few; some y in input.none }
p := count([1 | some x in input.few; s0[{"a": x, "b": _}]])""",
    "documents that are computed anew": "package a\n"
    + "\n".join(
        f"d{i} := a + b if {{ a := d{i + 1} with input.a as 1; b := d{i + 1} with input.a as 2 }}"
        for i in range(40)
    )
    + "\nd40 := input.a\np := d0",
    "functions in each other's place": "package a\n"
    + "\n".join(
        f"f{i}(x) := z if {{ y := g(x) with g as f{i + 1}; z := g(y) with g as f{i + 1} }}"
        for i in range(40)
    )
    + "\nf40(x) := x\ng(x) := x\np := f0(1)",
    "a tree of calls in a loop": "package a\n"
    + "\n".join(f"f{i}(x) := f{i + 1}(x) + f{i + 1}(x + 1)" for i in range(8))
    + "\nf8(x) := x\np := count([1 | some i in r; some j in r; f0(i) == j])\n"
    + "r := numbers.range(1, 3000)",
    "large lists compared with each other": """package a
p := count([1 | some x in input.large; some y in input.large; x == y])
""",
    "large lists in order": """package a
p := count([1 | some x in input.large; some y in input.large; x < y])
""",
    "large lists as members of sets": """package a
p := count([1 | some i in input.few; some j in input.few; some x in input.large; count({x | i > j}) == 1])
""",
    "large lists sought among each other": """package a
p := count([1 | some i in input.few; some x in input.large; x in input.large])
""",
    "a list sought in itself": """package a
p := count([1 | some i in r; some j in r; sprintf("%d", [i + j]) in texts])
texts := [sprintf("%d", [-i]) | some i in r]
r := numbers.range(1, 3000)
""",
    "functions in a walk": """package a
p := count([1 | walk(input, [_, a]); f(a)])
f(x) if { walk(input, [_, b]); g(x, b) }
g(x, y) if { some z in input.few; x == [y, z] }
""",
}
INPUT = {
    "few": list(range(10)),
    "items": [{"n": [i]} for i in range(400)],
    "text": "a" * 5000 + "b",
    "large": [[*range(1000), i] for i in range(300)],
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_deadline_ends(name):
    with pytest.raises(EvaluationError) as info:
        run(ENDLESS[name], INPUT, deadline=time.monotonic() + 0.3)
    assert info.value.code == "eval_cancel_error"


@pytest.mark.parametrize("name", ENDLESS)
def test_a_budget_of_steps_ends(name):
    with pytest.raises(EvaluationError) as info:
        run(ENDLESS[name], INPUT, steps=200_000)
    assert info.value.code == "eval_cancel_error"


def test_an_ordinary_evaluation_stays_far_below_the_default_budget():
    context = EvaluationContext()
    before = context.left
    source = "package a\np contains x.n if some x in input.items"
    rule = compile_modules([parse_module(source, "m", "v1")]).rule("data.a.p")
    rule(INPUT, {}, context)
    assert 0 < before - context.left < 10_000


def test_no_deadline_is_no_deadline():
    assert run("package a\np := count(numbers.range(1, 1000))") == 1000


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deeply_nested_input_is_an_answer_or_an_error_of_our_own(depth):
    nested = leaf = []
    for _ in range(depth):
        inner = []
        leaf.append(inner)
        leaf = inner
    source = """package a
p := [count({input.x, input.y}), input.x == input.y, json.marshal(input.x) == ""]
"""
    try:
        found = run(source, {"x": nested, "y": [nested]})
    except EvaluationError as error:
        found = error.code
    assert found in ([2, False, False], "eval_cancel_error")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("p := q\nq := p", "rule data.a.p is recursive: data.a.p -> data.a.q -> data.a.p"),
        ("f(x) := f(x + 1)\np := f(1)", "rule data.a.f is recursive: data.a.f -> data.a.f"),
        ("p if not q\nq if not p", "rule data.a.p is recursive"),
        ("p := [x | x := p]", "rule data.a.p is recursive"),
        ("p if q with input as 1\nq if p", "rule data.a.p is recursive"),
    ],
)
def test_recursion_is_refused_at_load(source, message):
    with pytest.raises(RegoErrors, match="rego_recursion_error") as info:
        compile_modules([parse_module(f"package a\n{source}", "m", "v1")])
    assert message in str(info.value)


def test_a_source_nested_beyond_reason_is_refused_at_load():
    source = "package a\np := " + "[" * 50_000 + "]" * 50_000
    with pytest.raises(RegoErrors):
        compile_modules([parse_module(source, "m", "v1")])


@pytest.mark.parametrize("depth", [50, 150])
def test_a_nested_constant_is_a_value(depth):
    found = run("package a\np := " + "[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (found,) = found
    assert found == []


@pytest.mark.parametrize("depth", [195, 250, 299])
def test_a_constant_nested_beyond_python_s_own_bounds_is_a_value_or_refused(depth):
    source = "package a\np := " + "[" * depth + "]" * depth
    refused = ""
    try:
        run(source)
    except RegoErrors as errors:
        refused = str(errors)
    assert not refused or "too deeply" in refused or "depth exceeded" in refused


@pytest.mark.parametrize(
    ("first", "one"),
    [
        ("d{0} := 1", "d{0} := [d{1}, d{1}]"),
        ("d{0} := 1", 'd{0} := {{"a": d{1}, "b": d{1}}}'),
        ("d{0} := 1", "d{0} contains [d{1}, d{1}]"),
        ("d{0}(x) := 1", "d{0}(x) := [d{1}(x), d{1}(x)]"),
    ],
)
def test_rules_that_name_another_twice_are_checked_to_their_end(first, one):
    """A type is a tree here, and would double with each of them."""
    rules = [one.format(number, number + 1) for number in range(60)]
    source = "\n".join(["package a", *rules, first.format(60), "p := count(input)"])
    rule = compile_modules([parse_module(source, "m", "v1")]).rule("data.a.p")
    assert rule([1, 2], {}, EvaluationContext()) == 2


@pytest.mark.parametrize("first", ["1", "input.x"])
def test_variables_that_name_another_twice_are_written_to_their_end(first):
    lines = [f"x{number + 1} := [x{number}, x{number}]" for number in range(40)]
    source = "\n".join(["package a", "p if {", f"x0 := {first}", *lines, "x40", "}"])
    rule = compile_modules([parse_module(source, "m", "v1")]).rule("data.a.p")
    assert rule({"x": 1}, {}, EvaluationContext()) is True
