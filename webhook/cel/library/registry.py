"""The functions of CEL by name, each with its overloads: operand types and implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from webhook.cel.errors import EvaluationError
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import Opaque, Value, type_name
from webhook.values import dataclass

Operand: TypeAlias = "type | str | tuple[Operand] | None"
"""The type of an operand: a Python type, the name of an opaque type, or None for any. A tuple holds
the type of a list's first item."""


@dataclass(frozen=True, slots=True)
class Form:
    """One overload. ``charges`` is whether its implementation takes the meter first."""

    operands: tuple[Operand, ...]
    run: Callable[..., Any]
    charges: bool

    def takes(self, args: tuple[Value, ...]) -> bool:
        """Returns whether the operands have the overload's types."""
        for operand, arg in zip(self.operands, args, strict=True):
            if operand is not None and type(arg) is not operand and not _is_of(arg, operand):
                return False
        return True


def _is_of(arg: Value, operand: Operand) -> bool:
    if type(operand) is tuple:  # only the first item of a list is checked, as in cel-go
        part = operand[0]
        return type(arg) is list and (not arg or type(arg[0]) is part or _is_of(arg[0], part))
    return type(arg) is operand or (type(arg) is Opaque and arg.type_name == operand)


_FORMS: Final[dict[tuple[str, int], list[Form]]] = {}

_Run = TypeVar("_Run", bound="Callable[..., Any]")


def form(name: str, *operands: Operand, charges: bool = False) -> Callable[[_Run], _Run]:
    """Registers the decorated function as the overload for operands of these types."""

    def register(run: _Run) -> _Run:
        _FORMS.setdefault((name, len(operands)), []).append(Form(operands, run, charges))
        return run

    return register


_SILENT: Final = frozenset({"contains", "endsWith", "startsWith"})
_BARE: Final = frozenset({"matches", "size"})
_SORTS: Final = frozenset({"sort", "@sortByAssociatedKeys"})
"""Functions whose overload errors name no types, and for some receivers not even the function."""

_RECEIVERS: Final = frozenset({"string", "google.protobuf.Duration", "google.protobuf.Timestamp"})


def _no_overload(name: str, args: tuple[Value, ...]) -> EvaluationError:
    names = [type_name(arg) for arg in args]
    if name in _SILENT or (name in _BARE | _SORTS and names[0] in _RECEIVERS):
        return EvaluationError("no such overload")
    if name in _BARE or name in _SORTS:
        return EvaluationError(f"no such overload: {name}")
    if name == "flatten":
        names = ["map(dyn, dyn)" if form_name == "map" else form_name for form_name in names]
        return EvaluationError(f"no such overload: {names[0]}.flatten({', '.join(names[1:])})")
    return EvaluationError(f"no such overload: {name.lstrip('.')}({', '.join(names)})")


def invoke(meter: Meter, name: str, *args: Value) -> Value:
    """Returns the value of a call; raises :class:`~webhook.cel.errors.EvaluationError`."""
    for candidate in _FORMS.get((name, len(args)), ()):
        if candidate.takes(args):
            return candidate.run(meter, *args) if candidate.charges else candidate.run(*args)
    raise _no_overload(name.partition(_NARROWED)[0], args)


_NARROWED: Final = "#"
"""The separator between a function's name and the types of its only possible overload."""


def narrowed(name: str, operands: tuple[Operand, ...]) -> str:
    """Returns a name for the only overload that the checker found for a call.

    Values of other types raise, also where the checker was wrong about a type.
    """
    key = f"{name}{_NARROWED}{','.join(map(repr, operands))}"
    if name in _WHOLE or (key, len(operands)) in _FORMS:
        return name if name in _WHOLE else key
    forms = []
    for candidate in _FORMS.get((name, len(operands)), ()):
        pairs = list(zip(candidate.operands, operands, strict=True))
        if all(_compatible(actual, expected) for actual, expected in pairs):
            types = tuple([actual if expected is None else expected for actual, expected in pairs])
            forms.append(Form(types, candidate.run, candidate.charges))
    _FORMS[key, len(operands)] = forms
    return key


def _compatible(actual: Operand, expected: Operand) -> bool:
    if type(expected) is tuple:
        return actual is list or actual is None
    return actual is None or expected is None or actual == expected


_WHOLE: Final = frozenset({"dyn", "flatten", "size", "sort", "type"})
"""Functions with one implementation for all types, or that check types themselves."""


def direct(name: str, operands: int) -> Callable[..., Value]:
    """Returns the implementation of a function, which takes the meter and its operands."""
    forms = tuple(_FORMS.get((name, operands), ()))

    def general(meter: Meter, *args: Value) -> Value:
        for candidate in forms:
            if candidate.takes(args):
                return candidate.run(meter, *args) if candidate.charges else candidate.run(*args)
        raise _no_overload(name.partition(_NARROWED)[0], args)

    if len(forms) != 1 or operands not in {1, 2}:
        return general
    (only,) = forms
    return (_of_one if operands == 1 else _of_two)(only, general)


def _of_one(only: Form, general: Callable[..., Value]) -> Callable[..., Value]:
    (of,), run, charges = only.operands, only.run, only.charges

    def single(meter: Meter, arg: Value) -> Value:
        if of is None or type(arg) is of:
            return run(meter, arg) if charges else run(arg)
        return general(meter, arg)

    return single


def _of_two(only: Form, general: Callable[..., Value]) -> Callable[..., Value]:
    (left, right), run, charges = only.operands, only.run, only.charges

    def pair(meter: Meter, a: Value, b: Value) -> Value:
        if (left is None or type(a) is left) and (right is None or type(b) is right):
            return run(meter, a, b) if charges else run(a, b)
        return general(meter, a, b)

    return pair


def is_function(name: str, operands: int) -> bool:
    """Returns whether a function exists with this number of operands."""
    return (name, operands) in _FORMS
