"""Numbers and spans of time: how they are shown, converted, compared and computed with."""

from collections.abc import Iterator
from itertools import product
from typing import Final

_DOUBLES: Final = (
    "0.0", "-0.0", "1.0", "-2.5", "2.675", "1e21", "1e22", "123456789.125", "1e-7", "5e-324",
    "1.7976931348623157e308", "0.1 + 0.2", "999999.9999999", "0.0 / 0.0", "1.0 / 0.0", "-1.0 / 0.0",
    "1e15", "12345678901234567.0", "-1234.5678", "-0.4", "-0.001", "100000.0", "1e-4", "1e-5",
)  # fmt: skip
_WHOLE: Final = (
    "0", "-1", "255", "9223372036854775807", "-9223372036854775808", "0u", "18446744073709551615u",
)  # fmt: skip
_NESTED: Final = (
    "[1.5, -0.0]", "['a\"b', '\\n']", "[b'ab']", "[null]", "[duration('1h30m')]", "[[1], [2]]",
    "[timestamp('2024-01-01T00:00:00.5Z')]", "{'b': 1, 'a': 2}", "{2: 'x', 10: 'y'}", "{true: 1}",
    "{'a': [1, {'b': dyn(2)}]}", "['\\u0000\\u007f☃\\U0001F600']", "[type(1)]", "{'a\"': 1}", "[1u]",
    "[0.0 / 0.0, 1.0 / 0.0]", "[1e300, 0.1, 1e-7]", "'%s'", "'a☃'", "b''", "b'\\xff\\x00'", "true",
    "timestamp('2024-01-01T00:00:00.123456789+02:00')", "int", "null",
)  # fmt: skip
_SPANS: Final = (
    "1h", "-1h", "1ns", "1us", "1.5ms", "1m1s", "0.1s", "1.000000001s", "-0.5s", "0s",
    "9223372036.854775807s", "123456789.123456789s", "2562047h47m16.854775807s",
)  # fmt: skip
_OPERANDS: Final = (
    "1", "2u", "1.5", "0.0 / 0.0", "-1", "9223372036854775807", "18446744073709551615u", "0", "0u",
    "9223372036854775808.0", "-0.0", "'a'", "null", "[1]",
)  # fmt: skip
_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in")


def numbers() -> Iterator[str]:
    """Each as each clause of a format shows it, each conversion of it, each operator with each."""
    clauses = ("%f", "%.0f", "%.1f", "%.2f", "%.20f", "%e", "%.0e", "%.12e", "%.25e", "%s")
    for clause, value in product(clauses, _DOUBLES):
        yield f"'{clause}'.format([{value}])"
    for clause, value in product(("%d", "%x", "%X", "%o", "%b", "%s"), _WHOLE):
        yield f"'{clause}'.format([{value}])"
    for clause, value in product(("%s", "%x"), _NESTED):
        yield f"'{clause}'.format([dyn({value})])"
    for function, value in product(("string", "int", "uint", "double"), (*_DOUBLES, *_WHOLE)):
        yield f"{function}({value})"
    for span in _SPANS:
        yield f"string(duration('{span}'))"
        for part in ("Hours", "Minutes", "Seconds", "Milliseconds"):
            yield f"duration('{span}').get{part}()"
    for one, operator, other in product(_OPERANDS, _OPERATORS, _OPERANDS):
        yield f"dyn({one}) {operator} dyn({other})"
