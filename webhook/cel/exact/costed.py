"""Calls whose operands cel-go inspects for its cost count, apart from their evaluation.

The cost count assumes that some operands are lists. cel-go panics if an operand is no list, or if
its evaluation failed (ext/lists.go). No ``&&`` or ``||`` absorbs such a panic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check import types
from webhook.cel.errors import Ended, EvaluationError, InternalError
from webhook.cel.library.all import invoke
from webhook.cel.paths import is_native
from webhook.cel.run import access
from webhook.cel.run.equality import NO_OVERLOAD
from webhook.cel.run.values import Value, from_key, type_name
from webhook.cel.syntax.ast import Call, Expr, SortBy

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter

LISTERS: Final = frozenset({"distinct", "sort"})
"""Functions of a list alone whose operand the cost count takes for a list (Go's traits.Lister)."""

_ORDERED: Final = frozenset(
    {"bool", "bytes", "double", "int", "string", "uint"}
    | {"google.protobuf.Duration", "google.protobuf.Timestamp"}
)
_HASHED: Final = _ORDERED - {"bytes"}

_ADDERS: Final = _ORDERED - {"bool"}
"""Types with Go's method Add; their panic names Contains as missing, others' names Add."""

_ERROR: Final = "*types.Err"


def may_end(node: Expr, checked: Checked) -> bool:
    """Returns whether a node may panic in cel-go.

    There are three cases: 1. ``in``, for an item that may have no hash. 2. A function that the cost
    count takes for one of lists. 3. ``sortBy``.
    """
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
    """Returns the value of an operand, or None and its error; raises Ended for a panic."""
    try:
        return run(env, meter), None
    except Ended:
        raise
    except EvaluationError as error:
        return None, error


def both(left: Run, right: Run) -> Callable[[dict[Any, Value], Meter], tuple[Value, Value]]:
    """Returns a function for two operands; the second is evaluated even if the first fails.

    The first error is raised, unless the second operand panics.
    """

    def operands(env: dict[Any, Value], meter: Meter) -> tuple[Value, Value]:
        value, error = _settled(left, env, meter)
        if error is None:
            return value, right(env, meter)
        _settled(right, env, meter)
        raise error

    return operands


def lister(operand: Run) -> Run:
    """Returns an operand that panics unless its value is a list."""

    def listed(env: dict[Any, Value], meter: Meter) -> Value:
        value, error = _settled(operand, env, meter)
        if error is not None:
            raise _no_list(_ERROR)
        if type(value) is not list:
            missing = "Contains" if type_name(value) in _ADDERS else "Add"
            raise _no_list(access.go_type(value), missing)
        return value

    return listed


def flattened(items: Run, depth: Run) -> Run:
    """Returns the call ``flatten(depth)``; a depth that is no int panics before the list is used."""

    def flat(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        values, error = _settled(items, env, meter)
        levels, depth_error = _settled(depth, env, meter)
        if depth_error is not None:
            raise _no_depth(_ERROR)
        if type(levels) is not int:
            raise _no_depth(access.go_type(levels))
        if error is not None:
            raise error
        return invoke(meter, "flatten", values, levels)

    return flat


def _no_depth(named: str) -> InternalError:
    return InternalError(f"interface conversion: ref.Val is {named}, not types.Int")


def sorted_by(node: SortBy, target: Run, slot: int, key: Run, checked: Checked) -> Run:
    """Returns the call ``sortBy``; an error panics if the checker knows that the keys are ordered."""
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
    """Returns a search by a constant pattern; the other operands must be strings or ints in Go."""

    def searched(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        values = [access.go_value(arg(env, meter)) for arg in args]
        if type(values[0]) is not str or any(type(value) is not int for value in values[2:]):
            raise EvaluationError(NO_OVERLOAD)
        return invoke(meter, name, *values)

    return searched
