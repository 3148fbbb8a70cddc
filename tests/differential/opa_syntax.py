"""Our syntax tree in the JSON form of OPA's, to compare the two parsers.

Locations, annotations and flags of OPA's own stages are left out on both sides.
"""

from typing import Any

from tests.differential.oracle import NumberText
from webhook.rego.syntax import ast

_SCALARS = {ast.String: "string", ast.Var: "var", ast.Boolean: "boolean"}
_SEQUENCES = {ast.Array: "array", ast.Set: "set"}
_COMPREHENSIONS = {
    ast.ArrayComprehension: "arraycomprehension",
    ast.SetComprehension: "setcomprehension",
}


def module_json(module: ast.Module) -> dict[str, Any]:
    """The module as OPA prints it."""
    found: dict[str, Any] = {"package": {"path": ref_list(module.package)}}
    if module.imports:
        found["imports"] = [_import(one) for one in module.imports]
    if module.rules:
        found["rules"] = [_rule(one) for one in module.rules]
    return found


def _import(one: ast.Import) -> dict[str, Any]:
    found: dict[str, Any] = {"path": {"type": "ref", "value": ref_list(one.path)}}
    if one.alias is not None:
        found["alias"] = one.alias
    return found


def _rule(rule: ast.Rule) -> dict[str, Any]:
    found: dict[str, Any] = {"head": _head(rule.head), "body": body_json(rule.body or TRUE)}
    if rule.default:
        found["default"] = True
    if rule.else_ is not None:
        found["else"] = _rule(rule.else_)
    return found


TRUE = (ast.Expr(ast.Boolean(True)),)


def _head(head: ast.Head) -> dict[str, Any]:
    ref = ref_list(head.ref)
    found: dict[str, Any] = {"ref": ref}
    if head.args:
        found["args"] = [term_json(arg) for arg in head.args]
    if head.key is not None:
        found["key"] = term_json(head.key)
    else:
        found["value"] = term_json(head.value if head.value is not None else ast.Boolean(True))
    if head.assign:
        found["assign"] = True
    return found


def ref_list(ref: ast.Ref | ast.Var) -> list[Any]:
    """The elements of a reference."""
    if isinstance(ref, ast.Var):
        return [term_json(ref, bare=True)]
    return [term_json(ref.head, bare=True), *map(term_json, ref.path)]


def term_json(term: Any, *, bare: bool = False) -> dict[str, Any]:
    """A term; ``bare`` for the head of a reference, which stands for itself."""
    if isinstance(term, ast.Null):
        return {"type": "null", "value": {}}
    if isinstance(term, ast.Number):
        return {"type": "number", "value": NumberText(term.text)}
    if isinstance(term, ast.Var) and term.name in ("input", "data") and not bare:
        return {"type": "ref", "value": [term_json(term, bare=True)]}
    if isinstance(term, ast.Ref):
        return {"type": "ref", "value": ref_list(term)}
    if isinstance(term, ast.Call):
        return {"type": "call", "value": _call(term)}
    if isinstance(term, ast.Object):
        pairs = [[term_json(key), term_json(value)] for key, value in term.items]
        return {"type": "object", "value": pairs}
    if isinstance(term, ast.ObjectComprehension):
        return {
            "type": "objectcomprehension",
            "value": {
                "key": term_json(term.key),
                "value": term_json(term.value),
                "body": body_json(term.body),
            },
        }
    if isinstance(term, ast.TemplateString):
        parts = [_part(part) for part in term.parts]
        return {"type": "templatestring", "value": {"parts": parts, "multi_line": term.raw}}
    for kinds, of in (
        (_SCALARS, _scalar),
        (_SEQUENCES, _sequence),
        (_COMPREHENSIONS, _comprehension),
    ):
        if type(term) in kinds:
            return {"type": kinds[type(term)], "value": of(term)}
    raise AssertionError(f"no term: {term!r}")


def _scalar(term: Any) -> Any:
    return term.name if isinstance(term, ast.Var) else term.value


def _sequence(term: Any) -> Any:
    return [term_json(item) for item in term.items]


def _comprehension(term: Any) -> Any:
    return {"term": term_json(term.term), "body": body_json(term.body)}


def _call(term: ast.Call) -> list[Any]:
    operator = {"type": "ref", "value": ref_list(term.operator)}
    return [operator, *map(term_json, term.args)]


def _part(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "string", "value": part}
    if isinstance(part, ast.Null | ast.Boolean | ast.Number | ast.String):
        return term_json(part)
    if isinstance(part, ast.Expr | ast.Not | ast.Logic):
        return _literal(part)
    return _literal(ast.Expr(part))


def body_json(body: ast.Body) -> list[Any]:
    """A body."""
    return [_literal(literal) for literal in body]


def _literal(literal: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"terms": _terms(literal)}
    if isinstance(literal, ast.Expr) and literal.negated:
        found["negated"] = True
    modifiers = () if isinstance(literal, ast.SomeDecl) else literal.with_
    if modifiers:
        found["with"] = [
            {"target": term_json(one.target), "value": term_json(one.value)} for one in modifiers
        ]
    return found


def _terms(literal: Any) -> Any:
    if isinstance(literal, ast.Expr):
        term = literal.term
        return _call(term) if isinstance(term, ast.Call) else term_json(term)
    if isinstance(literal, ast.SomeDecl):
        return {"symbols": [term_json(name) for name in literal.names]}
    if isinstance(literal, ast.SomeIn):
        keys = [] if literal.key is None else [literal.key]
        name = "member_2" if literal.key is None else "member_3"
        operator = ast.Ref(ast.Var("internal"), (ast.String(name),))
        call = ast.Call(operator, (*keys, literal.value, literal.domain))
        return {"symbols": [term_json(call)]}
    if isinstance(literal, ast.Every):
        return {
            "key": None if literal.key is None else term_json(literal.key),
            "value": term_json(literal.value),
            "domain": term_json(literal.domain),
            "body": body_json(literal.body),
        }
    if isinstance(literal, ast.Not):
        return {"type": "not", "body": body_json(literal.body)}
    return {
        "type": literal.operator,
        "lhs": body_json(literal.left),
        "rhs": body_json(literal.right),
    }


_DROPPED = {
    "index",
    "generated",
    "location",
    "annotations",
    "name",
    "explicit_body",
    "explicit_lhs",
    "explicit_rhs",
    "comments",
}


def comparable(found: Any) -> Any:
    """OPA's JSON without what our tree does not carry."""
    if isinstance(found, list):
        return [comparable(one) for one in found]
    if not isinstance(found, dict):
        return found
    kind, value = found.get("type"), found.get("value")
    if kind == "number":
        return {"type": "number", "value": value}
    if kind == "set" and isinstance(value, list):
        return {"type": "set", "value": sorted(map(comparable, value), key=repr)}
    if kind == "object" and isinstance(value, list):
        return {"type": "object", "value": sorted(map(comparable, value), key=repr)}
    kept = {name: comparable(one) for name, one in found.items() if name not in _DROPPED}
    if "ref" in kept and ("key" in kept or "value" in kept):
        if "key" in kept and "value" in kept:  # a head's key repeats the end of its reference
            del kept["key"]
        if not kept.get("assign", True):
            del kept["assign"]
    return kept
