"""Values as texts: of ``string()``, and of Go's ``%v`` in messages."""

from __future__ import annotations

import math
from collections.abc import Container
from decimal import Decimal
from typing import Final

from webhook import duration
from webhook.cel.errors import EvaluationError, ShownError
from webhook.cel.run.arithmetic import SECOND
from webhook.cel.run.values import (
    NOTHING,
    BoolKey,
    DoubleKey,
    Duration,
    Lost,
    Opaque,
    Optional,
    OtherKey,
    Timestamp,
    TypeValue,
    UintKey,
    Value,
    from_key,
)
from webhook.golang.floats import float_text
from webhook.golang.time import date_of


def double_text(value: float) -> str:
    """Returns a double as Go's ``%g`` writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return float_text(value)


def duration_text(value: Duration) -> str:
    """Seconds and ``s``, of as many digits as a double has."""
    size = abs(value.ns)
    seconds = float(size // SECOND) + (size % SECOND) / 1e9
    text = format(Decimal(repr(seconds)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'-' if value.ns < 0 else ''}{text}s"


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 with as many digits of a second as there are, in the zone that it came in."""
    seconds, ns = divmod(value.ns + value.offset_seconds * SECOND, SECOND)
    days, rest = divmod(seconds, 86400)
    year, month, day = date_of(days)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{fraction}"
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}T{clock}{_zone(value.offset_seconds)}"


def _zone(offset: int) -> str:
    if not offset:
        return "Z"
    size = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{size // 60:02d}:{size % 60:02d}"


def shown(value: Value) -> str:
    """Returns a value as a message of cel-go shows it."""
    if value is None:
        return "null"
    match value:
        case BoolKey() | DoubleKey() | OtherKey() | UintKey():
            return shown(value.value)
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case TypeValue():
            return value.name
        case Opaque():
            return value.shown
        case Lost():
            return value.text
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            return f"{{{', '.join(f'{shown(k)}: {shown(v)}' for k, v in value.items())}}}"
    return str(int(value)) if isinstance(value, int) else "optional"


def go_shown(value: Value, given: Container[int] = frozenset()) -> str:
    """Returns a value as messages show it that speak of one (Go's ``%v``).

    Lists of ``given`` identities are those of an object's own JSON, of which Go shows its own values.
    """
    if value is None:
        return "0"  # the number of null in Go
    match value:
        case bytes():
            return f"[{' '.join(map(str, value))}]"
        case Duration():
            return duration.shown(value.ns)
        case Timestamp():
            return _go_time(value)
        case TypeValue():
            return _GO_TYPES.get(value.name, value.name)
        case Optional():
            empty = value.value is NOTHING
            return "optional.none()" if empty else f"optional({go_shown(value.value, given)})"
        case list():
            items = (
                map(_go_native, value)
                if id(value) in given
                else (go_shown(item, given) for item in value)
            )
            return f"[{', '.join(items)}]"
        case dict():
            pairs = [(from_key(key), of) for key, of in value.items()]
            texts = [f"{go_shown(key, given)}: {go_shown(of, given)}" for key, of in pairs]
            return f"{{{', '.join(texts)}}}"
    return shown(value)


def _go_native(value: Value) -> str:
    """Decoded JSON as Go shows it."""
    if value is None:
        return "<nil>"
    if type(value) is list:
        return f"[{' '.join(map(_go_native, value))}]"
    if type(value) is dict:
        entries = sorted(
            value.items(), key=lambda entry: entry[0].encode("utf-8", "surrogateescape")
        )
        return f"map[{' '.join(f'{key}:{_go_native(of)}' for key, of in entries)}]"
    return shown(value)


def showing(before: str, value: Value, after: str = "") -> EvaluationError:
    """Returns an error that shows a value between words."""
    text = f"{before}{go_shown(value)}{after}"
    if type(value) in {list, dict, Optional}:
        return ShownError(text, before, value, after)
    return EvaluationError(text)


def with_shown_value(error: ShownError, given: Container[int]) -> EvaluationError:
    """Returns an error whose message shows a value, once the evaluation's inputs are known."""
    return EvaluationError(f"{error.before}{go_shown(error.value, given)}{error.after}")


_GO_TYPES: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


def _go_time(value: Timestamp) -> str:
    text = timestamp_text(value).replace("T", " ")
    if text.endswith("Z"):
        return f"{text[:-1]} +0000 UTC"
    zone = text[-6:].replace(":", "")
    return f"{text[:-6]} {zone} {zone}"
