"""Values that depend on parameters alone are computed before the first evaluation."""

import datetime as dt
import warnings

import pytest

from webhook.certificates.pairs import self_signed
from webhook.rego import known
from webhook.rego.builtins.registry import make_builtin
from webhook.rego.engine import (
    CompileOptions,
    EvaluationContext,
    compile_modules,
    specialise_modules,
)
from webhook.rego.errors import EvaluationError
from webhook.rego.run import values
from webhook.rego.run.text import to_json
from webhook.rego.run.values import lazy_set
from webhook.rego.syntax.parser import parse_module
from webhook.rego.types import NUMBER

PARAMETERS = {"allowed": ["a", "b"], "limit": "3"}
OTHERS = {"allowed": ["x"], "limit": "9"}


def prepared(source, parameters=PARAMETERS):
    module = parse_module(f"package a\n{source}", "m.rego", "v1")
    return compile_modules([module]).document("data.a.p").for_parameters(parameters)


def answer(rule, input_value, context=None):
    return to_json(rule(input_value, {}, context or EvaluationContext()))


def answer_to_others(source):
    """Returns the result of a review with other parameters than the known ones."""
    return answer(prepared(source), {"review": "a", "parameters": OTHERS})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("p := q\nq := to_number(input.parameters.limit)", 3),
        ("p := q\nq contains x if some x in input.parameters.allowed", ["a", "b"]),
        ('p if "a" in q\nq contains x if some x in input.parameters.allowed', True),
        (
            (
                "p contains x if { some x in q; x == input.review }\n"
                "q contains x if some x in input.parameters.allowed"
            ),
            ["a"],
        ),
        ("p := q\nq := r + 1\nr := f(input.parameters.limit)\nf(x) := to_number(x)", 4),
        ('p := q\nq := object.get(input, "parameters", {}).limit', "3"),
        ('p := q\nq := object.get(input, ["parameters", "limit"], "")', "3"),
        ("p := [x | x := q]\nq if input.parameters.none", []),
        ("p := {input.review: count([x | some x in input.parameters.allowed])}", {"a": 2}),
        ("p := {input.review: {x | some x in input.parameters.allowed}}", {"a": ["a", "b"]}),
        ("p := {input.review: {x: 1 | some x in input.parameters.allowed}.b}", {"a": 1}),
        ('p := $"{input.parameters.limit}{input.review}"', "3a"),
        ("p if not q\nq if input.parameters.none", True),
    ],
)
def test_it_is_known_before(source, found):
    assert answer_to_others(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("p := count(input.parameters.allowed)", 1),
        ("p := q\nq := [input.review, input.parameters.limit]", ["a", "9"]),
        ("p := q\nq := [input, 1][1]", 1),
        ('p := q\nq := object.get(input, input.parameters.allowed[0], "no")', "no"),
        ('p := q\nq := object.get(input, "review", input.parameters)', "a"),
        ("p := q\nq := [r, count(input)]\nr := input.parameters.limit", ["9", 2]),
        ("p := q\nq := [input.parameters.limit | time.now_ns() > 0]", ["9"]),
        ("p := q\nq := [input.parameters.limit | not data.x]", ["9"]),
        ("p := count([x | some x in input.parameters.allowed; x != input.review])", 1),
        ("p := [y | some c in input.review; y := [c | input.parameters.limit]]", []),
        ('p := f(input.review)\nf(r) := [r | input.parameters.limit == "9"]', ["a"]),
        ("p := q\nq := x if { print(1); x := [input.parameters.limit][0] }", "9"),
        ("p := q\nq := [opa.runtime(), input.parameters.limit][1]", "9"),
        (
            (
                'p if q == "5" with input.parameters as {"limit": "5"}\n'
                'q := concat("", [input.parameters.limit])'
            ),
            True,
        ),
        (
            "p := [x | x := q with data.a.r as 1]\nq := [r, input.parameters.limit]\nr := 2",
            [[1, "9"]],
        ),
    ],
)
def test_it_is_left_to_each_evaluation(source, found):
    assert answer_to_others(source) == found


def test_an_error_is_each_evaluation_s():
    rule = prepared("p := q\nq := x if some x in input.parameters.allowed")
    for _ in range(2):
        with pytest.raises(EvaluationError, match="produced conflicting values"):
            answer(rule, {"parameters": PARAMETERS})
    assert answer(rule, {"parameters": OTHERS}) == "x"


def test_a_complaint_is_each_evaluation_s():
    rule = prepared("p := [x | x := q]\nq := to_number(input.parameters.allowed[0])")
    assert answer(rule, {"parameters": PARAMETERS}) == []
    with pytest.raises(EvaluationError, match="invalid syntax"):
        answer(rule, {"parameters": PARAMETERS}, EvaluationContext(strict=True))


@pytest.mark.parametrize(
    "source",
    [
        "p := count(q)\nq := numbers.range(1, to_number(input.parameters.limit))",
        (
            "p := count(q)\nq contains [x, y] if { some x in r; some y in r }\n"
            "r := numbers.range(1, 100) if input.parameters"
        ),
    ],
)
def test_what_is_long_or_large_is_left(source):
    assert known.BUDGET_STEPS <= 20_000
    rule = prepared(source, {"limit": "5000"})
    assert answer(rule, {"parameters": {"limit": "2"}}) in (2, 10_000)


@pytest.mark.parametrize(
    "large",
    [
        "x" * 2_000,
        10**3_000,
        list(range(2_000)),
        {str(i): i for i in range(600)},
        [["x" * 500]] * 3,
    ],
)
def test_large_values_are_left(large):
    source = "p := q[0]\nq := [x, 1] if x := input.parameters.large"
    assert answer(prepared(source, {"large": large}), {"parameters": {"large": 5}}) == 5


def test_parameters_nested_beyond_what_python_follows_are_left():
    deep = []
    for _ in range(5_000):
        deep = [deep]
    rule = prepared("p := count(q)\nq := [input.parameters.deep, 1]", {"deep": deep})
    assert answer(rule, {"parameters": {"deep": deep}}) == 2


def test_a_set_is_whole_when_another_thread_sees_it(monkeypatch):
    """Known sets are shared: the keys of one are not seen before all are there."""
    shared = lazy_set(["a", "b"])
    key, seen = values.key, []

    def looked_at(item):
        seen.append("_items" in dir(shared) and _is_set(shared))
        return key(item)

    monkeypatch.setattr(values, "key", looked_at)
    assert len(shared) == 2
    assert seen == [False, False]


def _is_set(shared):
    try:
        object.__getattribute__(shared, "_items")
    except AttributeError:
        return False
    return True


def test_collections_and_built_ins_that_are_called_have_names_of_their_own():
    """A number is for the built-in itself to complain of, not for code in its place."""
    source = """p := c if {
    c := {x | some x in input.parameters.allowed}
    not startswith(input.review, "a")
}"""
    assert answer(prepared(source), {"review": 5, "parameters": OTHERS}) == ["a", "b"]


def specialised_rule(source, **options):
    """A rule in the code of one constraint."""
    module = parse_module(f"package a\n{source}", "m.rego", "v1")
    program = specialise_modules([module], PARAMETERS, options=CompileOptions(**options))
    return program.rule("data.a.p")


def test_what_a_caller_lends_is_asked_for_in_each_evaluation():
    rule = specialised_rule("p := opa.runtime().version")
    for version in ("1", "2"):
        assert rule({}, {}, EvaluationContext(runtime={"version": version})) == version


def test_a_built_in_of_a_caller_s_own_is_asked_in_each_evaluation():
    answers = iter(range(10))
    own = make_builtin("own.next", [NUMBER], NUMBER, lambda _: next(answers))
    rule = specialised_rule("p := own.next(1)", builtins={"own.next": own})
    first = rule({}, {}, EvaluationContext())
    assert rule({}, {}, EvaluationContext()) == first + 1


def test_what_the_time_of_an_evaluation_decides_is_not_known_while_code_is_written():
    """Certificates are constants, and valid when their policy is compiled, but not for ever."""
    now = dt.datetime.now(tz=dt.UTC)
    pem = self_signed(["localhost"], now).certificate.decode()
    rule = prepared(f"p := crypto.x509.parse_and_verify_certificates(`{pem}{pem}`)[0]")
    given = {"parameters": PARAMETERS}
    for later, valid in ((0, True), (100 * 365, False), (0, True)):
        at = now + dt.timedelta(days=later, minutes=1)
        context = EvaluationContext(now_ns=int(at.timestamp()) * 1_000_000_000)
        assert answer(rule, given, context) is valid


@pytest.mark.parametrize("parameter", [None, True, False, 0, 1, -1, 1.5, "a", [], ["a", "b"], {}])
@pytest.mark.parametrize(
    "literal",
    [
        "[x] = input.parameters.n",
        "y := input.parameters.n; [x] = y",
        "[[x], 1] = [input.parameters.n, 1]",
        "some [x] in [input.parameters.n]",
        "{`a`: [x]} = {`a`: input.parameters.n}",
        "x := f(input.parameters.n)",
        "{`a`: x} = input.parameters.n",
        "x := input.parameters.n.a",
        "x := input.parameters.n[2]",
        "x := input.parameters.n[input.review.none]",
    ],
)
def test_what_has_no_such_item_is_compiled_without_a_word_of_python(literal, parameter):
    module = parse_module(f"package a\np := [x | {literal}]\nf([x]) := x", "m.rego", "v1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = specialise_modules([module], {"n": parameter})
        assert own is not None
        rule = own.rule("data.a.p")
    assert answer(rule, {"parameters": {"n": parameter}, "review": {}}) == []
