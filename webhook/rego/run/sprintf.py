"""``sprintf`` over Rego values, as OPA calls Go's (:mod:`webhook.golang.format`).

OPA hands over a number as ``int64``, ``*big.Int`` or ``float64`` and everything
else as a string (v1/topdown/strings.go, builtinSprintf); Gatekeeper's an ``int``
where newer ones hand over an ``int64``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.golang.floats import float_text
from webhook.golang.format import Argument, BigInt, GoInt, TooLong, format_text, simple_format
from webhook.golang.strings import quote
from webhook.rego.run.numbers import number_text
from webhook.rego.run.text import MAX_CHARACTERS, display_of_affordable, text_too_large
from webhook.rego.run.weight import (
    COLLECTION_CHARACTERS,
    FREE_CHARACTERS,
    PART_CHARACTERS,
    SHORT,
    afford_text,
)

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

_PLACES: Final = re.compile("%%|%s")


def sprintf(template: str, arguments: list[Value], *, older: bool = False) -> str:
    """Returns the formatted text; ``older`` formats numbers as Gatekeeper's OPA.

    Raises ``eval_cancel_error`` when it grows too large.
    """
    direct = _directly(template, arguments)
    if direct is not None:
        return direct
    simple = simple_format(template)
    afford_text(arguments)
    if simple is not None and len(simple[1]) == len(arguments):
        pieces, verbs = simple
        shown: list[str] = []
        for verb, value in zip(verbs, arguments, strict=True):
            kind = type(value)
            if kind is str and verb != "d":
                shown.append(quote(value) if verb == "q" else value)
            elif verb == "q":
                break
            elif kind is int and verb != "s":
                shown.append(number_text(value))
            elif kind is float and verb == "v":
                shown.append(float_text(value))
            elif verb != "d" and not isinstance(value, float | str) and kind is not int:
                shown.append(display_of_affordable(value))
            else:
                break
        else:
            return pieces % tuple(shown)
    try:
        given = [_argument(value) for value in arguments]
        if older:
            given = [GoInt(value) if type(value) is int else value for value in given]
        return format_text(template, given, MAX_CHARACTERS)
    except TooLong:
        raise text_too_large() from None


def _directly(template: str, arguments: list[Value]) -> str | None:
    """The text of short strings and numbers, as most policies' messages are, for which nothing is paid.

    None where there is anything else, which is looked at with more care.
    """
    form = _direct_form(template, tuple(map(type, arguments)))
    if form is None:
        return None
    for place in form.numbers:
        number = arguments[place]
        if not -SHORT < number < SHORT:
            return None
    text = form.text % tuple(arguments)
    if len(text) > form.characters_max:
        return None
    if form.quotes is None:
        return text
    is_plain = text.isprintable() and text.count('"') == form.quotes and "\\" not in text
    return text if is_plain else None


class _Form(NamedTuple):
    """A template for Python's ``%``, and the conditions for its result."""

    text: str
    numbers: tuple[int, ...]
    """Where arguments are integers."""
    characters_max: int
    quotes: int | None
    """The number of quotation marks if no quoted string contains one; None without quoted
    strings."""


@lru_cache(maxsize=4096)
def _direct_form(template: str, kinds: tuple[type, ...]) -> _Form | None:
    """Returns how arguments of these types are written; None where that depends on more."""
    simple = simple_format(template)
    if simple is None or len(simple[1]) != len(kinds):
        return None
    pieces, verbs = simple
    for verb, kind in zip(verbs, kinds, strict=True):
        if not (kind is str and verb != "d") and not (kind is int and verb in "vd"):
            return None
    forms = iter('"%s"' if verb == "q" else "%s" for verb in verbs)
    text = _PLACES.sub(lambda place: place[0] if place[0] == "%%" else next(forms), pieces)
    literal = pieces % tuple("" for _ in verbs)
    quotes = None
    if "q" in verbs:
        if not literal.isprintable() or "\\" in literal:
            return None
        quotes = literal.count('"') + 2 * verbs.count("q")
    numbers = tuple(place for place, kind in enumerate(kinds) if kind is int)
    room = FREE_CHARACTERS - COLLECTION_CHARACTERS - len(kinds) * PART_CHARACTERS
    return _Form(text, numbers, max(room, 0), quotes)


def _argument(value: Value) -> Argument:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return display_of_affordable(value)
    text = number_text(value)
    if any(mark in text for mark in ".eE"):
        plain = float(value)
        return text if plain in (float("inf"), float("-inf")) else plain
    whole = int(text) if len(text) < 20 else int(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else BigInt(value)
