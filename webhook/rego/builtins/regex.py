"""Built-ins on regular expressions, in RE2's syntax.

Documented in OPA's reference under "Regex"; behaviour from v1/topdown/regex.go
and regex_template.go, and from Go's package regexp.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.golang.strings import from_utf8, quote, utf8
from webhook.rego.builtins.glob_intersection import intersects
from webhook.rego.builtins.operands import integer
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.patterns import SHORT, Pattern, pattern, quote_meta
from webhook.rego.run.text import MAX_CHARACTERS, text_too_large
from webhook.rego.types import BOOLEAN, NUMBER, STRING, array_of

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

BYTES_A_STEP = 16
"""Bytes that RE2 reads in about one step."""

SEARCH_STEPS = 100
"""The cost of the next match with its spans: 5 µs, as measured over 20,000 matches."""

GROUP_STEPS = 8
"""The cost of the spans of one group: 200 nested groups took 80 µs."""


@builtin("re_match", STRING, STRING, result=BOOLEAN, deprecated=True, context=True, check=False)
@builtin("regex.match", STRING, STRING, result=BOOLEAN, context=True, check=False)
def match(context: Context, pattern_: Value, value: Value) -> bool:
    """Returns whether a part of the value matches."""
    if type(pattern_) is str and type(value) is str:
        if len(value) + len(pattern_) > SHORT:
            context.charge(len(value) // BYTES_A_STEP + len(pattern_))
        compiled = pattern(pattern_)
        if compiled.instructions:
            context.charge(compiled.steps_in(len(value)))
        return compiled.found_in(value)
    return wrong_operand(*((2, value) if type(pattern_) is str else (1, pattern_)), "string")


@builtin("regex.is_valid", STRING, result=BOOLEAN, check=False)
def is_valid(pattern_: Value) -> bool:
    """Returns whether the string is a pattern."""
    if type(pattern_) is not str:
        return False
    try:
        pattern(pattern_)
    except BuiltinError:
        return False
    return True


def _match_steps(compiled: Pattern) -> int:
    return SEARCH_STEPS + GROUP_STEPS * int(compiled.compiled.groups)


def _charge(context: Context, raw: bytes, compiled: Pattern) -> None:
    context.charge(1 + len(raw) // BYTES_A_STEP + len(compiled.text))
    context.charge(compiled.steps_in(len(raw), spans=True))


@builtin("regex.split", STRING, STRING, result=array_of(STRING), context=True)
def split(context: Context, pattern_: str, value: str) -> list[str]:
    """Returns the parts between matches."""
    compiled, raw = pattern(pattern_), utf8(value)
    if pattern_ and not raw:
        return [""]
    _charge(context, raw, compiled)
    parts, begin, end = [], 0, 0
    for spans in compiled.all_in(raw):
        end = spans[0][0]
        if spans[0][1] != 0:
            parts.append(from_utf8(raw[begin:end]))
        begin = spans[0][1]
        context.charge(_match_steps(compiled))
    if end != len(raw):
        parts.append(from_utf8(raw[begin:]))
    return parts


def _text(raw: bytes, span: tuple[int, int]) -> str:
    return from_utf8(raw[span[0] : span[1]]) if span[0] >= 0 else ""


@builtin("regex.find_n", STRING, STRING, NUMBER, result=array_of(STRING), context=True)
def find_n(context: Context, pattern_: str, value: str, number: float) -> list[str]:
    """Returns the first matches; all of them for a negative number."""
    limit = integer(3, number)
    compiled, raw = pattern(pattern_), utf8(value)
    _charge(context, raw, compiled)
    texts = []
    for spans in compiled.all_in(raw, max(limit, -1)):
        context.charge(_match_steps(compiled))
        texts.append(_text(raw, spans[0]))
    return texts


@builtin(
    "regex.find_all_string_submatch_n",
    STRING,
    STRING,
    NUMBER,
    result=array_of(array_of(STRING)),
    context=True,
)
def find_all_string_submatch_n(
    context: Context, pattern_: str, value: str, number: float
) -> list[list[str]]:
    """Returns the first matches, each with its groups; all of them for a negative number."""
    limit = integer(3, number)
    compiled, raw = pattern(pattern_), utf8(value)
    _charge(context, raw, compiled)
    texts = []
    for spans in compiled.all_in(raw, max(limit, -1)):
        context.charge(_match_steps(compiled) + len(spans))
        texts.append([_text(raw, span) for span in spans])
    return texts


# A reference in a replacement after its dollar sign: a name or number, perhaps in braces.
_REFERENCE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})?")


@builtin("regex.replace", STRING, STRING, STRING, result=STRING, context=True)
def replace(context: Context, value: str, pattern_: str, replacement: str) -> str:
    """Returns the value with each match replaced; ``$1`` and ``${name}`` are its groups."""
    compiled, raw = pattern(pattern_), utf8(value)
    _charge(context, raw, compiled)
    pieces = _pieces(compiled, replacement)
    parts, last, size = [], 0, 0
    for spans in compiled.all_in(raw):
        parts.append(raw[last : spans[0][0]])
        for piece in pieces:
            if isinstance(piece, bytes):
                parts.append(piece)
            else:
                span = next((spans[at] for at in piece if spans[at][0] >= 0), (0, 0))
                parts.append(raw[span[0] : span[1]])
            size += len(parts[-1])
        if size > MAX_CHARACTERS:
            raise text_too_large()
        context.charge(_match_steps(compiled) + len(parts[-1]) // BYTES_A_STEP)
        last = spans[0][1]
    parts.append(raw[last:])
    return from_utf8(b"".join(parts))


def _pieces(compiled: Pattern, replacement: str) -> list[bytes | list[int]]:
    """Returns the replacement's literal text, and for each reference its possible groups."""
    groups: dict[bytes, list[int]] = {}
    for name, at in compiled.compiled.groupindex.items():
        groups.setdefault(name if isinstance(name, bytes) else utf8(name), []).append(at)
    pieces: list[bytes | list[int]] = []
    last = 0
    for match in _REFERENCE.finditer(replacement):
        pieces.append(utf8(replacement[last : match.start()]))
        last = match.end()
        name = match[1] or match[2]
        if name is None:
            pieces.append(b"$")
        elif name.isascii() and name.isdigit() and (name == "0" or name[0] != "0"):
            at = int(name[:9])
            pieces.append([at] if at <= compiled.compiled.groups else [])
        else:
            pieces.append(groups.get(utf8(name), []))
    pieces.append(utf8(replacement[last:]))
    return pieces


@builtin("regex.template_match", STRING, STRING, STRING, STRING, result=BOOLEAN, context=True)
def template_match(context: Context, template: str, value: str, start: str, end: str) -> bool:
    """Returns whether the value matches a text with patterns between delimiters."""
    for name, delimiter in (("start", start), ("end", end)):
        if len(utf8(delimiter)) != 1:
            raise BuiltinError(
                f"{name} delimiter has to be exactly one character long but is "
                f"{len(utf8(start))} long"  # OPA names the start's length for both
            )
    context.charge(1 + (len(value) + len(template)) // BYTES_A_STEP)
    compiled = pattern(_template_pattern(template, start, end))
    context.charge(compiled.steps_in(len(value)))
    return compiled.found_in(value)


def _template_pattern(template: str, start: str, end: str) -> str:
    parts, level, opened, last = ["^"], 0, 0, 0
    unbalanced = BuiltinError(f"unbalanced braces in {quote(template)}")
    for at, character in enumerate(template):
        if character == start:
            level += 1
            if level == 1:
                opened = at
        elif character == end:
            level -= 1
            if level < 0:
                raise unbalanced
            if level == 0:
                inner = template[opened + 1 : at]
                pattern(f"^{inner}$")
                parts.append(f"{quote_meta(template[last:opened])}({inner})")
                last = at + 1
    if level:
        raise unbalanced
    return f"{''.join(parts)}{quote_meta(template[last:])}$"


@builtin("regex.globs_match", STRING, STRING, result=BOOLEAN, context=True)
def globs_match(context: Context, glob1: str, glob2: str) -> bool:
    """Returns whether some string that is not empty matches both globs."""
    return intersects(context, glob1, glob2)
