"""``sprintf`` over Rego values, as OPA calls Go's (:mod:`webhook.golang.format`).

OPA hands over a number as ``int64``, ``*big.Int`` or ``float64`` and everything
else as a string (v1/topdown/strings.go, builtinSprintf); Gatekeeper's an ``int``
where newer ones hand over an ``int64``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.golang.floats import float_text
from webhook.golang.format import BigInt, GoInt, TooLong, format_text, simple_format
from webhook.golang.strings import quote
from webhook.rego.run.numbers import number_text
from webhook.rego.run.text import MAX_CHARACTERS, display_of_affordable, text_too_large
from webhook.rego.run.weight import afford_text

if TYPE_CHECKING:
    from webhook.golang.format import Argument
    from webhook.rego.run.values import Value


def sprintf(template: str, arguments: list[Value], *, older: bool = False) -> str:
    """The formatted text; ``older`` is as Gatekeeper's OPA has it. Raises ``eval_cancel_error`` when it grows too large."""
    afford_text(arguments)
    simple = simple_format(template)
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
