"""Templates in CEL that were written to do harm: bounded when they are compiled and evaluated."""

import json
from typing import Any

import pytest

from webhook.constraint.drivers.cel_evaluation import CelEvaluator
from webhook.constraint.drivers.cel_source import SOURCE_MAX, read_source
from webhook.constraint.errors import CompileError, InvalidTemplate, PolicyError
from webhook.constraint.limits import UNLIMITED, Budget, Limits

EXCEEDED = "resulted in error: operation cancelled: actual cost limit exceeded"


def decided(
    obj: Any, validations: Any, variables: Any = (), limits: Limits = UNLIMITED
) -> list[str]:
    """The messages of a policy."""
    named = [{"name": name, "expression": text} for name, text in variables]
    checked = [{"expression": one} if isinstance(one, str) else one for one in validations]
    evaluator = CelEvaluator(read_source({"variables": named, "validations": checked}))
    state = evaluator.begin(limits, {})
    found = evaluator.evaluate(None, {"operation": "CREATE", "object": obj}, state)
    return [one.msg for one in found]


def doubled(first: str, times: int) -> list[tuple[str, str]]:
    """Variables each of which is the one before twice."""
    names = [("v0", first)]
    return names + [
        (f"v{at}", f"variables.v{at - 1} + variables.v{at - 1}") for at in range(1, times)
    ]


@pytest.mark.parametrize("first", ["'x'", "[1]", "object.s", "object.l"])
def test_variables_that_double_are_ended_for_their_cost(first: str) -> None:
    (message,) = decided({"s": "x", "l": [1]}, ["size(variables.v39) == 0"], doubled(first, 40))
    assert message.startswith("expression 'size(variables.v39) == 0' resulted in error: ")
    assert message.endswith("operation cancelled: actual cost limit exceeded")


def test_what_is_doubled_by_loops_within_each_other_is_ended_for_its_cost() -> None:
    text = "[object.s]" + ".map(a, a + a)" * 40
    (message,) = decided({"s": "x"}, [f"size({text}[0]) == 0"])
    assert message.endswith(EXCEEDED)


def test_loops_over_short_lists_within_each_other_are_ended_for_their_cost() -> None:
    names = "abcdefghijkl"
    text = "object.l.all({}, " * 12
    text = text.format(*names) + "true" + ")" * 12
    assert decided({"l": [1, 2, 3, 4]}, [text]) == [f"expression '{text}' {EXCEEDED}"]


def test_variables_that_are_read_in_every_branch_do_not_multiply() -> None:
    """Without variables, the last expression would read the first one 2^60 times."""
    variables = [("v0", "object.n")]
    for at in range(1, 60):
        before = f"variables.v{at - 1}"
        variables.append(
            (f"v{at}", f"object.t == {at} ? {before} : (object.t == -1 ? 1 : {before})")
        )
    assert decided({"n": 7, "t": 0}, ["variables.v59 == 7", "variables.v59 == 8"], variables) == [
        "failed expression: variables.v59 == 8"
    ]


def test_hundreds_of_variables_that_read_each_other_have_a_value_or_an_error() -> None:
    variables = [("v0", "object.n")]
    variables += [(f"v{at}", f"variables.v{at - 1} + 1") for at in range(1, 300)]
    (message,) = decided({"n": 0}, ["variables.v299 == 0"], variables)
    assert "variables.v299 == 0" in message
    assert decided({"n": 0}, ["variables.v40 == 40"], variables) == []


def test_many_validations_are_all_decided() -> None:
    texts = [f"object.n != {at}" for at in range(800)]
    assert decided({"n": 700}, texts) == ["failed expression: object.n != 700"]


@pytest.mark.parametrize(
    "text",
    [
        "true || " * (SOURCE_MAX // 8) + "true",
        "'" + "x" * 5_000_000 + "' == ''",
        "(" * 5_000_000,
        "//" + "x" * 5_000_000,
    ],
    ids=["operators", "literal", "brackets", "comment"],
)
def test_a_template_of_more_text_than_is_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidTemplate, match=f"more than {SOURCE_MAX} characters"):
        decided({}, [text])
    with pytest.raises(InvalidTemplate, match=f"more than {SOURCE_MAX} characters"):
        decided({}, ["true"], [("v", text)])


HOSTILE_NAMES = [
    "a'];import os#",
    "a\nb",
    "__class__",
    "object",
    "self",
    "E",
    "x1",
    "M",
    "",
    "\x00",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_of_variables_are_in_no_code_that_is_written(name: str) -> None:
    assert decided({"n": 1}, ["object.n == 2"], [(name, "object.n")]) == [
        "failed expression: object.n == 2"
    ]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_texts_end_no_literal_of_code_that_is_written(name: str) -> None:
    texts = {"object.x": json.dumps(name), "object[object.x]": "1"}
    expressions = [f"{left} == {right}" for left, right in texts.items()]
    expressions.append(f"object[{json.dumps(name)}] == 1")
    assert decided({"x": name, name: 1}, expressions) == []


@pytest.mark.parametrize(
    "text",
    [
        "object.s.matches('(a{1000}){1000}')",
        "object.s.matches('" + "(" * 2000 + "a" + ")" * 2000 + "')",
        "object.s.matches('a{1001}')",
        "object.s.matches('(?<name>a)(?P=name)')",
        "object.s.matches('a(?=b)')",
    ],
)
def test_a_pattern_that_cannot_be_bounded_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match=r"invalid matches argument|error parsing regexp"):
        decided({"s": "a"}, [text])


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|aa)+b", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)b", "(x+x+)+y"]
)
def test_a_pattern_that_others_try_without_end_is_searched_once(pattern: str) -> None:
    text = "a" * 50_000 + "c"
    assert decided({"s": text, "p": pattern}, [f"!object.s.matches('{pattern}')"]) == []
    assert decided({"s": text, "p": pattern}, ["!object.s.matches(object.p)"]) == []


def test_patterns_of_an_object_that_are_none_are_errors_of_the_evaluation() -> None:
    (message,) = decided({"s": "a", "p": "a("}, ["object.s.matches(object.p)"])
    assert message == (
        "expression 'object.s.matches(object.p)' resulted in error: "
        "error parsing regexp: missing closing ): `a(`"
    )


def test_names_that_are_not_ascii_are_keys_and_no_names() -> None:
    obj = {"héllo": 1, "名前": {"ключ": "值"}, "a\u0301": 2, "\ud83d\ude00": 3, "\u202e": 4}
    held = ["object['héllo'] == 1", "object['名前']['ключ'] == '值'", "object['a\u0301'] == 2"]
    assert decided(obj, [*held, "object['\u202e'] == 4"]) == []
    with pytest.raises(CompileError, match="Syntax error: token recognition error"):
        decided(obj, ["object.héllo == 1"])


def test_a_message_of_an_object_is_bounded_and_one_line() -> None:
    validation = {"expression": "false", "messageExpression": "string(object.s)", "message": "m"}
    assert decided({"s": "é" * 2560}, [validation]) == ["é" * 2560]
    assert decided({"s": "é" * 2561}, [validation]) == ["m"]
    assert decided({"s": "a\nb"}, [validation]) == ["m"]
    assert decided({"s": "\u2028 a \u3000"}, [validation]) == ["a"]


def test_an_evaluation_that_takes_longer_than_its_budget_is_ended() -> None:
    limits = Limits(budget=Budget(0.0, 1_000_000))
    text = "object.l.all(a, object.l.all(b, a + b >= 0))"
    with pytest.raises(PolicyError, match="budget"):
        decided({"l": list(range(300))}, [text], limits=limits)
