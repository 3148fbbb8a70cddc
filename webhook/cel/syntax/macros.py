"""Macros of cel-go (parser/macro.go; ext: bindings, comprehensions, lists)."""

from __future__ import annotations

from typing import Final

from webhook.cel.syntax import ast

ACCUMULATORS: Final = frozenset({"__result__", "@result"})
"""Names that cel-go uses itself; a macro's variable must not have them."""

_QUANTIFIERS: Final[dict[str, ast.FoldKind]] = {
    "all": "all",
    "exists": "exists",
    "exists_one": "exists_one",
}
_OF_PAIRS: Final[dict[str, ast.FoldKind]] = {**_QUANTIFIERS, "existsOne": "exists_one"}
"""Macros with two variables, some under names that macros with one variable do not have."""

_TRANSFORMS: Final[dict[str, ast.FoldKind]] = {
    "transformList": "list",
    "transformMap": "map_value",
    "transformMapEntry": "map_entry",
}


VALUE_OR: Final = "__orValueCompat__"
"""Kyverno's ``orValue``, which evaluates both operands: a function of any two values."""


class MacroError(Exception):
    """A macro is used wrongly; offset and message."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at
        self.text = text


def expand(call: ast.Call, *, extended: bool = False) -> ast.Expr:
    """Returns a macro's node, or the call itself if it is no macro. Raises :class:`MacroError`.

    ``extended`` is whether ``cel.bind`` and ``orValue`` are macros; in Kubernetes they are not.
    """
    name, args = call.function, call.args
    if call.target is None:
        return _presence(call) if name == "has" and len(args) == 1 else call
    target = call.target
    if extended and name == "orValue" and len(args) == 1 and not _is_constant(args[0]):
        return ast.Call(call.at, VALUE_OR, [target, args[0]])
    if extended and name == "bind" and len(args) == 3 and ast.qualified(target) == "cel":
        fault = "cel.bind() variable names must be simple identifiers"
        return ast.Bind(call.at, _named(args[0], fault), args[1], args[2])
    if name in _QUANTIFIERS and len(args) == 2:
        variable = _variable(args[0], "argument must be a simple name")
        return ast.Fold(call.at, _QUANTIFIERS[name], target, variable, None, None, args[1])
    if name in _OF_PAIRS and len(args) == 3:
        first, second = _two(args[0], args[1])
        return ast.Fold(call.at, _OF_PAIRS[name], target, first, second, None, args[2])
    if name == "map" and len(args) in {2, 3}:
        variable = _variable(args[0], "argument is not an identifier")
        test = args[1] if len(args) == 3 else None
        return ast.Fold(call.at, "map", target, variable, None, test, args[-1])
    if name == "filter" and len(args) == 2:
        variable = _variable(args[0], "argument is not an identifier")
        return ast.Fold(call.at, "filter", target, variable, None, args[1], args[0])
    if name in _TRANSFORMS and len(args) in {3, 4}:
        first, second = _two(args[0], args[1])
        test = args[2] if len(args) == 4 else None
        key = ast.Name(call.at, first) if name == "transformMap" else None
        return ast.Fold(call.at, _TRANSFORMS[name], target, first, second, test, args[-1], key)
    if name in {"optMap", "optFlatMap"} and len(args) == 2:
        if not isinstance(args[0], ast.Name):
            raise MacroError(args[0].at, f"{name}() variable name must be a simple identifier")
        read = ast.Name(call.at, args[0].name)
        return ast.OptMap(call.at, target, read, args[1], flat=name == "optFlatMap")
    if name == "sortBy" and len(args) == 2:
        return _sort_by(call, target)
    return call


def _is_constant(node: ast.Expr) -> bool:
    """Returns whether a node has no error, so that it does not matter whether it is evaluated."""
    match node:
        case ast.ListOf(items=[]) | ast.MapOf(entries=[]) | ast.Constant():
            return True
    return False


def _presence(call: ast.Call) -> ast.Expr:
    operand = call.args[0]
    if not isinstance(operand, ast.Select) or operand.optional:
        raise MacroError(operand.at, "invalid argument to has() macro")
    return ast.Select(call.at, operand.operand, operand.field, tests=True)


def _variable(node: ast.Expr, fault: str) -> str:
    name = _named(node, fault)
    if name in ACCUMULATORS:
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    return name


def _named(node: ast.Expr, fault: str) -> str:
    if not isinstance(node, ast.Name):
        raise MacroError(node.at, fault)
    return node.name


def _two(first: ast.Expr, other: ast.Expr) -> tuple[str, str]:
    fault = "argument must be a simple name"
    if _named(first, fault) == _named(other, fault):
        raise MacroError(other.at, f"duplicate variable name: {_named(other, fault)}")
    return _variable(first, fault), _variable(other, fault)


def _sort_by(call: ast.Call, target: ast.Expr) -> ast.Expr:
    if isinstance(target, ast.Constant | ast.MapOf | ast.Message):
        raise MacroError(
            target.at,
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression",
        )
    return ast.SortBy(
        call.at, target, _variable(call.args[0], "argument is not an identifier"), call.args[1]
    )
