"""Which expressions give decoded JSON all through, with no value of a library's anywhere in it.

Of such a value Python's ``is True`` says what CEL's equality says, which raises for some others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.syntax.ast import Call, Constant, Fold, ListOf, MapOf, Name, Select

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.syntax.ast import Expr

ROOTS: Final = frozenset({".object", ".oldObject", ".params", ".request", ".namespaceObject"})
"""Variables that are decoded JSON all through."""

_PLAIN: Final = frozenset(
    {"!_", "@in", "_!=_", "_&&_", "_<=_", "_<_", "_==_", "_>=_", "_>_", "_||_"}
    | {"contains", "endsWith", "join", "lowerAscii", "matches", "replace", "size", "split"}
    | {"startsWith", "string", "substring", "trim", "upperAscii"}
)
"""Functions that give bools, texts, numbers and lists of texts, whatever they are given."""


def is_plain(node: Expr, known: Callable[[Expr], bool | None]) -> bool:
    """Whether a node is such an expression.

    ``known`` answers for names, macros and composed variables; None for a node of another sort.
    """
    said = known(node)
    if said is not None:
        return said
    match node:
        case Constant():
            return type(node.value) in {str, bool, int, float, type(None)}
        case Select():
            return node.tests or (not node.optional and is_plain(node.operand, known))
        case ListOf():
            return not node.optional and all(is_plain(item, known) for item in node.items)
        case MapOf():
            return all(is_plain(one.value, known) and not one.optional for one in node.entries)
        case Call():
            return _is_plain_call(node, known)
        case Name() | Fold():
            return False
    return False


def _is_plain_call(node: Call, known: Callable[[Expr], bool | None]) -> bool:
    function, args = node.function, node.args
    if function in _PLAIN:
        return True
    if function == "_[_]":
        return is_plain(args[0], known)
    if function == "_?_:_":
        return is_plain(args[1], known) and is_plain(args[2], known)
    if function in {"_+_", "dyn"}:
        return all(is_plain(one, known) for one in args)
    if function == "orValue" and node.target is not None:
        return _holds_plain(node.target, known) and is_plain(args[0], known)
    return False


def _holds_plain(node: Expr, known: Callable[[Expr], bool | None]) -> bool:
    """Whether an optional holds such a value, if any: one that was looked for by a path."""
    if isinstance(node, Select) and node.optional:
        of = node.operand
    elif isinstance(node, Call) and node.function == "_[?_]":
        of = node.args[0]
    else:
        return False
    return is_plain(of, known) or _holds_plain(of, known)
