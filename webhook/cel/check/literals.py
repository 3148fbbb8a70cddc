"""Problems of literals and constants that are known before an evaluation.

:func:`problems_of_literals` reports what cel-go's validators refuse (cel/validator.go),
:func:`fault_of_constants` the first error that its planner meets as it computes constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.cel.check.checker import MAX_COPIES, Checked
from webhook.cel.check.environment import UNDEFINED, VALUES
from webhook.cel.check.types import Type, unwrapped
from webhook.cel.errors import EvaluationError, Problem
from webhook.cel.library.all import invoke
from webhook.cel.library.formatting import REFUSALS, clauses_of
from webhook.cel.run.access import go_type
from webhook.cel.run.conversions import CONVERSIONS
from webhook.cel.run.membership import constants, is_unhashable
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import NOTHING, TypeValue, Value
from webhook.cel.syntax import ast

_PROVIDED: Final = (VALUES | UNDEFINED.keys()) - {"type", "optional_type"}
"""The types that Kubernetes' provider of types knows."""

_EXEMPT: Final = "format"
"""The function whose arguments may be of different types."""


def problems_of_literals(checked: Checked) -> list[Problem]:
    """Returns the problems of literals.

    These are unreadable ones, formats that cannot be filled, and lists of different types.
    """
    source = checked.parsed.source
    problems: list[tuple[int, str]] = []
    for node, exempt, times in _walk(checked.parsed.root):
        faulty: Iterable[tuple[int, str]] = ()
        if isinstance(node, ast.Call):
            faulty = _arguments(node, checked)
        elif isinstance(node, ast.ListOf) and not exempt:
            faulty = _items(node, checked)
        elif isinstance(node, ast.MapOf) and not exempt:
            faulty = _entries(node, checked)
        problems += [problem for problem in faulty for _ in range(times)]
    problems.sort(key=lambda problem: problem[0])
    return [Problem(*ast.place_of(source, at), text) for at, text in problems]


def _walk(root: ast.Expr) -> Iterator[tuple[ast.Expr, bool, int]]:
    """Yields each node, whether its items may differ, and how often it occurs in cel-go's tree.

    optMap copies its target.
    """
    waiting: list[tuple[ast.Expr, bool, int]] = [(root, False, 1)]
    while waiting:
        node, exempt, times = waiting.pop()
        yield node, exempt, times
        within = exempt or (isinstance(node, ast.Call) and node.function == _EXEMPT)
        copied = node.target if isinstance(node, ast.OptMap) else None
        waiting += [
            (child, within, min(2 * times, 2**MAX_COPIES) if child is copied else times)
            for child in ast.children(node)
        ]


def _arguments(node: ast.Call, checked: Checked) -> Iterator[tuple[int, str]]:
    if node.function == _EXEMPT and node.target is not None:
        problem = _problem_of_format(node, checked.types)
        if problem is not None:
            yield problem
    if not node.args or not isinstance(node.args[0], ast.Constant):
        return
    literal = node.args[0]
    try:
        name = checked.functions.get(node, node.function)
        if name in {"duration", "timestamp"} and node.target is None:
            CONVERSIONS[name](literal.value)
        elif name == "matches" and type(literal.value) is str:
            invoke(Meter(), "matches", "", literal.value)
    except EvaluationError:
        yield literal.at, f"invalid {name} argument"


_TYPES_BY_CLAUSE: Final[dict[str, frozenset[str]]] = {
    "s": frozenset(
        {
            "list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type",
            "google.protobuf.Timestamp", "google.protobuf.Duration",
        }
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}  # fmt: skip


def _problem_of_format(node: ast.Call, types: dict[ast.Expr, Type]) -> tuple[int, str] | None:
    """Returns offset and reason of a format clause that does not fit its argument's type."""
    template, args = node.target, node.args[0] if len(node.args) == 1 else None
    if not isinstance(template, ast.Constant) or not isinstance(args, ast.ListOf):
        return None
    if type(template.value) is not str:
        return None
    used = 0
    try:
        for letter, _ in clauses_of(template.value, len(args.items), early=True):
            part = _part_of_wrong_type(args.items[used], letter.lower(), types)
            if part is not None:
                refusal = REFUSALS[letter.lower()].format(types[part].name)
                return part.at, f"error during formatting: {refusal}"
            used += 1
    except EvaluationError as error:
        return node.at, error.text
    if used < (count := len(args.items)):
        return node.at, (
            f"too many arguments supplied to string.format (expected {used}, got {count})"
        )
    return None


def _part_of_wrong_type(
    item: ast.Expr, letter: str, types: dict[ast.Expr, Type]
) -> ast.Expr | None:
    """Returns an argument, or the first part of it, whose type the clause does not take."""
    of = types[item]
    if not of.is_dyn and of.name not in _TYPES_BY_CLAUSE[letter]:
        return item
    if letter != "s":
        return None
    wrong = (_part_of_wrong_type(part, letter, types) for part in _parts(item))
    return next((part for part in wrong if part is not None), None)


def _parts(item: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(item, ast.ListOf):
        yield from item.items
    elif isinstance(item, ast.MapOf):
        for entry in item.entries:
            yield entry.key
            yield entry.value


def _mismatch(expected: Type, actual: Type) -> str:
    return f"expected type '{expected}' but found '{actual}'"


def _items(node: ast.ListOf, checked: Checked) -> Iterator[tuple[int, str]]:
    first: Type | None = None
    for index, item in enumerate(node.items):
        of = checked.types[item]
        if index in node.optional:
            of = unwrapped(of)[0]
        if first is None:
            first = of
        elif first != of:
            yield item.at, _mismatch(first, of)
            return


def _entries(node: ast.MapOf, checked: Checked) -> Iterator[tuple[int, str]]:
    key: Type | None = None
    value: Type | None = None
    for entry in node.entries:
        of_key, of_value = checked.types[entry.key], checked.types[entry.value]
        if entry.optional:
            of_value = unwrapped(of_value)[0]
        if key is None or value is None:
            key, value = of_key, of_value
            continue
        if key != of_key:
            yield entry.key.at, _mismatch(key, of_key)
        if value != of_value:
            yield entry.value.at, _mismatch(value, of_value)


# --- constants -----------------------------------------------------------------------------


def fault_of_constants(checked: Checked) -> str | None:
    """Returns why an expression has no program; None if it has.

    There are six cases: 1. A name without a value. 2. A message of an unknown type. 3. A constant
    map with a key that has no hash. 4. A conversion of a constant that fails. 5. A constant that
    cannot be an index. 6. A constant pattern that is invalid.
    """
    # In the order of cel-go's planner: operands before their operators, from left to right.
    for node, _, _ in reversed(list(_walk(checked.parsed.root))):
        if isinstance(node, ast.Name) and _has_no_value(node, checked):
            return f"reference to undefined type: {node.name.removeprefix('.')}"
        if isinstance(node, ast.Message) and not _is_message(checked.names[node]):
            return f"unknown type: {node.type_name.removeprefix('.')}"
        if isinstance(node, ast.MapOf) and known_value(node, checked) is not NOTHING:
            for entry in node.entries:
                if is_unhashable(key := known_value(entry.key, checked)):
                    return f"runtime error: hash of unhashable type {go_type(key)}"
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = checked.functions.get(node, node.function)
        try:
            if node.target is None and len(node.args) == 1 and name in CONVERSIONS:
                _constant(node, checked)
            elif node.function in {"_[_]", "_[?_]"}:
                if fault := _fault_of_index(node.args[1], checked):
                    return fault
            elif name in {"find", "findAll", "matches"}:
                pattern = node.args[0 if node.target is not None else -1]
                known = known_value(pattern, checked)
                if type(known) is str:
                    invoke(Meter(), "matches", "", known)
        except EvaluationError as error:
            return error.text
    return None


def _has_no_value(node: ast.Name, checked: Checked) -> bool:
    """Returns whether a name has no value in cel-go though it is declared.

    Two cases: a variable that holds a type, which cel-go takes for the name of a type, and the name
    of a type that only a checker knows.
    """
    meaning, of = checked.names.get(node, ":"), checked.types.get(node)
    if meaning[0] == ":":
        return meaning[1:] in UNDEFINED
    return of is not None and of.name == "type"


def _is_message(meaning: str) -> bool:
    """Returns whether cel-go takes it for the name of a message until it makes one.

    Kubernetes' provider knows types by the name alone, a variable's as well.
    """
    return meaning.startswith(":") or meaning in _PROVIDED


def _fault_of_index(node: ast.Expr, checked: Checked) -> str | None:
    """Returns why a constant cannot be the key of a map or the index of a list, even as dyn."""
    value = _constant(node, checked)
    if value is NOTHING:
        return None
    of = go_type(value)
    if of in {"types.Bool", "types.Double", "types.Int", "types.String", "types.Uint"}:
        return None
    return f"invalid qualifier type: {of}"


def known_value(node: ast.Expr, checked: Checked) -> Value:
    """Returns the value that cel-go knows before evaluation; NOTHING where there is none."""
    try:
        return _constant(node, checked)
    except EvaluationError:
        return NOTHING


def known_members(node: ast.Expr, checked: Checked) -> frozenset[Value] | None:
    """Returns the set that cel-go makes of a list of constants to search it; None for none."""
    if not isinstance(node, ast.ListOf) or node.optional:
        return None
    return constants([known_value(item, checked) for item in node.items])


def _constant(node: ast.Expr, checked: Checked) -> Value:
    """Returns the constant that cel-go folds an expression to before evaluation, or NOTHING.

    A list or map becomes a placeholder: conversions do not read items. Raises EvaluationError if a
    conversion fails.
    """
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            meaning = checked.names.get(node, node.name)
            return TypeValue(meaning[1:]) if meaning.startswith(":") else NOTHING
        case ast.ListOf():
            return NOTHING if node.optional else _of_parts([], node.items, checked)
        case ast.MapOf():
            parts = [part for entry in node.entries for part in (entry.key, entry.value)]
            if any(entry.optional for entry in node.entries):
                return NOTHING
            return _of_parts({}, parts, checked)
        case ast.Call(target=None, args=[of]):
            convert = CONVERSIONS.get(checked.functions.get(node, node.function))
            value = NOTHING if convert is None else _constant(of, checked)
            return value if value is NOTHING or convert is None else convert(value)
    return NOTHING


def _of_parts(empty: Value, parts: Sequence[ast.Expr], checked: Checked) -> Value:
    known = all(_constant(part, checked) is not NOTHING for part in parts)
    return empty if known else NOTHING
