"""Reads bodies of HCL: attributes and blocks, each on its own line."""

from __future__ import annotations

from webhook.parsers.errors import RECURSIVE_DEPTH_MAX
from webhook.parsers.hcl import tree
from webhook.parsers.hcl.expressions import Reader


def read(text: str) -> tree.Body:
    """Returns the body of a file; raises :class:`~webhook.parsers.errors.ParseError`."""
    reader = Reader(text.removeprefix("\ufeff"))
    return _body(reader, 0, closed=False)


def _body(reader: Reader, depth: int, *, closed: bool) -> tree.Body:
    if depth > RECURSIVE_DEPTH_MAX:
        raise reader.fault("Nested too deeply")
    body = tree.Body()
    while True:
        reader.skip_lines()
        if reader.at >= len(reader.text):
            if closed:
                raise reader.fault("Unclosed configuration block")
            return body
        if reader.sees("}") and closed:
            reader.at += 1
            return body
        start = reader.at
        name = reader.identifier()
        if not name:
            raise reader.fault("Argument or block definition required")
        reader.skip()
        if reader.sees("=") and not reader.sees("=="):
            reader.at += 1
            if name in body.attributes:
                raise reader.fault(f"Attribute redefined: {name!r}", start)
            reader.skip()
            body.attributes[name] = reader.expression()
        else:
            body.blocks.append(_block(reader, name, start, depth))
        _line_end(reader)


def _block(reader: Reader, kind: str, start: int, depth: int) -> tree.Block:
    labels: list[str] = []
    while not reader.sees("{"):
        if reader.sees('"'):
            label = reader.expression()
            parts = label.parts if isinstance(label, tree.Template) else (label,)
            if not all(isinstance(part, str) for part in parts):
                raise reader.fault("Invalid string literal: templates are not allowed in labels")
            labels.append("".join(map(str, parts)))
        else:
            label_name = reader.identifier()
            if not label_name:
                raise reader.fault("Invalid block definition: expected a brace or a label")
            labels.append(label_name)
        reader.skip()
    reader.at += 1
    reader.skip()
    one_line = not (_is_line_end(reader) or reader.sees("}"))
    body = _only_argument(reader) if one_line else _body(reader, depth + 1, closed=True)
    return tree.Block(kind, tuple(labels), body, start)


def _only_argument(reader: Reader) -> tree.Body:
    """Returns the body of a block on a single line: one argument."""
    name = reader.identifier()
    reader.skip()
    if not name or not reader.sees("=") or reader.sees("=="):
        raise reader.fault(
            "Invalid single-argument block definition: "
            "an argument must be in the line of its block's brace, or a newline after the brace"
        )
    reader.at += 1
    reader.skip()
    body = tree.Body()
    body.attributes[name] = reader.expression()
    reader.skip()
    if not reader.sees("}"):
        raise reader.fault("Invalid single-argument block definition: a brace must follow")
    reader.at += 1
    return body


def _line_end(reader: Reader) -> None:
    reader.skip()
    if not _is_line_end(reader):
        raise reader.fault("Missing newline after argument or block definition")


def _is_line_end(reader: Reader) -> bool:
    return (
        reader.at >= len(reader.text)
        or reader.text[reader.at] == "\n"
        or reader.sees("#")
        or reader.sees("//")
    )
