"""Constant formats with a list of arguments: what each clause takes (cel-go, ext/formatting.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.formatting import REFUSALS, clauses_of
from webhook.cel.syntax.ast import Call, Constant, ListOf, MapOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cel.check.types import Type
    from webhook.cel.syntax.ast import Expr

_TAKES: Final[dict[str, frozenset[str]]] = {
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


def problem_of_format(node: Call, types: dict[Expr, Type]) -> tuple[int, str] | None:
    """Where a format cannot be filled with the types of its arguments, and why."""
    template, args = node.target, node.args[0] if len(node.args) == 1 else None
    if not isinstance(template, Constant) or not isinstance(args, ListOf):
        return None
    if type(template.value) is not str:
        return None
    used = 0
    try:
        for letter, _ in clauses_of(template.value, len(args.items), early=True):
            bad = _refused(args.items[used], letter.lower(), types)
            if bad is not None:
                refusal = REFUSALS[letter.lower()].format(types[bad].name)
                return bad.at, f"error during formatting: {refusal}"
            used += 1
    except EvaluationError as error:
        return node.at, error.text
    if used < len(args.items):
        given = len(args.items)
        return node.at, (
            f"too many arguments supplied to string.format (expected {used}, got {given})"
        )
    return None


def _refused(item: Expr, letter: str, types: dict[Expr, Type]) -> Expr | None:
    of = types[item]
    if not of.is_dyn and of.name not in _TAKES[letter]:
        return item
    if letter != "s":
        return None
    for part in _parts(item):
        bad = _refused(part, letter, types)
        if bad is not None:
            return bad
    return None


def _parts(item: Expr) -> Iterator[Expr]:
    if isinstance(item, ListOf):
        yield from item.items
    elif isinstance(item, MapOf):
        for entry in item.entries:
            yield entry.key
            yield entry.value
