"""Operands that cel-go's count of costs takes for lists, and panics where they are none (ext/lists.go).

It counts also where an operand has no value: so nothing makes up for an error of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cel.check import types
from webhook.cel.errors import EndedError, EvaluationError, InternalError
from webhook.cel.library.all import invoke
from webhook.cel.run import access
from webhook.cel.run.values import from_key, type_name
from webhook.cel.syntax.ast import Call, SortBy

if TYPE_CHECKING:
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
_ADDERS: Final = _ORDERED - {"bool"}
"""Types with one of the methods that a list has in Go, which then lack another."""

_ERROR: Final = "*types.Err"


def is_costed(node: Expr) -> bool:
    """Whether an error of an operand may be another than its own."""
    if isinstance(node, Call):
        return node.function in LISTERS or node.function == "flatten"
    return isinstance(node, SortBy)


def _no_list(named: str, missing: str = "Add") -> InternalError:
    return InternalError(
        f"interface conversion: {named} is not traits.Lister: missing method {missing}"
    )


def lister(operand: Run) -> Run:
    """An operand that has to be a list."""

    def listed(env: dict[Any, Value], meter: Meter) -> Value:
        try:
            value = operand(env, meter)
        except EndedError:
            raise
        except EvaluationError:
            raise _no_list(_ERROR) from None
        if type(value) is not list:
            missing = "Contains" if type_name(value) in _ADDERS else "Add"
            raise _no_list(access.go_type(value), missing)
        return value

    return listed


def flattened(items: Run, depth: Run) -> Run:
    """``flatten`` of a depth, which is counted first."""

    def flat(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        of: Value = None
        fault: EvaluationError | None = None
        try:
            of = items(env, meter)
        except EndedError:
            raise
        except EvaluationError as error:
            fault = error
        try:
            levels = depth(env, meter)
        except EndedError:
            raise
        except EvaluationError:
            raise _no_depth(_ERROR) from None
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
        except EndedError:
            raise
        except EvaluationError:
            if is_counted:
                raise _no_list(_ERROR) from None
            raise
        return invoke(meter, "@sortByAssociatedKeys", items, keys)

    return ordered
