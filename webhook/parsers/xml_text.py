"""Parses XML like goxml2json: ``-name`` for attributes, ``#content`` for text beside elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from xml.parsers import expat

from webhook.api.shapes import DEPTH_MAX
from webhook.parsers.errors import ParseError

_DEFAULTS_MAX: Final = 100_000_000
"""The most default attributes of a document type, which the parser visits for one second in all."""


class Element:
    """An element or an attribute: its children by name, and its last text."""

    __slots__ = ("below", "name", "text")

    def __init__(self, name: str, text: str = "") -> None:
        self.name = name
        self.text = text
        self.below: dict[str, list[Element]] = {}

    def add(self, child: Element) -> None:
        """Adds an element or attribute as a child."""
        self.below.setdefault(child.name, []).append(child)

    def value(self) -> Any:
        """Returns the element as a JSON value."""
        if not self.below:
            return self.text
        members: dict[str, Any] = {"#content": self.text} if self.text else {}
        for name, children in self.below.items():
            values = [child.value() for child in children]
            members[name] = values if len(values) > 1 else values[0]
        return members


def parse(raw: bytes, path: str = "") -> Any:
    """Returns an object with the root's name and value."""
    del path
    return read(raw, "unmarshal xml: ").value()


def read(raw: bytes, prefix: str) -> Element:
    """Returns the document as an element around the root; raises :class:`ParseError`.

    A document's own entities are refused: a few lines of them can make gigabytes.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise ParseError(prefix + expat.ErrorString(error.code), error.lineno) from None
    except ParseError as error:
        line = reader.parser.CurrentLineNumber
        raise ParseError(prefix + error.message, line) from None
    return reader.open[0]


class _Reader:
    """Builds elements from the parser's events."""

    def __init__(self) -> None:
        self.open = [Element("")]
        self._pieces: list[str] = []
        self._declared: Counter[str] = Counter()
        self._defaults = 0
        self.parser = parser = expat.ParserCreate("utf-8")
        parser.ordered_attributes = False
        # Like Go, ignores attributes that are not written: a few lines give defaults to every
        # element.
        parser.specified_attributes = True
        parser.AttlistDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._pieces.append
        parser.StartCdataSectionHandler = self._text
        parser.EndCdataSectionHandler = self._cdata
        parser.CommentHandler = lambda _: self._text()
        parser.ProcessingInstructionHandler = lambda *_: self._text()
        parser.EntityDeclHandler = _refuse_entity

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._text()
        self._defaults += self._declared[name]
        if self._defaults > _DEFAULTS_MAX:
            raise ParseError("the document type adds too many attributes: write them out")
        if len(self.open) > DEPTH_MAX:
            raise ParseError(f"exceeded max depth of {DEPTH_MAX}")
        element = Element(_local(name))
        for attribute, value in attributes.items():
            element.add(Element(f"-{_local(attribute)}", value))
        self.open.append(element)

    def _declare(self, element: str, *_: object) -> None:
        self._declared[element] += 1

    def _end(self, _: str) -> None:
        self._text()
        element = self.open.pop()
        self.open[-1].add(element)

    def _text(self) -> None:
        """Replaces the element's text by the text since the last event, if any."""
        if self._pieces:
            self._cdata()

    def _cdata(self) -> None:
        self.open[-1].text = _trimmed("".join(self._pieces))
        self._pieces.clear()


def _refuse_entity(*_: object) -> None:
    raise ParseError("a document's own entities are not read")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _trimmed(text: str) -> str:
    """Returns the text from its first to its last visible character."""
    start, end = 0, len(text)
    while start < end and not _shows(text[start]):
        start += 1
    while start < end and not _shows(text[end - 1]):
        end -= 1
    return text[start:end]


def _shows(character: str) -> bool:
    return character.isprintable() and not character.isspace()
