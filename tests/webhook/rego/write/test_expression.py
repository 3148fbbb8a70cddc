"""Expressions of generated code mean what they were put together from, whatever stands where."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from webhook.rego.write.expression import (
    FALSE,
    TRUE,
    Expression,
    Kind,
    all_of,
    any_of,
    call,
    compare,
    conditional,
    defined,
    is_of,
    item,
    list_of,
    method,
    name,
    negation,
    scalar,
    sum_of,
    tuple_of,
)

Values = dict[str, Any]
VALUES = (0, 1, -3, True, False, None, "a", [1])
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Meant:
    """An expression, and what it is to be for given values of locals."""

    expression: Expression
    value: Callable[[Values], Any]


LEAVES = st.one_of(
    st.sampled_from("abc").map(lambda local: Meant(name(local), lambda at: at[local])),
    st.sampled_from((0, 1, -3, True, None, "x")).map(
        lambda value: Meant(scalar(value), lambda _: value)
    ),
)


def walrus(one: Meant) -> Meant:
    test = defined(f"v{next(NUMBERS)}", one.expression)
    return Meant(test, lambda at: one.value(at) is not None)


def of(inner: st.SearchStrategy[Meant]) -> st.SearchStrategy[Meant]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(lambda a: Meant(negation(a.expression), lambda at: not a.value(at))),
        inner.map(walrus),
        inner.map(
            lambda a: Meant(is_of(a.expression, Kind.INT), lambda at: type(a.value(at)) is int)
        ),
        pairs.map(
            lambda two: Meant(
                any_of([one.expression for one in two]),
                lambda at: two[0].value(at) or two[1].value(at),
            )
        ),
        pairs.map(
            lambda two: Meant(
                all_of([one.expression for one in two]),
                lambda at: two[0].value(at) and two[1].value(at),
            )
        ),
        pairs.map(
            lambda two: Meant(
                compare(two[0].expression, "==", two[1].expression),
                lambda at: two[0].value(at) == two[1].value(at),
            )
        ),
        pairs.map(
            lambda two: Meant(
                list_of([tuple_of([one.expression]) for one in two]),
                lambda at: [(two[0].value(at),), (two[1].value(at),)],
            )
        ),
        pairs.map(
            lambda two: Meant(
                sum_of(
                    call("len", list_of([two[0].expression])),
                    "-",
                    method(list_of([two[1].expression]), "count", two[1].expression),
                    Kind.INT,
                ),
                lambda _: 0,
            )
        ),
        st.tuples(inner, inner, inner).map(
            lambda three: Meant(
                conditional(*(one.expression for one in three)),
                lambda at: three[0 if three[1].value(at) else 2].value(at),
            )
        ),
    )


@given(st.recursive(LEAVES, of, max_leaves=12), st.tuples(*[st.sampled_from(VALUES)] * 3))
def test_an_expression_is_what_it_was_put_together_from(source_text, values):
    at = dict(zip("abc", values, strict=True))
    names = {**at, "U": None}
    source = source_text.expression.source
    evaluated = eval(f"({source})", names)
    assert repr(evaluated) == repr(source_text.value(at)), source


def test_a_form_of_two_tests_keeps_its_parentheses_beside_others():
    v = name("v")
    either = any_of([compare(v, "==", "1"), compare(v, "==", "2")])
    assert all_of([either, name("w")]).source == "(v == 1 or v == 2) and w"
    assert negation(either).source == "not (v == 1 or v == 2)"
    assert compare(either, "is", "w").source == "(v == 1 or v == 2) is w"
    assert method(conditional(v, either, v), "get").source.startswith("(v if ")


def test_a_number_is_no_operand_of_a_dot():
    assert method(scalar(1), "get").source == "(1).get()"
    assert item(scalar(-1), 0).source == "(-1)[0]"


def test_and_keeps_what_its_operands_prove_and_nothing_else_does():
    v, w = name("v"), name("w")
    string, integer = is_of(v, Kind.STRING), is_of(w, Kind.INT)
    assert all_of([string, integer]).proves == ((v, Kind.STRING), (w, Kind.INT))
    assert any_of([string, integer]).proves == ()
    assert negation(string).proves == ()
    assert conditional(string, integer, string).proves == ()
    assert string.forgetting().proves == ()


def test_what_is_known_is_not_joined():
    assert negation(TRUE) is FALSE
    assert negation(FALSE) is TRUE
    assert all_of([]) is TRUE
    assert any_of([]) is FALSE
