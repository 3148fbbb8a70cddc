"""``cel.bind``: a value that has a name within an expression, where an environment has the macro."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.webhook.cel.evaluation import ENVIRONMENT
from webhook.cel.cost import estimated_cost
from webhook.cel.engine import checked_expression, compile_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.run.meter import Meter

BINDING: Final = replace(ENVIRONMENT, extended=True)
OBJECT: Final = {"a": 1, "s": "x", "l": [{"n": "p"}, {"n": "q"}]}
GIVEN: Final = {"object": OBJECT, "oldObject": None, "request": None, "namespaceObject": None}


def _values(source: str) -> list[Any]:
    """The value or the error, by each form of the expression."""
    expression = compile_expression(source, BINDING)
    values: list[Any] = []
    for one in (expression, replace(expression, fast=None)):
        try:
            values.append(one.evaluate(dict(GIVEN), Meter()))
        except EvaluationError as error:
            values.append(error.text)
    return values


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("cel.bind(x, object.a, x + x)", 2),
        ("cel.bind(x, 'p', cel.bind(y, 'q', x + y + x))", "pqp"),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x * 10) + x)", 21),
        ("object.l.map(i, cel.bind(n, i.n, n + n))", ["pp", "qq"]),
        ("cel.bind(n, 'z', object.l.map(n, n.n))", ["p", "q"]),
        ("cel.bind(o, object.?none, o.hasValue())", False),
        ("cel.bind(o, object.?l, o[0].n.orValue(''))", "p"),
        ("cel.bind(x, object.none, true)", True),
        ("cel.bind(x, object.none, x == 1 || true)", True),
        ("cel.bind(x, object.none, x == 1 || x == 2)", "no such key: none"),
        ("object.l.exists(i, cel.bind(n, object.none, i.n == 'q' || n == 1))", True),
        ("cel.bind(object, {'a': 5}, object.a)", 5),
    ],
)
def test_a_bound_value_is_used_in_both_forms(source: str, value: object) -> None:
    assert _values(source) == [value, value]


def test_a_bound_value_is_computed_once() -> None:
    work = "lists.range(1000).map(i, i * i)"
    spent = []
    for source in (f"{work}.size() > 0", f"cel.bind(x, {work}, [x, x, x].size() > 0)"):
        meter = Meter()
        before = meter.left
        compile_expression(source, BINDING).exact(dict(GIVEN), meter)
        spent.append(before - meter.left)
    once, thrice = spent
    assert once <= thrice < once * 1.1


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("cel.bind(x, x, x == 1)", "undeclared reference to 'x'"),
        ("cel.bind(x, 1, y == 1)", "undeclared reference to 'y'"),
        ("cel.bind(x, 1, x == 'a')", "no matching overload"),
        ("cel.bind(x, 1, true) && x == 1", "undeclared reference to 'x'"),
        ("cel.bind(x.y, 1, true)", "variable names must be simple identifiers"),
        ("cel.bind(x, 1)", "undeclared reference to 'cel'"),
        ("other.bind(x, 1, true)", "undeclared reference to 'other'"),
    ],
)
def test_a_wrong_use_has_its_fault(source: str, fault: str) -> None:
    with pytest.raises(CompileError, match=fault):
        compile_expression(source, BINDING)


def test_kubernetes_has_no_such_macro() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'cel'"):
        compile_expression("cel.bind(x, 1, x == 1)", ENVIRONMENT)


def test_its_cost_is_that_of_its_parts() -> None:
    bound = checked_expression("cel.bind(x, object.l, x.all(i, i.n == 'p'))", BINDING)
    plain = checked_expression("object.l.all(i, i.n == 'p')", BINDING)
    for entries in (1, 10, 100):
        assert 0 <= estimated_cost(bound, entries) - estimated_cost(plain, entries) <= 2
