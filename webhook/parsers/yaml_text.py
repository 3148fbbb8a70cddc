"""YAML as ``sigs.k8s.io/yaml`` reads it; several documents are an array.

Values are built from libyaml's events: its composer recurses in C, and makes twice the objects.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from webhook.api.documents import (
    NODES_MAX,
    InvalidDocument,
    is_merge,
    plain_scalar,
    tagged_scalar,
)
from webhook.parsers import numbers
from webhook.parsers.errors import DEPTH_MAX, ParseError

_NONE: Final = object()
_KNOWN_MAX: Final = 50_000
"""Plain scalars remembered, so that words that recur are resolved once."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_known: dict[str, Any] = {}


def parse(raw: bytes, path: str = "") -> Any:
    """The document, or an array of all where lines of ``---`` part them."""
    del path
    text = raw.decode("utf-8", "replace")
    parts = split(text)
    if len(parts) == 1:
        return _value(text, 0)
    documents = []
    line = 0
    for part in parts:
        documents.append(_value(part, line))
        line += part.count("\n") + 2
    return documents


def split(text: str) -> list[str]:
    """The documents of a text: only a line of exactly ``---`` parts them, never the first."""
    ending = "\r\n" if "\r\n" in text else "\n"
    parts = text.split(f"{ending}---{ending}")
    if not text.startswith("%"):
        return parts
    # Directives stand before the first document, and belong to it.
    if len(parts) <= 2:
        return [text]
    return [f"{parts[0]}{ending}---{ending}{parts[1]}", *parts[2:]]


def _value(text: str, lines_before: int) -> Any:
    """The first document of a text; raises :class:`ParseError`."""
    builder = _Builder()
    line = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            line = event.start_mark.line + 1  # type: ignore[union-attr]  # of a text it has one
            if builder.read(event):
                break
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "no YAML"
        raise _fault(what, (mark.line + 1 if mark else line) + lines_before) from None
    except yaml.YAMLError as error:
        what = getattr(error, "reason", "") or "control characters are not allowed"
        raise _fault(str(what), lines_before) from None
    except (ParseError, InvalidDocument) as error:
        message = error.message if isinstance(error, ParseError) else str(error)
        raise _fault(message, line + lines_before) from None
    return builder.root


def _fault(message: str, line: int) -> ParseError:
    return ParseError(f"unmarshal yaml: {message}", line)


class _Open:
    """A sequence or mapping that is being read."""

    __slots__ = ("anchor", "before", "items", "merging", "name", "pairs")

    def __init__(self, *, mapping: bool, anchor: str | None, before: int) -> None:
        self.items: list[Any] = []
        self.pairs: dict[str, Any] | None = {} if mapping else None
        self.anchor = anchor
        self.before = before
        self.name: Any = _NONE
        self.merging = False

    def add(self, value: Any, *, merge: bool) -> None:
        if self.pairs is None:
            self.items.append(value)
        elif self.name is _NONE:
            self.name, self.merging = value, merge
        else:
            if self.merging:
                _merge(self.pairs, value)
            else:
                self.pairs[_key(self.name)] = value
            self.name = _NONE


class _Builder:
    """The value of one document."""

    def __init__(self) -> None:
        self.root: Any = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def read(self, event: Any) -> bool:
        """Take an event; whether the document is whole."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            plain = event.tag is None and event.implicit[0]
            merge = is_merge(event.value, event.tag, is_plain=event.implicit[0])
            self._add(_scalar(event, plain=plain), event.anchor, merge=merge)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(self._stack) >= DEPTH_MAX:
                raise ParseError(f"exceeded max depth of {DEPTH_MAX}")
            mapping = kind is yaml.MappingStartEvent
            self._stack.append(_Open(mapping=mapping, anchor=event.anchor, before=self._count))
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            open_ = self._stack.pop()
            value: Any = open_.items if open_.pairs is None else open_.pairs
            self._add(value, open_.anchor, before=open_.before)
        elif kind is yaml.AliasEvent:
            self._alias(event.anchor)
        return kind is yaml.DocumentEndEvent

    def _alias(self, name: str) -> None:
        if name not in self._anchors:
            inside = any(name == open_.anchor for open_ in self._stack)
            raise ParseError(
                f"anchor '{name}' value contains itself" if inside else f"unknown anchor '{name}'"
            )
        value, size = self._anchors[name]
        self._count += size
        if self._count > NODES_MAX:
            raise ParseError(f"aliases write out to more than {NODES_MAX} values")
        self._add(value, None)

    def _add(
        self, value: Any, anchor: str | None, *, merge: bool = False, before: int | None = None
    ) -> None:
        self._count += 1
        if anchor is not None:
            self._anchors[anchor] = (
                value,
                self._count - (self._count - 1 if before is None else before),
            )
        if self._stack:
            self._stack[-1].add(value, merge=merge)
        else:
            self.root = value


def _merge(pairs: dict[str, Any], value: Any) -> None:
    """What ``<<`` names comes in where it stands; of several the first wins."""
    for other in reversed(value if type(value) is list else [value]):
        if type(other) is not dict:
            raise ParseError("map merge requires map or sequence of maps as the value")
        pairs.update(other)


def _scalar(event: Any, *, plain: bool) -> Any:
    text = event.value
    if plain:
        value = _known.get(text, _NONE)
        if value is _NONE:
            value = _resolved(text)
            if len(_known) < _KNOWN_MAX and len(text) < 100:
                _known[text] = value
        return value
    return text if event.tag is None else tagged_scalar(event.tag, text, _resolved)


def _resolved(text: str) -> Any:
    scalar = plain_scalar(text)
    return numbers.number(scalar) if type(scalar) is int or type(scalar) is float else scalar


def _key(value: Any) -> str:
    """A mapping's key in JSON, where it must be a string."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # just asked
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        return str(int(value)) if value == int(value) else repr(value)
    shown = "null" if value is None else "a collection"
    raise ParseError(f"unsupported map key: {shown}")
