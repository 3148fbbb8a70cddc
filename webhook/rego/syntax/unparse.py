"""From syntax tree back to source text: the printed text parses to an equal tree.

Operators are put in parentheses and bodies in braces; comments and the author's layout are gone.
For messages and logs, not for formatting files (:mod:`webhook.rego.format`).
"""

from __future__ import annotations

import json
import re
from typing import Final

from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS: Final = frozenset({**t.KEYWORDS, **t.FUTURE_V0, **t.FUTURE_V1})
_SYMBOLS: Final = {
    t.NAMES[kind]: symbol for symbol, kind in t.PUNCTUATION.items() if t.ASSIGN <= kind <= t.LTE
}


def unparse_body(body: ast.Body) -> str:
    """Returns the literals, separated by semicolons."""
    return "; ".join(map(_literal, body))


def unparse(term: ast.Term) -> str:
    """Returns a term's source."""
    return _PRINTERS[type(term)](term)  # type: ignore[operator,no-any-return]


# --- literals ------------------------------------------------------------------------------


def _literal(literal: ast.Literal_) -> str:
    if isinstance(literal, ast.SomeDecl):
        return f"some {', '.join(map(unparse, literal.names))}"
    return _bare(literal) + "".join(map(_with, literal.with_))


def _bare(literal: ast.Expr | ast.SomeIn | ast.Every | ast.Not | ast.Logic) -> str:
    if isinstance(literal, ast.Expr):
        return ("not " if literal.negated else "") + _statement(literal.term)
    if isinstance(literal, ast.SomeIn):
        return f"some {_membership(literal.key, literal.value, literal.domain)}"
    if isinstance(literal, ast.Every):
        parts = _membership(literal.key, literal.value, literal.domain)
        return f"every {parts} {{ {unparse_body(literal.body)} }}"
    if isinstance(literal, ast.Not):
        return f"not {{ {unparse_body(literal.body)} }}"
    left, right = unparse_body(literal.left), unparse_body(literal.right)
    return f"{{ {left} }} {literal.operator} {{ {right} }}"


def _membership(key: ast.Term | None, value: ast.Term, domain: ast.Term) -> str:
    keys = "" if key is None else f"{unparse(key)}, "
    return f"{keys}{unparse(value)} in {unparse(domain)}"


def _with(modifier: ast.With) -> str:
    return f" with {unparse(modifier.target)} as {unparse(modifier.value)}"


def _statement(term: ast.Term) -> str:
    """Returns a term where an assignment or unification may stand."""
    if isinstance(term, ast.Call) and isinstance(term.operator, ast.Var) and len(term.args) == 2:
        symbol = {"eq": "=", "assign": ":="}.get(term.operator.name)
        if symbol is not None:
            return f"{_leading(term.args[0])} {symbol} {unparse(term.args[1])}"
    return _leading(term)


def _leading(term: ast.Term) -> str:
    """Returns a term at the beginning of a literal, the only place for ``not.x``.

    The first operand has no parentheses, so that a keyword stays at the beginning. The first
    operand of a union has them, because a union in braces would be read as a comprehension.
    """
    operands: list[str] = []
    first, binding = term, 1
    while True:
        symbol = _infix_symbol(first)
        if symbol is None or symbol == "|":
            break
        assert isinstance(first, ast.Call)
        precedence = t.PRECEDENCE[t.PUNCTUATION[symbol]]
        if precedence < binding:
            break
        operands.append(f" {symbol} {unparse(first.args[1])}")
        first, binding = first.args[0], precedence
    return unparse(first) + "".join(reversed(operands))


# --- terms ---------------------------------------------------------------------------------


def _ref(term: ast.Ref) -> str:
    text = unparse(term.head)
    for part in term.path:
        if (
            isinstance(part, ast.String)
            and NAME.fullmatch(part.value)
            and part.value not in _KEYWORDS
        ):
            text += f".{part.value}"
        else:
            text += f"[{unparse(part)}]"
    return text


def _infix_symbol(term: ast.Term) -> str | None:
    """Returns the symbol of a binary operator, assignment and unification excluded."""
    if (
        not isinstance(term, ast.Call)
        or not isinstance(term.operator, ast.Var)
        or len(term.args) != 2
    ):
        return None
    symbol = _SYMBOLS.get(term.operator.name)
    return None if symbol in ("=", ":=") else symbol


def _call(term: ast.Call) -> str:
    operator, args = term.operator, term.args
    symbol = _infix_symbol(term)
    if symbol is not None:
        return f"({unparse(args[0])} {symbol} {unparse(args[1])})"
    if isinstance(operator, ast.Ref) and term.infix and operator.head == ast.Var("internal"):
        return f"({', '.join(map(unparse, args[:-1]))} in {unparse(args[-1])})"
    return unparse(operator) + _args(args)


def _args(args: tuple[ast.Term, ...]) -> str:
    return f"({', '.join(map(unparse, args))})"


def _set(term: ast.Set) -> str:
    return "{" + ", ".join(map(unparse, term.items)) + "}" if term.items else "set()"


def _object(term: ast.Object) -> str:
    return "{" + ", ".join(f"{unparse(key)}: {unparse(value)}" for key, value in term.items) + "}"


def _object_comprehension(term: ast.ObjectComprehension) -> str:
    return f"{{{unparse(term.key)}: {unparse(term.value)} | {unparse_body(term.body)}}}"


def _template(term: ast.TemplateString) -> str:
    text = ""
    for part in term.parts:
        if isinstance(part, str):
            text += _quoted(part)[1:-1].replace("{", "\\{")
        elif isinstance(
            part, ast.Expr | ast.SomeDecl | ast.SomeIn | ast.Every | ast.Not | ast.Logic
        ):
            text += f"{{{_literal(part)}}}"
        else:
            text += f"{{{unparse(part)}}}"
    return f'$"{text}"'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_PRINTERS: Final = {
    ast.Null: lambda _: "null",
    ast.Boolean: lambda term: "true" if term.value else "false",
    ast.Number: lambda term: term.text,
    ast.String: lambda term: _quoted(term.value),
    ast.Var: lambda term: "_" if term.is_wildcard else term.name,
    ast.Ref: _ref,
    ast.Array: lambda term: "[" + ", ".join(map(unparse, term.items)) + "]",
    ast.Object: _object,
    ast.Set: _set,
    ast.ArrayComprehension: lambda term: f"[{unparse(term.term)} | {unparse_body(term.body)}]",
    ast.SetComprehension: lambda term: f"{{{unparse(term.term)} | {unparse_body(term.body)}}}",
    ast.ObjectComprehension: _object_comprehension,
    ast.Call: _call,
    ast.TemplateString: _template,
}
