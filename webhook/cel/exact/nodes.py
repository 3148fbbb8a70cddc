"""Builds the closure that evaluates one node, from the closures of its operands.

Each function here is for one form of node. Its closure charges the node's cost as cel-go does, and
returns its value. ``env`` has the variables by name and the macros' variables by slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cel.errors import Ended, EvaluationError
from webhook.cel.exact import costed
from webhook.cel.library.all import invoke
from webhook.cel.run import access, membership
from webhook.cel.run.values import NOTHING, Lost, Value, there

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter


def once(literal: Run) -> Run:
    """Returns a constant list or map as the same object each time, so that it is found as a key."""
    kept: list[Value] = []

    def same(env: dict[Any, Value], meter: Meter) -> Value:
        value = literal(env, meter)
        if not kept:
            kept.append(value)
        return kept[0]

    return same


def constant(value: Value) -> Run:
    """Returns a constant; it costs nothing."""

    def constant(_env: dict[Any, Value], _meter: Meter) -> Value:
        return value

    return constant


def local(slot: int, value: Run | None = None) -> Run:
    """Reads the variable of a macro; it costs nothing.

    ``value`` computes the variable of ``cel.bind`` at its first read.
    """
    if value is None:
        return lambda env, _meter: there(env[slot])

    def bound(env: dict[Any, Value], meter: Meter) -> Value:
        if env[slot] is NOTHING:
            try:
                env[slot] = value(env, meter)
            except Ended:
                raise
            except EvaluationError as error:
                env[slot] = Lost(str(error))
                raise
        return there(env[slot])

    return bound


def variable(name: str) -> Run:
    """Reads a variable of the environment; raises where it has no value."""

    def variable(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        try:
            return env[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return variable


def unary(operator: Callable[[Value], Value], operand: Run) -> Run:
    """Applies an operator to one operand."""

    def unary(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        return operator(operand(env, meter))

    return unary


def _size_cost(value: Value) -> int:
    """Returns the cost of a value's size: a tenth of its length."""
    return len(value) // 10 if type(value) in {str, bytes, list, dict} else 0


def binary(operator: Callable[[Value, Value], Value], left: Run, right: Run) -> Run:
    """Applies an operator to two operands."""
    operands = costed.both(left, right)

    def binary(env: dict[Any, Value], meter: Meter) -> Value:
        a, b = operands(env, meter)
        meter.charge(1 + _size_cost(a) + _size_cost(b))
        return operator(a, b)

    return binary


def member(item: Run, of: Run) -> Run:
    """Evaluates ``item in of``, for a list or map."""
    operands = costed.both(item, of)

    def member(env: dict[Any, Value], meter: Meter) -> Value:
        value, within = operands(env, meter)
        meter.charge(1 + (len(within) if type(within) is list else 0))
        return membership.is_member(value, within, env, meter)

    return member


def among(item: Run, keys: frozenset[Value]) -> Run:
    """Evaluates ``item in`` a list of constants, which is a set here."""

    def among(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        return membership.is_among(item(env, meter), keys)

    return among


def invocation(name: str, args: list[Run], *, at_once: bool) -> Run:
    """Calls a function of the library; ``at_once`` evaluates both operands even if one fails."""
    if len(args) == 2 and at_once:
        operands = costed.both(*args)
        return lambda env, meter: invoke(meter, name, *operands(env, meter))

    def invoked(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        return invoke(meter, name, *[arg(env, meter) for arg in args])

    return invoked


def total(form: str, operand: Run, zero: Value) -> Run:
    """Calls ``sum`` of a list; an empty one gives the zero of its items' type."""
    return lambda env, meter: invoke(meter, form, operand(env, meter)) or zero


def conditional(test: Run, then: Run, other: Run) -> Run:
    """Evaluates ``test ? then : other``."""

    def conditional(env: dict[Any, Value], meter: Meter) -> Value:
        chosen = then if access.condition(test(env, meter)) else other
        return chosen(env, meter)

    return conditional
