"""The functions that generated code calls: evaluation state and the general forms of steps.

Generated code inlines the common case of each step (a string key in a ``dict``) and calls these
functions for the rest. Names are short where generated code is full of them;
:mod:`webhook.rego.write.generate` explains them.
"""

from __future__ import annotations

import sys
import threading
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.numbers import as_index
from webhook.rego.run.text import MAX_CHARACTERS, printed_text, text_too_large
from webhook.rego.run.values import (
    UNDEFINED,
    RegoObject,
    RegoSet,
    Value,
    equal,
    key,
    make_object,
    ordered,
)
from webhook.slices import SLICE, sorted_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from webhook.rego.location import Location
    from webhook.rego.run.limits import EvaluationContext

LONG_TEXT: Final = 1 << 16
"""Characters from which a made text is paid for."""


class _Missing:
    """The type of :data:`MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
"""A document that has not been computed: unlike UNDEFINED, which is an answer."""


State: TypeAlias = list[Any]
"""One evaluation, as :func:`new_state` makes it.

Its items are the input, base documents, limits, replacements of functions, replaced documents,
whether loops pay from their first turn on, and from :data:`FIRST_SLOT` on computed documents. It is
a list because one is made for each evaluation: an object with attributes takes four times as long.
"""

INPUT: Final = 0
DATA: Final = 1
CONTEXT: Final = 2
MOCKS: Final = 3
REPLACED: Final = 4
PAYING: Final = 5
FIRST_SLOT: Final = 6


def new_state(input_value: Value, data: Value, context: EvaluationContext, slots: int) -> State:
    """Returns the state in which an evaluation begins."""
    return [input_value, data, context, None, (), False, *[MISSING] * slots]


def fail(state: State, name: str, error: BuiltinError, place: Location) -> Value:
    """Returns a built-in's error: undefined, and in strict mode an error at the end."""
    context: EvaluationContext = state[CONTEXT]
    if context.strict and context.error is None:
        code: Any = "eval_type_error" if error.kind == "type" else "eval_builtin_error"
        context.error = EvaluationError(code, f"{name}: {error.message}", place)
    return UNDEFINED


def failed(state: State, name: str, place: Location) -> Value:
    """As :func:`fail`, for the complaint that is being handled: naming it takes compiling."""
    error = sys.exception()
    assert isinstance(error, BuiltinError)
    return fail(state, name, error, place)


def conflict(message: str, place: Location) -> EvaluationError:
    """Returns an ``eval_conflict_error`` to raise."""
    return EvaluationError("eval_conflict_error", message, place)


def agreed(before: Value, value: Value, message: str, place: Location) -> Value:
    """Returns the value of the previous body; raises a conflict if the values differ."""
    if not equal(before, value):
        raise conflict(message, place)
    return before


def slow(function: Callable[..., Value], name: str, *, context: bool) -> Callable[..., Value]:
    """A built-in behind an expression: its complaint becomes a value, or ends the evaluation."""

    def called(state: State, place: Location, *args: Value) -> Value:
        try:
            return function(state[CONTEXT], *args) if context else function(*args)
        except BuiltinError as error:
            return fail(state, name, error, place)

    return called


_name = itemgetter(0)

COMPLETE: Final = "complete rules must not produce multiple outputs"
FUNCTION: Final = "functions must not produce multiple outputs for same inputs"
KEYS: Final = "object keys must be unique"


def index(value: Value, name: Value) -> Value:
    """``value[name]``, or UNDEFINED."""
    kind = type(value)
    if kind is dict:
        return value.get(name, UNDEFINED) if type(name) is str else UNDEFINED
    if kind is list:
        if type(name) is int:
            return value[name] if 0 <= name < len(value) else UNDEFINED
        if isinstance(name, float):
            at = as_index(name)
            return value[at] if at is not None and 0 <= at < len(value) else UNDEFINED
        return UNDEFINED
    if kind is RegoSet:
        return name if name in value else UNDEFINED
    if kind is RegoObject:
        return value.get(name, UNDEFINED)
    return UNDEFINED


def index_base(value: Value, name: Value) -> Value:
    """As :func:`index` for base documents, where OPA reads ``data[2]`` as the path ``/2``."""
    if type(value) is dict and type(name) is int:
        return value.get(str(name), UNDEFINED)
    return index(value, name)


def path(value: Value, names: Sequence[Value]) -> Value:
    """``value[a][b]…``, or UNDEFINED."""
    for name in names:
        value = index(value, name)
        if value is UNDEFINED:
            return value
    return value


def values(value: Value) -> Iterable[Value]:
    """Returns the values of a collection; none of anything else."""
    kind = type(value)
    if kind is list or kind is RegoSet:
        return value  # type: ignore[no-any-return]
    if kind is dict or kind is RegoObject:
        return value.values()  # type: ignore[no-any-return]
    return ()


def pairs(value: Value) -> Collection[tuple[Value, Value]]:
    """Keys with values; a member of a set is its own key."""
    kind = type(value)
    if kind is list:
        return list(enumerate(value))
    if kind is dict or kind is RegoObject:
        return value.items()  # type: ignore[no-any-return]
    if kind is RegoSet:
        return [(item, item) for item in value]
    return ()


def values_in_order(value: Value) -> Sequence[Value]:
    """Returns the values of a collection in the order in which OPA iterates: by key."""
    if type(value) is dict:
        return [value[name] for name in sorted_in_slices(value)]
    if type(value) is RegoSet:
        return ordered(value)
    return [item for _, item in pairs_in_order(value)]


def pairs_in_order(value: Value) -> Collection[tuple[Value, Value]]:
    """Keys with values in the order in which OPA iterates."""
    kind = type(value)
    if kind is list:
        return list(enumerate(value))
    if kind is dict:
        if len(value) > SLICE:
            return sorted_in_slices(value.items(), _name)
        return sorted(value.items(), key=_name)
    if kind is RegoSet:
        return [(item, item) for item in ordered(value)]
    return [(name, value.get(name)) for name in ordered(value.keys())] if kind is RegoObject else ()


def size(value: Value) -> int:
    """Returns the charge of a loop over the value."""
    kind = type(value)
    if kind is list or kind is dict or kind is RegoSet or kind is RegoObject:
        return len(value)
    return 0


def is_collection(value: Value) -> bool:
    """Whether ``every`` can go over it."""
    kind = type(value)
    return kind is list or kind is dict or kind is RegoSet or kind is RegoObject


def is_object(value: Value, length: int) -> bool:
    """Whether the value is an object with this many keys."""
    kind = type(value)
    return (kind is dict or kind is RegoObject) and len(value) == length


# --- building --------------------------------------------------------------------------------


class _Comparisons(threading.local):
    """Counts how often a thread compared two values that were found for one key of an object."""

    count = 0


KEY_COMPARISONS: Final = _Comparisons()


def put(entries: dict[Any, Any], name: Value, value: Value, place: Location) -> None:
    """Adds (name, value) to an object being built, by key; equal duplicates count once."""
    at = key(name)
    known = entries.get(at)
    if known is None:
        entries[at] = (name, value)
    elif not _are_same(known[1], value):
        raise conflict(KEYS, place)


def _are_same(known: Value, value: Value) -> bool:
    """Compares two values of one key."""
    KEY_COMPARISONS.count += 1
    return equal(known, value)


def finish(entries: dict[Any, tuple[Value, Value]]) -> Value:
    """Returns the object with these entries."""
    return make_object(entries.values())


class Branch:
    """A nested object while a document of rules with variables in their references is built."""

    __slots__ = ("conflict", "items")

    def __init__(self) -> None:
        self.items: dict[Any, tuple[Value, Any]] = {}
        self.conflict: Conflict | None = None
        """Where two rules first disagreed about anything in it."""

    def value(self) -> Value:
        """Returns the finished object; raises where two rules disagree."""
        if self.conflict is not None:
            raise conflict(KEYS, self.conflict.place)
        return make_object((name, finished(item)) for name, item in self.items.values())


class Leaf:
    """A set that several rules add to."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: dict[Any, Value] = {}


class Conflict:
    """A place where two rules conflict: an error only if this value is read."""

    __slots__ = ("place",)

    def __init__(self, place: Location) -> None:
        self.place = place


def finished(item: Any) -> Value:
    """Returns the value built by :func:`put_path`."""
    kind = type(item)
    if kind is Branch:
        return item.value()
    if kind is Leaf:
        return RegoSet._of(item.items)  # noqa: SLF001  # the keys are known
    if kind is Conflict:
        raise conflict(KEYS, item.place)
    return item


def entry(branch: Branch, name: Value) -> Value:
    """One property of a document being built, despite conflicts in other properties."""
    at = key(name)
    held = branch.items.get(at)
    if held is None:
        return UNDEFINED
    value = finished(held[1])
    if value is not held[1]:
        branch.items[at] = (held[0], value)
    return value


def put_path(
    root: Branch, names: Sequence[Value], value: Value, place: Location, *, multi: bool
) -> None:
    """Puts the value, or member of a set, at a path; where two rules disagree, a conflict."""
    node = root
    for depth, name in enumerate(names[:-1]):
        at = key(name)
        known = node.items.get(at)
        if known is None:
            below = Branch()
            node.items[at] = (name, below)
            node = below
        elif type(known[1]) is Branch:
            node = known[1]
        else:
            _disagree(root, names[: depth + 1], Conflict(place))
            return
    at = key(names[-1])
    known = node.items.get(at)
    kind = None if known is None else type(known[1])
    if multi:
        if known is None:
            known = node.items[at] = (names[-1], Leaf())
        elif kind is not Leaf:
            _disagree(root, names, Conflict(place))
            return
        known[1].items.setdefault(key(value), value)
    elif known is None:
        node.items[at] = (names[-1], value)
    elif kind is Branch or kind is Leaf or kind is Conflict or not _are_same(known[1], value):
        _disagree(root, names, Conflict(place))


def _disagree(root: Branch, names: Sequence[Value], conflict: Conflict) -> None:
    """Leaves the first conflict at a path, and in all that it is a part of."""
    node = root
    for name in names[:-1]:
        node.conflict = node.conflict or conflict
        node = node.items[key(name)][1]
    node.conflict = node.conflict or conflict
    at = key(names[-1])
    if type(node.items[at][1]) is not Conflict:
        node.items[at] = (names[-1], conflict)


# --- with ------------------------------------------------------------------------------------


REPLACE_STEPS: Final = 20
"""The steps of a modifier, plus one for each document to be computed again."""


def replace(
    state: State,
    inputs: Sequence[tuple[tuple[str, ...], Value]],
    datas: Sequence[tuple[tuple[str, ...], Value]],
    mocks: Sequence[tuple[Any, Any]],
) -> State:
    """The state in which a literal with modifiers is evaluated: all is computed anew in it."""
    state[CONTEXT].charge(REPLACE_STEPS + len(state))
    new = [*state[:FIRST_SLOT], *[MISSING] * (len(state) - FIRST_SLOT)]
    for names, value in inputs:
        new[INPUT] = _with_value(new[INPUT], names, value)
    for names, value in datas:
        new[DATA] = _with_value(new[DATA], names, value)
    if datas:
        new[REPLACED] = (*state[REPLACED], *(names for names, _ in datas))
    if mocks:
        new[MOCKS] = {**(state[MOCKS] or {}), **dict(mocks)}
    return new


def _with_value(document: Value, names: tuple[str, ...], value: Value) -> Value:
    if not names:
        return value
    below = UNDEFINED
    if type(document) is dict:
        below = document.get(names[0], UNDEFINED)
        if type(below) is not dict and type(below) is not RegoObject:
            below = UNDEFINED
        return {**document, names[0]: _with_value(below, names[1:], value)}
    if type(document) is RegoObject:
        below = document.get(names[0], UNDEFINED)
        items = [(k, v) for k, v in document.items() if not equal(k, names[0])]
        return RegoObject([*items, (names[0], _with_value(below, names[1:], value))])
    return {names[0]: _with_value(UNDEFINED, names[1:], value)}


def replaced(state: State, names: tuple[Value, ...]) -> Value:
    """The value that a modifier gives the document at this path; MISSING where none does."""
    for target in state[REPLACED]:
        if names[: len(target)] == target:
            return path(state[DATA], names)
    return MISSING


class Mock:
    """A function put in another's place."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Value]) -> None:
        self.call = call


def as_mock(function: Callable[..., Value], place: Location) -> Callable[..., Value]:
    """Returns a built-in as functions are called: with the state, and its own place."""

    def called(state: State, *args: Value) -> Value:
        return function(state, place, *args)

    return called


def call(state: State, name: Any, function: Callable[..., Value], *args: Value) -> Value:
    """Calls a function that some modifier of the program replaces."""
    mocks = state[MOCKS]
    if mocks is None:
        return function(state, *args)
    mock = mocks.get(name, MISSING)
    if mock is MISSING:
        return function(state, *args)
    if type(mock) is Mock:
        inner = replace(state, (), (), ())
        inner[MOCKS] = None
        return mock.call(inner, *args)
    return mock


# --- text --------------------------------------------------------------------------------------


def print_values(state: State, operands: Sequence[list[Value]], place: Location) -> None:
    """Runs ``print``: one line for each combination of its operands' values."""
    sink = state[CONTEXT].print_
    if sink is None:
        return
    lines: list[list[str]] = [[]]
    for values in operands:
        texts = [printed_text(value) for value in values] or ["<undefined>"]
        state[CONTEXT].charge(len(lines) * len(texts))
        lines = [[*line, text] for line in lines for text in texts]
    for line in lines:
        size = sum(map(len, line))
        if size > MAX_CHARACTERS:
            raise text_too_large()
        state[CONTEXT].charge(size // 8)
        sink(place, " ".join(line))


def template(parts: Sequence[Any], place: Location) -> str:
    """Returns a template string: each part text, or the list of values of its expression."""
    out = []
    size = 0
    for part in parts:
        if size > MAX_CHARACTERS:
            raise text_too_large()
        if type(part) is str:
            out.append(part)
        elif not part:
            out.append("<undefined>")
        elif len(part) > 1:
            raise EvaluationError(
                "eval_conflict_error",
                "template-strings must not produce multiple outputs",
                place,
            )
        else:
            out.append(printed_text(part[0]))
        size += len(out[-1])
    return "".join(out)


def too_large() -> None:
    """End an evaluation that makes too large a collection."""
    raise EvaluationError("eval_cancel_error", "evaluation made too large a collection")


def too_long(state: State, text: str) -> str:
    """Charges for a long text; raises an error above the size limit."""
    if len(text) > MAX_CHARACTERS:
        raise text_too_large()
    state[CONTEXT].charge(len(text) // 8)
    return text
