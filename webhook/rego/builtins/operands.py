"""Checks of operands with OPA's messages, base64 and plain JSON, for several families.

The checks go beyond an operand's type, which the registry checks (OPA v1/topdown/builtins).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.golang import base64, url
from webhook.rego.builtins.registry import wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import as_index, as_int
from webhook.rego.run.text import json_items
from webhook.rego.run.values import RegoObject, RegoSet, ordered_affordable, type_name
from webhook.rego.run.weight import afford_text

if TYPE_CHECKING:
    from webhook.golang.url import Url
    from webhook.rego.builtins.registry import Context
    from webhook.rego.run.values import Value


def _not_integral(position: int) -> BuiltinError:
    return BuiltinError(
        f"operand {position} must be integer number but got floating-point number", kind="type"
    )


def integer(position: int, value: Value) -> int:
    """Returns a number that OPA accepts as a machine integer."""
    if type(value) is not int and type_name(value) != "number":
        wrong_operand(position, value, "number")
    index = as_index(value)
    if index is None:
        raise _not_integral(position)
    return index


def big_integer(position: int, value: Value) -> int:
    """Returns a number that is an integer of any size."""
    if type(value) is int:
        return value
    if type_name(value) != "number":
        wrong_operand(position, value, "integer")
    number = as_int(value)
    if number is None:
        raise _not_integral(position)
    return number


def url_of(text: str) -> Url:
    """Returns the parts of a URL; raises BuiltinError with Go's message."""
    try:
        return url.parse(text)
    except ValueError as error:
        raise BuiltinError(str(error)) from None


def decode_base64(text: str | bytes) -> bytes:
    """Decodes standard base64 as strictly as Go; raises :class:`BuiltinError`."""
    try:
        return base64.decode(text)
    except base64.CorruptInputError as error:
        raise BuiltinError(str(error)) from None


def decode_base64url(text: str) -> bytes:
    """Decodes base64url, as strictly."""
    try:
        return base64.decode_url(text)
    except base64.CorruptInputError as error:
        raise BuiltinError(str(error)) from None


_STEPS_A_NODE: Final = 4


def plain(context: Context, value: Value) -> Any:
    """Returns a deep copy of the value with sets as arrays and with string keys only.

    Parts of a value may be shared, so that a small value stands for an enormous text: each node is charged.
    """
    afford_text(value)
    return _plain(context, value)


def _plain(context: Context, value: Value) -> Any:
    context.charge(_STEPS_A_NODE)
    if isinstance(value, list):
        return [_plain(context, item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(context, item) for name, item in value.items()}
    if isinstance(value, RegoSet):
        return [_plain(context, item) for item in ordered_affordable(value)]
    if isinstance(value, RegoObject):
        return {name: _plain(context, item) for name, item in json_items(value)}
    return value
