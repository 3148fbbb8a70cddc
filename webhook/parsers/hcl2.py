"""Parses HCL2, Terraform's language, into hcl2json's shape: blocks in objects by their labels.

Expressions other than constants are their source in ``${…}``; nothing is evaluated.
"""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

from webhook.parsers import numbers
from webhook.parsers.errors import ParseError, line_at
from webhook.parsers.hcl import bodies, tree


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{kind: {label: [{attribute: value}]}}``."""
    del path
    text = raw.decode("utf-8", "replace")
    return _Converter(text.removeprefix("\ufeff")).body(bodies.read(text))


class _Converter:
    """Converts a tree and its source to JSON."""

    def __init__(self, text: str) -> None:
        self._text = text

    def body(self, body: tree.Body) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for block in body.blocks:
            self._block(block, members)
        for name, expression in body.attributes.items():
            members[name] = self.value(expression)
        return members

    def _block(self, block: tree.Block, members: dict[str, Any]) -> None:
        key = block.kind
        for label in block.labels:
            inner = members.setdefault(key, {})
            if not isinstance(inner, dict):
                raise self._mixed(block)
            members, key = inner, label
        blocks = members.setdefault(key, [])
        if not isinstance(blocks, list):
            raise self._mixed(block)
        blocks.append(self.body(block.body))

    def _mixed(self, block: tree.Block) -> ParseError:
        message = f'invalid HCL detected for "{block.kind}" block, cannot have blocks with and without labels'
        return ParseError(f"convert to bytes: {message}", line_at(self._text, block.start))

    def value(self, expression: tree.Expression) -> Any:
        """Returns an expression as a JSON value."""
        match expression:
            case tree.Literal():
                return _constant(expression.value)
            case tree.Negation(operand=tree.Literal(value=value)):
                return self._negated(expression, value)
            case tree.Wrapped():
                return self.value(expression.inner)
            case tree.Template():
                return self._template(expression)
            case tree.Tuple():
                return [self.value(item) for item in expression.items]
            case tree.Object():
                return {self._key(key): self.value(item) for key, item in expression.items}
            case _:
                return self._source(expression)

    def _negated(self, negation: tree.Negation, value: Any) -> Any:
        if negation.operator == "!" and isinstance(value, bool):
            return not value
        if negation.operator == "-" and isinstance(value, float):
            return _constant(-value)
        line = line_at(self._text, negation.start)
        raise ParseError("convert to bytes: Invalid operand", line)

    def _source(self, expression: tree.Expression) -> str:
        return f"${{{self._range(expression)}}}"

    def _range(self, expression: tree.Expression) -> str:
        """Returns an expression's source, with a following parenthesis, as hcl2json does."""
        end = expression.end + (self._text[expression.end : expression.end + 1] == ")")
        return self._text[expression.start : end]

    def _key(self, key: tree.Expression) -> str:
        if isinstance(key, tree.Traversal):
            return self._range(key)
        return self._part(key)

    def _template(self, template: tree.Template) -> str:
        return "".join(
            _escaped(normalize("NFC", part)) if isinstance(part, str) else self._part(part)
            for part in template.parts
        )

    def _part(self, part: tree.Expression) -> str:
        match part:
            case tree.Literal(value=value):
                return _escaped(_text(value))
            case tree.Wrapped():
                return self._part(part.inner)
            case tree.Template():
                return self._template(part)
            case tree.Conditional():
                otherwise = self._part(part.otherwise)
                middle = f"%{{else}}{otherwise}" if otherwise else ""
                condition = self._range(part.condition)
                return f"%{{if {condition}}}{self._part(part.then)}{middle}%{{endif}}"
            case tree.Loop():
                names, collection = ", ".join(part.names), self._range(part.collection)
                return f"%{{for {names} in {collection}}}{self._template(part.body)}%{{endfor}}"
            case _:
                return self._source(part)


def _constant(value: Any) -> Any:
    return numbers.number(value) if isinstance(value, float) else value


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("${", "$${").replace("%{", "%%{")
