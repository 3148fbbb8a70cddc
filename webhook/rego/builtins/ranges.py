"""Built-ins that make numbers: ranges and random numbers.

Documented in OPA's reference under "Numbers"; behaviour from v1/topdown/numbers.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.builtins.operands import big_integer, integer
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.types import NUMBER, STRING, array_of

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

MAX_NUMBERS: Final = 10_000_000
"""The most numbers of one range: 80 MB of references, more than a policy needs."""

AT_ONCE: Final = 50_000
"""The numbers of a range that are made at once: 2 MiB, in a millisecond."""


def _range(context: Context, name: str, start: int, stop: int, step: int) -> list[int]:
    size = abs(stop - start) // step + 1
    if size > MAX_NUMBERS:
        raise EvaluationError("eval_cancel_error", f"{name}: a range of over {MAX_NUMBERS} numbers")
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    result: list[int] = []
    for begin in range(0, size, AT_ONCE):
        # Charged in parts: a charge checks the clock and the memory.
        part = numbers[begin : begin + AT_ONCE]
        context.charge(len(part))
        result.extend(part)
    return result


@builtin("numbers.range", NUMBER, NUMBER, result=array_of(NUMBER), context=True, check=False)
def range_(context: Context, a: Value, b: Value) -> list[int]:
    """Returns the integers from ``a`` to ``b``, both included, up or down."""
    return _range(context, "numbers.range", big_integer(1, a), big_integer(2, b), 1)


@builtin(
    "numbers.range_step", NUMBER, NUMBER, NUMBER, result=array_of(NUMBER), context=True, check=False
)
def range_step(context: Context, a: Value, b: Value, step: Value) -> list[int]:
    """Returns every ``step``-th integer from ``a`` to ``b``, up or down."""
    start, stop, width = big_integer(1, a), big_integer(2, b), big_integer(3, step)
    if width <= 0:
        raise BuiltinError("numbers.range_step: step must be a positive integer")
    return _range(context, "numbers.range_step", start, stop, width)


@builtin("rand.intn", STRING, NUMBER, result=NUMBER, context=True, deterministic=False, check=False)
def intn(context: Context, name: Value, n: Value) -> int:
    """Returns a number from 0 to below ``n``, the same for the same operands in one query."""
    if type(name) is not str:
        wrong_operand(1, name, "string")
    bound = abs(integer(2, n))
    if not bound:
        return 0
    place = ("rand.intn", name, bound)
    if place not in context.cache:
        context.cache[place] = context.random.randrange(bound)
    return int(context.cache[place])
