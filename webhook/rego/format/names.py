"""OPA's text of a term without its source: for generated terms and for comparisons."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import quote
from webhook.rego.builtins.module_json import RANKS
from webhook.rego.format.nodes import EveryNode, ExprNode, LogicalNode, NotNode, SomeNode, TermNode
from webhook.rego.run.numbers import number
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.unparse import NAME

if TYPE_CHECKING:
    from webhook.rego.format.nodes import BodyNode

INFIX: Final = {
    **{
        t.NAMES[kind]: symbol for symbol, kind in t.PUNCTUATION.items() if t.ASSIGN <= kind <= t.LTE
    },
    "internal.member_2": "in",
    "internal.member_3": "in",
}
"""The built-ins that are written as infix operators."""


def arity(name: str) -> int:
    """Returns the number of operands of an infix operator."""
    return 3 if name == "internal.member_3" else 2


def order(term: TermNode) -> tuple[int, Any]:
    """Returns the sort key of a term in an object or set."""
    rank = RANKS[term.kind]
    if term.kind == "number":
        return rank, number(term.value)
    return rank, (term.value if term.kind == "string" else text(term, exact=True))


def text(term: TermNode, *, exact: bool = False) -> str:
    """Returns the text of a term; with ``exact``, equal exactly for equal terms."""
    kind, value = term.kind, term.value
    if kind in {"null", "boolean"}:
        return str(value)
    if kind == "number":
        return _same_number(value) if exact else str(value)
    if kind == "string":
        return quote(value)
    if kind == "var":
        return str(value) if exact or not value.startswith("$") else "_"
    if kind == "ref":
        return _ref(value, exact)
    if kind == "call":
        return f"{text(value[0], exact=exact)}({_listed(value[1:], exact)})"
    if kind == "array":
        return f"[{_listed(value, exact)}]"
    if kind == "set":
        return f"{{{_listed(sorted(value, key=order), exact)}}}" if value else "set()"
    if kind == "object":
        pairs = sorted(value, key=lambda pair: order(pair[0]))
        return (
            f"{{{', '.join(f'{text(k, exact=exact)}: {text(v, exact=exact)}' for k, v in pairs)}}}"
        )
    if kind == "templatestring":
        return _template(term, exact)
    *heads, body = value
    opening, closing = "[]" if kind == "arraycomprehension" else "{}"
    head = ": ".join(text(part, exact=exact) for part in heads)
    return f"{opening}{head} | {_body(body, exact)}{closing}"


def _same_number(written: str) -> str:
    """Returns one text for equal numbers, such as ``1`` and ``1.0``."""
    sign, digits, exponent = Decimal(written).as_tuple()
    shown = "".join(map(str, digits)).lstrip("0")
    whole = shown.rstrip("0")
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{whole}e{exponent + len(shown) - len(whole)}" if whole else "0"


def _listed(terms: list[TermNode], exact: bool) -> str:
    return ", ".join(text(term, exact=exact) for term in terms)


def _ref(terms: list[TermNode], exact: bool) -> str:
    head, *path = terms
    written = head.value if head.kind == "string" else text(head, exact=exact)
    for step in path:
        if step.kind == "string" and NAME.fullmatch(step.value):
            written += f".{step.value}"
        else:
            written += f"[{text(step, exact=exact)}]"
    return str(written)


def _template(term: TermNode, exact: bool) -> str:
    parts, raw = term.value
    written = ""
    for part in parts:
        if isinstance(part, ExprNode):
            written += f"{{{_expr(part, exact)}}}"
        elif part.kind == "string":
            written += part.value if raw else json.dumps(part.value, ensure_ascii=False)[1:-1]
        else:
            written += text(part, exact=exact)
    return f"$`{written}`" if raw else f'$"{written}"'


def _body(body: BodyNode, exact: bool) -> str:
    return "; ".join(_expr(expression, exact) for expression in body)


def _expr(expr: ExprNode, exact: bool) -> str:
    withs = "".join(
        f" with {text(modifier.target, exact=exact)} as {text(modifier.value, exact=exact)}"
        for modifier in expr.withs
    )
    return f"{'not ' if expr.negated else ''}{_terms(expr.terms, exact)}{withs}"


def _terms(terms: Any, exact: bool) -> str:
    if isinstance(terms, TermNode):
        return text(terms, exact=exact)
    if isinstance(terms, SomeNode):
        return f"some {_listed(terms.symbols, exact)}"
    if isinstance(terms, EveryNode):
        key = "" if terms.key is None else f"{text(terms.key, exact=exact)}, "
        domain = text(terms.domain, exact=exact)
        return f"every {key}{text(terms.value, exact=exact)} in {domain} {{ {_body(terms.body, exact)} }}"
    if isinstance(terms, NotNode):
        return f"not {{ {_body(terms.body, exact)} }}"
    if isinstance(terms, LogicalNode):
        return f"{_body(terms.left, exact)} {terms.operator} {_body(terms.right, exact)}"
    name = text(terms[0])
    if name in INFIX and len(terms) == 3:
        return f"{text(terms[1], exact=exact)} {INFIX[name]} {text(terms[2], exact=exact)}"
    return f"{name}({_listed(terms[1:], exact)})"
