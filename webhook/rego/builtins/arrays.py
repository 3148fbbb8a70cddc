"""Built-ins on arrays. Documented in OPA's reference under "Array"; see v1/topdown/array.go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.builtins.operands import integer
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.types import ARRAY, NUMBER

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


@builtin("array.concat", ARRAY, ARRAY, result=ARRAY, context=True)
def concat(context: Context, x: list[Value], y: list[Value]) -> list[Value]:
    """Returns the items of both."""
    context.charge(len(x) + len(y))
    return x + y


@builtin("array.flatten", ARRAY, result=ARRAY, context=True)
def flatten(context: Context, x: list[Value]) -> list[Value]:
    """Returns the items with each array among them replaced by its own items."""
    flat: list[Value] = []
    for item in x:
        if type(item) is list:
            flat.extend(item)
        else:
            flat.append(item)
    context.charge(len(flat))
    return flat


@builtin("array.slice", ARRAY, NUMBER, NUMBER, result=ARRAY)
def slice_(x: list[Value], start: float, stop: float) -> list[Value]:
    """Returns the items from ``start`` to before ``stop``, both limited to the array."""
    first, last = integer(2, start), integer(3, stop)
    last = min(max(last, 0), len(x))
    return x[min(max(first, 0), last) : last]


@builtin("array.reverse", ARRAY, result=ARRAY, context=True)
def reverse(context: Context, x: list[Value]) -> list[Value]:
    """Returns the items, last first."""
    context.charge(len(x))
    return x[::-1]
