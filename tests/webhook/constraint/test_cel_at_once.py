"""A policy in CEL as one function: what its expressions give one by one, or nothing."""

import contextlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.cel_values import same
from tests.differential.cel import composition
from tests.differential.cel.values import KINDS
from tests.verified_cel import verified_policy
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import Expression, compile_checked
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.fast.policy import Part, Whole, whole_form
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import NOTHING
from webhook.constraint.driver import DriverViolation
from webhook.constraint.drivers.cel_evaluation import CelEvaluator
from webhook.constraint.drivers.cel_source import read_source
from webhook.constraint.drivers.cel_validator import Composed
from webhook.constraint.limits import UNLIMITED

GIVEN = {
    "object": composition.VALUES,
    "oldObject": KINDS,
    "request": {"operation": "CREATE", "dryRun": False},
    "namespaceObject": None,
}

PLACES = (
    "variables.x == null",
    "variables.x ? variables.y == null : variables.x",
    "!variables.x || variables.y && variables.x || variables.y",
    "variables.z == variables.y || variables.x == variables.z",
    "[1, 2].all(i, variables.x == i || variables.y == i)",
    "[1, 2].map(i, i == 1 ? variables.x : variables.z) == [variables.x, variables.z]",
    "[variables.x].exists(i, has(variables.y) && i == variables.y) ? variables.y == 1 : variables.x",
    "variables.p == variables.x || has(variables.p) && variables.p == null",
    "variables.p.exists(i, variables.x == i) || variables.q.all(i, i == variables.p)",
    "variables.x + variables.y + variables.p == null",
    "'a' + string(variables.x) + variables.y == 'abc'",
    "request.operation == 'CREATE' && variables.q == variables.z",
    "has(request.operation) ? variables.x == 1 : variables.y == 1",
    "variables.params.i == 1 && variables.anyObject.i == 1 && variables.p != variables.x",
)  # fmt: skip
"""Validations; ``x`` and ``y`` are forms, ``z`` reads these, ``p`` and ``q`` are about parameters."""

LATER = (
    "variables.x",
    "variables.x == 1 ? variables.y : variables.x",
    "[variables.x, variables.y]",
)

Policy = tuple[dict[str, str], list[tuple[str, str]]]


def policies(chance: random.Random) -> Iterator[Policy]:
    """Policies without end."""
    while True:
        texts = [_truth(chance) for _ in range(3)]
        variables = {"x": texts[0], "y": texts[1], "z": chance.choice(LATER)}
        variables["p"] = re.sub(r"\bobject\b", "params.spec.parameters", texts[2])
        variables["q"] = "has(variables.p) ? [variables.p, dyn(1)] : []"
        validations = []
        for _ in range(chance.choice((1, 1, 2, 3))):
            message = chance.choice(("", "'is %s'.format([variables.x])", "string(variables.y)"))
            validations.append((chance.choice(PLACES), message))
        yield variables, validations


def _truth(chance: random.Random) -> str:
    """A truth more often than another value."""
    found = [_value(chance), _value(chance)]
    return f"dyn({found[0]})" if chance.random() < 0.3 else "dyn(dyn({}) == dyn({}))".format(*found)


def _value(chance: random.Random) -> str:
    """A form, seldom one that has no value."""
    while True:
        form = chance.choice(composition.FORMS)
        text = composition.written(form, composition.operands(chance, form))
        if composition.has_value(text) or chance.random() < 0.01:
            return text


def compiled(policy: Policy) -> tuple[dict[str, Any], list[Any]]:
    """Returns the variables and validations; raises CompileError."""
    types: dict[str, Type] = {"anyObject": DYN, "params": DYN}
    variables = {}
    for name, text in policy[0].items():
        variables[name] = compile_checked(text, admission(types, params=True))
        types[name] = variables[name][0].type
    environment = admission(types, params=False)
    validations = [
        tuple(compile_checked(text, environment) if text else None for text in pair)
        for pair in policy[1]
    ]
    return variables, validations


def whole_of(variables: dict[str, Any], validations: list[Any]) -> Whole | None:
    """Returns the policy's function, which is verified."""
    parts = {name: _part(of) for name, of in variables.items()}
    pairs = [
        (_part(one), None if message is None else _part(message)) for one, message in validations
    ]
    verified_policy(parts, pairs)
    return whole_form(parts, pairs)


def _part(of: tuple[Expression, Any]) -> Part:
    return Part(of[1], of[0].has_exact_errors)


def composed(variables: dict[str, Any]) -> Composed:
    """Returns the environment in which expressions are evaluated one by one."""
    known = {"anyObject": GIVEN["object"], "params": composition.VALUES}
    params = {"spec": {"parameters": composition.VALUES}}
    of = Composed({name: one for name, (one, _) in variables.items()}, GIVEN, params, known)
    of.meter = Meter(10**9)
    return of


def one_by_one(variables: dict[str, Any], validations: list[Any]) -> list[tuple[int, Any]] | None:
    """The validations that fail, with their messages; None where one has no value."""
    of = composed(variables)
    found = []
    for number, (validation, message) in enumerate(validations):
        try:
            holds = validation[0].exact(dict(of.env), of.meter)
        except EvaluationError:
            return None
        if holds is not True:
            message_text = None
            if message is not None:
                with contextlib.suppress(EvaluationError):
                    message_text = message[0].exact(dict(of.env), of.meter)
            found.append((number, message_text))
    return found


def prepared_for(whole: Whole, of: Composed) -> tuple[Any, ...]:
    """The values of the variables that read nothing but parameters."""
    values = []
    for number, name in enumerate(whole.prepared):
        try:
            values.append(of[name])
        except EvaluationError:
            if number < whole.needed:
                raise
            values.append(NOTHING)
    return tuple(values)


def at_once(whole: Whole, variables: dict[str, Any]) -> list[tuple[int, Any]] | None:
    """The same by the function; None where it raises."""
    of = composed(variables)
    try:
        prepared = prepared_for(whole, of)
        return whole.run(
            GIVEN["object"], composition.VALUES, "CREATE", of.env, Meter(10**9), prepared
        )
    except Exception:  # noqa: BLE001  # whatever it is
        return None


def compared(chance: random.Random, count: int) -> Counter[str]:
    """Compare policies; what came of them."""
    counted: Counter[str] = Counter()
    for policy in itertools.islice(policies(chance), count):
        try:
            variables, validations = compiled(policy)
        except CompileError:
            counted["refused"] += 1
            continue
        whole = whole_of(variables, validations)
        if whole is None:
            counted["unwritten"] += 1
            continue
        found = at_once(whole, variables)
        if found is None:
            counted["raised"] += 1
            continue
        expected = one_by_one(variables, validations)
        assert expected is not None, policy
        assert same([list(one) for one in found], [list(one) for one in expected]), policy
        counted["returned"] += 1
    return counted


def test_policies_of_random_forms_give_what_their_expressions_give_one_by_one() -> None:
    counted = compared(random.Random(20261122), 300)
    assert counted["returned"] > 60


def decided(parameters: Any = None, **source: Any) -> list[str]:
    """The messages of a policy for a small object."""
    review = {"operation": "CREATE", "object": {"n": 1, "l": [1, 2], "s": "abc"}}
    evaluator = CelEvaluator(read_source(source))
    state = evaluator.begin(UNLIMITED, {})
    return [one.msg for one in evaluator.evaluate(parameters, review, state)]


def test_a_variable_that_is_read_in_a_branch_is_computed_in_the_other_too() -> None:
    variables = [
        {"name": "a", "expression": "object.l.map(i, i + 1)"},
        {"name": "b", "expression": "object.n == 1 ? variables.a[0] : object.n"},
    ]
    source = {
        "variables": variables,
        "validations": [
            {"expression": "object.n == 2 ? variables.a == [] : variables.b == 2"},
            {
                "expression": "variables.a == []",
                "messageExpression": "string(variables.a[1]) + string(variables.b)",
            },
        ],
    }
    assert decided(**source) == ["32"]


def test_a_message_that_has_no_value_leaves_the_others_what_they_are() -> None:
    validations = [
        {"expression": "false", "messageExpression": "string(object.l)", "message": "one"},
        {"expression": "false", "messageExpression": "'two' + object.s"},
        {"expression": "false", "messageExpression": "object.s + string(object.t)"},
    ]
    messages = ["one", "twoabc", "failed expression: false"]
    assert decided(validations=validations) == messages


def test_a_message_that_is_no_text_is_none() -> None:
    validation = {
        "expression": "false",
        "messageExpression": "(object.l + ['x'])[0]",
        "message": "m",
    }
    assert decided(validations=[validation]) == ["m"]
    assert decided(
        variables=[{"name": "v", "expression": "object.missing"}],
        validations=[validation, {"expression": "variables.v == 1 || true"}],
    ) == ["m"]


@pytest.mark.parametrize(
    ("expression", "messages", "is_fast"),
    [
        ("!has(variables.params.n) || object.n == variables.params.n", [], True),
        ("object.n == 2 && has(variables.params.n)", ["m"], True),
        ("variables.params == null", [], True),
        ("variables.params == {}", ["m"], True),
        ("variables.given == null", [], True),
        ("variables.params.?n.orValue(1) == 1", [], False),
        ("variables.params['n'] == 1", None, False),
        ("variables.params.n == 1", None, False),
        ("size(variables.params) == 0", None, False),
        ("variables.params.all(k, k == '')", None, False),
    ],
)
def test_parameters_that_are_not_there_are_null_to_both_forms(
    monkeypatch: pytest.MonkeyPatch, expression: str, messages: list[str] | None, is_fast: bool
) -> None:
    """Whether the fast form decides is a matter of speed; what is decided is not."""
    exact: list[Any] = []
    evaluate = CelEvaluator._evaluate

    def evaluated(*given: Any) -> list[DriverViolation]:
        exact.append(given)
        return evaluate(*given)

    monkeypatch.setattr(CelEvaluator, "_evaluate", evaluated)
    source = {
        "variables": [{"name": "given", "expression": "variables.params"}]
        if "given" in expression
        else [],
        "validations": [{"expression": expression, "message": "m"}],
    }
    found = decided(None, **source)
    assert not exact or not is_fast
    if messages is None:
        assert [text.partition(":")[0] for text in found] == [
            f"expression '{expression}' resulted in error"
        ]
    else:
        assert found == messages


@pytest.mark.parametrize("parameters", [{"allowed": ["abc"]}, {"allowed": ["x"]}, {}, None])
def test_what_parameters_decide_is_theirs_alone(parameters: Any) -> None:
    source = {
        "variables": [
            {"name": "all", "expression": "has(params.spec.parameters.allowed) ? "
                "variables.params.allowed.map(a, a + '!') : []"},
        ],
        "validations": [{"expression": "object.s + '!' in variables.all"}],
    }  # fmt: skip
    failed = "failed expression: object.s + '!' in variables.all"
    lacking = (
        "expression 'object.s + '!' in variables.all' resulted in error: composited variable "
        '"all" fails to evaluate: no such key: parameters'
    )
    expected = {"abc": [], "x": [failed], "": [failed], None: [lacking]}
    first = None if parameters is None else parameters.get("allowed", [""])[0]
    assert decided(parameters, **source) == expected[first]
