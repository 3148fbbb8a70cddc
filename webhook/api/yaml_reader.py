"""The only reader of YAML: it returns the JSON values that a tool written in Go would read.

Tools differ in details, which a :class:`YamlDialect` sets. Values are built from libyaml's events:
its composer recurses in C, so that many brackets would end the process.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import yaml

from webhook.api.shapes import DEPTH_MAX
from webhook.values import dataclass

OBJECT_DEPTH_MAX: Final = 250
"""The deepest nesting of a Kubernetes object, which more functions traverse. The deepest schemas in
use have some forty levels."""

NODES_MAX: Final = 5_000_000
"""The most values of one document after its aliases are expanded. The largest policy sets have some
ten thousand; a few lines of nested aliases can make billions."""

DIGITS_MAX: Final = 309
"""The most digits of an integer. A longer one exceeds the largest float (1.8e308), the type that
go-yaml reads large integers as, and so becomes a text. Python refuses to read more than 4,300
digits."""

TAG_PREFIX: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{TAG_PREFIX}merge"
_UNSET: Final = object()
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
"""The words of YAML 1.2 for null, true and false."""

_OLD_WORDS: Final[Mapping[str, Any]] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
"""The words of YAML 1.1 for null, true and false."""

NOT_FINITE: Final[Mapping[str, str]] = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
}
_NOT_FINITE_KEYS: Final = {"NaN": ".nan", "+Inf": ".inf", "-Inf": "-.inf"}
"""Mapping keys that are such numbers, as JSON texts by their names."""

_LATER_MARK: Final = re.compile(r"(?<=\n---\n)\ufeff|(?<=\n---\r\n)\ufeff")
"""A byte order mark at the start of a document behind another one."""

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_QUOTED_ON_A_LINE: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_PARSED_AGAIN_MAX: Final = 1 << 24
"""Characters; some seconds."""

_SLASH_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\/")
"""``\\/``, valid in JSON and YAML 1.2, but unknown to go-yaml; libyaml reads it."""

_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)
_INTEGERS: Final = (
    (re.compile(r"([-+]?)0[bB]([01]+)\Z"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)\Z"), 8),
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)\Z"), 16),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)\Z"), 10),
)
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2}))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(\.[0-9]+)?))?"
)


class InvalidYaml(ValueError):
    """A text is no YAML of JSON values; with the fault and the line (from 1; 0 if unknown)."""

    def __init__(self, message: str, line: int = 0, *, go_line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.go_line = go_line
        """The line in go-yaml's message: the context's line, unless that is the first."""


class NotFinite(InvalidYaml):
    """A number that is not JSON; ``value`` is Go's text of it."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text} is not a number of JSON")
        self.value = NOT_FINITE[text]


def json_float(value: float) -> int | float:
    """Returns a float as Go's JSON would: whole numbers below 1e21 become integers."""
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))  # of as few digits as tell it from others
    return value


def key_text(key: Any, value: Any) -> str:
    """Returns a mapping key as JSON text; raises :class:`InvalidYaml`."""
    del value
    kind = type(key)
    if kind is str:
        return key  # type: ignore[no-any-return]  # checked above
    if kind is bool:
        return "true" if key else "false"
    if kind is int or kind is float:
        return str(json_float(key)) if kind is float else str(key)
    raise InvalidYaml("a key must be a string, a number or a boolean")


def _decoded(text: str) -> str:
    """Decodes base64 like Go: line breaks are the only other characters allowed."""
    try:
        raw = base64.b64decode(text.translate({10: None, 13: None}), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidYaml("!!binary value contains invalid base64 data") from None
    return raw.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class YamlDialect:
    """The differences of one tool's YAML."""

    old_words: bool = False
    """Whether ``yes`` and ``off`` are booleans, as YAML 1.1 has them."""
    whole_max: int = (1 << 64) - 1
    """The largest exact integer; larger ones are read as floats."""
    number: Callable[[float], Any] = json_float
    """The function that converts a float, or an integer read as a float."""
    dates: bool = False
    """Whether an unquoted date is a time, and so written in full."""
    tagged_dates: bool = False
    """Whether ``!!timestamp`` turns a text into a time."""
    merges_in_place: bool = False
    """Whether ``<<`` overrides earlier keys, as in go-yaml's version 2."""
    lone_tag_is_plain: bool = False
    """Whether ``! 5`` is a number, as in go-yaml's version 3."""
    key: Callable[[Any, Any], str] = key_text
    refuses_repeated_keys: bool = False
    refuses_long_numbers: bool = False
    """Whether a number beyond the largest float is an error; go-yaml makes a text of it."""
    depth_max: int = DEPTH_MAX
    json_first: bool = False
    """Whether a text that begins with a brace is first read as JSON."""
    charge: Callable[[int], None] | None = None
    """Called with a number of steps for each value."""

    def scalar(self, text: str) -> Any:
        """Returns the value of an unquoted text; raises :class:`InvalidYaml` for infinities."""
        words = _OLD_WORDS if self.old_words else _WORDS
        if text in words:
            return words[text]
        if text[0] not in "+-.0123456789":
            return text
        if text in NOT_FINITE:
            raise NotFinite(text)
        if self.dates and (moment := _moment(text)):
            return moment
        plain = text if text[0] == "." else text.replace("_", "")
        if self.refuses_long_numbers and len(plain) > DIGITS_MAX and plain.lstrip("+-").isdigit():
            problem = f"a number of {len(plain)} digits is beyond what Kubernetes reads"
            raise InvalidYaml(problem)
        for pattern, base in _INTEGERS:
            if match := pattern.match(plain):
                # Of 80 digits none is within bounds.
                whole = int(match[2][:80], base)
                whole = -whole if match[1] == "-" else whole
                if -(1 << 63) <= whole <= self.whole_max:
                    return whole
                if -(1 << 63) <= whole < 1 << 64:
                    return self.number(float(whole))
        if _FLOAT.match(plain):
            value = float(plain)
            return self.number(value) if math.isfinite(value) else text
        return text

    def tagged(self, tag: str, text: str, *, plain: bool) -> Any:
        """Returns the value of a scalar with an explicit tag; raises :class:`InvalidYaml`.

        ``!!binary`` is decoded. With ``!!null``, ``!!bool``, ``!!int``, ``!!float`` or
        ``!!timestamp`` the unquoted scalar must be of that type. With any other tag it is a text.
        """
        if tag == "!":
            return self.scalar(text) if plain and self.lone_tag_is_plain else text
        kind = tag.removeprefix(TAG_PREFIX)
        if kind == tag:
            return text
        if kind == "binary":
            return _decoded(text)
        if kind == "timestamp":
            moment = _moment(text)
            if moment is None:
                raise InvalidYaml(f"cannot decode !!str `{text}` as a !!timestamp")
            return moment if self.tagged_dates else text
        if kind not in {"null", "bool", "int", "float"}:
            return text
        value = self.scalar(text)
        actual = {type(None): "null", bool: "bool", str: "str"}.get(type(value)) or _number_kind(
            text
        )
        if actual != kind and not (kind == "float" and actual == "int"):
            raise InvalidYaml(f"cannot decode !!{actual} `{text}` as a !!{kind}")
        return value


def _number_kind(text: str) -> str:
    plain = text.replace("_", "")
    return "int" if any(pattern.match(plain) for pattern, _ in _INTEGERS) else "float"


def _moment(text: str) -> str | None:
    """Returns a time as Go's JSON writes it; None if the text is no time."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    year, month, day, *rest = match.groups()
    hour, minute, second, fraction, zone = rest[:5] if rest[0] is not None else (*rest[5:], "Z")
    try:
        dt.datetime(  # noqa: DTZ001  # only checks that the moment exists
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
        )
    except ValueError:
        return None
    decimals = (fraction or "").rstrip("0").rstrip(".")
    clock = f"{int(hour or 0):02}:{int(minute or 0):02}:{int(second or 0):02}{decimals}"
    return f"{year}-{int(month):02}-{int(day):02}T{clock}{zone or 'Z'}"


KUBERNETES: Final = YamlDialect(
    old_words=True,
    whole_max=(1 << 63) - 1,
    merges_in_place=True,
    refuses_long_numbers=True,
    depth_max=OBJECT_DEPTH_MAX,
    json_first=True,
)
"""``sigs.k8s.io/yaml``, by which kubectl, the API server and gator read objects."""

SUITE: Final = YamlDialect(
    whole_max=(1 << 63) - 1,
    dates=True,
    tagged_dates=True,
    lone_tag_is_plain=True,
    refuses_repeated_keys=True,
    refuses_long_numbers=True,
    depth_max=OBJECT_DEPTH_MAX,
)
"""go-yaml's version 3, by which gator reads suites and their objects."""


@dataclass(frozen=True, slots=True)
class FileDocument:
    """One document of a file: its value and its first line, from 1."""

    value: Any
    line: int
    repeated: tuple[str, int] | None = None
    """The first repeated key of a mapping, and its line; the last value counts."""


def read(text: str | bytes, dialect: YamlDialect) -> Iterator[FileDocument]:
    """Yields each document of a text; raises :class:`InvalidYaml`."""
    for builder in _builders(text, dialect):
        yield FileDocument(builder.root, builder.line, builder.repeated)


def read_first(text: str | bytes, dialect: YamlDialect) -> Any:
    """Returns the first document or null; the others must parse. Raises :class:`InvalidYaml`."""
    whole = list(_builders(text, dialect, documents_max=1))
    return whole[0].root if whole else None


def _builders(
    text: str | bytes, dialect: YamlDialect, documents_max: float = math.inf
) -> Iterator[_Builder]:
    builder = _Builder(dialect)
    line = 0
    if isinstance(text, str) and "\ufeff" in text:
        # Files that were put together: a mark would shift the first key of its document.
        text = _LATER_MARK.sub("", text)
    text = _without_escaped_apostrophes(text)
    escaped = _text_with_slash_escapes(text, dialect)
    try:
        for event in _parsed(text):
            line = event.start_mark.line + 1
            kind = type(event)
            if escaped and kind is yaml.ScalarEvent and event.style == '"':
                _refuse_slash_escape(escaped, event)
            if documents_max < 1:
                continue
            if kind is yaml.DocumentStartEvent:
                builder = _Builder(dialect)
                builder.begin(event.version)
            elif kind is yaml.DocumentEndEvent:
                documents_max -= 1
                yield builder
            else:
                builder.read(event, line)
    except yaml.MarkedYAMLError as error:
        marks = [mark for mark in (error.problem_mark, error.context_mark) if mark is not None]
        scanning = isinstance(error, yaml.scanner.ScannerError)
        named = next((mark.line + scanning for mark in reversed(marks) if mark.line), 0)
        message = error.problem or error.context or "no YAML"
        raise InvalidYaml(message, marks[0].line + 1 if marks else line, go_line=named) from None
    except yaml.YAMLError as error:  # characters that YAML does not allow
        reason = getattr(error, "reason", "") or "control characters are not allowed"
        raise InvalidYaml(str(reason)) from None
    except InvalidYaml as error:
        error.line = error.line or line
        raise


def _parsed(text: str | bytes) -> Iterator[Any]:
    """Yields libyaml's events; raises :class:`yaml.YAMLError`."""
    return yaml.parse(text, Loader=_Loader)


def _without_escaped_apostrophes(text: str | bytes) -> str | bytes:
    """Returns the text with escaped apostrophes, which go-yaml takes, as an escape that libyaml has.

    One parse does where such texts are on a line each. Else each of them needs a parse, until so
    many characters are parsed.
    """
    if (b"\\'" if isinstance(text, bytes) else "\\'") not in text:  # type: ignore[operator]
        return text
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    whole = whole.removeprefix("\ufeff")
    if (replaced := _replaced_on_lines(whole)) is not None:
        return replaced
    for _ in range(1 + _PARSED_AGAIN_MAX // len(whole)):
        try:
            for _ in _parsed(whole):
                pass
        except yaml.MarkedYAMLError as error:
            start = error.context_mark.index if error.context_mark else len(whole)
            quoted = _QUOTED.match(whole, start)
            if quoted is None:
                return text
            written = _ESCAPE.sub(_known_escape, quoted[0])
            if written == quoted[0]:
                return text
            whole = whole[:start] + written + whole[quoted.end() :]
        except yaml.YAMLError:
            return text
        else:
            return whole
    return text


def _replaced_on_lines(text: str) -> str | None:
    """Replaces escaped apostrophes between quotes on a line; None if some quotes are others."""
    starts: list[int] = []
    longer = 0

    def replace(quoted: re.Match[str]) -> str:
        nonlocal longer
        written = _ESCAPE.sub(_known_escape, quoted[0])
        if written != quoted[0]:
            starts.append(quoted.start() + longer)
            longer += len(written) - len(quoted[0])
        return written

    replaced = _QUOTED_ON_A_LINE.sub(replace, text)
    try:
        quoted = {
            event.start_mark.index
            for event in _parsed(replaced)
            if getattr(event, "style", None) == '"'
        }
    except yaml.YAMLError:
        return None
    return replaced if quoted.issuperset(starts) else None


def _known_escape(escape: re.Match[str]) -> str:
    return "\\u0027" if escape[0] == "\\'" else escape[0]


def _text_with_slash_escapes(text: str | bytes, dialect: YamlDialect) -> str:
    """Returns the text if it may contain an erroneous escaped slash; else an empty text."""
    if (b"\\/" if isinstance(text, bytes) else "\\/") not in text:  # type: ignore[operator]
        return ""
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    whole = whole.removeprefix("\ufeff")
    return "" if dialect.json_first and whole.lstrip().startswith("{") else whole


def _refuse_slash_escape(text: str, event: Any) -> None:
    """Raises for escapes between quotes that go-yaml does not support."""
    quoted = text[event.start_mark.index : event.end_mark.index]
    escape = _SLASH_ESCAPE.search(quoted)
    if escape is None:
        return
    first = event.start_mark.line
    row = first + quoted.count("\n", 0, escape.end())
    named = (first or row) + 1 if first or row else 0
    raise InvalidYaml("found unknown escape character", row + 1, go_line=named)


class _Open:
    """An open sequence or mapping."""

    __slots__ = ("anchor", "before", "items", "key", "line", "merge", "merged", "pairs")

    def __init__(self, *, mapping: bool, anchor: str | None, before: int) -> None:
        self.items: list[Any] = []
        self.pairs: dict[str, Any] | None = {} if mapping else None
        self.merged: set[str] = set()
        """Keys that only ``<<`` has set; they may occur once more."""
        self.anchor = anchor
        self.before = before
        self.key: Any = _UNSET
        self.merge = False
        self.line = 0


class _Builder:
    """Builds the value of one document."""

    def __init__(self, dialect: YamlDialect) -> None:
        self.root: Any = None
        self.line = 0
        self.repeated: tuple[str, int] | None = None
        self._dialect = dialect
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def begin(self, version: tuple[int, int] | None) -> None:
        """Checks the version of a directive: go-yaml reads 1.1 only."""
        if version not in (None, (1, 1)):
            raise InvalidYaml("found incompatible YAML document")

    def read(self, event: Any, line: int) -> None:
        """Takes an event of a value."""
        kind = type(event)
        self.line = self.line or line
        if kind is yaml.ScalarEvent:
            self._scalar(event, line)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(self._stack) >= self._dialect.depth_max:
                raise InvalidYaml(f"exceeded max depth of {self._dialect.depth_max}")
            mapping = kind is yaml.MappingStartEvent
            self._stack.append(_Open(mapping=mapping, anchor=event.anchor, before=self._count))
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            open_ = self._stack.pop()
            value: Any = open_.items if open_.pairs is None else open_.pairs
            self._add(value, open_.anchor, line, before=open_.before)
        elif kind is yaml.AliasEvent:
            self._alias(event.anchor, line)

    def _scalar(self, event: Any, line: int) -> None:
        text, tag = event.value, event.tag
        plain = event.implicit[0]
        # A plain `<<`, or a tagged `<<` as yq writes it.
        merge = text == "<<" and (plain if tag in (None, "!") else tag == _MERGE)
        try:
            if tag is not None:
                is_plain = event.style is None or event.style == ""
                value = self._dialect.tagged(tag, text, plain=is_plain)
            else:
                value = self._dialect.scalar(text) if plain else text
        except NotFinite as error:
            if not self._is_key():
                raise
            value = _NOT_FINITE_KEYS[error.value]
        self._add(value, event.anchor, line, merge=merge)

    def _is_key(self) -> bool:
        """Whether the next value is a mapping's key."""
        open_ = self._stack[-1] if self._stack else None
        return open_ is not None and open_.pairs is not None and open_.key is _UNSET

    def _alias(self, name: str, line: int) -> None:
        if name not in self._anchors:
            inside = any(name == open_.anchor for open_ in self._stack)
            raise InvalidYaml(
                f"anchor '{name}' value contains itself"
                if inside
                else f"unknown anchor '{name}' referenced"
            )
        value, size = self._anchors[name]
        self._count += size - 1
        if self._count > NODES_MAX:
            raise InvalidYaml(f"document contains excessive aliasing: more than {NODES_MAX} values")
        self._add(value, None, line)

    def _add(
        self,
        value: Any,
        anchor: str | None,
        line: int,
        *,
        merge: bool = False,
        before: int | None = None,
    ) -> None:
        self._count += 1
        if self._dialect.charge is not None:
            self._dialect.charge(20)
        if anchor is not None:
            size = self._count - (self._count - 1 if before is None else before)
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self.root = value
            return
        open_ = self._stack[-1]
        if open_.pairs is None:
            open_.items.append(value)
        elif open_.key is _UNSET:
            open_.key, open_.merge, open_.line = value, merge, line
        elif open_.merge:
            open_.key = _UNSET
            self._merge(open_, value)
        else:
            key = self._dialect.key(open_.key, value)
            open_.key = _UNSET
            if key in open_.merged:
                open_.merged.remove(key)
            elif key in open_.pairs:
                self._repeat(key, open_.line)
            open_.pairs[key] = value

    def _repeat(self, key: str, line: int) -> None:
        if self._dialect.refuses_repeated_keys:
            raise InvalidYaml(f'mapping key "{key}" already defined', line)
        if self.repeated is None:
            self.repeated = key, line

    def _merge(self, open_: _Open, value: Any) -> None:
        """Merges the mappings that ``<<`` names; the first of several wins."""
        pairs = open_.pairs if open_.pairs is not None else {}
        listed = value if type(value) is list else [value]
        for other in reversed(listed) if self._dialect.merges_in_place else listed:
            if type(other) is not dict:
                raise InvalidYaml("map merge requires map or sequence of maps as the value")
            for key, item in other.items():
                if key not in pairs:
                    open_.merged.add(key)
                elif not self._dialect.merges_in_place:
                    continue
                pairs[key] = item
