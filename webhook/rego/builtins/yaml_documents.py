"""Built-ins that read and write YAML, as OPA's go-yaml v3 does: YAML 1.2 with 1.1's octals.

Documented in OPA's reference under "Encoding"; behaviour from
v1/topdown/encoding.go and internal/yaml. Only libyaml's events are used: its
composer recurses in C, and a string of brackets would end the process.
"""

from __future__ import annotations

import io
import re
from dataclasses import field
from decimal import Decimal
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Final

import yaml
from yaml.emitter import Emitter, ScalarAnalysis

from webhook.api.documents import TAG_PREFIX, InvalidDocument, is_merge, tagged_scalar
from webhook.golang.floats import float_text
from webhook.golang.strings import from_utf8, utf8
from webhook.rego.builtins import strict_base64
from webhook.rego.builtins.registry import builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number, number_text
from webhook.rego.run.text import display, json_items
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, ordered
from webhook.rego.run.weight import afford_text
from webhook.rego.types import ANY, BOOLEAN, STRING
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.rego.builtins.registry import Context
    from webhook.rego.run.values import Value

MAX_DEPTH: Final = 500
"""Deepest nesting read: the engine's own walks recurse. Go stops at 10,000."""

MAX_NODES: Final = 2_000_000
"""Most nodes of a document with its aliases expanded, against documents that double themselves."""

# --- scalars ---------------------------------------------------------------------------------

_CONSTANTS: Final[dict[str, Value]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_OLDER_TRUTHS: Final = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
"""What YAML 1.1 calls true and false, and so the library that Gatekeeper's OPA has."""

_NOT_FINITE: Final = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)
_INTEGERS: Final = (
    (re.compile(r"([-+]?)0[bB]([01]+)\Z"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)\Z"), 8),
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)\Z"), 16),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)\Z"), 10),
)


def _fault(message: str) -> BuiltinError:
    return BuiltinError(f"yaml: {message}")


def resolve(text: str) -> Value:
    """What a plain scalar stands for. Raises BuiltinError for infinities: JSON has none."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text in _NOT_FINITE:
        raise BuiltinError(f"json: unsupported value: {_NOT_FINITE[text]}")
    if text[0] not in "+-.0123456789":
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    for pattern, base in _INTEGERS:
        match = pattern.match(plain)
        if match:
            whole = int(match[2][:80], base)
            whole = -whole if match[1] == "-" else whole
            if -(1 << 63) <= whole < 1 << 64:
                return whole
    if _FLOAT.match(plain):
        value = float(plain)
        return text if value in {float("inf"), float("-inf")} else _json_float(value)
    return text


def _json_float(value: float) -> int | float:
    """The number after a passage through Go's JSON, which writes integers without a point."""
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))  # of as few digits as tell it from others
    if 1e-6 <= abs(value) < 1e21:
        return number(format(value, "f") if "e" in repr(value) else repr(value))
    return number(re.sub(r"e([+-])0", r"e\1", repr(value)))


def _older(text: str) -> Value:
    return _OLDER_TRUTHS[text] if text in _OLDER_TRUTHS else resolve(text)


def _scalar(event: yaml.ScalarEvent, resolve: Callable[[str], Value]) -> Value:
    if event.tag is None or event.tag == "!":
        plain = event.implicit[0] and event.tag is None
        return resolve(event.value) if plain else event.value
    if event.tag == f"{TAG_PREFIX}binary":
        return from_utf8(strict_base64.decode(event.value))
    try:
        return tagged_scalar(event.tag, event.value, resolve)
    except InvalidDocument as error:
        raise _fault(str(error)) from None


# --- documents -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Collection:
    """A sequence or mapping that is being read."""

    mapping: bool
    anchor: str | None
    items: list[Value] = field(default_factory=list)
    pairs: dict[str, Value] = field(default_factory=dict)
    merged: list[Value] = field(default_factory=list)
    name: Value = UNDEFINED
    merges: bool = False
    nodes: int = 1

    def add(self, value: Value, *, merge_key: bool) -> None:
        if not self.mapping:
            self.items.append(value)
        elif self.name is UNDEFINED:
            self.name, self.merges = value, merge_key
        else:
            if self.merges:
                self.merged.extend(value if type(value) is list else [value])
            else:
                self.pairs[_key(self.name, value)] = value
            self.name = UNDEFINED

    def value(self) -> Value:
        if not self.mapping:
            return self.items
        for other in self.merged:
            if type(other) is not dict:
                raise _fault("map merge requires map or sequence of maps as the value")
            for name, item in other.items():
                self.pairs.setdefault(name, item)
        return self.pairs


def _key(name: Value, value: Value) -> str:
    """A mapping's key in JSON, where it must be a string."""
    if type(name) is str:
        return name
    if type(name) is bool:
        return "true" if name else "false"
    if isinstance(name, int | float):
        return number_text(name)
    if name is None:
        shown = "<nil>" if value is None else display(value)
        raise BuiltinError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
    raise _fault("invalid map key")


class _Reader:
    """Builds values from events, one document after another."""

    def __init__(self, context: Context, resolve: Callable[[str], Value]) -> None:
        self.context = context
        self.resolve = resolve
        self.stack: list[_Collection] = []
        self.anchors: dict[str, tuple[Value, int]] = {}
        self.root: Value = UNDEFINED
        self.nodes = 0

    def document(self) -> None:
        self.stack, self.anchors, self.root = [], {}, UNDEFINED

    def read(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            merge = is_merge(event.value, event.tag, is_plain=event.implicit[0])
            self.add(_scalar(event, self.resolve), 1, event.anchor, merge_key=merge)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            if len(self.stack) >= MAX_DEPTH:
                raise _fault(f"exceeded max depth of {MAX_DEPTH}")
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.stack.append(_Collection(mapping, event.anchor))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            collection = self.stack.pop()
            self.add(collection.value(), collection.nodes, collection.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                inside = any(event.anchor == open_.anchor for open_ in self.stack)
                problem = f"anchor '{event.anchor}' value contains itself"
                raise _fault(problem if inside else f"unknown anchor '{event.anchor}' referenced")
            value, nodes = self.anchors[event.anchor]
            self.add(value, nodes, None)

    def add(self, value: Value, nodes: int, anchor: str | None, *, merge_key: bool = False) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, nodes)
        self.context.charge(20)
        if not self.stack:
            self.root = value
            return
        parent = self.stack[-1]
        parent.nodes += nodes
        if parent.nodes > MAX_NODES:
            raise _fault("document contains excessive aliasing")
        parent.add(value, merge_key=merge_key)


def _parse(context: Context, text: str, resolve: Callable[[str], Value] = resolve) -> Value:
    """The first document; the others must parse."""
    context.charge(1 + len(text) // 4)
    reader = _Reader(context, resolve)
    first: Value = UNDEFINED
    try:
        for event in yaml.parse(utf8(text), Loader=yaml.CSafeLoader):
            if first is not UNDEFINED:
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                reader.document()
            elif isinstance(event, yaml.DocumentEndEvent):
                first = reader.root
            else:
                reader.read(event)
    except yaml.MarkedYAMLError as error:
        raise _fault(
            _place(error) + (error.problem or "unknown problem parsing YAML content")
        ) from None
    except yaml.YAMLError as error:  # characters that YAML does not allow
        reason = getattr(error, "reason", "") or "control characters are not allowed"
        raise _fault(str(reason)) from None
    return None if first is UNDEFINED else first


def _place(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml counts it: of the context unless that is the first line."""
    scanning = isinstance(error, yaml.scanner.ScannerError)
    for mark in (error.context_mark, error.problem_mark):
        if mark is not None and mark.line:
            return f"line {mark.line + scanning}: "
    return ""


@builtin("yaml.unmarshal", STRING, result=ANY, context=True)
def unmarshal(context: Context, x: str) -> Value:
    """Return the value that a string writes in YAML."""
    return _parse(context, x)


@builtin("yaml.unmarshal", STRING, result=ANY, context=True, older=True)
def older_unmarshal(context: Context, x: str) -> Value:
    """Return the same, where ``yes`` and ``off`` are no texts."""
    return _parse(context, x, _older)


@builtin("yaml.is_valid", STRING, result=BOOLEAN, context=True, check=False)
def is_valid(context: Context, x: Value) -> bool:
    """Tell whether the string is YAML that JSON can say."""
    return type(x) is str and _is_valid(context, x, resolve)


@builtin("yaml.is_valid", STRING, result=BOOLEAN, context=True, check=False, older=True)
def older_is_valid(context: Context, x: Value) -> bool:
    """Tell the same, where ``yes`` is a truth."""
    return type(x) is str and _is_valid(context, x, _older)


def _is_valid(context: Context, text: str, resolve: Callable[[str], Value]) -> bool:
    try:
        _parse(context, text, resolve)
    except BuiltinError:
        return False
    return True


# --- writing ---------------------------------------------------------------------------------


class _Emitter(Emitter):
    """Sequences in mappings are indented, and long lines are left whole."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream, indent=2, width=1 << 30, allow_unicode=True)

    def check_empty_document(self) -> bool:
        """Never: an empty string needs no ``---`` before it."""
        return False

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """As go-yaml: a tab may stand in a block but nowhere else unquoted.

        What lies beyond the basic plane is escaped.
        """
        if "\t" not in scalar:
            analysis = super().analyze_scalar(scalar)
            if not scalar.isascii() and max(scalar) > "\uffff":
                analysis.allow_flow_plain = analysis.allow_block_plain = False
                analysis.allow_single_quoted = analysis.allow_block = False
            return analysis
        analysis = super().analyze_scalar(scalar.replace("\t", "x"))
        analysis.scalar = scalar
        analysis.allow_flow_plain = analysis.allow_block_plain = False
        analysis.allow_single_quoted = False
        return analysis

    def expect_block_sequence(self) -> None:
        self.increase_indent(flow=False, indentless=False)
        self.state = self.expect_first_block_sequence_item


_QUOTED: Final = re.compile(
    r"(?:[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # base 60, of YAML 1.1
    r"|y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?)\Z",
    re.DOTALL,
)


def _style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    plain = text not in _NOT_FINITE and type(resolve(text)) is str and not _QUOTED.match(text)
    return None if plain else '"'


_REFUSED: Final = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
_BREAKS: Final = re.compile(r" *\x85[ \x85]*")


def _reread(text: str) -> str:
    """A text as go-yaml reads it from JSON, of which OPA makes YAML: NEL breaks a line there."""
    if text.isascii() and "\x7f" not in text:
        return text
    if _REFUSED.search(text):
        raise _fault("control characters are not allowed")
    return _BREAKS.sub(lambda breaks: "\n" * (breaks[0].count("\x85") - 1) or " ", text)


def _name(text: str) -> str:
    if "\x85" in text:
        raise _fault("line 1: did not find expected ',' or '}'")
    return _reread(text)


def _events(value: Value) -> Iterator[Any]:
    kind = type(value)
    if kind is RegoSet:
        value, kind = ordered(value), list
    if kind is list:
        yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not value)
        for item in value:
            yield from _events(item)
        yield yaml.SequenceEndEvent()
    elif kind is dict or kind is RegoObject:
        yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not len(value))
        for name, item in sorted(json_items(value), key=_natural):
            yield from _events(_name(name))
            yield from _events(item)
        yield yaml.MappingEndEvent()
    elif kind is str:
        value = _reread(value)
        style = _style(value)
        yield yaml.ScalarEvent(None, None, (style is None, True), value, style=style)
    else:
        yield yaml.ScalarEvent(None, None, (True, False), _plain(value))


def _plain(value: Value) -> str:
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return number_text(value)
    number_ = resolve(number_text(value))
    if isinstance(number_, int) and -(1 << 63) <= number_ < 1 << 64:
        return number_text(number_)
    return float_text(float(value))


def _compare_names(a: str, b: str) -> int:
    """go-yaml's order of keys: runs of digits by their value, letters after other characters."""
    digits = False
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x == y:
            digits = x.isdecimal()
            continue
        if x.isalpha() or y.isalpha():
            if x.isalpha() and y.isalpha():
                return -1 if x < y else 1
            return -1 if (x.isalpha() if digits else y.isalpha()) else 1
        return _compare_digits(a, b, at)
    return (len(a) > len(b)) - (len(a) < len(b))


def _compare_digits(a: str, b: str, at: int) -> int:
    lead = ""
    if "0" in (a[at], b[at]) and re.search(r"[1-9][0-9]*\Z", a[:at]):
        lead = "1"
    left, right = (_digits(lead, text[at:]) for text in (a, b))
    if left != right:
        return -1 if left < right else 1
    return -1 if a[at] < b[at] else 1


def _digits(lead: str, text: str) -> tuple[int, int]:
    """The value of the digits at the beginning, and their count."""
    count = len(text) - len(text.lstrip("0123456789"))
    return int((lead + text[: min(count, 18)]) or 0), count


_name_order: Final = cmp_to_key(_compare_names)


def _natural(pair: tuple[str, Value]) -> Any:
    return _name_order(pair[0])


@builtin("yaml.marshal", ANY, result=STRING, context=True)
def marshal(context: Context, x: Value) -> str:
    """Return the value as YAML."""
    afford_text(x)
    stream = io.StringIO()
    emitter = _Emitter(stream)
    emitter.emit(yaml.StreamStartEvent())
    emitter.emit(yaml.DocumentStartEvent(explicit=False))
    for event in _events(x):
        # PyYAML writes character by character.
        context.charge(200 + 20 * len(getattr(event, "value", "")))
        emitter.emit(event)
    emitter.emit(yaml.DocumentEndEvent(explicit=False))
    emitter.emit(yaml.StreamEndEvent())
    return stream.getvalue().removesuffix("...\n")
