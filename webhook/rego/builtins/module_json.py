"""A module's syntax tree in the JSON form of OPA's ``ast.Module``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import utf8
from webhook.rego.run.numbers import number
from webhook.rego.run.text import json_text
from webhook.rego.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.api.shapes import Json


_COMPREHENSIONS: Final[dict[type, str]] = {
    ast.ArrayComprehension: "arraycomprehension",
    ast.SetComprehension: "setcomprehension",
}
# OPA's order of the kinds of terms (v1/ast/compare.go, sortOrder).
RANKS: Final = {
    name: rank
    for rank, name in enumerate(
        (
            *("null", "boolean", "number", "string", "var", "ref", "array", "object", "set"),
            *("arraycomprehension", "objectcomprehension", "setcomprehension", "call"),
            "templatestring",
        )
    )
}


def module_json(module: ast.Module) -> Json:
    """Return the module as OPA's ``encoding/json`` writes it."""
    document: Json = {"package": {"path": _elements(module.package)}}
    if module.imports:
        document["imports"] = [_import(one) for one in module.imports]
    if module.rules:
        document["rules"] = [_rule(one) for one in module.rules]
    if module.comments:
        document["comments"] = [
            {
                "Text": base64.b64encode(utf8(text)).decode("ascii"),
                "Location": {"file": place.file, "row": place.row, "col": place.col},
            }
            for place, text in module.comments
        ]
    return document


def _import(one: ast.Import) -> Json:
    document: Json = {"path": _term(one.path)}
    if one.alias is not None:
        document["alias"] = one.alias
    return document


def _rule(rule: ast.Rule) -> Json:
    document: Json = {"head": _head(rule.head), "body": _body(rule.body)}
    if not rule.body:
        true = {"type": "boolean", "value": True}
        document["body"] = [{"generated": True, "index": 0, "terms": true}]
    if rule.default:
        document["default"] = True
    if rule.else_ is not None:
        document["else"] = _rule(rule.else_)
    return document


def _head(head: ast.Head) -> Json:
    document: Json = {"ref": _elements(head.ref)}
    if isinstance(head.ref.head, ast.Var) and not head.ref.path:
        document["name"] = head.ref.head.name
    if head.args:
        document["args"] = [_term(arg) for arg in head.args]
    if head.key is not None:
        document["key"] = _term(head.key)
    elif head.value is not None:
        document["value"] = _term(head.value)
    else:
        document["value"] = {"type": "boolean", "value": True}
    if head.assign:
        document["assign"] = True
    return document


def _elements(ref: ast.Ref | ast.Var) -> list[Json]:
    if isinstance(ref, ast.Var):
        return [_var(ref)]
    head = _var(ref.head) if isinstance(ref.head, ast.Var) else _term(ref.head)
    return [head, *map(_term, ref.path)]


def _var(var: ast.Var) -> Json:
    return {"type": "var", "value": var.name}


def _term(term: ast.Term) -> Json:
    if isinstance(term, ast.Var) and term.name not in ("input", "data"):
        return _var(term)
    if isinstance(term, ast.Ref | ast.Var):
        return {"type": "ref", "value": _elements(term)}
    if isinstance(term, ast.Null):
        return {"type": "null", "value": {}}
    if isinstance(term, ast.Boolean):
        return {"type": "boolean", "value": term.value}
    if isinstance(term, ast.Number):
        return {"type": "number", "value": number(term.text)}
    if isinstance(term, ast.String):
        return {"type": "string", "value": term.value}
    if isinstance(term, ast.Call):
        return {"type": "call", "value": _call(term)}
    if isinstance(term, ast.Object):
        pairs = sorted(([_term(k), _term(v)] for k, v in term.items), key=_pair_order)
        return {"type": "object", "value": pairs}
    if isinstance(term, ast.ObjectComprehension):
        pair = {"key": _term(term.key), "value": _term(term.value), "body": _body(term.body)}
        return {"type": "objectcomprehension", "value": pair}
    if isinstance(term, ast.TemplateString):
        parts = [_part(part) for part in term.parts]
        return {"type": "templatestring", "value": {"parts": parts, "multi_line": term.raw}}
    if isinstance(term, ast.Set):
        return {"type": "set", "value": sorted(map(_term, term.items), key=_order)}
    if isinstance(term, ast.Array):
        return {"type": "array", "value": [_term(item) for item in term.items]}
    return {
        "type": _COMPREHENSIONS[type(term)],
        "value": {"term": _term(term.term), "body": _body(term.body)},
    }


def _order(term: Json) -> tuple[int, Any]:
    """Return the key by which OPA orders the terms of sets and objects."""
    value = term["value"]
    kind = term["type"]
    return RANKS[kind], value if isinstance(value, str | int | float) else json_text(value)


def _pair_order(pair: list[Json]) -> tuple[int, Any]:
    return _order(pair[0])


def _call(call: ast.Call) -> list[Json]:
    return [{"type": "ref", "value": _elements(call.operator)}, *map(_term, call.args)]


def _part(part: Any) -> Json:
    if isinstance(part, str):
        return {"type": "string", "value": part}
    if isinstance(part, ast.Null | ast.Boolean | ast.Number | ast.String):
        return _term(part)
    if isinstance(part, ast.Expr | ast.Not | ast.Logic):
        return _literal(0, part)
    return _literal(0, ast.Expr(part))


def _body(body: Iterable[ast.Literal_]) -> list[Json]:
    return [_literal(index, literal) for index, literal in enumerate(body)]


def _literal(index: int, literal: ast.Literal_) -> Json:
    document: Json = {"index": index, "terms": _terms(literal)}
    if getattr(literal, "negated", False):
        document["negated"] = True
    if not isinstance(literal, ast.SomeDecl) and literal.with_:
        document["with"] = [
            {"target": _term(one.target), "value": _term(one.value)} for one in literal.with_
        ]
    return document


def _terms(literal: ast.Literal_) -> Any:
    if isinstance(literal, ast.Expr):
        term = literal.term
        return _call(term) if isinstance(term, ast.Call) else _term(term)
    if isinstance(literal, ast.SomeDecl):
        return {"symbols": [_term(name) for name in literal.names]}
    if isinstance(literal, ast.SomeIn):
        return {"symbols": [_term(_membership(literal))]}
    if isinstance(literal, ast.Every):
        return {
            "key": None if literal.key is None else _term(literal.key),
            "value": _term(literal.value),
            "domain": _term(literal.domain),
            "body": _body(literal.body),
        }
    if isinstance(literal, ast.Not):
        return {"type": "not", "body": _body(literal.body)}
    sides = {"lhs": _body(literal.left), "rhs": _body(literal.right)}
    return {"type": literal.operator, **sides}


def _membership(literal: ast.SomeIn) -> ast.Call:
    keys = () if literal.key is None else (literal.key,)
    name = "member_3" if keys else "member_2"
    operator = ast.Ref(ast.Var("internal"), (ast.String(name),))
    return ast.Call(operator, (*keys, literal.value, literal.domain))
