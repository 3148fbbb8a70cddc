"""Converts Python values to JSON types, which policies need."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from webhook.errors import InvalidInputError


def plain(value: Any, place: str) -> Any:
    """Returns the value in JSON types; raises TypeError and ValueError for other values.

    Policies distinguish values by type, and would ignore any other type.
    """
    try:
        return _converted(value, place)
    except RecursionError:
        raise InvalidInputError(f"{place or 'the value'} is nested too deeply") from None


def _converted(value: Any, place: str) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise InvalidInputError(f"{place or 'the value'}: {value} is not a number of JSON")
        return float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InvalidInputError(f"{place or 'the value'}: JSON has no name {name!r}")
        return {
            str.__str__(name): _converted(inner, f"{place}.{name}" if place else name)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_converted(inner, f"{place}[{at}]") for at, inner in enumerate(value)]
    raise InvalidInputError(f"{place or 'the value'}: {type(value).__name__} is not a type of JSON")
