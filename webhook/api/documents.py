"""YAML and JSON documents of files as Kubernetes' own tools read them.

Two dialects: ``kubernetes`` is YAML 1.1 as kubectl and the API server read it
(``yes`` is true), ``suite`` is YAML 1.2's booleans as gator reads suites and
their objects (``yes`` is a string). Both give JSON: keys are strings, and a
float without fraction is an integer, as a pass through Go's JSON makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal, cast

from webhook.api import yaml_reader
from webhook.api.encoding import DecodeError, decode
from webhook.api.yaml_reader import FileDocument, InvalidYaml

Dialect = Literal["kubernetes", "suite"]

_DIALECTS: Final = {"kubernetes": yaml_reader.KUBERNETES, "suite": yaml_reader.SUITE}
_BLANKS: Final = re.compile(r"[ \t\r\n\ufeff]*")
"""Between documents; a byte order mark comes of files that were put together."""
_TYPES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
}


_ESCAPES: Final = re.compile(
    r"\\(?:u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>[dD][89a-fA-F][0-9a-fA-F]{2}))|.)"
)
"""Each escape of a text."""
_PAIR_LENGTH: Final = len(r"\ud83d\ude00")


class InvalidDocument(ValueError):
    """A file is no YAML or JSON of objects; the message names the line if possible."""


def read_documents(text: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """Returns every non-empty YAML document of a text; raises :class:`InvalidDocument`."""
    if dialect == "kubernetes" and "\\u" in text and text.lstrip().startswith("{"):
        text = _ESCAPES.sub(_yaml_escape, text)  # kubectl reads such a text as JSON first
    try:
        documents = list(yaml_reader.read(text, _DIALECTS[dialect]))
    except InvalidYaml as error:
        place = f"line {error.line}: " if error.line else ""
        raise InvalidDocument(f"{place}{error.message}") from None
    return [item for item in documents if item.value is not None and item.value != {}]


def read_json(text: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """Returns concatenated JSON documents, as kubectl reads them.

    Raises :class:`InvalidDocument`, in the dialect of suites also for a repeated key.
    """
    if dialect == "suite":
        _refuse_escapes(text)
        _json_parts(text, _unique)
    text = _ESCAPES.sub(_whole_escape, text) if "\\u" in text else text
    try:
        return [FileDocument(decode(text), 1)]
    except DecodeError as error:
        parts = _json_parts(text)
        if len(parts) < 2:
            raise InvalidDocument(str(error)) from None
    try:
        return [FileDocument(decode(part), line) for part, line in parts]
    except DecodeError as error:
        raise InvalidDocument(str(error)) from None


def _whole_escape(escape: re.Match[str]) -> str:
    """Returns an escape; half of a surrogate pair becomes U+FFFD, as in Go."""
    return "\\ufffd" if escape["half"] else escape[0]


def _yaml_escape(escape: re.Match[str]) -> str:
    """Returns an escape as YAML writes it, which has no surrogates."""
    shown = _whole_escape(escape)
    return cast("str", json.loads(f'"{shown}"')) if len(shown) == _PAIR_LENGTH else shown


def _refuse_escapes(text: str) -> None:
    """Raises :class:`InvalidDocument` for escapes of JSON that YAML, as go-yaml reads it, lacks."""
    if "\\" not in text:
        return
    for escape in _ESCAPES.finditer(text):
        if escape[0] == "\\/":
            raise InvalidDocument(_place(text, escape) + "found unknown escape character")
        if escape["half"] or len(escape[0]) == _PAIR_LENGTH:
            problem = "found invalid Unicode character escape code"
            raise InvalidDocument(_place(text, escape) + problem)


def _place(text: str, escape: re.Match[str]) -> str:
    return f"line {text.count(chr(10), 0, escape.start()) + 1}: "


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object; raises :class:`InvalidDocument` if a key occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        key = next(name for name in names if names.count(name) > 1)
        raise InvalidDocument(f'mapping key "{key}" already defined')
    return members


def _json_parts(
    text: str, of_pairs: Callable[[list[tuple[str, Any]]], Any] = dict
) -> list[tuple[str, int]]:
    """Returns the texts of concatenated JSON documents, each with its line."""
    parts: list[tuple[str, int]] = []
    decoder = json.JSONDecoder(object_pairs_hook=of_pairs, parse_int=str)
    at = _blanks(text, 0)
    line, counted = 1, 0
    while at < len(text):
        begin = at
        try:
            _, end = decoder.raw_decode(text, begin)
        except InvalidDocument:
            raise
        except (ValueError, RecursionError):
            return []
        line, counted = line + text.count("\n", counted, begin), begin
        parts.append((text[begin:end], line))
        at = _blanks(text, end)
    return parts


def read_objects(text: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """As :func:`read_documents`, of objects only."""
    return only_objects(read_documents(text, dialect))


def only_objects(documents: list[FileDocument]) -> list[FileDocument]:
    """Returns the documents; raises :class:`InvalidDocument` if any is no object."""
    for document in documents:
        if type(document.value) is not dict:
            kind = _TYPES[type(document.value)]
            raise InvalidDocument(f"line {document.line}: expected an object, got {kind}")
    return documents
