"""Built-ins about the type of a value: tests, names and casts.

Documented in OPA's reference under "Types" and "Conversions"; behaviour from
v1/topdown/type.go, type_name.go and casts.go.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.golang.strings import quote
from webhook.rego.builtins.registry import builtin, wrong_operand
from webhook.rego.errors import BuiltinError
from webhook.rego.run.numbers import number
from webhook.rego.run.values import RegoObject, RegoSet, Value, ordered
from webhook.rego.run.values import type_name as name_of
from webhook.rego.types import ANY, ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, SET, STRING, Type, any_of

_KINDS: Final[dict[str, tuple[Type, frozenset[type]]]] = {
    "null": (NULL, frozenset({type(None)})),
    "boolean": (BOOLEAN, frozenset({bool})),
    "string": (STRING, frozenset({str})),
    "array": (ARRAY, frozenset({list})),
    "object": (OBJECT, frozenset({dict, RegoObject})),
    "set": (SET, frozenset({RegoSet})),
}


def _register_test(name: str, types: frozenset[type]) -> None:
    @builtin(f"is_{name}", ANY, result=BOOLEAN)
    def is_kind(x: Value) -> bool:
        """Returns whether the value is of this kind."""
        return type(x) in types


for _name, (_, _types) in _KINDS.items():
    _register_test(_name, _types)


@builtin("is_number", ANY, result=BOOLEAN)
def is_number(x: Value) -> bool:
    """Returns whether the value is a number."""
    kind = type(x)
    return kind is int or kind is float or (isinstance(x, int | float) and kind is not bool)


@builtin("type_name", ANY, result=STRING)
def type_name(x: Value) -> str:
    """Returns the name of the value's type."""
    return name_of(x)


# The decimal numbers that Go's ParseFloat reads; it also reads hexadecimal and infinity.
_DECIMAL = re.compile(r"[+-]?(?:\d(?:_?\d)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_JSON = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\Z", re.ASCII)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+\Z", re.ASCII
)


@builtin("to_number", any_of(NUMBER, STRING, BOOLEAN, NULL), result=NUMBER, check=False)
def to_number(x: Value) -> int | float:
    """Returns the number of a string; 0 for null and false, 1 for true."""
    kind = type(x)
    if kind is str:
        return _parse(x)
    if kind is bool:
        return int(x)
    if x is None:
        return 0
    if isinstance(x, int | float):
        return x
    return wrong_operand(1, x, "null", "boolean", "number", "string")


def _parse(x: str) -> int | float:
    if len(x) < 18 and x.isascii() and x.isdigit():  # the common case
        return int(x)
    if not _DECIMAL.match(x):
        if x.lstrip("+-").lower() in {"inf", "infinity", "nan"}:
            wrong_operand(1, x, "valid number string")
        if not _HEXADECIMAL.match(x):
            raise BuiltinError(f"strconv.ParseFloat: parsing {quote(x)}: invalid syntax")
        return _integral(float.fromhex(x))
    if float(x) in {float("inf"), float("-inf")}:
        raise BuiltinError(f"strconv.ParseFloat: parsing {quote(x)}: value out of range")
    try:
        plain = x.removeprefix("+").replace("_", "")
        # OPA keeps text that is no JSON, and fails when it comes to print it.
        return number(plain) if _JSON.match(plain) else _integral(float(plain))
    except ValueError as error:
        raise BuiltinError(str(error)) from None


def _integral(x: float) -> int | float:
    return int(x) if x.is_integer() else x


@builtin("cast_array", ANY, result=ARRAY, deprecated=True, check=False)
def cast_array(x: Value) -> list[Value]:
    """Returns the array, or a set's members as one."""
    if type(x) is list:
        return x
    if type(x) is RegoSet:
        return ordered(x)
    return wrong_operand(1, x, "array", "set")


@builtin("cast_set", ANY, result=SET, deprecated=True, check=False)
def cast_set(x: Value) -> RegoSet:
    """Returns the set, or an array's items as one."""
    if type(x) is RegoSet:
        return x
    if type(x) is list:
        return RegoSet(x)
    return wrong_operand(1, x, "array", "set")


def _register_cast(name: str, result: Type, types: frozenset[type]) -> None:
    @builtin(f"cast_{name}", ANY, result=result, deprecated=True, check=False)
    def cast(x: Value) -> Value:
        """Returns the value itself; a value of another kind is an error."""
        return x if type(x) in types else wrong_operand(1, x, name)


for _name in ("null", "boolean", "string", "object"):
    _register_cast(_name, *_KINDS[_name])
