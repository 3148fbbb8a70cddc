"""Folds of the exact form, and of operands: their results, and the choice among several errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeAlias

from webhook.cel.errors import Ended, EvaluationError
from webhook.cel.run import access
from webhook.cel.run.inputs import given_of
from webhook.cel.run.meter import Meter
from webhook.cel.run.values import Value, from_key, type_name

Run: TypeAlias = "Callable[[Any, Meter], Value]"
"""Computes a node, with the variables by name (macros' variables by number) and the meter."""

Turns: TypeAlias = "Callable[[dict[Any, Value], Meter], Any]"


def turns_of(range_: Run, slots: list[int]) -> Turns:
    """Gives each item to the variables of a macro."""
    first = slots[0]
    second = slots[1] if len(slots) > 1 else None

    def turns(env: dict[Any, Value], meter: Meter) -> Any:
        of = range_(env, meter)
        if second is None:
            for item in access.items_of(of):
                meter.charge(2)
                env[first] = from_key(item)
                yield
        else:
            for key, value in access.pairs_of(of):
                meter.charge(2)
                env[first], env[second] = from_key(key), value
                yield

    return turns


def read(turns: Turns, slots: list[int]) -> Turns:
    """Returns the turns with the given slots read anew in each turn: parts of another variable."""

    def each(env: dict[Any, Value], meter: Meter) -> Any:
        given = given_of(env, meter)
        for turn in turns(env, meter):
            for slot in slots:
                env[slot] = given.read(env[slot], meter)
            yield turn

    return each


def quantified(turns: Turns, body: Run, *, ends: bool) -> Run:
    """``all`` and ``exists``: an item that decides makes up for errors of others."""

    def each(env: dict[Any, Value], meter: Meter) -> Iterator[tuple[Any, Run]]:
        return zip(turns(env, meter), repeat(body), strict=False)

    return _decided(each, ends=ends)


def logic(operands: list[Run], *, ends: bool) -> Run:
    """``&&`` and ``||``: an operand that decides makes up for errors in the others."""
    numbered = list(enumerate(operands))
    return _decided(lambda _env, _meter: numbered, ends=ends)


def _decided(
    operands: Callable[[dict[Any, Value], Meter], Iterable[tuple[Any, Run]]], *, ends: bool
) -> Run:
    """Returns whether an operand is ``ends``; if none is, raise the first error of any."""

    def evaluated(env: dict[Any, Value], meter: Meter) -> Value:
        fault: EvaluationError | None = None
        for _, operand in operands(env, meter):
            try:
                if access.condition(operand(env, meter)) is ends:
                    return ends
            except Ended:
                raise
            except EvaluationError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return not ends

    return evaluated


def counted(turns: Turns, body: Run) -> Run:
    """``exists_one``: of several errors it raises the last."""

    def evaluated(env: dict[Any, Value], meter: Meter) -> Value:
        count = 0
        fault: EvaluationError | None = None
        for _ in turns(env, meter):
            try:
                count += access.condition(body(env, meter))
            except Ended:
                raise
            except EvaluationError as error:
                fault = error
        if fault is not None:
            raise fault
        return count == 1

    return evaluated


def listed(turns: Turns, test: Run | None, body: Run) -> Run:
    """``map``, ``filter`` and ``transformList``."""

    def add(items: Any, _env: dict[Any, Value], _meter: Meter, value: Value) -> None:
        items.append(value)

    return _gathered(turns, test, body, list, add, goes_on=True)


def mapped(turns: Turns, test: Run | None, body: Run, key: Run | None) -> Run:
    """Runs ``transformMap``, if there is a ``key``, or ``transformMapEntry``."""

    def add(entries: Any, env: dict[Any, Value], meter: Meter, value: Value) -> None:
        if key is not None:
            access.inserted(entries, key(env, meter), value)
            return
        if type(value) is not dict:
            raise EvaluationError(f"no such overload: cel.@mapInsert(map, {type_name(value)})")
        for at, of in value.items():
            access.inserted(entries, from_key(at), of)

    return _gathered(turns, test, body, dict, add, goes_on=key is None)


def _gathered(
    turns: Turns,
    test: Run | None,
    body: Run,
    begin: Callable[[], Any],
    add: Callable[[Any, dict[Any, Value], Meter, Value], None],
    *,
    goes_on: bool,
) -> Run:
    """Returns the error among several that CEL reports: the last of the tests', else a result's.

    These macros are ``test ? accumulator with the result : accumulator``: an error takes the place
    of the accumulator, and adding to an error gives that error. ``goes_on`` is whether results are
    computed after an error: cel-go evaluates both of two operands, but of three none after an
    error.
    """

    def evaluated(env: dict[Any, Value], meter: Meter) -> Value:
        gathered = begin()
        fault: EvaluationError | None = None
        for _ in turns(env, meter):
            try:
                if test is not None and not access.condition(test(env, meter)):
                    continue
            except Ended:
                raise
            except EvaluationError as error:
                fault = error
                continue
            if fault is None or goes_on:
                meter.charge(1)
                try:
                    value = body(env, meter)
                    if fault is None:
                        add(gathered, env, meter, value)
                except Ended:
                    raise
                except EvaluationError as error:
                    fault = fault or error
        if fault is not None:
            raise fault
        return gathered

    return evaluated
