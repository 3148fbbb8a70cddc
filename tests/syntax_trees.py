"""Syntax trees for tests: generated ones, and equality that looks through wildcards' numbers."""

import dataclasses
from typing import Any

from hypothesis import strategies as st

from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.syntax.unparse import unparse, unparse_body

NAMES = ("a", "x", "y_1", "input", "data", "contains_", "Zz")
OPERATORS = ("plus", "minus", "mul", "div", "rem", "and", "or", "equal", "neq", "lt", "gte")


def canonical(node: Any, names: dict[str, str] | None = None) -> Any:
    """The tree with its wildcards numbered in order; two readings of a text may count otherwise."""
    names = {} if names is None else names
    if isinstance(node, ast.Var) and node.is_wildcard:
        return ast.Var(names.setdefault(node.name, f"${len(names)}"))
    if isinstance(node, tuple):
        return tuple(canonical(one, names) for one in node)
    if isinstance(node, Location) or not dataclasses.is_dataclass(node):
        return node
    compared = [one.name for one in dataclasses.fields(node) if one.compare]
    assert not isinstance(node, type)
    return dataclasses.replace(
        node, **{name: canonical(getattr(node, name), names) for name in compared}
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(NAMES).map(ast.Var)
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda d: f"{d:f}"),
    st.sampled_from(["0e1", "1E-7", "-0.0", "1.50"]),
).map(ast.Number)
scalars = st.one_of(
    st.just(ast.Null()), st.booleans().map(ast.Boolean), numbers, texts.map(ast.String)
)
leaves = st.one_of(scalars, names)


def _terms(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    many = st.lists(inner, max_size=3).map(tuple)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(inner, inner), max_size=3).map(tuple)
    bodies_ = bodies(inner)
    member = ast.Ref(ast.Var("internal"), (ast.String("member_2"),))
    parts = st.lists(st.one_of(texts.filter(bool), inner), max_size=3).map(_joined)
    return st.one_of(
        st.builds(ast.Array, many),
        st.builds(ast.Set, many),
        st.builds(ast.Object, pairs),
        st.builds(ast.Ref, names, some),
        st.builds(ast.Ref, st.builds(ast.Array, many), some),
        st.builds(ast.Call, names, many),
        st.builds(ast.Call, st.builds(ast.Ref, names, texts.map(ast.String).map(_one)), many),
        st.builds(
            ast.Call,
            st.sampled_from(OPERATORS).map(ast.Var),
            st.tuples(inner, inner),
            st.just(True),
        ),
        st.builds(ast.Call, st.just(member), st.tuples(inner, inner), st.just(True)),
        st.builds(ast.ArrayComprehension, inner, bodies_),
        st.builds(ast.SetComprehension, inner, bodies_),
        st.builds(ast.ObjectComprehension, inner, inner, bodies_),
        st.builds(ast.TemplateString, parts),
    )


def _one(item: Any) -> tuple[Any, ...]:
    return (item,)


def _joined(parts: list[Any]) -> tuple[Any, ...]:
    """Template parts with neighbouring texts made one, as the parser makes them."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return tuple(found)


def modifiers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`with` clauses."""
    target = st.builds(ast.Ref, st.just(ast.Var("input")), st.just((ast.String("x"),)))
    return st.lists(st.builds(ast.With, target, inner), max_size=1).map(tuple)


def bodies(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Bodies of one to three literals."""
    with_ = modifiers(inner)
    equation = st.builds(
        ast.Call,
        st.sampled_from(["eq", "assign"]).map(ast.Var),
        st.tuples(inner, inner),
        st.just(True),
    )
    literals = st.one_of(
        st.builds(ast.Expr, st.one_of(inner, equation), st.booleans(), with_),
        st.builds(ast.SomeDecl, st.lists(names.filter(_plain), min_size=1, max_size=2).map(tuple)),
        st.builds(ast.SomeIn, st.one_of(st.none(), inner), inner, inner, with_),
    )
    return st.lists(literals, min_size=1, max_size=3).map(tuple)


def _plain(name: ast.Var) -> bool:
    return name.name not in ("input", "data")


terms = st.recursive(leaves, _terms, max_leaves=12)
small = st.recursive(leaves, _terms, max_leaves=5)


def _nested(body: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    every = st.builds(
        ast.Every, st.one_of(st.none(), names.filter(_plain)), names.filter(_plain), small, body
    )
    return st.lists(every, min_size=1, max_size=2).map(tuple)


every_body = st.recursive(bodies(small), _nested, max_leaves=3)


def _logical(body: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(ast.Not, body),
        st.builds(ast.Logic, st.sampled_from(["and", "or"]), body, body),
    ).map(_one)


logical_body = st.recursive(
    st.lists(st.builds(ast.Expr, leaves), min_size=1, max_size=2).map(tuple), _logical, max_leaves=5
)


def _heads(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    steps = st.one_of(texts.map(ast.String), names, numbers)
    refs = st.builds(ast.Ref, names.filter(_plain), st.lists(steps, max_size=2).map(tuple))
    return st.one_of(
        st.builds(ast.Head, refs, value=value, assign=st.booleans()),
        st.builds(ast.Head, refs, key=value, contains=st.just(True)),
        st.builds(
            ast.Head, refs, args=st.lists(value, min_size=1, max_size=2).map(tuple), value=value
        ),
    )


@st.composite
def modules(draw: st.DrawFn) -> ast.Module:
    """A module of v1 with every kind of rule; some import the keywords of v2."""
    logical = draw(st.booleans())
    body = logical_body if logical else every_body
    value = leaves if logical else small  # with `not` imported, negation is a node of its own
    found = []
    for head in draw(st.lists(_heads(value), max_size=3)):
        else_ = None
        if not head.contains and not head.ref.path and draw(st.booleans()):
            else_ = ast.Rule(dataclasses.replace(head, value=draw(value)), draw(body))
        found.append(ast.Rule(head, draw(body), else_=else_))
    path = ast.Ref(ast.Var("rego"), (ast.String("v2"),))
    imports = (ast.Import(path),) if logical else ()
    package = ast.Ref(ast.Var("data"), (ast.String("a"), ast.String("b-c")))
    return ast.Module(package, imports, tuple(found), "v1")


def unparse_module(module: ast.Module) -> str:
    """The module's source in its own version of the language."""
    lines = [f"package {_path(module.package)}", ""]
    names = set()
    for one in module.imports:
        alias = "" if one.alias is None else f" as {one.alias}"
        lines.append(f"import {unparse(one.path)}{alias}")
        names.add(unparse(one.path))
    has_if = module.version != "v0" or not names.isdisjoint(
        {"future.keywords", "future.keywords.if", "rego.v1", "rego.v2"}
    )
    lines += [_rule(rule, has_if) for rule in module.rules]
    return "\n".join(lines) + "\n"


def _path(package: ast.Ref) -> str:
    first, *rest = package.path
    head = ast.Var(first.value) if isinstance(first, ast.String) else first
    return unparse(ast.Ref(head, tuple(rest)) if rest else head)


def _rule(rule: ast.Rule, has_if: bool) -> str:
    text = "default " if rule.default else ""
    # `if` would turn `p[x]`, a member of a set in v0, into a key with the value true.
    old_set = rule.head.key is not None and not rule.head.contains
    text += _head(rule.head) + _rule_body(rule, has_if and not old_set)
    branch = rule.else_
    while branch is not None:
        text += " else" + _value(branch.head) + _rule_body(branch, has_if)
        branch = branch.else_
    return text


def _rule_body(rule: ast.Rule, has_if: bool) -> str:
    if not rule.body:
        return ""
    return f"{' if' if has_if else ''} {{ {unparse_body(rule.body)} }}"


def _head(head: ast.Head) -> str:
    text = unparse(head.ref)
    if head.args is not None:
        text += f"({', '.join(map(unparse, head.args))})"
    if head.key is not None:
        key = unparse(head.key)
        return f"{text} contains {key}" if head.contains else f"{text}[{key}]"
    return text + _value(head)


def _value(head: ast.Head) -> str:
    if head.value is None:
        return ""
    return f" {':=' if head.assign else '='} {unparse(head.value)}"
