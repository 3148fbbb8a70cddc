"""Every form beside every other, in every place, over values of every kind, to both.

A question is one validation: true where what is asked for is null, and otherwise denied with a
message that shows the value. Many of them are one policy, so that Kubernetes' validator makes its
environment once; ours is the template's evaluator as it runs in a replica. All code that is made
of them is verified before it runs.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

from tests.differential.cel.agreement import EXCEEDED, unnumbered
from tests.differential.cel.oracle import CelOracle
from tests.differential.cel.values import KINDS
from tests.verified_cel import verified
from webhook.cel.check.types import DYN, Type
from webhook.cel.engine import checked_expression, compile_expression
from webhook.cel.errors import CompileError, EvaluationError
from webhook.cel.kubernetes import admission
from webhook.cel.run.meter import Meter
from webhook.constraint.drivers.cel_evaluation import CelEvaluator
from webhook.constraint.drivers.cel_source import CelSource, Named, Validation
from webhook.constraint.limits import UNLIMITED

AGAIN: Final = 120
"""Asked again where both differ: of a map of two, one order comes up once in eight times in Go."""

AT_ONCE: Final = 150
"""Validations of one policy: together they stay below what a constraint may cost."""

FORMS: Final = (
    # Operators and calls: of one value, and of two.
    *("A == B", "A != B", "A == 'abc'", "'abc' != A", "A == true", "A == null", "A == 1", "dyn(1.0) == A"),
    *("A < B", "A <= B", "A > 1", "A >= 1.5", "A < 'b'", "A + B", "A + 'x'", "A - B", "A * 2", "A / B"),
    *("A % 2", "-A", "!A", "A", "A.x", "A.x.y", "A.a", "has(A.x)", "has(A.x.y)", "has(A.a)", "A['x']"),
    *("A[0]", "A[B]", "A[1.0]", "A[1u]", "A.?x", "A.?x.?y.orValue(B)", "A.?a.orValue(1)", "A[?0].orValue('z')"),
    *("A.?x.y.orValue(1)", "A.?x['y'].orValue('z')", "A[?'x'].y.orValue([])", "A.?x.y.hasValue()", "A.?x.?y.hasValue()", "A.x.?x.hasValue() && !B.?x['y'].hasValue()", "A.x.orValue([])", "A.orValue(1)"),
    *("A[?B].hasValue()", "A in B", "B in A", "A in ['abc', 'b']", "A in [1, 2]", "'a' in A", "1 in A"),
    *("A && B", "A || B", "!A || B", "A ? B : 1", "A == 1 ? B : A", "size(A)", "size(A) > 1", "A.size() == 3"),
    *("A.startsWith('a')", "A.endsWith(B)", "A.contains('b')", "A.matches('^a')", "A.matches(B)"),
    *("A.all(i, i == 1)", "A.all(i, i > 0)", "A.exists(i, i == 'a')", "A.exists(i, has(i.x))", "A.exists(i, i.x == 1)"),
    *("A.exists_one(i, i == 1)", "A.map(i, i)", "A.map(i, i == 1, B)", "A.map(i, i.x)", "A.filter(i, i != B)"),
    *("A.filter(i, i.x == 1)", "A.all(k, v, v == 1)", "A.exists(k, v, k == v)", "A.existsOne(k, v, v == 1)"),
    *("A.transformList(k, v, v)", "A.transformList(k, v, v == 1, k)", "A.transformMap(k, v, v)"),
    *("A.transformMap(k, v, v == 1, k)", "A.transformMapEntry(k, v, {k: v})", "A.sortBy(i, i)"),
    *("A.all(i, B.exists(j, i == j))", "A.map(i, B.filter(j, j == i))", "[A, B]", "[?A.?x]", "{'x': A}", "{'a': dyn(1), ?'x': A.?x}"),
    *("optional.of(A)", "optional.ofNonZeroValue(A)", "A.?x.optMap(o, o == 1)", "A.?x.optFlatMap(o, o.?y)"),
    *("optional.of(A).value()", "A.?x.or(B.?x).hasValue()", "optional.none().orValue(A)"),
    *("string(A)", "int(A)", "uint(A)", "double(A)", "bool(A)", "bytes(A)", "type(A)", "type(A) == type(B)"),
    *("timestamp(A)", "timestamp(A) < timestamp(B)", "timestamp(A).getFullYear()", "duration(A)"),
    *("duration(A) > duration('1s')", "timestamp(A) - duration('1h')", "int(A) + 1", "uint(A) - 1u", "double(A) * 2.0"),
    *("A.join(',')", "A.join()", "A.split(',')", "A.replace('a', 'b')", "A.lowerAscii()", "A.upperAscii()"),
    *("A.trim()", "A.substring(1)", "A.substring(0, 2)", "A.indexOf('b')", "A.lastIndexOf('b')", "A.charAt(0)"),
    *("'%s'.format([A])", "'%d|%s'.format([A, B])", "A.format([B])", "strings.quote(A)", "A.sum()", "A.min()"),
    *("A.max()", "A.isSorted()", "A.indexOf(1)", "A.lastIndexOf(B)", "A.first()", "A.last().orValue(B)"),
    *("A.distinct()", "A.reverse()", "A.slice(0, 1)", "A.flatten()", "A.sort()", "sets.contains(A, B)"),
    *("sets.intersects(A, [1])", "sets.equivalent(A, A)", "quantity(A)", "isQuantity(A)", "quantity(A).isLessThan(quantity('1'))"),
    *("quantity(A).add(1)", "ip(A)", "isIP(A)", "ip(A).family()", "cidr(A).containsIP('10.1.2.3')", "url(A).getHost()", "isURL(A)"),
    *("semver(A).major()", "isSemver(A)", "format.dns1123Label().validate(A)", "A.find('[a-z]+')", "A.findAll('.')"),
    *("has(A.x) && A.x == 1", "!has(A.x) || A.x.y == B", "has(A.x) ? A.x : B", "A.x == 'a' || A == B"),
    *("A.filter(i, has(i.x)).map(i, i.x)", "A.exists(i, i == 1) || A.all(i, i == 'a')", "A.map(i, string(i)).join(',')"),
    *("timestamp(A).getHours('America/New_York')", "duration(A).getSeconds()", "'%s'.format([[A, B]])", "A.split('')"),
    *("A.sortBy(i, i.x)", "A.map(i, [i, B])", "A.exists(i, i.startsWith('a'))", "A.exists(i, i.x in ['a', 'b'])"),
    *("A.x.all(i, i == 1)", "A.?x[?0]", "A.?x['y']", "(A == B ? A : B).x", "(A == B ? A.?x : B.?x).y", "A.transformMapEntry(k, v, {v: k})"),
    *("A.map(i, i.x).distinct()", "A.substring(A.indexOf('b'))", "A.size() > 0 && A[0] == B", "A.exists(i, i in B)"),
    *("sets.contains(A, [B])", "has(A.x) && has(A.x.y)", "!(A in ['a', 'b'])", "A.filter(i, i in B).size() == 0"),
    *("A + ':' + string(B)", "A.lowerAscii() == B.lowerAscii()", "A.map(i, {'k': i}).filter(j, j.k == B)"),
    *("A in B || !(A in B)", "A.x + '!'", "A == 1 && B == 1 || A == B", "A == B ? (B == 1 ? 1 : 2) : 3", "A[0] == A[B]"),
)  # fmt: skip
"""``A`` and ``B`` are values of any kind, known to nobody before the expression is run."""

PLACES: Final = (
    *("X", "X && Y", "Y && X", "X || Y", "!X && Y", "!(X || Y)", "X && Y || X", "X || X && Y", "(X || Y) && X"),
    *("X ? Y : 1", "X ? 1 : Y", "Y == X ? X : Y", "true ? X : Y", "false || X", "X && true", "false && X", "X || true"),
    *("X == 1 || Y", "(X ? Y : X) && Y", "X == Y", "X != Y", "X < Y", "X + Y", "X in [Y]", "X in Y", "Y[X]", "X.?x.orValue(Y)"),
    *("[X, Y]", "[X, Y][1]", "{'k': X, 'l': Y}", "{'k': X}.k == Y", "{'k': X}.?k.orValue(Y)", "{'k': X}.?l.orValue(Y)", "[?optional.of(X), Y]"),
    *("[X].all(z, z == Y)", "[X].exists(z, z == Y) || Y", "[Y, X].exists_one(z, z == X)", "[X].map(z, Y)", "[X].filter(z, z == Y)"),
    *("[X].map(z, z == Y, Y)", "[X, Y].all(z, z == z)", "[X].all(k, z, z == Y)", "[X].transformList(k, z, [k, Y])", "{'k': X}.transformMap(k, z, z == Y)"),
    *("{'k': X}.transformMapEntry(k, z, {k + 'l': Y})", "optional.of(X).optMap(o, o == Y)", "optional.of(X).optFlatMap(o, optional.of(Y))"),
    *("variables.x && Y", "variables.x || Y", "variables.x == variables.y", "variables.x ? variables.y : X", "[variables.x, variables.x]"),
    *("variables.x && variables.y || variables.x", "[1, 2].map(z, variables.x)", "has(variables.x) && Y", "variables.x.?x.orValue(variables.y)"),
    *("variables.?x.orValue(1)", "variables.?x.a.orValue(1)", "variables.x.?x.y.orValue(1)", "variables.?x.?a.hasValue()", "variables.x.?x.y.hasValue()"),
)  # fmt: skip
"""``X`` and ``Y`` are forms; ``variables.x`` is what the first of them gives."""

ITEMS: Final = (
    *("object.L.all(i0, X)", "object.L.exists(i0, X)", "object.L.exists(i0, X && Y)", "object.L.all(i0, X || Y)"),
    *("object.L.exists_one(i0, X)", "object.L.map(i0, X)", "object.L.map(i0, X, Y)", "object.L.filter(i0, X)", "object.L.filter(i0, X && Y)"),
    *("object.L.all(k0, i0, X)", "object.L.exists(k0, i0, X && Y)", "object.L.transformList(k0, i0, X, Y)", "object.L.transformMap(k0, i0, X)"),
    *("object.L.map(i0, [i0].exists(j0, X) ? Y : X)", "object.L.filter(i0, X).map(i0, Y)", "object.L.all(i0, object.L.exists(j0, X))"),
    *("object.L.exists(i0, X ? Y : X)", "object.L.map(i0, X).exists(i0, i0 == Y)", "object.L.?x.optMap(i0, X)", "object.L.sortBy(i0, X)"),
)  # fmt: skip
"""Places where ``A`` is an item of a list or map."""

MORE: Final[dict[str, Any]] = {
    "xs": [{"x": 1}, {"x": "a"}, {}, {"x": None}],
    "ones": [1, 1.0, True, "1"],
    "xy": {"x": {"y": "abc"}, "a": True},
    "trues": {"x": True},
    "named": {"x": "abc"},
    "pairs": {"abc": 1, "x": 1.0},
}
VALUES: Final[dict[str, Any]] = KINDS | MORE
_LISTED: Final = (
    *("ints", "strs", "mixed", "none", "bools", "m", "any", "xs", "ones", "xy", "void", "doubles"),
    *("s", "null"),
)  # fmt: skip
_COMMON: Final = (
    *MORE,
    "i",
    "d",
    "whole",
    "s",
    "t",
    "f",
    "null",
    "ints",
    "strs",
    "mixed",
    "m",
    "any",
)


@dataclass(frozen=True, slots=True)
class ComposedQuestion:
    """An expression, and what the composed variables of its policy are."""

    expression: str
    variables: tuple[tuple[str, str], ...] = ()


Report = Callable[[str, str], Any]


def compositions(chance: random.Random) -> Iterator[ComposedQuestion]:
    """Pairs of forms in places without end: each form is the first and the second as often."""
    while True:
        seconds = chance.sample(FORMS, len(FORMS))
        for first, second in zip(chance.sample(FORMS, len(FORMS)), seconds, strict=True):
            yield _composed(chance, first, second)


def _composed(chance: random.Random, first: str, second: str) -> ComposedQuestion:
    within = chance.random() < 0.3
    place = chance.choice(ITEMS if within else PLACES)
    place = re.sub(r"\bobject\.L\b", _field_named(chance.choice(_LISTED)), place)
    if within:
        names = {"A": "i0", "B": _field(chance)}
        one, two = written(first, names), written(second, names)
    else:
        one, two = (written(form, operands(chance, form)) for form in (first, second))
    variables = (("x", one), ("y", two)) if "variables" in place else ()
    for of in ("({})", "dyn({})")[chance.random() < 0.3 :]:
        text = written(place, {"X": of.format(one), "Y": of.format(two)})
        question = ComposedQuestion(text, variables)
        if is_accepted(question) or chance.random() < 0.1:
            break
    return question


def written(text: str, names: dict[str, str]) -> str:
    """A form or a place with what stands for its names."""
    return re.sub(r"\b[ABXY]\b", lambda at: names[at[0]], text)


def operands(chance: random.Random, form: str) -> dict[str, str]:
    """Values of any kind; more often such that the form has a value than not."""
    for _ in range(chance.choice((1, 6, 12))):
        names = {"A": _field(chance), "B": _field(chance)}
        if has_value(written(form, names)):
            break
    return names


@cache
def has_value(text: str) -> bool:
    try:
        compile_expression(text, _ENVIRONMENT).evaluate({"object": VALUES}, Meter())
    except (CompileError, EvaluationError):
        return False
    return True


_ENVIRONMENT: Final = admission({}, params=False)


def _field(chance: random.Random) -> str:
    name = chance.choice(_COMMON if chance.random() < 0.6 else tuple(VALUES))
    return _field_named(name) if chance.random() < 0.95 else f"object.missing.{name}"


def _field_named(name: str) -> str:
    return "object['null']" if name == "null" else f"object.{name}"


def variables_of(question: ComposedQuestion) -> dict[str, Type] | None:
    """The types of its composed variables; None where one is refused."""
    types: dict[str, Type] = {"anyObject": DYN, "params": DYN}
    for name, text in question.variables:
        try:
            types[name] = checked_expression(text, admission(types, params=True)).type
        except CompileError:
            return None
    return types


def is_accepted(question: ComposedQuestion) -> bool:
    """Whether it has a type."""
    types = variables_of(question)
    try:
        checked_expression(question.expression, admission(types or {}, params=False))
    except CompileError:
        return False
    return types is not None


def compare(
    oracle: CelOracle, questions: Iterator[ComposedQuestion], report: Report, counted: Counter[str]
) -> None:
    """Ask both until there is no more; ``report`` gets each difference."""
    while batch := list(islice(questions, AT_ONCE)):
        accepted = []
        for number, one in enumerate(batch):
            if variables_of(one) is None:
                counted["refused"] += 1
                continue
            accepted.append(_renamed(one, number))
        answers = answers_there(oracle, accepted)
        mine = answers_here(accepted, answers)
        for one, expected, found in zip(accepted, answers, mine, strict=True):
            why = "" if found == expected else _passed_over(found, expected)
            if found != expected and not why and _is_by_chance(oracle, one, found):
                why = "the order in which Go goes through a map"
            counted[f"passed over: {why}" if why else _outcome(expected)] += 1
            if found != expected and not why:
                report(_question_text(one), f"{found!r} instead of {expected!r}")


def _is_by_chance(oracle: CelOracle, question: ComposedQuestion, found: str) -> bool:
    """Whether the oracle says what we say when it is asked again.

    Each time with variables of its own: within one policy a variable has one value, and its order.
    """
    again = [_copied(question, number) for number in range(AGAIN)]
    return found in answers_there(oracle, again)


def _copied(question: ComposedQuestion, number: int) -> ComposedQuestion:
    """With other names for its variables."""
    names = {name: f"{name}c{number}" for name, _ in question.variables}
    text = re.sub(
        r"\bvariables\.(\w+)",
        lambda found: f"variables.{names.get(found[1], found[1])}",
        question.expression,
    )
    return ComposedQuestion(text, tuple((names[name], of) for name, of in question.variables))


def _renamed(question: ComposedQuestion, number: int) -> ComposedQuestion:
    """With variables that no other question of the policy has."""
    text = re.sub(r"\bvariables\.([xy])\b", rf"variables.\g<1>{number}", question.expression)
    return ComposedQuestion(text, tuple((f"{name}{number}", of) for name, of in question.variables))


def _question_text(question: ComposedQuestion) -> str:
    return "; ".join([*(f"{name} := {of}" for name, of in question.variables), question.expression])


def _validation(question: ComposedQuestion) -> dict[str, str]:
    return {
        "expression": f"dyn({question.expression}) == null",
        "messageExpression": f"'is %s'.format([dyn({question.expression})])",
    }


def _outcome(message: str) -> str:
    if message.startswith("is "):
        return "value"
    if message == "refused":
        return "refused"
    return "null" if not message else "error" if " error" in message else "without text"


def answers_there(oracle: CelOracle, questions: list[ComposedQuestion]) -> list[str]:
    """Returns the message of Kubernetes' validator for each question; empty if it admits."""
    named = [{"name": name, "expression": of} for one in questions for name, of in one.variables]
    gvk = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    question = {
        "policy": {"variables": named, "validations": [_validation(one) for one in questions]},
        "request": {"kind": gvk, "resource": resource, "operation": "CREATE", "object": VALUES},
        "budget": 10**9,
    }
    (answer,) = oracle.ask([question])
    return [one["message"] for one in answer["decisions"]]


def answers_here(questions: list[ComposedQuestion], expected: list[str]) -> list[str]:
    """Returns our message for each question, by the evaluator of a template."""
    found = []
    for one, there in zip(questions, expected, strict=True):
        validation = _validation(one)
        types = variables_of(one)
        assert types is not None
        environment = admission(types, params=False)
        try:
            compile_expression(validation["expression"], environment)
            compile_expression(validation["messageExpression"], environment)
        except CompileError as error:
            found.append("refused" if _is_same_refusal(str(error), there) else f"refused: {error}")
            continue
        variables = tuple(Named(name, of) for name, of in one.variables)
        validations = (Validation(validation["expression"], "", validation["messageExpression"]),)
        source = CelSource(validations, variables, (), True, None)
        verified(source)
        evaluator = CelEvaluator(source)
        review = {"object": VALUES, "operation": "CREATE"}
        state = evaluator.begin(UNLIMITED, {})
        messages = [violation.msg for violation in evaluator.evaluate(None, review, state)]
        found.append(messages[0] if messages else "")
    for at, outcome_here in enumerate(found):
        if outcome_here == "refused":
            expected[at] = "refused"
    return found


def _is_same_refusal(mine: str, there: str) -> bool:
    """Whether Kubernetes refuses an expression with these words."""
    of_syntax = "Syntax error" in mine and "Syntax error" in there
    return "compilation error" in there and (of_syntax or unnumbered(mine) in unnumbered(there))


def _passed_over(found: str, expected: str) -> str:
    """Returns the reason why a difference does not count; see docs/compatibility/cel.md."""
    if EXCEEDED in found or EXCEEDED in expected:
        return "cost, which each counts by its own measure"
    return ""
