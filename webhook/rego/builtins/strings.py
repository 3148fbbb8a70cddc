"""Built-ins on strings.

Documented in OPA's reference under "Strings"; behaviour from v1/topdown/strings.go. The commonest
check their operands themselves, which saves a call; :func:`_require` then produces the error
message.
"""

from __future__ import annotations

import re
from typing import NoReturn

from webhook.golang import bigfloat
from webhook.golang.strings import from_utf8, utf8
from webhook.rego.builtins.operands import integer
from webhook.rego.builtins.registry import Context, builtin, wrong_element, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run import numbers
from webhook.rego.run.sprintf import sprintf as go_sprintf
from webhook.rego.run.text import MAX_CHARACTERS, text_too_large
from webhook.rego.run.values import RegoObject, RegoSet, Value, ordered, sort_key
from webhook.rego.types import ARRAY, BOOLEAN, NUMBER, STRING, any_of, array_of, object_of, set_of

STRINGS = any_of(array_of(STRING), set_of(STRING))
ONE_OR_MORE = any_of(STRING, array_of(STRING), set_of(STRING))

LONG = 4096
"""The characters from which on a string is charged: one step for each four."""


def _require(*operands: Value) -> NoReturn:
    for position, value in enumerate(operands, 1):
        if type(value) is not str:
            wrong_operand(position, value, "string")
    raise AssertionError("every operand is a string")


def _made(context: Context, text: str) -> str:
    """Charges a finished string."""
    if len(text) > LONG:
        context.charge(len(text) // 4)
    return text


def _room(context: Context, size: int) -> None:
    """Charges a string before it is made."""
    if size > MAX_CHARACTERS:
        raise text_too_large()
    if size > LONG:
        context.charge(size // 4)


# --- tests -----------------------------------------------------------------------------------


@builtin("startswith", STRING, STRING, result=BOOLEAN, check=False)
def startswith(search: Value, base: Value) -> bool:
    """Returns whether ``search`` begins with ``base``."""
    if type(search) is str and type(base) is str:
        return search.startswith(base)
    return _require(search, base)


@builtin("endswith", STRING, STRING, result=BOOLEAN, check=False)
def endswith(search: Value, base: Value) -> bool:
    """Returns whether ``search`` ends with ``base``."""
    if type(search) is str and type(base) is str:
        return search.endswith(base)
    return _require(search, base)


@builtin("contains", STRING, STRING, result=BOOLEAN, check=False)
def contains(haystack: Value, needle: Value) -> bool:
    """Returns whether ``needle`` is somewhere in ``haystack``."""
    if type(haystack) is str and type(needle) is str:
        return needle in haystack
    return _require(haystack, needle)


def _collected(position: int, value: Value) -> list[str]:
    if type(value) is str:
        return [value]
    if type(value) is list:
        items = value
    elif type(value) is RegoSet:
        items = list(value)
    else:
        wrong_operand(position, value, "string", "set", "array")
    for item in items:
        if type(item) is not str:
            wrong = (
                item
                if type(value) is list
                else next(x for x in ordered(value) if type(x) is not str)
            )
            wrong_element(position, value, wrong, "string")
    return items


@builtin(
    "strings.any_prefix_match", ONE_OR_MORE, ONE_OR_MORE, result=BOOLEAN, context=True, check=False
)
def any_prefix_match(context: Context, search: Value, base: Value) -> bool:
    """Returns whether any of the strings begins with any of the prefixes."""
    strings, affixes = _collected(1, search), tuple(_collected(2, base))
    context.charge(len(strings) * len(affixes))
    return any(text.startswith(affixes) for text in strings)


@builtin(
    "strings.any_suffix_match", ONE_OR_MORE, ONE_OR_MORE, result=BOOLEAN, context=True, check=False
)
def any_suffix_match(context: Context, search: Value, base: Value) -> bool:
    """Returns whether any of the strings ends with any of the suffixes."""
    strings, affixes = _collected(1, search), tuple(_collected(2, base))
    context.charge(len(strings) * len(affixes))
    return any(text.endswith(affixes) for text in strings)


# --- places ----------------------------------------------------------------------------------


@builtin("strings.count", STRING, STRING, result=NUMBER)
def count(search: str, substring_: str) -> int:
    """Returns how often ``substring_`` is in ``search``, without overlap."""
    return search.count(substring_)


@builtin("indexof", STRING, STRING, result=NUMBER)
def indexof(haystack: str, needle: str) -> int:
    """Returns the first index of ``needle``, in characters; -1 if missing."""
    if not needle:
        raise BuiltinError("empty search character")
    return haystack.find(needle)


@builtin("indexof_n", STRING, STRING, result=array_of(NUMBER), context=True)
def indexof_n(context: Context, haystack: str, needle: str) -> list[int]:
    """Returns every place where ``needle`` is, overlapping ones too."""
    if not needle:
        raise BuiltinError("empty search character")
    context.charge(1 + len(haystack))
    places = []
    at = haystack.find(needle)
    while at >= 0:
        places.append(at)
        at = haystack.find(needle, at + 1)
    return places


@builtin("substring", STRING, NUMBER, NUMBER, result=STRING, check=False)
def substring(value: Value, offset: Value, length: Value) -> str:
    """Returns ``length`` characters from ``offset`` on; all of them for a negative length."""
    if type(value) is not str:
        wrong_operand(1, value, "string")
    # Small numbers, which are the rule, need no further look.
    start = offset if type(offset) is int and offset < LONG else integer(2, offset)
    size = length if type(length) is int and length < LONG else integer(3, length)
    if start < 0:
        raise BuiltinError("negative offset")
    return value[start:] if size < 0 else value[start : start + size]


# --- parts -----------------------------------------------------------------------------------


@builtin("split", STRING, STRING, result=array_of(STRING), context=True, check=False)
def split(context: Context, x: Value, delimiter: Value) -> list[str]:
    """Returns the parts between delimiters; the characters for an empty delimiter."""
    if type(x) is not str or type(delimiter) is not str:
        _require(x, delimiter)
    if len(x) > LONG:
        context.charge(len(x))
    return x.split(delimiter) if delimiter else list(x)


@builtin("strings.split_n", STRING, STRING, NUMBER, result=array_of(STRING), context=True)
def split_n(context: Context, x: str, delimiter: str, n: float) -> list[str]:
    """Returns the first ``n`` parts, or the last for a negative number."""
    limit = integer(3, n)
    context.charge(1 + len(x))
    parts = x.split(delimiter) if delimiter else list(x)
    if limit >= 0:
        return parts[:limit]
    return parts[max(len(parts) + limit, 0) :]


@builtin("concat", STRING, STRINGS, result=STRING, context=True, check=False)
def concat(context: Context, delimiter: Value, collection: Value) -> str:
    """Returns the strings joined; a set's in order."""
    if type(delimiter) is not str:
        wrong_operand(1, delimiter, "string")
    if type(collection) is list:
        items = collection
    elif type(collection) is RegoSet:
        items = ordered(collection)
    else:
        return wrong_operand(2, collection, "set", "array")
    size = len(delimiter) * len(items)
    for item in items:
        if type(item) is not str:
            wrong_element(2, collection, item, "string")
        size += len(item)
    _room(context, size)
    return delimiter.join(items)


# --- made of others --------------------------------------------------------------------------


@builtin("sprintf", STRING, ARRAY, result=STRING, context=True, check=False)
def sprintf(context: Context, format_: Value, values: Value) -> str:
    """Returns the text with Go's verbs replaced by the values."""
    if type(format_) is str and type(values) is list:
        return _made(context, go_sprintf(format_, values))
    return _not_formatted(format_, values)


@builtin("sprintf", STRING, ARRAY, result=STRING, context=True, check=False, older=True)
def older_sprintf(context: Context, format_: Value, values: Value) -> str:
    """Returns the text, with ``int`` as type name if a verb does not fit an integer."""
    if type(format_) is str and type(values) is list:
        return _made(context, go_sprintf(format_, values, older=True))
    return _not_formatted(format_, values)


def _not_formatted(format_: Value, values: Value) -> NoReturn:
    if type(format_) is not str:
        wrong_operand(1, format_, "string")
    wrong_operand(2, values, "array")


@builtin("format_int", NUMBER, NUMBER, result=STRING)
def format_int(number: float, base: float) -> str:
    """Returns the integer part in base 2, 8, 10 or 16."""
    code = {"2": "b", "8": "o", "10": "d", "16": "x"}.get(numbers.number_text(base))
    if code is None:
        raise BuiltinError("operand 2 must be one of {2, 8, 10, 16}", kind="type")
    whole = number if isinstance(number, int) else numbers.truncated(number)
    return bigfloat.int_text(whole) if code == "d" else format(whole, code)


@builtin("lower", STRING, result=STRING, context=True, check=False)
def lower(context: Context, x: Value) -> str:
    """Returns the string in lower case, character by character."""
    if type(x) is not str:
        _require(x)
    if x.isascii():
        return _made(context, x.lower())
    context.charge(len(x))
    return "".join("i" if c == "İ" else c.lower() for c in x)


@builtin("upper", STRING, result=STRING, context=True, check=False)
def upper(context: Context, x: Value) -> str:
    """Returns the string in upper case, character by character."""
    if type(x) is not str:
        _require(x)
    if x.isascii():
        return _made(context, x.upper())
    context.charge(len(x))
    return "".join(map(_upper, x))


def _upper(character: str) -> str:
    """Returns the simple upper case, which is never longer; Python has the full mapping."""
    for mapped in (character.upper(), character.title()):
        if len(mapped) == 1:
            return mapped
    return character


@builtin("strings.reverse", STRING, result=STRING, context=True)
def reverse(context: Context, x: str) -> str:
    """Returns the characters, last first."""
    return _made(context, x[::-1])


@builtin("replace", STRING, STRING, STRING, result=STRING, context=True, check=False)
def replace(context: Context, x: Value, old: Value, new: Value) -> str:
    """Returns ``x`` with every ``old`` replaced by ``new``."""
    if type(x) is not str or type(old) is not str or type(new) is not str:
        _require(x, old, new)
    if len(x) + len(new) > LONG:
        _room(context, len(x) + x.count(old) * (len(new) - len(old)))
    if not old and not x.isascii():  # Go puts it between bytes
        return from_utf8(utf8(x).replace(b"", utf8(new)))
    return x.replace(old, new)


@builtin("strings.replace_n", object_of(STRING, STRING), STRING, result=STRING, context=True)
def replace_n(context: Context, patterns: Value, value: str) -> str:
    """Returns the string with every key of ``patterns`` replaced by its value, in one pass."""
    pairs = sorted(patterns.items(), key=lambda pair: sort_key(pair[0]))
    for old, new in pairs:
        if type(old) is not str:
            raise BuiltinError("operand 1 non-string key found in pattern object", kind="type")
        if type(new) is not str:
            raise BuiltinError("operand 1 non-string value found in pattern object", kind="type")
    if not pairs:
        return value
    assert type(patterns) is not RegoObject, "every key is a string"
    context.charge(1 + len(value) * len(pairs))
    _room(context, len(value) + (len(value) + 1) * max(len(new) for _, new in pairs))
    if "" not in patterns or value.isascii():
        return _replaced(dict(pairs), value)
    # Go puts the replacement of an empty string between bytes.
    narrow = {_bytes_as_text(old): _bytes_as_text(new) for old, new in pairs}
    return from_utf8(_replaced(narrow, _bytes_as_text(value)).encode("latin-1"))


def _replaced(patterns: dict[str, str], value: str) -> str:
    # An earlier key wins over a longer one, which is the order of alternatives.
    pattern = re.compile("|".join(map(re.escape, patterns)))
    return pattern.sub(lambda match: patterns[match[0]], value)


def _bytes_as_text(text: str) -> str:
    return utf8(text).decode("latin-1")


# --- trimmed ---------------------------------------------------------------------------------


@builtin("trim", STRING, STRING, result=STRING, check=False)
def trim(value: Value, cutset: Value) -> str:
    """Returns the string without the cutset's characters at both ends."""
    if type(value) is str and type(cutset) is str:
        return value.strip(cutset)
    return _require(value, cutset)


@builtin("trim_left", STRING, STRING, result=STRING, check=False)
def trim_left(value: Value, cutset: Value) -> str:
    """Returns the string without the cutset's characters at its beginning."""
    if type(value) is str and type(cutset) is str:
        return value.lstrip(cutset)
    return _require(value, cutset)


@builtin("trim_right", STRING, STRING, result=STRING, check=False)
def trim_right(value: Value, cutset: Value) -> str:
    """Returns the string without the cutset's characters at its end."""
    if type(value) is str and type(cutset) is str:
        return value.rstrip(cutset)
    return _require(value, cutset)


@builtin("trim_prefix", STRING, STRING, result=STRING, check=False)
def trim_prefix(value: Value, prefix: Value) -> str:
    """Returns the string without the prefix."""
    if type(value) is str and type(prefix) is str:
        return value.removeprefix(prefix)
    return _require(value, prefix)


@builtin("trim_suffix", STRING, STRING, result=STRING, check=False)
def trim_suffix(value: Value, suffix: Value) -> str:
    """Returns the string without the suffix."""
    if type(value) is str and type(suffix) is str:
        return value.removesuffix(suffix)
    return _require(value, suffix)


# The characters of Go's unicode.IsSpace; Python's own list has four more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


@builtin("trim_space", STRING, result=STRING)
def trim_space(value: str) -> str:
    """Returns the string without white space at both ends."""
    return value.strip(_SPACE)
