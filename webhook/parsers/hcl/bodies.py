"""Bodies of HCL: attributes and blocks, one in each line."""

from __future__ import annotations

from webhook.parsers.errors import RECURSIVE_DEPTH_MAX
from webhook.parsers.hcl import tree
from webhook.parsers.hcl.expressions import Reader


def read(text: str) -> tree.Body:
    """The body of a file; raises :class:`~webhook.parsers.errors.ParseError`."""
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
        _line_end(reader, closed=closed)


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
    return tree.Block(kind, tuple(labels), _body(reader, depth + 1, closed=True), start)


def _line_end(reader: Reader, *, closed: bool) -> None:
    reader.skip()
    if reader.at >= len(reader.text) or reader.text[reader.at] == "\n":
        return
    if reader.sees("#") or reader.sees("//") or (closed and reader.sees("}")):
        return
    raise reader.fault("Missing newline after argument or block definition")
