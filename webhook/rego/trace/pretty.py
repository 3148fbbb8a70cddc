"""Explanations as tables of text, as OPA writes them (v1/topdown/trace.go)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from webhook.rego.check import ir
from webhook.rego.trace.events import TracedNode, TraceEvent, is_literal
from webhook.rego.trace.text import TermWriter, constant_text, terms_within, written_path

_PADDING: Final = 4
_PLACE_MAX: Final = 64
_VALUE_MAX: Final = 32


def table(events: Sequence[TraceEvent], *, values: bool = False, indent: str = "") -> list[str]:
    """Returns a line for each step: its place, its text, and with ``values`` its variables.

    An indentation stands before each cell and at each end, as in OPA.
    """
    depths: dict[int, int] = {}
    files = short_names(events)
    rows: list[list[str]] = []
    for event in events:
        depth = depths.get(event.query, 0) or depths.get(event.parent, 0) + 1
        depths[event.query] = depth
        file = event.location.file
        place = f"{files[file] if file else 'query'}:{event.location.row}"
        row = [place, _indented(event, depth)]
        if values:
            row.append(_values(event))
        rows.append(row)
    widths = [max(map(len, column)) + _PADDING for column in zip(*rows, strict=True)]
    return [
        "".join(f"{indent}{cell:<{width}} " for cell, width in zip(row[:-1], widths, strict=False))
        + f"{indent}{row[-1]}{indent}"
        for row in rows
    ]


def short_names(events: Sequence[TraceEvent]) -> dict[str, str]:
    """Returns the shown names of files: long names are cut at the beginning."""
    files = list(dict.fromkeys(event.location.file for event in events if event.location.file))
    longest = max((len(f"{e.location.file}:{e.location.row}") for e in events), default=0)
    if longest <= _PLACE_MAX:
        return {file: file for file in files}
    return {
        file: f"...{file[len(file) - _PLACE_MAX + 8 :]}" if len(file) > _PLACE_MAX - 8 else file
        for file in files
    }


def _indented(event: TraceEvent, depth: int) -> str:
    is_own = event.step == "Enter" or (event.step == "Redo" and not is_literal(event.node))
    bars = "| " * (depth - 1 if is_own else depth)
    return f"{bars}{event.step} {_event_text(event)}"


def _event_text(event: TraceEvent) -> str:
    if event.step == "Note":
        return f'"{event.message}"'
    if event.step == "Index":
        return event.message
    text = node_text(event.node, event)
    return f"{text} {event.message}" if event.message else text


def node_text(node: TracedNode, event: TraceEvent) -> str:
    """Returns the text of a step's node."""
    writer = TermWriter(event.names)
    if isinstance(node, str):
        return node
    if isinstance(node, ir.Rule):
        return written_path(("data", *node.path))
    if is_literal(node):
        return writer.literal(node)  # type: ignore[arg-type]
    return writer.body(node)  # type: ignore[arg-type]


def _values(event: TraceEvent) -> str:
    node = event.node
    if event.step == "Note" or isinstance(node, str):
        return "{}"
    writer = TermWriter(event.names)
    names = [term.name for term in terms_within(node) if isinstance(term, ir.Var)]
    shown = [
        (writer.variable(name), event.values[name])
        for name in dict.fromkeys(names)
        if name in event.values
    ]
    shown += event.documents.items()
    shown.sort(key=itemgetter(0))
    texts = [f"{name}: {truncated(constant_text(value))}" for name, value in shown]
    return f"{{{', '.join(texts)}}}"


def truncated(text: str, most: int = _VALUE_MAX) -> str:
    """A text of so many characters at most, with dots where it was cut."""
    return text if len(text) < most else f"{text[:most]}..."
