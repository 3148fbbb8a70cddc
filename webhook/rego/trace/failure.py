"""The literal that a test failed at, with the values in it, as OPA shows it (v1/topdown/trace.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from webhook.rego.check import ir
from webhook.rego.check.strict import nodes
from webhook.rego.location import Location
from webhook.rego.run import runtime
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.syntax import ast
from webhook.rego.trace.events import TraceEvent, is_literal
from webhook.rego.trace.pretty import truncated
from webhook.rego.trace.text import constant_text, terms_within
from webhook.values import dataclass

_VALUE_MAX: Final = 64


@dataclass(slots=True)
class _ShownPart:
    """A part of the literal with its value: UNDEFINED if the value is missing."""

    place: Location
    title: str
    value: Value

    @property
    def col(self) -> int:
        """The column where it begins."""
        return self.place.col

    def text(self) -> str:
        """The value."""
        whole = "undefined" if self.value is UNDEFINED else constant_text(self.value)
        return truncated(whole, _VALUE_MAX)


def failure_lines(events: Sequence[TraceEvent], modules: Sequence[ast.Module]) -> list[str]:
    """The place of a test's last failure, the literal there, and the values of its parts."""
    for event in reversed(events):
        if event.step != "Fail" or not event.query or not is_literal(event.node):
            continue
        if isinstance(event.node, ir.Every):
            continue
        written = _written(event.location, modules)
        place = event.location if written is None else written.location
        lines = [f"  {event.location.file}:{event.location.row}:"]
        source = _source(place, modules)
        lines += [f"    {line}" for line in _padded(place, source)]
        if written is not None:
            lines += [f"    {line}" for line in _arrows(_shown(event, written), source)]
        return lines
    return []


def _source(place: Location, modules: Sequence[ast.Module]) -> list[str]:
    return next((m.source.split("\n") for m in modules if m.file == place.file), [])


def _written(place: Location, modules: Sequence[ast.Module]) -> Any:
    """The innermost literal that a place is in."""
    innermost = None
    for module in modules:
        if module.file != place.file:
            continue
        for rule in module.rules:
            for node in nodes(rule):
                if not isinstance(node, ast.Expr | ast.SomeIn | ast.Every | ast.Not | ast.Logic):
                    continue
                begin = node.location.offset
                if begin <= place.offset < begin + len(node.location.text) and (
                    innermost is None or len(node.location.text) <= len(innermost.location.text)
                ):
                    innermost = node
    return innermost


def _padded(place: Location, source: Sequence[str]) -> list[str]:
    """The text of a place behind as much room, tabs included, as is before it."""
    line = source[place.row - 1] if place.row <= len(source) else ""
    before = "".join("\t" if c == "\t" else " " for c in line[: place.col - 1])
    return f"{before}{place.text}".split("\n")


def _shown(event: TraceEvent, written: Any) -> list[_ShownPart]:
    """The parts of a literal that have values, the last of each title."""
    parts: dict[str, _ShownPart] = {}
    node = event.node
    names = _names(node)

    def show(place: Location, value: Value) -> None:
        known = parts.get(place.text)
        if known is None or known.value is UNDEFINED:
            parts[place.text] = _ShownPart(place, place.text, value)

    begin, end = written.location.offset, written.location.offset + len(written.location.text)
    for lit in event.body:
        name = _made(lit)
        if name is not None and begin <= lit.location.offset < end:
            value = event.values.get(name, UNDEFINED)
            if value is not UNDEFINED or (name in names and not node.negated):  # type: ignore[union-attr]
                show(lit.location, value)
    unique = {text: name for name, text in event.names.items()}
    for term in _terms(written):
        if isinstance(term, ast.Var):
            name = unique.get(term.name, "input" if term.name == "input" else "data")
            value = event.values.get(name, UNDEFINED)
            if value is not UNDEFINED or (name in names and not node.negated):  # type: ignore[union-attr]
                show(term.location, value)
        elif isinstance(term, ast.Ref) and isinstance(term.head, ast.Var):
            value = event.values.get(unique.get(term.head.name, ""), UNDEFINED)
            for step in term.path:
                value = runtime.index(value, getattr(step, "value", UNDEFINED))
            if value is not UNDEFINED:
                show(term.location, value)
    return sorted(parts.values(), key=attrgetter("col"))


def _names(node: Any) -> set[str]:
    return {term.name for term in terms_within(node) if isinstance(term, ir.Var)}


def _made(lit: ir.Lit) -> str | None:
    """The variable that a literal was made for."""
    if isinstance(lit, ir.Eq) and lit.generated and isinstance(lit.a, ir.Var):
        return lit.a.name
    if isinstance(lit, ir.Call) and lit.generated and isinstance(lit.out, ir.Var):
        return lit.out.name
    return None


def _terms(node: Any) -> Iterator[Any]:
    """Yields the terms of a literal, except terms inside comprehensions and nested bodies."""
    if isinstance(node, tuple):
        for child in node:
            yield from _terms(child)
    elif isinstance(node, ast.Call):
        yield from _terms(node.args)
    elif isinstance(node, ast.With):
        yield from _terms(node.value)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, ast.COMPREHENSIONS):
        yield node
        for name in node.__dataclass_fields__:
            if name not in {"location", "body", "left", "right"}:
                yield from _terms(getattr(node, name))


def _arrows(shown: Sequence[_ShownPart], source: Sequence[str]) -> list[str]:
    """Returns a line with a bar below each part, then a line for each value, from the last on."""
    if not shown:
        return []
    rows = {expression.place.row for expression in shown}
    if len(rows) > 1 and any("\t" in source[row - 1] for row in rows if row <= len(source)):
        named = sorted((expression.title, expression.text()) for expression in shown)
        return ["", "Where:", "", *(f"{title}: {text}" for title, text in named)]
    lines = [_arrow_line(shown, source, None)]
    lines += [_arrow_line(shown, source, last) for last in range(len(shown) - 1, -1, -1)]
    return lines


def _arrow_line(shown: Sequence[_ShownPart], source: Sequence[str], last: int | None) -> str:
    part = shown if last is None else shown[: last + 1]
    line = ""
    at = 0
    for number, shown_part in enumerate(part):
        is_last = number == len(part) - 1
        if not is_last and part[number + 1].col == shown_part.col:
            continue
        text = source[shown_part.place.row - 1] if shown_part.place.row <= len(source) else ""
        line += "".join("\t" if c == "\t" else " " for c in text[at : shown_part.col - 1])
        at = shown_part.col
        if not is_last or last is None:
            line += "|"
            continue
        beside = [*shown[max(number - 1, 0) : number], *shown[number + 1 : number + 2]]
        same = any(other.col == shown_part.col for other in beside)
        line += f"{shown_part.title}: {shown_part.text()}" if same else shown_part.text()
    return line
