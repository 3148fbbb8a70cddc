"""Evaluates paths: fields and items at any depth, with optionals among them.

It follows cel-go, interpreter/attributes.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.cel.check.literals import known_value
from webhook.cel.check.types import DYN
from webhook.cel.library import optionals
from webhook.cel.library.all import invoke
from webhook.cel.run import access
from webhook.cel.run.inputs import given_of
from webhook.cel.run.values import NONE, NOTHING, Optional, Uint, Value, held, there
from webhook.cel.syntax.ast import Call, Constant, Expr, Name, OptMap, Select
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter


def stored_in(node: Expr) -> Expr | None:
    """Returns the root of a path without question marks; None for other expressions."""
    of: Expr = node
    while True:
        match of:
            case Select(tests=False, optional=False):
                of = of.operand
            case Call(function="_[_]"):
                of = of.args[0]
            case Select(optional=True) | Call(function="_[?_]"):
                return None
            case _:
                return None if of is node else of


def goes_on(node: Expr, checked: Checked) -> bool:
    """Returns whether it is a step of a path that has a question mark in it or before it."""
    is_part = (isinstance(node, Select) and not node.tests) or (
        isinstance(node, Call) and node.function in {"_[_]", "_[?_]"}
    )
    return is_part and node not in checked.names and stored_in(node) is None


def is_native(node: Expr, checked: Checked) -> bool:
    """Whether it is a path within a variable: cel-go keeps such a value as Go has decoded it."""
    while True:
        meaning = checked.names.get(node)
        if meaning is not None:
            return meaning.startswith(".") and meaning != ".variables"
        match node:
            case Select(tests=False, optional=False):
                node = node.operand
            case Call(function="_[_]"):
                if is_converting(node.args[1], checked):
                    return False
                node = node.args[0]
            case Call(function="_?_:_"):
                return all(is_native(arg, checked) for arg in node.args[1:])
            case _:
                return False


def is_converting(key: Expr, checked: Checked) -> bool:
    """Whether a key is a number of a type that cel-go converts before it looks an item up."""
    is_number = type(known_value(key, checked)) in {float, Uint}
    return is_number or checked.types.get(key, DYN).name in {"double", "uint"}


def may_nest(node: Expr, checked: Checked) -> bool:
    """Whether a branch of a conditional may be a computed optional whose value changes in it."""
    if isinstance(node, Name | Select | Constant | OptMap) or (
        isinstance(node, Call) and node.function in {"_[_]", "_[?_]", "_?_:_"}
    ):
        return False
    return may_change(node, checked)


def may_change(node: Expr, checked: Checked) -> bool:
    """Returns whether it may be an optional whose value cel-go does not read back unchanged."""
    of = checked.types[node]
    if of.name == "optional_type":
        part = of.parts[0]
        return part.name in {"optional_type", "dyn", "any", "type"} or part.free or "." in part.name
    return of.is_wild or of.free


@dataclass(frozen=True, slots=True)
class Key:
    """One step of a path: the function that computes its key, and how the step is taken."""

    run: Run
    optional: bool = False
    tests: bool = False
    converts: bool = False
    """Whether its value is no longer as Go has decoded it."""


Keys: TypeAlias = "tuple[Key, ...]"


def resolved(root: Run, keys: Keys, *, opens: bool, is_key: bool) -> Run:
    """Returns the value at keys below a root; ``opens`` is whether an optional is opened, once.

    From there, and from the first question mark, a missing item is no error. An optional within the
    path has no items (interpreter/attributes.go, applyQualifiers and refQualify).
    """
    steps = [(key.run, key.optional, key.tests) for key in keys]

    def resolved(env: dict[Any, Value], meter: Meter) -> Value:
        value = root(env, meter)
        is_sought = opens and type(value) is Optional
        if is_sought:
            if value.value is NOTHING:
                return value  # the keys are not evaluated
            value = access.unnested(value).value
        for key, optional, tests in steps:
            meter.charge(1)
            is_sought = is_sought or optional
            at = key(env, meter)
            if is_sought:
                value = access.found_on_the_way(value, at)
                if value is NOTHING:
                    return NONE
            elif tests:
                value = access.found_on_the_way(value, at) is not NOTHING
            else:
                value = access.item_on_the_way(value, at)
        if is_sought:
            return Optional(value)
        return value if is_key else there(value)

    return resolved


def has_value(path: Run) -> Run:
    """Returns whether a path leads to a value: ``has()``."""

    def is_there(env: dict[Any, Value], meter: Meter) -> Value:
        value = path(env, meter)
        return value.value is not NOTHING if type(value) is Optional else value

    return is_there


def computed(key: Run) -> Run:
    """Computes a key that is no part of a variable; an unusable key gives Go's type in the error."""
    return lambda env, meter: access.computed_key(key(env, meter))


def alternative(first: Run, second: Run, function: str) -> Run:
    """Evaluates ``first.or(second)`` and ``first.orValue(second)``."""

    def alternative(env: dict[Any, Value], meter: Meter) -> Value:
        value = first(env, meter)
        if type(value) is not Optional:
            return value  # as in cel-go, whose checker admits only dyn here
        if value.value is NOTHING:
            return second(env, meter)
        return value if function == "or" else held(value)

    return alternative


def unwrapped(name: str, operand: Run) -> Run:
    """Returns the values of a list of optionals, where a lost value keeps its place."""

    def unwrapped(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        of = operand(env, meter)
        if type(of) is not list or not any(type(item) is Optional for item in of):
            return invoke(meter, name, of)
        meter.may_have_lost = True
        return optionals.unwrapped(name.partition("#")[0], of)

    return unwrapped


def read(run: Run) -> Run:
    """Reads a part of a variable: another value each time."""
    return lambda env, meter: given_of(env, meter).read(run(env, meter), meter)


def taken(run: Run) -> Run:
    """Reads the items of a list, or a single value."""

    def taken(env: dict[Any, Value], meter: Meter) -> Value:
        value = run(env, meter)
        given = given_of(env, meter)
        if type(value) is list:
            return [given.read(item, meter) for item in value]
        return given.read(value, meter)

    return taken


def composited(operand: Run, field: str, *, tests: bool, is_one: bool) -> Run:
    """Reads a composed variable, which is computed then; with ``tests`` whether that succeeds.

    ``is_one`` says that two reads have to give one value.
    """

    def read(env: dict[Any, Value], meter: Meter) -> Value:
        meter.charge(1)
        variables = operand(env, meter)
        value = (
            given_of(env, meter).composed(variables, field, meter) if is_one else variables[field]
        )
        return True if tests else value

    return read
