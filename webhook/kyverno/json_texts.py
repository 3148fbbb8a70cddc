"""JSON in Kyverno's expressions: ``json.marshal``, ``json.unmarshal`` and ``json.encode``.

The first two are Kyverno's own; the third is of cel-go (ext/encoders.go). The texts are those of
Go.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.library.registry import form
from webhook.cel.run.meter import Meter
from webhook.cel.run.texts import double_text, duration_text, timestamp_text
from webhook.cel.run.values import (
    NOTHING,
    Duration,
    NativeFields,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    from_key,
    type_name,
)
from webhook.golang.floats import json_number
from webhook.rego.run.text import json_string

JSON: Final = "kyverno.json"
OVERLOADS: Final = """
unmarshal .(kyverno.json, dyn) dyn
marshal .(kyverno.json, dyn) string
json.encode (dyn) string
"""
_SAFE: Final = 2**53 - 1
"""The largest integer that ``json.encode`` writes as a number, not as a text."""


@form("unmarshal", JSON, str, charges=True)
def unmarshal(meter: Meter, _: Opaque, text: str) -> Any:
    """Decodes JSON; numbers are doubles, as in Go without a target type."""
    meter.charge(len(text) // 10)
    try:
        return json.loads(text, parse_int=float, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"json.unmarshal: {error}") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"invalid literal {name}")


@form("marshal", JSON, None, charges=True)
def marshal(meter: Meter, _: Opaque, value: Any) -> str:
    """Encodes a value as Go encodes the native value of CEL; keys are sorted."""
    if type(value) is TypeValue:
        return json_string(value.name)  # an error within a list or a map
    if type(value) is Optional and value.value is NOTHING:
        return "null"
    return _text(meter, value, _marshalled)


@form("json.encode", None, charges=True)
def encode(meter: Meter, value: Any) -> str:
    """Encodes a value as protobuf messages are encoded; keys are sorted."""
    return _text(meter, value, _encoded)


def _text(meter: Meter, value: Any, scalar: Callable[[Any], str]) -> str:
    """Returns the text of a value; ``scalar`` writes integers and values without a JSON type."""
    try:
        text = _written(value, scalar)
    except RecursionError:
        raise EvaluationError("json: the value is nested too deeply") from None
    meter.charge(len(text) // 10)
    meter.charge_size(text)
    return text


def _written(value: Any, scalar: Callable[[Any], str]) -> str:
    if type(value) is Optional:
        if value.value is NOTHING:
            raise EvaluationError("optional.none() dereference")
        return _written(value.value, scalar)
    if type(value) is list:
        return f"[{','.join([_written(item, scalar) for item in value])}]"
    if type(value) is dict:
        for name in value:
            if type(name) is not str:
                raise EvaluationError(f"json: unsupported map key type {type_name(from_key(name))}")
        members = [f"{json_string(name)}:{_written(value[name], scalar)}" for name in sorted(value)]
        return f"{{{','.join(members)}}}"
    if value is None or type(value) is bool:
        return "null" if value is None else str(value).lower()
    if type(value) is float and not math.isfinite(value):
        raise EvaluationError(f"json: unsupported value: {double_text(value)}")
    if type(value) is float:
        return json_number(value)
    if type(value) is bytes:
        return f'"{base64.b64encode(value).decode()}"'
    return json_string(value) if type(value) is str else scalar(value)


def _marshalled(value: Any) -> str:
    if type(value) is Duration:
        return str(value.ns)
    if type(value) is Timestamp:
        return json_string(timestamp_text(value))
    if type(value) is Opaque:
        return json_string(value.shown)
    return _integer(value)


def _encoded(value: Any) -> str:
    if type(value) is Duration:
        return json_string(duration_text(value))
    if type(value) is Timestamp:
        return json_string(timestamp_text(value))
    if type(value) is Opaque and type(value.value) is NativeFields:
        return _written(value.value.set_fields(), _encoded)
    text = _integer(value)
    return text if abs(int(value)) <= _SAFE else f'"{text}"'


def _integer(value: Any) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise EvaluationError(f"json: type conversion not supported for '{type_name(value)}'")
