"""A module's syntax tree in the JSON form of OPA's ``ast.Module``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import utf8
from webhook.rego.run.numbers import Numeral, number
from webhook.rego.run.text import OrderedFields
from webhook.rego.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.syntax.ast import Body, Head, Literal_, Module, RegoVersion, Rule, Term, With

_TRUE: Final = OrderedFields(type="boolean", value=True)
_ROOTS: Final = ("input", "data")
"""The documents that are references even without a path."""

RANKS: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            *("null", "boolean", "number", "string", "var", "ref", "array", "object", "set"),
            *("arraycomprehension", "objectcomprehension", "setcomprehension", "call"),
            "templatestring",
        )
    )
}
"""OPA's order of terms by their types (v1/ast/compare.go, sortOrder)."""


def module_value(module: Module) -> dict[str, Any]:
    """The tree of a module as a value of Rego, without annotations: ``rego.parse_module`` reads none."""
    return _plain(module_document(module))  # type: ignore[no-any-return]


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _plain(value) for name, value in node.items() if name != "annotations"}
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return number(node.text) if isinstance(node, Numeral) else node


def module_document(module: Module, *, comments: bool = True) -> OrderedFields:
    """Returns the tree of a module, as ``opa parse`` prints it."""
    document = OrderedFields(package=OrderedFields(path=_path(module.package)))
    if module.imports:
        document["imports"] = [_import(import_) for import_ in module.imports]
    if annotations := [_annotation(annotation) for annotation in module.annotations]:
        document["annotations"] = annotations
    if module.rules:
        document["rules"] = [_rule(rule, module.version) for rule in module.rules]
    if comments and module.comments:
        document["comments"] = [
            OrderedFields(
                Text=base64.b64encode(utf8(comment)).decode("ascii"),
                Location=OrderedFields(file=module.file, row=at.row, col=at.col),
            )
            for at, comment in module.comments
        ]
    return document


def _annotation(annotation: ast.Annotations) -> OrderedFields:
    fields = {**annotation.value, "scope": annotation.scope}
    if "authors" in fields:
        fields["authors"] = [
            OrderedFields({name: author[name] for name in ("name", "email") if name in author})
            for author in fields["authors"]
        ]
    if "schemas" in fields:
        fields["schemas"] = [
            OrderedFields(
                {
                    name: _names(part) if name != "definition" else part
                    for name, part in schema.items()
                }
            )
            for schema in fields["schemas"]
        ]
    return OrderedFields(sorted(fields.items()))


def _names(path: list[str]) -> list[OrderedFields]:
    """Returns a reference of names."""
    return [_var(path[0]), *map(_string, path[1:])]


def _import(import_: ast.Import) -> OrderedFields:
    path = OrderedFields(path=_term(import_.path))
    return path if import_.alias is None else OrderedFields(alias=import_.alias, **path)


def _rule(rule: Rule, version: RegoVersion, *, is_else: bool = False) -> OrderedFields:
    document = OrderedFields()
    if rule.annotations:
        document["annotations"] = [_annotation(annotation) for annotation in rule.annotations]
    document["body"] = _body(rule.body) or [OrderedFields(generated=True, index=0, terms=_TRUE)]
    if rule.default:
        document["default"] = True
    if rule.else_ is not None:
        document["else"] = _rule(rule.else_, version, is_else=True)
    has_body = is_else or (bool(rule.body) and version == "v1")
    document["head"] = _head(rule.head, has_body=has_body)
    return document


def _head(head: Head, *, has_body: bool) -> OrderedFields:
    """Returns a head as OPA keeps it: the last of two parts of its reference is its key, too."""
    path = _path(head.ref)
    last = head.ref.path[-1] if head.ref.path else None
    is_pair = len(path) == 2 and head.args is None and head.key is None
    is_named = len(path) == 1 or (is_pair and head.value is not None)
    document = OrderedFields()
    if is_named or (len(path) == 2 and head.args is not None and has_body):
        document["name"] = path[0]["value"]
    if head.args:
        document["args"] = [_term(arg) for arg in head.args]
    if head.key is not None:
        document["key"] = _term(head.key)
    elif is_pair and (isinstance(last, ast.Var) or (head.value is not None and not has_body)):
        document["key"] = path[-1]
    if head.value is not None:
        document["value"] = _term(head.value)
    elif head.key is None:
        document["value"] = _TRUE
    if head.assign:
        document["assign"] = True
    document["ref"] = path
    return document


def _body(body: Body) -> list[OrderedFields]:
    return [_literal(literal, index) for index, literal in enumerate(body)]


def _literal(literal: Literal_, index: int) -> OrderedFields:
    document = OrderedFields(index=index)
    with_: tuple[With, ...] = ()
    negated = False
    terms: Any
    match literal:
        case ast.Expr(term, negated, with_):
            terms = _statement(term)
        case ast.SomeDecl(names):
            terms = OrderedFields(symbols=[_term(symbol) for symbol in names])
        case ast.SomeIn(key, value, domain, with_):
            name = "member_2" if key is None else "member_3"
            args = [term for term in (key, value, domain) if term is not None]
            operator = ref_term([_var("internal"), _string(name)])
            terms = OrderedFields(symbols=[_typed("call", [operator, *map(_term, args)])])
        case ast.Every(key, value, domain, body, negated, with_):
            terms = OrderedFields(
                body=_body(body),
                domain=_term(domain),
                key=None if key is None else _term(key),
                value=_term(value),
            )
        case ast.Not(body, with_):
            terms = OrderedFields(body=_body(body), type="not")
        case ast.Logic(operator, left, right, negated, with_):
            terms = OrderedFields(lhs=_body(left), rhs=_body(right), type=operator)
    if negated:
        document["negated"] = True
    document["terms"] = terms
    if with_:
        document["with"] = [
            OrderedFields(target=_term(modifier.target), value=_term(modifier.value))
            for modifier in with_
        ]
    return document


def _statement(term: Term) -> Any:
    if isinstance(term, ast.Call):
        return [_operator(term), *map(_term, term.args)]
    return _term(term)


def _operator(call: ast.Call) -> OrderedFields:
    named = call.operator
    return _term(named) if isinstance(named, ast.Ref) else ref_term([_var(named.name)])


def _path(ref: ast.Ref) -> list[OrderedFields]:
    head = _var(ref.head.name) if isinstance(ref.head, ast.Var) else _term(ref.head)
    return [head, *map(_term, ref.path)]


def _typed(kind: str, value: Any) -> OrderedFields:
    return OrderedFields(type=kind, value=value)


def ref_term(path: list[OrderedFields]) -> OrderedFields:
    """Returns a reference of these terms."""
    return _typed("ref", path)


def _var(name: str) -> OrderedFields:
    return _typed("var", name)


def _string(value: str) -> OrderedFields:
    return _typed("string", value)


def _term(term: Term) -> OrderedFields:  # one for each kind of term
    match term:
        case ast.Null():
            return _typed("null", OrderedFields())
        case ast.Boolean(value):
            return _typed("boolean", value)
        case ast.Number(text):
            return _typed("number", Numeral(text))
        case ast.String(value):
            return _string(value)
        case ast.Var(name):
            return ref_term([_var(name)]) if name in _ROOTS else _var(name)
        case ast.Ref():
            return ref_term(_path(term))
        case ast.Array(items):
            return _typed("array", [_term(item) for item in items])
        case ast.Set(items):
            return _typed("set", _sorted(_term(item) for item in items))
        case ast.Object(items):
            pairs = [[_term(key), _term(value)] for key, value in items]
            return _typed("object", sorted(pairs, key=lambda pair: _rank(pair[0])))
        case ast.ArrayComprehension(head, body) | ast.SetComprehension(head, body):
            kind = "array" if isinstance(term, ast.ArrayComprehension) else "set"
            fields = OrderedFields(term=_term(head), body=_body(body))
            return _typed(f"{kind}comprehension", fields)
        case ast.ObjectComprehension(key, value, body):
            fields = OrderedFields(key=_term(key), value=_term(value), body=_body(body))
            return _typed("objectcomprehension", fields)
        case ast.Call():
            return _typed("call", [_operator(term), *map(_term, term.args)])
        case ast.TemplateString(parts, raw):
            fields = OrderedFields(parts=[_part(part) for part in parts], multi_line=raw)
            return _typed("templatestring", fields)


def _part(part: str | Term | Literal_) -> OrderedFields:
    if isinstance(part, str):
        return _string(part)
    if isinstance(part, ast.Null | ast.Boolean | ast.Number | ast.String):
        return _term(part)
    if isinstance(part, ast.Expr | ast.SomeDecl | ast.SomeIn | ast.Every | ast.Not | ast.Logic):
        return _literal(part, 0)
    return OrderedFields(index=0, terms=_statement(part))


def _sorted(terms: Iterable[OrderedFields]) -> list[OrderedFields]:
    """Returns the members of a set, each once, in OPA's order."""
    once = {repr(_rank(term)): term for term in reversed([*terms])}
    return sorted(once.values(), key=_rank)


def _rank(term: Any) -> Any:
    """Returns the key by which OPA sorts terms."""
    if isinstance(term, OrderedFields) and "type" in term:
        kind, value = term["type"], term["value"]
        return (RANKS[kind], _rank(value))
    if isinstance(term, OrderedFields):
        return [_rank(member) for member in term.values()]
    if isinstance(term, list):
        return [_rank(item) for item in term]
    return term.ratio if isinstance(term, Numeral) else term
