"""The syntax tree of a module in the text format of ``opa parse``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.golang.strings import quote
from webhook.rego.builtins.module_json import ref_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.rego.run.text import OrderedFields


def pretty_lines(document: OrderedFields) -> Iterator[str]:
    """Yields the tree of a module: a line for each node, indented by one space a level."""
    yield "module"
    yield " package"
    yield from _drawn(ref_term(document["package"]["path"]), 2)
    for import_ in document.get("imports", ()):
        yield " import"
        yield from _drawn(import_["path"], 2)
        yield f"  {import_.get('alias', '')}"
    for import_ in document.get("rules", ()):
        yield from _drawn_rule(import_, 1)
    for name in ("annotations", "comments"):
        for _ in document.get(name, ()):
            yield f" {name.removesuffix('s') if name == 'comments' else name}"


def _drawn_rule(rule: OrderedFields, depth: int) -> Iterator[str]:
    pad, head = " " * depth, rule["head"]
    yield f"{pad}rule"
    yield f"{pad} head"
    yield from _drawn(ref_term(head["ref"]), depth + 2)
    if args := head.get("args"):
        yield f"{pad}  args"
        yield from _drawn_all(args, depth + 3)
    if "value" in head:
        yield from _drawn(head["value"], depth + 2)
    yield from _drawn_body(rule["body"], depth + 1)
    if "else" in rule:
        yield from _drawn_rule(rule["else"], depth + 1)


def _drawn_body(body: list[OrderedFields], depth: int) -> Iterator[str]:
    pad = " " * depth
    yield f"{pad}body"
    for literal in body:
        negated = " negated" if literal.get("negated") else ""
        yield f"{pad} expr{negated} index={literal['index']}"
        terms = literal["terms"]
        if isinstance(terms, list):
            yield from _drawn_all(terms, depth + 2)
        else:
            yield from _drawn_terms(terms, depth + 2)
        for with_ in literal.get("with", ()):
            yield f"{pad}  with"
            yield from _drawn_all((with_["target"], with_["value"]), depth + 3)


def _drawn_terms(terms: OrderedFields, depth: int) -> Iterator[str]:
    """Yields the terms of an expression: a single term, or the parts of a statement."""
    pad = " " * depth
    if "symbols" in terms:
        yield f"{pad}somedecl"
        yield from _drawn_all(terms["symbols"], depth + 1)
    elif "domain" in terms:
        yield f"{pad}every"
        named = [terms[field] for field in ("key", "value", "domain") if terms[field] is not None]
        yield from _drawn_all(named, depth + 1)
        yield from _drawn_body(terms["body"], depth + 1)
    elif terms["type"] == "not":
        yield f"{pad}not"
        yield from _drawn_body(terms["body"], depth + 1)
    elif "lhs" in terms:
        yield f"{pad}logical{terms['type']}"
        yield from _drawn_body(terms["lhs"], depth + 1)
        yield from _drawn_body(terms["rhs"], depth + 1)
    else:
        yield from _drawn(terms, depth)


def _drawn_all(terms: Iterable[OrderedFields], depth: int) -> Iterator[str]:
    for term in terms:
        yield from _drawn(term, depth)


def _drawn(term: OrderedFields, depth: int) -> Iterator[str]:
    kind, value, pad = term["type"], term["value"], " " * depth
    match kind:
        case "null":
            yield f"{pad}null"
        case "boolean":
            yield f"{pad}{str(value).lower()}"
        case "number":
            yield f"{pad}{value.text}"
        case "string":
            yield f"{pad}{quote(value)}"
        case "var":
            yield f"{pad}{'_' if value.startswith('$') else value}"
        case "templatestring":
            yield f"{pad}{kind}"
        case "object":
            yield f"{pad}{kind}"
            yield from _drawn_all((child for pair in value for child in pair), depth + 1)
        case "arraycomprehension" | "setcomprehension" | "objectcomprehension":
            yield f"{pad}{kind}"
            heads = [value[field] for field in ("term", "key", "value") if field in value]
            yield from _drawn_all(heads, depth + 1)
            yield from _drawn_body(value["body"], depth + 1)
        case _:
            yield f"{pad}{kind}"
            yield from _drawn_all(value, depth + 1)
