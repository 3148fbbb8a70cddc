"""Functions of strings: the standard's, and version 2 of cel-go's extension (ext/strings.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.texts import showing
from webhook.golang.strings import ESCAPES, SPACES

if TYPE_CHECKING:
    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value

_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}


@form("size", str)
@form("size", bytes)
@form("size", list)
@form("size", dict)
def size(value: Value) -> int:
    """Returns the number of code points, bytes, items or entries."""
    return len(value)


@form("contains", str, str)
def contains(text: str, part: str) -> bool:
    """Returns whether a text contains a part."""
    return part in text


@form("startsWith", str, str)
def starts_with(text: str, part: str) -> bool:
    """Returns whether a text begins with another."""
    return text.startswith(part)


@form("endsWith", str, str)
def ends_with(text: str, part: str) -> bool:
    """Returns whether a text ends with another."""
    return text.endswith(part)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@form("charAt", str, int)
def char_at(text: str, index: int) -> str:
    """Returns the code point at an index; an empty text right behind the last."""
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


@form("indexOf", str, str)
@form("indexOf", str, str, int)
def index_of(text: str, part: str, offset: int = 0) -> int:
    """Returns the first index of a part, from ``offset`` on; -1 if missing."""
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


@form("lastIndexOf", str, str)
def last_index_of(text: str, part: str) -> int:
    """Returns the last index of a part; -1 if missing."""
    return text.rfind(part) if part else len(text)


@form("lastIndexOf", str, str, int)
def last_index_until(text: str, part: str, offset: int) -> int:
    """Returns the last index of a part, at ``offset`` or before."""
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


@form("lowerAscii", str)
def lower_ascii(text: str) -> str:
    """Returns the text with ASCII letters in lower case."""
    return text.translate(_LOWER)


@form("upperAscii", str)
def upper_ascii(text: str) -> str:
    """Returns the text with ASCII letters in upper case."""
    return text.translate(_UPPER)


@form("trim", str)
def trim(text: str) -> str:
    """Returns the text without white space at both ends."""
    return text.strip(SPACES)


@form("replace", str, str, str, charges=True)
@form("replace", str, str, str, int, charges=True)
def replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    """Returns the text with the first ``limit`` occurrences of ``old`` replaced."""
    count = len(text) + 1 if not old else text.count(old)
    count = count if limit < 0 else min(count, limit)
    meter.charge((len(text) + count * max(len(new), 1)) // 10)
    return str(meter.charge_size(text.replace(old, new, -1 if limit < 0 else limit)))


@form("split", str, str, charges=True)
@form("split", str, str, int, charges=True)
def split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    """Returns the parts between separators, at most ``limit``."""
    meter.charge(len(text) // 10)
    if limit == 0:
        return []
    if separator:
        return text.split(separator, -1 if limit < 0 else limit - 1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@form("substring", str, int)
def substring_from(text: str, start: int) -> str:
    """Returns the text from an index on."""
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


@form("substring", str, int, int)
def substring(text: str, start: int, end: int) -> str:
    """Returns the text from ``start`` to before ``end``."""
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


@form("join", list, charges=True)
@form("join", list, str, charges=True)
def join(meter: Meter, items: list[Value], separator: str = "") -> str:
    """Returns the strings joined."""
    if items and type(items[0]) is not str:
        operands = "list, string" if separator else "list"
        raise EvaluationError(f"no such overload: join({operands})")
    total = len(separator) * len(items)
    for item in items:
        if type(item) is not str:
            raise showing("join: invalid input: ", item)
        total += len(item)
    meter.charge(total // 10)
    return str(meter.charge_size(separator.join(items)))


_QUOTED: Final = str.maketrans(ESCAPES)


@form("strings.quote", str, charges=True)
def quote(meter: Meter, text: str) -> str:
    """Returns the text in quotes, escaped."""
    meter.charge(len(text) // 10)
    return f'"{text.translate(_QUOTED)}"'
