"""Built-ins that read and write YAML, as OPA's go-yaml v3 does: YAML 1.2 with 1.1's octals.

Documented in OPA's reference under "Encoding"; behaviour from
v1/topdown/encoding.go and internal/yaml. Only libyaml's events are used: its
composer recurses in C, and a string of brackets would end the process.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cmp_to_key
from typing import Any, Final

import yaml
from yaml.emitter import Emitter, ScalarAnalysis

from webhook.api import yaml_reader
from webhook.api.yaml_reader import NOT_FINITE, InvalidYaml, NotFinite, YamlDialect
from webhook.golang.floats import float_text
from webhook.golang.strings import utf8
from webhook.rego.builtins.go_json import float_number
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number_text
from webhook.rego.run.text import display, json_items
from webhook.rego.run.values import RegoObject, RegoSet, Value, ordered
from webhook.rego.run.weight import afford_text
from webhook.rego.types import ANY, BOOLEAN, STRING


def _fault(message: str) -> BuiltinError:
    return BuiltinError(f"yaml: {message}")


def _key(name: Value, value: Value) -> str:
    """Returns a mapping's key in JSON, where it must be a string."""
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


_DIALECT: Final = YamlDialect(
    number=float_number, tagged_dates=True, lone_tag_is_plain=True, key=_key
)
_OLDER: Final = replace(_DIALECT, old_words=True)
"""With the booleans of YAML 1.1, as in the library of Gatekeeper's OPA."""


def _parse(context: Context, text: str, dialect: YamlDialect = _DIALECT) -> Value:
    """Returns the first document; the others must be valid, too."""
    context.charge(1 + len(text) // 4)
    dialect = replace(dialect, charge=context.charge)
    try:
        return yaml_reader.read_first(utf8(text), dialect)
    except NotFinite as error:
        raise BuiltinError(f"json: unsupported value: {error.value}") from None
    except InvalidYaml as error:
        place = f"line {error.go_line}: " if error.go_line else ""
        raise _fault(place + error.message) from None


@builtin("yaml.unmarshal", STRING, result=ANY, context=True)
def unmarshal(context: Context, x: str) -> Value:
    """Returns the value of a YAML string."""
    return _parse(context, x)


@builtin("yaml.unmarshal", STRING, result=ANY, context=True, older=True)
def older_unmarshal(context: Context, x: str) -> Value:
    """Returns the value of a YAML string, with ``yes`` and ``off`` as booleans."""
    return _parse(context, x, _OLDER)


@builtin("yaml.is_valid", STRING, result=BOOLEAN, context=True, check=False)
def is_valid(context: Context, x: Value) -> bool:
    """Returns whether the string is YAML that JSON can express."""
    return type(x) is str and _is_valid(context, x, _DIALECT)


@builtin("yaml.is_valid", STRING, result=BOOLEAN, context=True, check=False, older=True)
def older_is_valid(context: Context, x: Value) -> bool:
    """Returns whether the string is such YAML, with ``yes`` as a boolean."""
    return type(x) is str and _is_valid(context, x, _OLDER)


def _is_valid(context: Context, text: str, dialect: YamlDialect) -> bool:
    try:
        _parse(context, text, dialect)
    except BuiltinError:
        return False
    return True


# --- writing ---------------------------------------------------------------------------------


class _Emitter(Emitter):
    """Sequences in mappings are indented, and long lines are left whole."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream, indent=2, width=1 << 30, allow_unicode=True)

    def check_empty_document(self) -> bool:
        """Returns False: an empty string needs no ``---`` before it."""
        return False

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        """Returns the analysis of go-yaml.

        A tab may stand unquoted only in a block. Characters beyond the basic plane are escaped.
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
    r"|y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF|<<"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?)\Z",
    re.DOTALL,
)


def _style(text: str) -> str | None:
    """Returns the style of a text as go-yaml chooses it; None for a plain text.

    There are three cases: 1. more than one line: a block. 2. a plain text would be read as another
    value: quotation marks. 3. all others: plain.
    """
    if "\n" in text:
        return "|"
    plain = (
        text not in NOT_FINITE and type(_DIALECT.scalar(text)) is str and not _QUOTED.match(text)
    )
    return None if plain else '"'


_REFUSED: Final = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
_BREAKS: Final = re.compile(r" *\x85[ \x85]*")


def _reread(text: str) -> str:
    """Returns a text as go-yaml reads it from OPA's JSON: NEL breaks a line there."""
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
        for name, item in sorted(json_items(value), key=lambda pair: _name_order(pair[0])):
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
    reread = _DIALECT.scalar(number_text(value))
    if isinstance(reread, int) and -(1 << 63) <= reread < 1 << 64:
        return number_text(reread)
    return float_text(float(value))


def _compare_names(a: str, b: str) -> int:
    """Compares keys like go-yaml: runs of digits by value, letters after other characters."""
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
    """Returns the value of the leading digits, and their count."""
    count = len(text) - len(text.lstrip("0123456789"))
    return int((lead + text[: min(count, 18)]) or 0), count


_name_order: Final = cmp_to_key(_compare_names)


@builtin("yaml.marshal", ANY, result=STRING, context=True)
def marshal(context: Context, x: Value) -> str:
    """Returns the value as YAML."""
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
