"""Go's ``fmt.Sprintf``: verbs, flags, and the complaints put into the text (``%!d(string=hi)``).

Operands have the types of Go: an ``int64``, an ``int`` (:class:`GoInt`), a ``*big.Int``
(:class:`BigInt`), a ``float64`` or a string. A type of string with another name in Go has it in
``go_type``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from webhook.golang.bigfloat import int_text
from webhook.golang.floats import float_text
from webhook.golang.strings import quote, quote_ascii, utf8
from webhook.values import dataclass

MAX_NUMBER: Final = 1_000_000
"""Largest width, precision or argument index in a format (fmt/print.go, tooLarge)."""

Argument: TypeAlias = "str | int | float"


class TooLong(Exception):
    """The text would be longer than its limit."""


def format_text(template: str, arguments: Sequence[Argument], characters_max: int) -> str:
    """Returns the formatted text; raises :class:`TooLong`."""
    return _Formatter(template, arguments, characters_max).run()


def shown(value: Any) -> str:
    """Returns decoded JSON as Go's ``%v`` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{shown(value[name])}' for name in sorted(value))}]"
    return str(value)


@lru_cache(maxsize=4096)
def simple_format(template: str) -> tuple[str, str] | None:
    """Returns a template for Python's ``%``, and its verbs, if all are bare v, s, d or q."""
    pieces: list[str] = []
    verbs: list[str] = []
    rest = template
    while True:
        before, percent, rest = rest.partition("%")
        pieces.append(before)
        if not percent:
            return "".join(pieces), "".join(verbs)
        if rest[:1] == "%":
            pieces.append("%%")
        elif rest[:1] in {"v", "s", "d", "q"}:
            pieces.append("%s")
            verbs.append(rest[0])
        else:
            return None
        rest = rest[1:]


class BigInt(int):
    """An integer beyond 64 bits, which Go formats by other rules."""


class GoInt(int):
    """Go's ``int``: formatted like an ``int64``, with its own type name."""


def _type_name(value: str | float) -> str:
    if isinstance(value, BigInt):
        return "*big.Int"
    if isinstance(value, int):
        return "int" if isinstance(value, GoInt) else "int64"
    if isinstance(value, str):
        return getattr(value, "go_type", "string")  # a template's numbers are strings, too
    return "float64"


@dataclass(slots=True)
class _Flags:
    """The flags between the percent sign and the verb."""

    sharp: bool = False
    zero: bool = False
    plus: bool = False
    minus: bool = False
    space: bool = False
    go_syntax: bool = False
    go_fields: bool = False
    width: int | None = None
    precision: int | None = None

    def pad(self, text: str, *, zero: bool = True) -> str:
        """Fills up to the width; with zeros only on the left."""
        missing = (self.width or 0) - len(text)
        if missing <= 0:
            return text
        if self.minus:
            return text + " " * missing
        return ("0" if self.zero and zero else " ") * missing + text


class _Formatter:
    """One run over a template."""

    def __init__(self, template: str, arguments: Sequence[Argument], characters_max: int) -> None:
        self.template = template
        self.arguments = arguments
        self.characters_max = characters_max
        self.at = 0
        self.argument = 0
        self.reordered = False
        self.good_index = True
        self.size = 0
        self.parts: list[str] = []

    def run(self) -> str:
        template, end = self.template, len(self.template)
        while self.at < end:
            self.good_index = True
            percent = template.find("%", self.at)
            if percent < 0:
                self.write(template[self.at :])
                break
            self.write(template[self.at : percent])
            self.at = percent + 1
            if not self.verb():
                break
        if not self.reordered and self.argument < len(self.arguments):
            self.extra()
        return "".join(self.parts)

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > self.characters_max:
            raise TooLong
        self.parts.append(text)

    def extra(self) -> None:
        shown = [
            f"{_type_name(value)}={_format(value, 'v', _Flags())}"
            for value in self.arguments[self.argument :]
        ]
        self.write(f"%!(EXTRA {', '.join(shown)})")

    def verb(self) -> bool:
        """Formats one verb; False at the template's end."""
        flags = self.flags()
        after_index = self.index()
        after_index = self.width(flags, after_index=after_index)
        if self.at + 1 < len(self.template) and self.template[self.at] == ".":
            after_index = self.precision(flags, after_index=after_index)
        if not after_index:
            self.index()
        if self.at >= len(self.template):
            self.write("%!(NOVERB)")
            return False
        verb = self.template[self.at]
        self.at += 1
        if verb == "%":
            self.write("%")
        elif not self.good_index:
            self.write(f"%!{verb}(BADINDEX)")
        elif self.argument >= len(self.arguments):
            self.write(f"%!{verb}(MISSING)")
        else:
            if verb in "vw":
                flags.go_syntax, flags.sharp = flags.sharp, False
                flags.go_fields, flags.plus = flags.plus, False
            self.write(_format(self.arguments[self.argument], verb, flags))
            self.argument += 1
        return True

    def flags(self) -> _Flags:
        flags = _Flags()
        names = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}
        while self.at < len(self.template) and self.template[self.at] in names:
            setattr(flags, names[self.template[self.at]], True)
            self.at += 1
        return flags

    def index(self) -> bool:
        """Reads ``[2]``: the second argument comes next."""
        if self.template[self.at : self.at + 1] != "[":
            return False
        self.reordered = True
        rest = self.template[self.at :]
        closing = rest.find("]") if len(rest) >= 3 else -1
        if closing < 0:
            self.at += 1
            self.good_index = False
            return False
        self.at += closing + 1
        digits = rest[1:closing]
        if not _is_number(digits):
            self.good_index = False
            return False
        position = int(digits) - 1
        if 0 <= position < len(self.arguments):
            self.argument = position
        else:
            self.good_index = False
        return True

    def width(self, flags: _Flags, *, after_index: bool) -> bool:
        if self.template[self.at : self.at + 1] == "*":
            self.at += 1
            flags.width = self.star()
            if flags.width is None:
                self.write("%!(BADWIDTH)")
            elif flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
            return False
        flags.width = self.number()
        if after_index and flags.width is not None:
            self.good_index = False
        return after_index

    def precision(self, flags: _Flags, *, after_index: bool) -> bool:
        self.at += 1
        if after_index:
            self.good_index = False
        after_index = self.index()
        if self.template[self.at : self.at + 1] == "*":
            self.at += 1
            given = self.star()
            flags.precision = None if given is None or given < 0 else given
            if flags.precision is None:
                self.write("%!(BADPREC)")
            return False
        flags.precision = self.number() or 0
        return after_index

    def star(self) -> int | None:
        """Returns the next argument as a width or precision."""
        if self.argument >= len(self.arguments):
            return None
        value = self.arguments[self.argument]
        self.argument += 1
        if not isinstance(value, int) or isinstance(value, BigInt) or abs(value) > MAX_NUMBER:
            return None
        return value

    def number(self) -> int | None:
        start = self.at
        template = self.template
        while self.at < len(template) and "0" <= template[self.at] <= "9":
            self.at += 1
        digits = template[start : self.at]
        if not digits:
            return None
        if not _is_number(digits):
            self.at = len(template)
            return None
        return int(digits)


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and int(digits[:-1][:20] or 0) <= MAX_NUMBER


def _format(value: str | float, verb: str, flags: _Flags) -> str:
    if verb == "T":
        return flags.pad(_cut(_type_name(value), flags))
    if isinstance(value, BigInt):
        return _format_big(value, verb, flags)
    if isinstance(value, int):
        return _format_int(value, verb, flags)
    if isinstance(value, str):
        return _format_string(value, verb, flags)
    return _format_float(value, verb, flags)


def _bad_verb(value: str | float, verb: str, flags: _Flags) -> str:
    return f"%!{verb}({_type_name(value)}={_format(value, 'v', flags)})"


def _cut(text: str, flags: _Flags) -> str:
    return text if flags.precision is None else text[: flags.precision]


def _format_string(value: str, verb: str, flags: _Flags) -> str:
    if verb == "s" or (verb == "v" and not flags.go_syntax):
        return flags.pad(_cut(value, flags))
    if verb in "vq":
        text = _cut(value, flags)
        if flags.sharp and _can_backquote(text):
            return flags.pad(f"`{text}`")
        return flags.pad(quote_ascii(text) if flags.plus else quote(text))
    if verb in "xX":
        return _format_bytes(utf8(value), verb, flags)
    return _bad_verb(value, verb, flags)


def _can_backquote(text: str) -> bool:
    return not any(
        c in "`\x7f\ufeff" or (c < " " and c != "\t") or "\ud800" <= c <= "\udfff" for c in text
    )


def _format_bytes(raw: bytes, verb: str, flags: _Flags) -> str:
    if flags.precision is not None:
        raw = raw[: flags.precision]
    lead = f"0{verb}" if flags.sharp else ""
    digits = [f"{byte:02x}" if verb == "x" else f"{byte:02X}" for byte in raw]
    if not digits:
        return flags.pad("")
    text = f" {lead}".join(digits) if flags.space else "".join(digits)
    return flags.pad(lead + text)


_BASES: Final = {"v": "d", "d": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}


def _format_int(value: int, verb: str, flags: _Flags) -> str:
    if verb in _BASES:
        return _format_integer(value, verb, flags)
    if verb in "cq":
        character = chr(value) if 0 <= value <= 0x10FFFF else "\ufffd"
        if "\ud800" <= character <= "\udfff":
            character = "\ufffd"
        if verb == "c":
            return flags.pad(character)
        quoted = (quote_ascii if flags.plus else quote)(character)[1:-1]
        quoted = {'\\"': '"', "'": "\\'"}.get(quoted, quoted)
        return flags.pad(f"'{quoted}'")
    if verb == "U":
        unsigned = value & ((1 << 64) - 1)
        shown = f"U+{unsigned:0{max(flags.precision or 0, 4)}X}"
        if flags.sharp and unsigned <= 0x10FFFF and chr(unsigned).isprintable():
            shown += f" '{chr(unsigned)}'"
        return flags.pad(shown, zero=False)
    return _bad_verb(value, verb, flags)


def _sign(value: float, flags: _Flags) -> str:
    if value < 0:
        return "-"
    if flags.plus:
        return "+"
    return " " if flags.space else ""


def _format_integer(value: int, verb: str, flags: _Flags) -> str:
    sign = _sign(value, flags)
    least = 0
    if flags.precision is not None:
        least = flags.precision
        if not least and not value:
            return " " * (flags.width or 0)
    elif flags.zero and not flags.minus and flags.width is not None:
        least = flags.width - len(sign)
    digits = format(abs(value), _BASES[verb]).rjust(least, "0")
    if flags.sharp:
        if verb in "bxX":
            digits = f"0{verb}{digits}"
        elif verb in "oO" and digits[0] != "0":
            digits = f"0{digits}"
    if verb == "O":
        digits = f"0o{digits}"
    return flags.pad(sign + digits, zero=False)


def _format_big(value: int, verb: str, flags: _Flags) -> str:
    """Formats as math/big, which differs in flags and error text."""
    base = _BASES.get("d" if verb == "s" else verb)
    if base is None:
        return f"%!{verb}(big.Int={int_text(int(value))})"
    flags.plus |= flags.go_fields
    flags.sharp |= flags.go_syntax
    sign = _sign(value, flags)
    prefix = {"b": "0b", "o": "0", "x": "0x", "X": "0X"}.get(verb, "") if flags.sharp else ""
    if verb == "O":
        prefix = "0o"
    size = abs(int(value))
    digits = int_text(size) if base == "d" else format(size, base)
    zeros = max((flags.precision or 0) - len(digits), 0)
    missing = (flags.width or 0) - len(sign) - len(prefix) - zeros - len(digits)
    left = right = 0
    if missing > 0:
        if flags.minus:
            right = missing
        elif flags.zero and flags.precision is None:
            zeros = missing
        else:
            left = missing
    return f"{' ' * left}{sign}{prefix}{'0' * zeros}{digits}{' ' * right}"


def _format_float(value: float, verb: str, flags: _Flags) -> str:
    if verb not in "vbgGxXfFeE":
        return _bad_verb(value, verb, flags)
    text = _float_digits(abs(value), verb, flags.precision)
    negative = str(value)[0] == "-"
    if flags.sharp and verb != "b":
        text = _with_point(text, verb, flags.precision)
    sign = "-" if negative else "+" if flags.plus else " " if flags.space else ""
    if sign and flags.zero and not flags.minus and flags.width is not None:
        return sign + text.rjust(flags.width - 1, "0")
    return flags.pad(sign + text)


def _float_digits(size: float, verb: str, precision: int | None) -> str:
    if verb in "vgG":
        text = float_text(size) if precision is None else f"{size:.{precision}g}"
    elif verb in "eE":
        text = f"{size:.{6 if precision is None else precision}e}"
    elif verb in "fF":
        text = f"{size:.{6 if precision is None else precision}f}"
    elif verb == "b":
        text = _binary_float(size)
    else:
        text = _hexadecimal_float(size, precision)
    return text.upper() if verb in "EGX" else text


def _binary_float(size: float) -> str:
    """Returns Go's format ``b``: the whole mantissa and the power of two."""
    if not size:
        return "0p-1074"
    fraction, power = size.hex()[2:].split("p")
    mantissa = int(fraction.replace(".", ""), 16)
    return f"{mantissa}p{int(power) - 52:+d}"


def _hexadecimal_float(size: float, precision: int | None) -> str:
    """Returns Go's format ``x``: ``0x1.8p+01``."""
    if not size:
        fraction = f".{'0' * precision}" if precision else ""
        return f"0x0{fraction}p+00"
    fraction, power = size.hex()[4:].lstrip(".").split("p")
    exponent = int(power)
    digits = int("1" + fraction.ljust(13, "0"), 16)
    if size.hex().startswith("0x0"):  # below the normal range
        shift = 53 - int(fraction, 16).bit_length()
        digits, exponent = int(fraction, 16) << shift, exponent - shift
    if precision is not None and precision < 13:
        drop = 4 * (13 - precision)
        kept, rest = digits >> drop, digits & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        kept += rest > half or (rest == half and kept & 1)
        digits = kept << drop
        if digits >> 53:
            digits, exponent = digits >> 1, exponent + 1
    text = f"{digits:014x}"
    part = text[1:].rstrip("0") if precision is None else text[1:].ljust(precision, "0")[:precision]
    point = f".{part}" if part else ""
    return f"0x{text[0]}{point}p{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _with_point(text: str, verb: str, precision: int | None) -> str:
    """Applies the flag ``#``: always a decimal point, and all digits of the precision for %g."""
    digits = 0
    if verb in "vgGx":
        digits = 6 if precision is None else precision
    marks = "pP" if verb in "xX" else "eEpP"
    cut = next((i for i, c in enumerate(text) if c in marks), len(text))
    number, tail = text[:cut], text[cut:]
    significant = number.replace(".", "").lstrip("0")
    digits -= len(significant)
    if "." not in number:
        if number == "0":
            digits -= 1
        number += "."
    return number + "0" * max(digits, 0) + tail
