"""The fast form of expressions: the value of the exact form, or none."""

import warnings

import pytest

from tests.conformance.cel import load
from tests.conformance.cel_values import same
from tests.conformance.gatekeeper import CONFORMANCE
from tests.verified_code import verify
from webhook.cel.check.types import DYN
from webhook.cel.engine import checked_expression, compile_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.fast.expression import NAMESPACE, fast_source
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import Duration, Opaque, Optional, Uint
from webhook.constraint.drivers.cel_validator import Composed

ENVIRONMENT = admission({}, params=True)

VALUES = [
    None, True, False, 0, 1, -1, 2**53 + 1, 0.0, 1.0, 1.5, float("nan"), "", "a", "1", b"a", Uint(1),
    [], [1, "a"], [True], {}, {"x": 1, "a": "1"}, {"x": {"x": None}}, [{"x": 1}, {"x": "a"}],
    {"x": True}, {"x": "a"},
    Optional(1), Optional(), Duration(1), Opaque("net.IP", "v", "v"),
]  # fmt: skip
"""A value of each kind, and values that Python takes for another."""

FORMS = [
    "A == B", "A != B", "A == 'a'", "'a' != A", "A == true", "A == null", "A == 1", "1.0 == A",
    "A < B", "A >= 1", "A + B", "A - B", "A * 2", "A / B", "A % 2", "-A", "!A", "A && B", "A || B",
    "A ? B : 1", "A in B", "A in ['a', 'b']", "A in [1, 2]", "A.x", "A.x.x", "has(A.x)", "has(A.x.x)",
    "A['x']", "A[0]", "A[B]", "A.?x", "A.?x.orValue(1)", "A[?0].orValue('z')", "size(A)", "size(A) > 1",
    "size(A) == size(B)", "A.startsWith('a')", "A.endsWith(B)", "A.contains('a')", "A.matches('^a$')",
    "A.all(i, i == 1)", "A.exists(i, i == 'a')", "A.exists_one(i, i == 1)", "A.map(i, i)",
    "A.filter(i, i != B)", "A.map(i, i == 1, B)", "A.all(k, v, v == 1)", "A.transformList(k, v, v)",
    "A.exists(i, has(i.x) && i.x == 1)", "A.all(i, B.exists(j, i == j))", "[A, B]", "{'x': A}",
    "string(A)", "int(A) + 1", "type(A) == type(B)", "dyn(A) == dyn(B)", "A.join(',')", "A.x || B",
    "A.all(i, i.x == 1) && B.all(j, j == 1) || A == B", "(A == B) == (B == 1)", "!(A == 1) && !B",
    "A.filter(i, i.x == 1).map(i, i.x).exists(i, i == 1) ? 'y' : 'n'", "A.x + '!' == 'a!'",
    "A.?x.x.orValue(1)", "A.?x['x'].orValue('z')", "A.?x[?'x'].orValue([])", "A[?'x'].x.orValue({})",
    "A.?x.x.hasValue()", "A.?x.x == B.?x.x", "A.x.orValue([])", "A.orValue({})", "A.?x.orValue({}).x",
    "A.?x.?x.hasValue()", "A.x.?x.hasValue() && B[?'x'].hasValue()", "!B.?x['x'].hasValue()",
    "A == 1 ? (B == 1 ? 1 : 2) : 3", "[1, 2].all(i, A == i || A.exists(j, j == i))",
]  # fmt: skip


def error_of(expression, variables):
    """Returns the error of the exact form; None if it has a value."""
    try:
        expression.exact(dict(variables), Meter())
    except EvaluationError as error:
        return error.text
    return None


def compared(expression, variables):
    """Fail unless the fast form gives what the exact one gives, or nothing; whether it gave something."""
    if expression.fast is None:
        return False
    message = None
    found = None
    try:
        found = expression.fast(dict(variables), Meter())
    except EvaluationError as error:
        message = str(error.text)
    except Exception:  # noqa: BLE001  # whatever it is
        return False
    if message is not None:
        assert not expression.has_exact_errors or message == error_of(expression, variables), (
            expression.source
        )
        return False
    try:
        expected = expression.exact(dict(variables), Meter())
    except EvaluationError as error:
        raise AssertionError(f"{expression.source}: {found!r} instead of {error}") from None
    assert same(found, expected), f"{expression.source}: {found!r} instead of {expected!r}"
    return True


@pytest.mark.parametrize("form", FORMS)
def test_a_form_gives_what_the_exact_one_gives_of_values_of_every_kind(form):
    source = form.replace("A", "object").replace("B", "oldObject")
    expression = compile_expression(source, ENVIRONMENT)
    assert expression.fast is not None
    gave = 0
    for one in VALUES:
        for other in VALUES:
            gave += compared(expression, {"object": one, "oldObject": other})
    assert gave


@pytest.mark.parametrize(
    "outer", ["X && Y", "X || Y", "!X && !Y", "X ? Y : X", "[X].all(z, z == Y)"]
)
def test_forms_beside_each_other_give_what_the_exact_ones_give(outer):
    tests = [
        form for form in FORMS if "all(" in form or "exists" in form or "==" in form or "?" in form
    ]
    values = [one for one in VALUES if type(one) in {list, dict, bool, int, str}]
    for one in tests:
        for other in tests:
            source = outer.replace("X", f"dyn({one})").replace("Y", f"dyn({other})")
            source = source.replace("A", "object").replace("B", "oldObject")
            try:
                expression = compile_expression(source, ENVIRONMENT)
            except CompileError:
                continue
            for index, value in enumerate(values):
                given = {"object": value, "oldObject": values[-1 - index]}
                compared(expression, given)
    assert tests


def test_a_composed_variable_behind_a_question_mark_is_computed():
    environment = admission({"x": DYN}, params=False)
    known = {"object": {"a": 1}, "oldObject": None, "request": None, "namespaceObject": None}
    variables = {"x": compile_expression("object.a", environment)}
    for source, value in (
        ("variables.?x.orValue(5)", 1),
        ("variables.?x.?a.orValue(5)", 5),
        ("variables.?x.?a.hasValue()", False),
    ):
        expression = compile_expression(source, environment)
        for run in (expression.evaluate, expression.exact):
            composed = Composed(variables, known, None)
            composed.meter = Meter()
            assert run(composed.env, Meter()) == value, source


def verified(source):
    """Whether there is code for it, which is as it must be."""
    written = fast_source(checked_expression(source, ENVIRONMENT))
    if written is None:
        return False
    text, constants = written
    verify(text, {*NAMESPACE, *NAMESPACE["__builtins__"], *constants})
    return True


@pytest.mark.parametrize("form", FORMS)
def test_generated_code_reads_only_what_it_has_assigned(form):
    for more in ("X", "X && (X) == (X)", "[X].map(i, X)", "X ? X : X", "(X || X) && X"):
        source = more.replace("X", f"dyn({form})").replace("A", "object").replace("B", "oldObject")
        try:
            assert verified(source)
        except CompileError:
            continue


def test_no_text_of_a_policy_becomes_code():
    name = "'] + __import__('os').system('true') #"
    for source in (f'object["{name}"] == "{name}"', f'{{"{name}": 1}} == object'):
        assert verified(source)


@pytest.mark.skipif(
    not (CONFORMANCE / "cel").is_dir(), reason="no conformance/cel: set WADDLE_CONFORMANCE"
)
def test_every_case_of_kubernetes_is_the_same_in_both_forms():
    gave = 0
    for case in load(CONFORMANCE / "cel"):
        try:
            expression = compile_expression(case.content["expr"], ENVIRONMENT)
            if expression.fast is not None:
                verified(case.content["expr"])
        except CompileError:
            continue
        names = ("object", "oldObject", "request", "namespaceObject", "params")
        gave += compared(expression, {**dict.fromkeys(names), **case.variables})
    assert gave > 500


@pytest.mark.parametrize(
    "source", ["dyn([1]).x", "dyn('a').x", "dyn(1).x", "dyn(null).x", "dyn(true).x", "dyn([1]).x.y"]
)
def test_a_field_of_what_has_none_is_compiled_without_a_word_of_python(source):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expression = compile_expression(source, admission({}, params=False))
    with pytest.raises(EvaluationError, match=r"no such key: x|unsupported index type"):
        expression.evaluate({}, Meter())
