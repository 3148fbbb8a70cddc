"""Checks of operands that several families share, with OPA's messages.

They go beyond an operand's type, which the registry checks (OPA v1/topdown/builtins).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.golang import url
from webhook.rego.builtins.registry import wrong_element, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import as_index, as_int
from webhook.rego.run.values import RegoSet, ordered, type_name

if TYPE_CHECKING:
    from webhook.golang.url import Url
    from webhook.rego.run.values import Value


def _not_integral(position: int) -> BuiltinError:
    return BuiltinError(
        f"operand {position} must be integer number but got floating-point number", kind="type"
    )


def integer(position: int, value: Value) -> int:
    """A number that OPA takes as a machine integer."""
    if type(value) is not int and type_name(value) != "number":
        wrong_operand(position, value, "number")
    index = as_index(value)
    if index is None:
        raise _not_integral(position)
    return index


def big_integer(position: int, value: Value) -> int:
    """A number that is an integer of any size."""
    if type(value) is int:
        return value
    if type_name(value) != "number":
        wrong_operand(position, value, "integer")
    number = as_int(value)
    if number is None:
        raise _not_integral(position)
    return number


def strings(position: int, value: Value, *kinds: str) -> list[str]:
    """The strings of an array or, in order, of a set; ``kinds`` are named if it is neither."""
    if type(value) is RegoSet:
        items = ordered(value)
    elif type(value) is list:
        items = value
    else:
        wrong_operand(position, value, *(kinds or ("array", "set")))
    for item in items:
        if type(item) is not str:
            wrong_element(position, value, item, "string")
    return items


def url_of(text: str) -> Url:
    """The parts of an URL; raises BuiltinError with Go's message."""
    try:
        return url.parse(text)
    except ValueError as error:
        raise BuiltinError(str(error)) from None
