"""YAML and JSON documents as Kubernetes' own tools read them.

Two dialects: ``kubernetes`` is YAML 1.1 as kubectl and the API server read it
(``yes`` is true), ``suite`` is YAML 1.2's booleans as gator reads suites and
their objects (``yes`` is a string). Both give JSON: keys are strings, and a
float without fraction is an integer, as a pass through Go's JSON makes it.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

from webhook.api.encoding import DecodeError, decode
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Dialect = Literal["kubernetes", "suite"]

NODES_MAX: Final = 5_000_000
"""Values one document may hold once its aliases are written out: the largest policy sets hold
some ten thousand, and a few lines of nested aliases can make billions."""

DEPTH_MAX: Final = 250
"""Levels of nesting; the deepest schemas in use have some forty."""

TAG_PREFIX: Final = "tag:yaml.org,2002:"

_PLAIN: Final = "tag:waddle.dev,2026:plain"
_MERGE: Final = f"{TAG_PREFIX}merge"
_TEXT: Final = f"{TAG_PREFIX}str"

DIGITS_MAX: Final = 309
"""Of a whole number: one of more is beyond the largest float (1.8e308), which go-yaml reads large
ones as, and so it is a text. Python refuses to read more than 4,300 as a number."""

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEANS: Final = {
    **_BOOLEANS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2}))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(\.[0-9]+)?))?"
)


class InvalidDocument(ValueError):
    """A file that is no YAML or JSON of objects; the message names the line where it can."""


@dataclass(frozen=True, slots=True)
class FileDocument:
    """One document of a file: its value and the line it begins on, from 1."""

    value: Any
    line: int
    repeated: tuple[str, int] | None = None
    """The first key that a mapping in it names again, and on which line. As for Kubernetes' own
    tools the last value counts: where two files were joined without ``---``, the first is lost."""


def read_documents(text: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """Every YAML document of a text that is not empty; raises :class:`InvalidDocument`."""
    return list(_documents(text, dialect))


def read_json(text: str) -> list[FileDocument]:
    """JSON documents, one after the other as kubectl takes them; raises :class:`InvalidDocument`."""
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


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _json_parts(text: str) -> list[tuple[str, int]]:
    """The texts of JSON documents that stand one after the other, each with its line."""
    parts: list[tuple[str, int]] = []
    decoder, at = json.JSONDecoder(parse_int=str), _blanks(text, 0)
    while at < len(text):
        begin = at
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return []
        parts.append((text[begin:end], text.count("\n", 0, begin) + 1))
        at = _blanks(text, end)
    return parts


def read_objects(text: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """As :func:`read_documents`, of objects only."""
    return only_objects(read_documents(text, dialect))


def only_objects(documents: list[FileDocument]) -> list[FileDocument]:
    """The documents, all of which must be objects; raises :class:`InvalidDocument`."""
    for document in documents:
        if type(document.value) is not dict:
            kind = type(document.value).__name__
            raise InvalidDocument(f"line {document.line}: expected an object, got {kind}")
    return documents


def _documents(text: str, dialect: Dialect) -> Iterator[FileDocument]:
    loader = (_KubernetesLoader if dialect == "kubernetes" else _SuiteLoader)(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            line = node.start_mark.line + 1
            value = loader.construct_document(node)
            if "&" in text:
                _measure(value, line)
            if value is not None and value != {}:
                yield FileDocument(value, line, loader.repeated)
            loader.repeated = None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise InvalidDocument(f"{place}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InvalidDocument(str(error)) from None
    except RecursionError:
        raise InvalidDocument("nested too deeply") from None
    finally:
        loader.dispose()


def _measure(value: Any, line: int) -> None:
    """Refuse a document whose aliases would write out to too much, or to no end."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()

    def size(item: Any) -> int:
        if type(item) is not dict and type(item) is not list:
            return 1
        known = sizes.get(id(item))
        if known is None:
            if id(item) in open_:
                raise InvalidDocument(f"line {line}: an alias contains itself")
            open_.add(id(item))
            below = item.values() if type(item) is dict else item
            known = sizes[id(item)] = 1 + sum(size(part) for part in below)
            open_.discard(id(item))
        return known

    if size(value) > NODES_MAX:
        raise InvalidDocument(f"line {line}: aliases write out to more than {NODES_MAX} values")


def _scalar(text: str, booleans: dict[str, bool], *, timestamps: bool) -> Any:
    """What an unquoted scalar means."""
    if text in booleans:
        return booleans[text]
    if text in _NULLS:
        return None
    if text[0] not in "+-.0123456789":
        return text
    if text.lower().lstrip("+-") in {".inf", ".nan"}:
        raise InvalidDocument(f"{text} is no JSON number")
    if timestamps and (match := _TIMESTAMP.fullmatch(text)):
        return _timestamp(text, match)
    plain = text.replace("_", "")
    if len(plain) > DIGITS_MAX and plain.lstrip("+-").isdigit():
        return text
    if _INTEGER.fullmatch(plain):
        return _integer(plain)
    if _FLOAT.fullmatch(plain):
        return _number(float(plain))
    return text


def is_merge(text: str, tag: str | None, *, is_plain: bool) -> bool:
    """Whether a key brings another mapping in: a plain ``<<``, or one tagged so, as yq writes it."""
    return text == "<<" and (is_plain if tag in (None, "!") else tag == _MERGE)


def tagged_scalar(tag: str, text: str, resolve: Callable[[str], Any]) -> Any:
    """What a scalar with an explicit tag means to go-yaml; raises :class:`InvalidDocument`.

    There are three cases: ``!!binary`` is decoded; ``!!null``, ``!!bool``, ``!!int`` and ``!!float``
    are what the scalar would be without quotes (``resolve`` says what), which must be of that kind;
    with any other tag it is a text.
    """
    kind = tag.removeprefix(TAG_PREFIX)
    if kind == tag:
        return text
    if kind == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise InvalidDocument("!!binary value contains invalid base64 data") from None
    if kind not in {"null", "bool", "int", "float"}:
        return text
    value = resolve(text)
    actual = {type(None): "null", bool: "bool", int: "int", str: "str"}.get(type(value), "float")
    if actual != kind and not (kind == "float" and actual == "int"):
        raise InvalidDocument(f"cannot decode !!{actual} `{text}` as a !!{kind}")
    return value


def plain_scalar(text: str) -> Any:
    """What an unquoted scalar means to Kubernetes' tools; raises :class:`InvalidDocument`."""
    return _scalar(text, _OLD_BOOLEANS, timestamps=False)


def _integer(text: str) -> int | float:
    digits = text.lstrip("+-").lower()
    base = 8 if digits.startswith("0") and digits != "0" else 10
    for prefix, value in (("0x", 16), ("0b", 2), ("0o", 8)):
        if digits.startswith(prefix):
            digits, base = digits[2:], value
    number = int(digits, base)
    return -number if text.startswith("-") else number


def _number(value: float) -> int | float:
    # Go's JSON writes a float of 1e21 or more with an exponent, and reads that as a float.
    if not math.isfinite(value):
        raise InvalidDocument(f"{value} is no JSON number")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _timestamp(text: str, match: re.Match[str]) -> str:
    """A moment as Go's JSON writes it; the text itself where it is no moment."""
    year, month, day, *rest = match.groups()
    hour, minute, second, fraction, zone = rest[:5] if rest[0] is not None else (*rest[5:], "Z")
    try:
        dt.datetime(  # noqa: DTZ001  # only asked whether such a moment exists
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
        )
    except ValueError:
        return text
    decimals = (fraction or "").rstrip("0").rstrip(".")
    clock = f"{int(hour or 0):02}:{int(minute or 0):02}:{int(second or 0):02}{decimals}"
    return f"{year}-{int(month):02}-{int(day):02}T{clock}{zone or 'Z'}"


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the C parser where PyYAML was built with it
    """PyYAML's safe loader with Go's meaning of plain scalars."""

    booleans: dict[str, bool] = _BOOLEANS
    timestamps = False
    depth = 0
    repeated: tuple[str, int] | None = None

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        # Called on the way into every node: the C parser itself recurses until it crashes.
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise InvalidDocument("nested too deeply")
        super().descend_resolver(current_node, current_index)

    def ascend_resolver(self) -> None:
        self.depth -= 1
        super().ascend_resolver()

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is not yaml.ScalarNode:
            return super().resolve(kind, value, implicit)
        if not implicit[0]:
            return _TEXT
        return _MERGE if value == "<<" else _PLAIN

    def construct_plain(self, node: Any) -> Any:
        value = _scalar(node.value, self.booleans, timestamps=self.timestamps)
        if type(value) is str and len(value) > DIGITS_MAX and value.lstrip("+-").isdigit():
            problem = f"a number of {len(value)} digits is beyond what Kubernetes reads"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return value

    def construct_tagged(self, node: Any) -> Any:
        """A node with an explicit tag; of a collection the tag means nothing."""
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return self.construct_sequence(node, deep=True)

        def resolve(text: str) -> Any:
            return _scalar(text, self.booleans, timestamps=False)

        try:
            return tagged_scalar(node.tag, node.value, resolve)
        except InvalidDocument as error:
            raise yaml.constructor.ConstructorError(
                None, None, str(error), node.start_mark
            ) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        own = node.value
        self.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = _key(self.construct_object(key_node, deep=True), key_node)
            # What a merge brought (another list then) may be said again.
            if name in result and own is node.value and self.repeated is None:
                self.repeated = name, key_node.start_mark.line + 1
            result[name] = self.construct_object(value_node, deep=deep)
        return result


def _key(value: Any, node: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        return str(value)
    raise yaml.constructor.ConstructorError(
        None, None, "a key must be a string, a number or a boolean", node.start_mark
    )


class _KubernetesLoader(_Loader):
    booleans = _OLD_BOOLEANS


class _SuiteLoader(_Loader):
    timestamps = True


_Loader.add_constructor(_PLAIN, _Loader.construct_plain)
for _kind in (
    "binary",
    "bool",
    "float",
    "int",
    "merge",
    "null",
    "omap",
    "pairs",
    "set",
    "timestamp",
):
    _Loader.add_constructor(f"{TAG_PREFIX}{_kind}", _Loader.construct_tagged)
_Loader.add_constructor(None, _Loader.construct_tagged)
