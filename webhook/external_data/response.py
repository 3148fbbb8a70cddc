"""Reads a provider's answer as Go's ``encoding/json`` reads it into Gatekeeper's types.

Names of fields are case-insensitive, null equals an absent field, and unknown fields are ignored.
Of ``apiVersion`` and ``kind`` only the type is checked. Numbers of values are 64-bit floats: a
whole number beyond 2^53 loses its last digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from webhook.api.encoding import decode
from webhook.api.json_decoder import DecodeError, decode_in_pieces
from webhook.rego.builtins import go_json
from webhook.rego.errors import BuiltinError

IN_ONE_GO_BYTES: Final = 64 * 1024
"""A larger answer is decoded in pieces, so that admissions go on meanwhile."""

ITEMS_MAX: Final = 10_000
"""The number of items of an answer at most, ten for each key of the largest request. The loop that
answers admissions keeps them in the cache, at two microseconds each."""

_EXACT_NAMES: Final = frozenset(
    {
        *("apiVersion", "kind", "response", "idempotent", "items", "systemError"),
        *("key", "value", "error"),
    }
)
"""The spelling of nearly every provider."""

_OUTER: Final = frozenset({"apiVersion", "kind", "response"})
_INNER: Final = frozenset({"idempotent", "items", "systemError"})
_PLAIN: Final = frozenset({str, type(None)})
"""The types of values that are read in one pass."""

_EXACT: Final = 1 << 53
_NAMES: Final[dict[type, str]] = {str: "string", bool: "bool", list: "array", dict: "object"}

T = TypeVar("T")


class AnsweredKey(NamedTuple):
    """A provider's answer for a key; with an error the value does not count."""

    key: str
    value: Any
    error: str


class ProviderAnswer(NamedTuple):
    """A provider's answer, which may have other keys than the requested ones."""

    items: tuple[AnsweredKey, ...]
    system_error: str
    is_idempotent: bool


SENT: Final = "failed to send external data request"
READ: Final = "failed to read external data response"
UNMARSHALLED: Final = "failed to unmarshal external data response"


class ProviderFault(Exception):
    """A provider without a readable answer; the message begins like Gatekeeper's.

    ``outcome`` is the metric's label; ``connected`` is whether the provider may have received the
    request.
    """

    def __init__(self, outcome: str, message: str, *, connected: bool = True) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.connected = connected


class UnreadableAnswer(ValueError):
    """An answer of a wrong shape; the message names the place."""


def read_answer(body: bytes) -> ProviderAnswer:
    """Reads an answer; raises :class:`UnreadableAnswer`."""
    is_large = len(body) > IN_ONE_GO_BYTES
    try:
        # A usual answer has no number, which orjson would round.
        decoded = _decoded(body) if is_large else orjson.loads(body)
    except orjson.JSONDecodeError:
        decoded = None
    if (usual := _usual(decoded)) is not None:
        return usual
    if not is_large:
        decoded = _decoded(body)
    document = _typed(decoded, dict, "the answer", {})
    for name in ("apiVersion", "kind"):
        _typed(_field(document, name), str, name, "")
    response = _typed(_field(document, "response"), dict, "response", {})
    items = _typed(_field(response, "items"), list, "response.items", [])
    if len(items) > ITEMS_MAX:
        raise UnreadableAnswer(f"response.items holds {len(items)} items, and {ITEMS_MAX} may be")
    return ProviderAnswer(
        tuple(_item(item, f"response.items[{at}]") for at, item in enumerate(items)),
        _typed(_field(response, "systemError"), str, "response.systemError", ""),
        _typed(_field(response, "idempotent"), bool, "response.idempotent", False),
    )


def _decoded(body: bytes) -> Any:
    try:
        return decode(body) if len(body) <= IN_ONE_GO_BYTES else decode_in_pieces(body)
    except DecodeError as error:
        fault = str(error)
    # Go reads invalid UTF-8 and halves of surrogate pairs as U+FFFD.
    if not (message := go_json.unmarshal_fault(body.decode("utf-8", "surrogateescape"))):
        try:
            return go_json.decode(body.decode("utf-8", "replace"))
        except (ValueError, BuiltinError) as error:  # too deep, or a number beyond all
            message = str(error)
    raise UnreadableAnswer(message or fault)


def _field(document: Mapping[str, Any], name: str) -> Any:
    """Returns a field by its name; of several spellings the last in the document."""
    if not document.keys() <= _EXACT_NAMES:
        folded_name = name.casefold()
        names = [key for key in document if key.casefold() == folded_name]
        return document[names[-1]] if names else None
    return document.get(name)


def _typed(value: Any, kind: type[T], where: str, absent: T) -> T:
    if value is None:
        return absent
    if type(value) is not kind:
        raise UnreadableAnswer(
            f"json: cannot unmarshal {_NAMES.get(type(value), 'number')} into {where}, "
            f"which is of type {_NAMES[kind]}"
        )
    return value


def _usual(document: Any) -> ProviderAnswer | None:
    """Reads an answer whose items are texts or errors, in one pass; None for any other."""
    if type(document) is not dict or not document.keys() <= _OUTER:
        return None
    response = document.get("response")
    if type(response) is not dict or not response.keys() <= _INNER:
        return None
    items = response.get("items")
    fault, is_idempotent = response.get("systemError", ""), response.get("idempotent", False)
    if (
        type(items) is not list
        or len(items) > ITEMS_MAX
        or type(fault) is not str
        or type(is_idempotent) is not bool
    ):
        return None
    if type(document.get("apiVersion", "")) is not str or type(document.get("kind", "")) is not str:
        return None
    answered, new = [], tuple.__new__  # takes half the time of calling the class
    for item in items:
        if type(item) is not dict:
            return None
        key, value, error = item.get("key"), item.get("value"), item.get("error", "")
        if type(key) is not str or type(error) is not str or type(value) not in _PLAIN:
            return None
        if len(item) != 1 + ("value" in item) + ("error" in item):  # other names
            return None
        answered.append(new(AnsweredKey, (key, value, error)))
    return ProviderAnswer(tuple(answered), fault, is_idempotent)


def _item(value: Any, where: str) -> AnsweredKey:
    item = _typed(value, dict, where, {})
    return AnsweredKey(
        _typed(_field(item, "key"), str, f"{where}.key", ""),
        read_value(_field(item, "value"), f"{where}.value"),
        _typed(_field(item, "error"), str, f"{where}.error", ""),
    )


def read_value(value: Any, where: str) -> Any:
    """Returns an item's decoded value as policies see it; raises :class:`UnreadableAnswer`.

    Recorded values are read so, too: the text of a number may be in a message.
    """
    try:
        return _as_go_reads(value)
    except OverflowError:
        raise UnreadableAnswer(f"json: a number of {where} is too large for a float64") from None
    except RecursionError:
        raise UnreadableAnswer(f"{where} nests too deeply") from None


def _as_go_reads(value: Any) -> Any:
    """Returns a value with numbers as in Go's ``interface{}``; raises OverflowError."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -_EXACT <= value <= _EXACT else _number(float(value))
    if kind is list:
        return [_as_go_reads(item) for item in value]
    if kind is dict:
        return {name: _as_go_reads(item) for name, item in value.items()}
    return _number(float(value))


def _number(value: float) -> int | float:
    if math.isinf(value):
        raise OverflowError
    return go_json.float_number(value)
