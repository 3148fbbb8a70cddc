"""Finds the line of a violation's field, if its message or details contain a path."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

from webhook.api.gvk import name_of, namespace_of

_Segment = str | int

_PATH: Final = re.compile(
    r"""(?<![\w./-])[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[(?:\d+|"[^"\]]*"|'[^'\]]*')\])+"""
)
_POINTER: Final = re.compile(r"(?<![\w/.:])(?:/[\w.~-]+)+")
_SEGMENT: Final = re.compile(r"""\[(\d+)\]|\["([^"]*)"\]|\['([^']*)'\]|([A-Za-z_][\w-]*)""")

PATHS_MAX: Final = 50
"""The most paths tried for one violation: a message with more names no particular field."""

_BASES: Final = ((), ("spec", "template"), ("spec", "jobTemplate", "spec", "template"))
"""Prefixes of a path: paths of implied objects begin below the template of the object."""


class FilesFieldLines:
    """The lines of fields in files; each file is read a second time, but only once."""

    def __init__(self) -> None:
        self._files: dict[str, FieldLines] = {}

    def line(self, file: str, first: int, value: Any, message: str, details: Any) -> int:
        """Returns the line of the field; the object's line without a field or a readable file."""
        if file not in self._files:
            self._files[file] = FieldLines(_content(Path(file)))
        return self._files[file].line(first, value, message, details)


def _content(file: Path) -> str:
    """Reads a file; returns None for a pipe, which can be read only once."""
    try:
        return file.read_text("utf-8") if file.is_file() else ""
    except (OSError, ValueError):
        return ""


class FieldLines:
    """The lines of fields in one file."""

    def __init__(self, text: str) -> None:
        self._documents: list[yaml.Node] = []
        # Formats other than YAML only have an object's own line.
        with contextlib.suppress(yaml.YAMLError, RecursionError):
            self._documents = list(yaml.compose_all(text, yaml.CSafeLoader))

    def line(self, first: int, value: Any, message: str, details: Any) -> int:
        """Returns the line of the field; the first line of the object without one."""
        root = self._object(first, value)
        if root is None:
            return first
        deepest, line = 0, root.start_mark.line + 1
        for path in islice(_paths(message, details), PATHS_MAX):
            for base in _BASES:
                start, reached, _ = _follow(root, base)
                if reached < len(base):
                    continue
                _, depth, at = _follow(start, path)
                if depth > deepest:
                    deepest, line = depth, at
        return line

    def _object(self, first: int, value: Any) -> yaml.Node | None:
        """Returns the node of an object: a document, or an item of a List or an AdmissionReview."""
        for node in self._documents:
            if node.start_mark.line + 1 != first and len(self._documents) > 1:
                continue
            if _is(node, value):
                return node
            for place in (("items",), ("request", "object"), ("request", "oldObject")):
                held, depth, _ = _follow(node, place)
                inner = held.value if isinstance(held, yaml.SequenceNode) else [held]
                item = next((candidate for candidate in inner if _is(candidate, value)), None)
                if depth == len(place) and item is not None:
                    return item
            return node
        return None


def _is(node: yaml.Node, value: Any) -> bool:
    """Returns whether a node is the object: compares kind, name and namespace."""
    if not isinstance(value, dict):
        return False
    expected = (value.get("kind"), name_of(value), namespace_of(value))
    places = (("kind",), ("metadata", "name"), ("metadata", "namespace"))
    return expected == tuple(_text(node, place) for place in places)


def _text(node: yaml.Node, place: Sequence[_Segment]) -> str:
    leaf, depth, _ = _follow(node, place)
    is_text = depth == len(place) and isinstance(leaf, yaml.ScalarNode)
    return str(leaf.value) if is_text else ""


def _follow(node: yaml.Node, path: Sequence[_Segment]) -> tuple[yaml.Node, int, int]:
    """Follows a path; returns the last node, the number of segments, and the line."""
    line = node.start_mark.line + 1
    for depth, segment in enumerate(path):
        step = _step(node, segment)
        if step is None:
            return node, depth, line
        node, line = step
    return node, len(path), line


def _step(node: yaml.Node, segment: _Segment) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            if key.value == str(segment):
                return inner, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for number, inner in enumerate(node.value):
            if str(segment) == str(number) or _text(inner, ("name",)) == segment:
                return inner, inner.start_mark.line + 1
    return None


def _paths(message: str, details: Any) -> Iterator[Sequence[_Segment]]:
    """Finds the texts that look like paths, in the message and then in the details."""
    yield from _paths_in(message)
    pending = [details]
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield from _paths_in(value)
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            if len(value) > 1 and all(type(step) in (str, int) for step in value):
                yield value
            pending += value


def _paths_in(text: str) -> Iterator[Sequence[_Segment]]:
    for match in _PATH.finditer(text):
        yield [
            next(part for part in groups if part)
            for groups in _SEGMENT.findall(match[0])
            if any(groups)
        ]
    for match in _POINTER.finditer(text):
        yield [part.replace("~1", "/").replace("~0", "~") for part in match[0].split("/") if part]
