"""Unpaid work of an evaluation is small, however its loops and calls are nested."""

import pytest

from webhook.rego.builtins.registry import make_builtin
from webhook.rego.engine import (
    CompileOptions,
    EvaluationContext,
    compile_modules,
    specialise_modules,
)
from webhook.rego.errors import EvaluationError
from webhook.rego.run.metered import WORK_STEPS
from webhook.rego.syntax.parser import parse_module
from webhook.rego.types import ANY
from webhook.rego.write import inline as inline_forms
from webhook.rego.write.function import FREE_TURNS
from webhook.rego.write.payment import FREE_STEPS

FEW = list(range(FREE_TURNS))


def rule(source, **builtins):
    module = parse_module(f"package a\n{source}", "m.rego", "v1")
    return compile_modules([module], options=CompileOptions(builtins=builtins)).rule("data.a.p")


def paid(source, input_value):
    context = EvaluationContext()
    before = context.left
    rule(source)(input_value, {}, context)
    return before - context.left


def turns_for_nothing(source):
    """Calls of a built-in until the first step is paid, and whether one was."""
    seen = []

    def seen_so_far(value):
        seen.append(value)
        return len(seen)

    count = make_builtin("turn", (ANY,), ANY, seen_so_far, check=False, deterministic=False)
    context = EvaluationContext(steps=0)
    context.next_check = 0
    try:
        rule(source, turn=count)({"few": FEW}, {}, context)
    except EvaluationError as error:
        assert error.code == "eval_cancel_error"  # noqa: PT017  # not always raised
        return len(seen), True
    return len(seen), False


def test_short_loops_cost_nothing():
    source = "p contains y if { some x in input.few; y := f(x) }\nf(x) := upper(x.name)"
    assert paid(source, {"few": [{"name": "a"}] * FREE_TURNS}) == 0


def test_a_longer_loop_pays_for_its_turns_and_calls():
    source = "p contains y if { some x in input.few; y := f(x) }\nf(x) := y if { y := x; x > 0 }"
    assert paid(source, {"few": list(range(FREE_TURNS + 1))}) >= FREE_TURNS + 1


def test_from_the_first_long_loop_on_short_ones_pay_too():
    source = """
p := [a, b, c] if {
	a := [x | some x in input.first]
	b := [x | some x in input.few]
	c := f(input.few)
}
f(xs) := [x | some x in xs; x > 0]
"""
    long = list(range(FREE_TURNS + 1))
    assert paid(source, {"first": FEW, "few": FEW}) == 0
    assert paid(source, {"first": long, "few": FEW}) >= len(long) + 2 * FREE_TURNS


NESTS = {
    "loops in loops": lambda depth: "p := [1 | {}; turn(1)]".format(
        "; ".join(f"some x{i} in input.few" for i in range(depth))
    ),
    "loops in functions": lambda depth: (
        "\n".join(f"f{i}(x) := [y | some z in input.few; y := f{i + 1}(z)]" for i in range(depth))
        + f"\nf{depth}(x) := x if turn(x)\np := f0(1)"
    ),
    "every in every": lambda depth: (
        "p if { "
        + "".join(f"every x{i} in input.few {{ x{i} >= 0; " for i in range(depth))
        + "turn(1)"
        + " }" * (depth + 1)
    ),
    "partial sets in loops": lambda depth: (
        "\n".join(
            f"""s{i} contains {{"a": x, "b": y}} if {{
	some x in input.few
	some z in input.few
	s{i + 1}[{{"a": z, "b": y}}]
}}"""
            for i in range(depth)
        )
        + f"""\ns{depth} contains {{"a": x, "b": y}} if {{
	some x in input.few
	some y in input.few
	turn(1)
}}
p := [y | some x in input.few; s0[{{"a": x, "b": y}}]]"""
    ),
    "rules beside each other": lambda depth: "\n".join(
        f"p contains {i} if {{ some x in input.few; some y in input.few; turn([x, y, {i}]) < 0 }}"
        for i in range(10**depth)
    ),
    "documents beside each other": lambda depth: (
        "\n".join(
            f"d{i} := [1 | some x in input.few; some y in input.few; turn(1)]"
            for i in range(10**depth)
        )
        + "\np := ["
        + ", ".join(f"count(d{i})" for i in range(10**depth))
        + "]"
    ),
}


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("depth", [1, 2])
def test_little_is_free_however_it_is_nested(nest, depth):
    turns, has_paid = turns_for_nothing(NESTS[nest](depth))
    assert turns * WORK_STEPS <= FREE_STEPS
    assert turns or has_paid


@pytest.mark.parametrize("depth", [4, 6])
@pytest.mark.parametrize("nest", [name for name in NESTS if " in " in name])
def test_loops_of_free_length_pay_where_too_many_are_inside_each_other(nest, depth):
    turns, has_paid = turns_for_nothing(NESTS[nest](depth))
    assert has_paid
    assert turns * WORK_STEPS <= FREE_STEPS


def test_a_collection_of_short_loops_within_a_long_one_has_a_bound():
    source = "p := count([1 | some i in numbers.range(1, 400000); some j in input.few])"
    with pytest.raises(EvaluationError, match="too large a collection"):
        rule(source)({"few": FEW}, {}, EvaluationContext())


def test_functions_may_call_each_other_in_a_long_row():
    functions = "\n".join(f"f{i}(x) := f{i + 1}(x) if x > 0" for i in range(600))
    source = f"{functions}\nf600(x) := x\np := f0(input.x)"
    assert rule(source)({"x": 7}, {}, EvaluationContext()) == 7


def test_what_only_parameters_decide_is_computed_with_its_loops():
    """Short ones and long ones, while code is written for a constraint."""
    source = """
p := [x | some x in {y | some y in input.parameters; f(y) > 1}; x == input.review]
f(x) := y if { some y in input.parameters; y == x }
"""
    module = parse_module(f"package a\n{source}", "m.rego", "v1")
    for count in (FREE_TURNS, 3 * FREE_TURNS):
        numbers = list(range(count))
        own = specialise_modules([module], numbers).rule("data.a.p")
        assert own({"review": 9, "parameters": numbers}, {}, EvaluationContext()) == [9]


@pytest.mark.parametrize("inline", [0, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_text_made_in_a_longer_loop_is_paid_for(count, inline, monkeypatch):
    monkeypatch.setattr(inline_forms, "MAX_INLINE_TEXTS", inline)
    shown = ", ".join(f"x.f{i}" for i in range(count))
    source = (
        f'p contains y if {{ some x in input.xs; y := sprintf("{"<%v>" * count}", [{shown}]) }}'
    )
    turns = FREE_TURNS + 1
    made = paid(source, {"xs": [{f"f{i}": i for i in range(count)}] * turns})
    assert made >= turns * (1 + WORK_STEPS)


@pytest.mark.parametrize("inline", [0, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_long_text_is_paid_for_by_its_length(count, inline, monkeypatch):
    monkeypatch.setattr(inline_forms, "MAX_INLINE_TEXTS", inline)
    shown = ", ".join("input.text" for _ in range(count))
    source = f'p := sprintf("{"%v" * count}", [{shown}])'
    assert paid(source, {"text": "x" * 100_000}) >= count * 100_000 // 8


def test_a_number_sought_in_a_long_list_is_paid_for_before():
    """By the list's length, whatever the clock says."""
    assert paid("p if input.item in input.few", {"item": -1, "few": list(range(5000))}) >= 10_000
