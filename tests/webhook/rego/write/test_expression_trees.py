"""Python reads joined expressions as they were built: each form, with operands of each binding."""

import ast
import itertools
from collections.abc import Callable, Iterator

import pytest

from webhook.rego.run.values import RegoSet
from webhook.rego.write.expression import (
    FALSE,
    TRUE,
    Binds,
    Expression,
    Kind,
    all_of,
    any_of,
    call,
    compare,
    conditional,
    defined,
    dict_of,
    is_of,
    item,
    list_of,
    method,
    name,
    named,
    negation,
    part,
    scalar,
    sum_of,
    text_of,
    tuple_of,
)

Form = Callable[..., Expression]

FORMS: dict[str, Form] = {
    "call": lambda a, b: call("f", a, b),
    "method": lambda a, b: method(a, "get", b),
    "item": lambda a: item(a, 0),
    "part": lambda a, b: part(a, b, "1 + 2"),
    "the rest": lambda a, b: part(a, b, ""),
    "plus": lambda a, b: sum_of(a, "+", b, Kind.INT),
    "minus": lambda a, b: sum_of(a, "-", b, Kind.INT),
    "list": lambda a, b: list_of([a, b]),
    "tuple of one": lambda a: tuple_of([a]),
    "tuple": lambda a, b: tuple_of([a, b]),
    "object": lambda a, b: dict_of([(a, b)]),
    "conditional": conditional,
    "text": lambda a, b: text_of(["x", a, "", b, "{y"]),
    "comparison": lambda a, b: compare(a, "==", b),
    "membership": lambda a, b: compare(a, "in", b),
    "identity": lambda a, b: compare(a, "is not", b),
    "kind": lambda a: is_of(a, Kind.SET),
    "defined": lambda a: defined("v", a),
    "negation": negation,
    "all": lambda a, b, c: all_of([a, b, c]),
    "any": lambda a, b, c: any_of([a, b, c]),
}

OPERANDS: dict[str, Expression] = {
    "conditional": conditional(name("a"), name("b"), name("c")),
    "or": any_of([name("a"), name("b")]),
    "and": all_of([name("a"), name("b")]),
    "not": negation(name("a")),
    "comparison": compare(name("a"), "<", name("b")),
    "defined": defined("w", name("a")),
    "difference": sum_of(name("a"), "-", name("b"), Kind.INT),
    "number": scalar(3),
    "negative": scalar(-3),
    "huge": scalar(10**30),
    "hugely negative": scalar(-(10**30)),
    "call": call("g", name("a")),
    "name": name("a"),
    "object": dict_of([(name("a"), name("b"))]),
}
"""An expression of each form, of names alone: nothing in it needs parentheses."""


class _Put(ast.NodeTransformer):
    """Puts trees in the place of names."""

    def __init__(self, trees: dict[str, ast.expr]) -> None:
        self._trees = trees

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._trees.get(node.id, node)


def tree(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def as_joined(form: Form, operands: tuple[Expression, ...]) -> str:
    """The tree of the form about names, with the operands' own trees in their places."""
    places = [f"place{i}" for i in range(len(operands))]
    about_names = tree(form(*map(name, places)).source)
    trees = dict(zip(places, [tree(one.source) for one in operands], strict=True))
    return ast.dump(_flat(_Put(trees).visit(about_names)))


class _Flat(ast.NodeTransformer):
    """``a and b and c`` however it is grouped: it means the same."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        self.generic_visit(node)
        values: list[ast.expr] = []
        for one in node.values:
            same = isinstance(one, ast.BoolOp) and type(one.op) is type(node.op)
            values += one.values if same else [one]  # type: ignore[attr-defined]
        return ast.BoolOp(node.op, values)


def _flat(found: ast.expr) -> ast.expr:
    shown: ast.expr = _Flat().visit(found)
    return shown


def operands_of(form: Form) -> Iterator[tuple[Expression, ...]]:
    """All combinations."""
    count = form.__code__.co_argcount if form not in (conditional, negation) else 0
    count = count or {conditional: 3, negation: 1}[form]
    return itertools.product(OPERANDS.values(), repeat=count)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_each_form_of_any_operands_is_read_as_it_was_joined(form: Form):
    for operands in operands_of(form):
        joined = form(*operands).source
        assert ast.dump(_flat(tree(joined))) == as_joined(form, operands), joined


def test_a_form_joined_once_more_is_read_as_it_was_joined():
    """A form describes its own binding correctly."""
    for inner, outer in itertools.product(FORMS.values(), repeat=2):
        one = inner(*map(name, "xyz"[: len(next(operands_of(inner)))]))
        if outer is FORMS["text"] and "'" in one.source:
            continue  # a text shows nothing with quotes in it
        first = next(operands_of(outer))
        for at in range(len(first)):
            operands = (*first[:at], one, *first[at + 1 :])
            joined = outer(*operands).source
            assert ast.dump(_flat(tree(joined))) == as_joined(outer, operands), joined


def test_operands_of_every_binding_are_tried():
    assert {one.binds for one in OPERANDS.values()} == set(Binds)


def test_a_value_of_two_ways_has_a_kind_only_where_both_have_it():
    text, other = scalar("a"), scalar("b")
    test = name("t")
    assert conditional(text, test, other).kind is Kind.STRING
    assert conditional(text, test, scalar(1)).kind is Kind.ANY
    assert conditional(text, test, name("v")).kind is Kind.ANY


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (scalar("a"), Kind.STRING),
        (scalar(1), Kind.INT),
        (scalar(True), Kind.BOOL),
        (scalar(None), Kind.NULL),
        (list_of([]), Kind.LIST),
        (dict_of([]), Kind.DICT),
        (text_of(["a"]), Kind.STRING),
        (part(name("v"), name("w"), ""), Kind.STRING),
        (compare("a", "is", "b"), Kind.BOOL),
        (negation(name("v")), Kind.BOOL),
        (all_of([name("v"), name("w")]), Kind.BOOL),
        (any_of([name("v"), name("w")]), Kind.BOOL),
        (tuple_of([name("v")]), Kind.ANY),
        (name("v"), Kind.ANY),
        (call("f"), Kind.ANY),
        (method(name("v"), "get"), Kind.ANY),
        (item(name("v"), 0), Kind.ANY),
        (named("k0", 1.5), Kind.ANY),
        (named("k0", ["a"]), Kind.LIST),
        (named("k0", {"a": 1}), Kind.DICT),
        (named("k0", RegoSet([1])), Kind.SET),
        (TRUE, Kind.BOOL),
        (FALSE, Kind.BOOL),
    ],
)
def test_each_form_says_of_which_kind_it_is(made: Expression, kind: Kind):
    assert made.kind is kind


def test_a_local_is_a_name_whose_value_is_not_known():
    assert name("v").is_local
    assert not named("k0", [1]).is_local
    assert not scalar("a").is_local
    assert not call("f").is_local
    assert not scalar(10**30).is_local
