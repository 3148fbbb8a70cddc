"""Calls that cel-go looks at beside evaluating them.

Its count of costs takes some operands for lists, and panics where they are none (ext/lists.go), also
where they have no value: so nothing makes up for an error of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check import types
from webhook.cel.errors import Ended, EvaluationError, InternalError
from webhook.cel.library.all import invoke
from webhook.cel.paths import is_native
from webhook.cel.run import access
from webhook.cel.run.equality import NO_OVERLOAD
from webhook.cel.run.values import from_key, type_name
from webhook.cel.syntax.ast import Call, SortBy

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value
    from webhook.cel.syntax.ast import Expr

LISTERS: Final = frozenset({"distinct", "sort"})

_ORDERED: Final = frozenset(
    {"bool", "bytes", "double", "int", "string", "uint"}
    | {"google.protobuf.Duration", "google.protobuf.Timestamp"}
)
_HASHED: Final = _ORDERED - {"bytes"}

_ADDERS: Final = _ORDERED - {"bool"}
"""Types with one of the methods that a list has in Go, which then lack another."""

_ERROR: Final = "*types.Err"


def may_end(node: Expr, checked: Checked) -> bool:
    """Whether a node may end in a panic, whatever else there is an error."""
    if isinstance(node, Call):
        if node.function == "@in":
            item = node.args[0]
            return checked.types[item].name not in _HASHED and not is_native(item, checked)
        return node.function in LISTERS or node.function == "flatten"
    return isinstance(node, SortBy)


def _no_list(named: str, missing: str = "Add") -> InternalError:
    return InternalError(
        f"interface conversion: {named} is not traits.Lister: missing method {missing}"
    )


def _settled(run: Run, env: dict[Any, Value], meter: Meter) -> tuple[Value, EvaluationError | None]:
    """An operand's value, and why it has none; raises Ended, which nothing makes up for."""
    try:
        return run(env, meter), None
    except Ended:
        raise
    except EvaluationError as error:
        return None, error


def both(left: Run, right: Run) -> Callable[[dict[Any, Value], Meter], tuple[Value, Value]]:
    """Two operands: the second is evaluated, and may end it all, though the first has no value."""

    def operands(env: dict[Any, Value], meter: Meter) -> tuple[Value, Value]:
        a, fault = _settled(left, env, meter)
        if fault is None:
            return a, right(env, meter)
        _settled(right, env, meter)
        raise fault

    return operands


def lister(operand: Run) -> Run:
    """An operand that has to be a list."""

    def listed(env: dict[Any, Value], meter: Meter) -> Value:
        value, fault = _settled(operand, env, meter)
        if fault is not None:
            raise _no_list(_ERROR)
        if type(value) is not list:
            missing = "Contains" if type_name(value) in _ADDERS else "Add"
            raise _no_list(access.go_type(value), missing)
        return value

    return listed


def flattened(items: Run, depth: Run) -> Run:
    """``flatten`` of a depth, which is counted first."""

    def flat(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        of, fault = _settled(items, env, meter)
        levels, unknown = _settled(depth, env, meter)
        if unknown is not None:
            raise _no_depth(_ERROR)
        if type(levels) is not int:
            raise _no_depth(access.go_type(levels))
        if fault is not None:
            raise fault
        return invoke(meter, "flatten", of, levels)

    return flat


def _no_depth(named: str) -> InternalError:
    return InternalError(f"interface conversion: ref.Val is {named}, not types.Int")


def sorted_by(node: SortBy, target: Run, slot: int, key: Run, checked: Checked) -> Run:
    """``sortBy``, whose keys are counted where a checker knows their type."""
    is_counted = checked.types.get(node.key, types.DYN).name in _ORDERED

    def ordered(env: dict[Any, Value], meter: Meter) -> Value:
        keys = []
        try:
            items = target(env, meter)
            for item in access.items_of(items):
                meter.charge(2)
                env[slot] = from_key(item)
                keys.append(key(env, meter))
        except Ended:
            raise
        except EvaluationError:
            if is_counted:
                raise _no_list(_ERROR) from None
            raise
        return invoke(meter, "@sortByAssociatedKeys", items, keys)

    return ordered


def search(name: str, args: list[Run]) -> Run:
    """By a pattern that is known: cel-go looks at what values of Go the other operands are."""

    def searched(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        values = [access.go_value(arg(env, meter)) for arg in args]
        if type(values[0]) is not str or any(type(one) is not int for one in values[2:]):
            raise EvaluationError(NO_OVERLOAD)
        return invoke(meter, name, *values)

    return searched
