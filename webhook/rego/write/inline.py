"""Stage 9: built-ins that are written inline for the usual kinds of operands.

The built-in is called for other kinds.

Each form writes the whole call, or returns False if the general call is needed. A *slow* call
stands in an expression where its operands have unusual kinds: it is undefined, or ends a strict
evaluation, as the built-in decides.

A form declares the kinds that a true outcome proves beside the test that proves them:
:func:`~webhook.rego.write.expression.is_of`, or ``proving`` where a built-in takes no other kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.golang.format import simple_format
from webhook.golang.strings import quote
from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError
from webhook.rego.run.metered import JOINED_MAX, WORK_STEPS
from webhook.rego.run.patterns import pattern
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.text import argument_text
from webhook.rego.run.values import RegoSet
from webhook.rego.write.expression import (
    TRUE,
    Expression,
    Kind,
    all_of,
    any_of,
    call,
    compare,
    conditional,
    is_of,
    list_of,
    method,
    part,
    scalar,
    sum_of,
    text_of,
)
from webhook.rego.write.facts import CountOf
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from webhook.rego.write.function import FunctionBuilder

    Form: TypeAlias = Callable[[FunctionBuilder, ir.Call], bool]

MAX_INLINE_TEXTS: Final = 4
"""The most texts that one program joins in place, which saves 0.1 µs each time. Most policies have
no more; in a policy with many, each takes CPython 50 µs longer to compile.
"""

MAX_BITS: Final = 64
"""Of an integer that is written in digits at once."""

MAX_AFFIXES: Final = 256
"""Prefixes or suffixes tried without paying for them: some 10 µs."""

MAX_REPLACED: Final = 4096
"""Characters in which a text is replaced without paying for it."""

MAX_SEARCHED: Final = 256
"""Characters in which a pattern is sought likewise."""


# --- parts of forms -------------------------------------------------------------------------------


def _operands(
    function: FunctionBuilder, lit: ir.Call, *, literals: bool = False
) -> list[Expression]:
    """The operands by name; strings by themselves, and other literals where they may stand."""
    operands = []
    for value in function.terms.arguments(lit.args):
        simple = function.simple(value)
        if not literals and value.is_known and simple.kind in (Kind.INT, Kind.BOOL, Kind.NULL):
            # CPython complains of 1.get and 1[0], even where not reached.
            simple = function.assign(simple)
        operands.append(simple)
    return operands


def _slow(function: FunctionBuilder, lit: ir.Call, operands: Sequence[Expression]) -> Expression:
    """The built-in itself, called where operands have unusual kinds."""
    assert isinstance(lit.name, str)
    function.may_complain()
    unit = function.unit
    return call(unit.slow(lit.name), function.state, unit.place(lit.location), *operands)


def _are(operands: Sequence[Expression], kind: Kind) -> list[Expression]:
    """Tests that operands not known to be of a kind are; none where all are known."""
    tests: dict[str, Expression] = {}
    for operand in operands:
        if operand.kind is not kind:
            test = is_of(operand, kind)
            tests.setdefault(test.source, test)
    return list(tests.values())


def _give_test(
    function: FunctionBuilder,
    lit: ir.Call,
    fast: Expression,
    tests: Sequence[Expression],
    slow: Expression | None,
    takes: Sequence[Expression],
) -> None:
    """A test that holds as ``fast`` says where all ``tests`` hold, else as ``slow`` does.

    ``takes`` are operands for which the built-in takes strings alone, so that it is undefined
    unless they are.
    """
    if slow is None:
        function.patterns.truth(lit.out, fast)
    elif lit.out is None:
        test = conditional(fast, all_of(tests), compare(slow, "is", "True"))
        function.condition(test.proving(*((operand, Kind.STRING) for operand in takes)))
    else:
        result = function.defined(conditional(fast, all_of(tests), slow))
        function.patterns.match(lit.out, result.of_kind(Kind.BOOL))


# --- tests -----------------------------------------------------------------------------------------


def _of_strings(write: Callable[[Expression, Expression], Expression]) -> Form:
    """A test of two strings, which its built-in must be."""

    def form(function: FunctionBuilder, lit: ir.Call) -> bool:
        a, b = operands = _operands(function, lit)
        tests = _are(operands, Kind.STRING)
        slow = _slow(function, lit, operands) if tests else None
        _give_test(function, lit, write(a, b), tests, slow, operands)
        return True

    return form


def _kind_test(test: Callable[[Expression], Expression], kind: Kind = Kind.ANY) -> Form:
    """Whether a value is of a kind, which may be known."""

    def form(function: FunctionBuilder, lit: ir.Call) -> bool:
        (value,) = _operands(function, lit)
        known = kind is not Kind.ANY and value.kind is kind
        function.patterns.truth(lit.out, TRUE if known else test(value))
        return True

    return form


def _is(kind: Kind) -> Form:
    return _kind_test(lambda value: is_of(value, kind), kind)


def _is_type(value: Expression, python: str) -> Expression:
    """Tests for one of the Python types of a kind, which proves no kind."""
    return compare(call("type", value), "is", python)


def _is_object(value: Expression) -> Expression:
    return any_of([_is_type(value, "dict"), _is_type(value, "RegoObject")])


def _is_number(value: Expression) -> Expression:
    return any_of([_is_type(value, "int"), call("isinstance", value, "float", kind=Kind.BOOL)])


def _regex_match(function: FunctionBuilder, lit: ir.Call) -> bool:
    """A constant pattern is compiled once."""
    text = function.terms.static(lit.args[0])
    if type(text) is not str:
        return False
    try:
        if pattern(text).instructions:
            return False  # the built-in charges these instructions
    except BuiltinError:
        return False
    search = function.unit.pattern(text)
    operands = _operands(function, lit)
    value = operands[1]
    tests = [*_are([value], Kind.STRING), compare(call("len", value), "<", str(MAX_SEARCHED))]
    slow = _slow(function, lit, operands)
    _give_test(function, lit, call(search, value, kind=Kind.BOOL), tests, slow, [value])
    return True


def _any_affix(called: str) -> Form:
    """Returns a form that tests one string against a known list of strings."""

    def form(function: FunctionBuilder, lit: ir.Call) -> bool:
        affixes = function.terms.static(lit.args[1])
        if not isinstance(affixes, list | RegoSet) or len(affixes) > MAX_AFFIXES:
            return False
        if not all(type(affix) is str for affix in affixes):
            return False
        operands = _operands(function, lit)
        value = operands[0]
        fast = method(value, called, function.unit.constant(tuple(affixes)), kind=Kind.BOOL)
        tests = _are([value], Kind.STRING)
        slow = _slow(function, lit, operands) if tests else None
        # The value may be a collection of strings as well.
        _give_test(function, lit, fast, tests, slow, ())
        return True

    return form


def _member(function: FunctionBuilder, lit: ir.Call) -> bool:
    """Writes membership in a constant collection of strings, or the general call."""
    sought, collection = function.terms.arguments(lit.args)
    members = collection.value
    if isinstance(members, list | RegoSet):
        strings = all(type(member) is str for member in members)
        if strings and members:
            known = function.unit.strings(sorted(set(members)))
            sought = function.simple(sought)
            tests = [_is_type(sought, "str"), compare(sought, "in", known)]
            function.patterns.truth(lit.out, all_of(tests).of_kind(Kind.BOOL))
            return True
    test = call("member", function.state, sought, collection, kind=Kind.BOOL)
    function.patterns.truth(lit.out, test)
    return True


# --- values ----------------------------------------------------------------------------------------


def _guarded(
    write: Callable[[Expression, Expression], Expression], kind: Kind, *, always: Kind = Kind.ANY
) -> Form:
    """Returns a form for two operands of one kind; ``always`` is the kind of every result."""

    def form(function: FunctionBuilder, lit: ir.Call) -> bool:
        a, b = _operands(function, lit, literals=kind is Kind.INT)
        _give_guarded(function, lit, (a, b), write(a, b), kind, always)
        return True

    return form


def _give_guarded(
    function: FunctionBuilder,
    lit: ir.Call,
    operands: Sequence[Expression],
    fast: Expression,
    kind: Kind,
    always: Kind,
) -> None:
    tests = _are(operands, kind)
    if tests:
        slow = _slow(function, lit, operands)
        fast = function.defined(conditional(fast, all_of(tests), slow)).of_kind(always)
    function.patterns.give(lit.out, fast)


def _minus(function: FunctionBuilder, lit: ir.Call) -> bool:
    a, b = _operands(function, lit, literals=True)
    if a.kind is Kind.SET and b.kind is Kind.SET:
        function.patterns.give(lit.out, function.assign(method(a, "difference", b, kind=Kind.SET)))
    else:
        fast = sum_of(a, "-", b, Kind.INT)
        _give_guarded(function, lit, (a, b), fast, Kind.INT, Kind.ANY)
    return True


def _count(function: FunctionBuilder, lit: ir.Call) -> bool:
    operands = _operands(function, lit)
    (value,) = operands
    at = CountOf(value.source)
    result = function.known.get(at)
    if result is None:
        length = call("len", value, kind=Kind.INT)
        if value.kind in (Kind.STRING, Kind.LIST, Kind.DICT, Kind.SET):
            result = function.assign(length)
        else:
            slow = _slow(function, lit, operands).of_kind(Kind.INT)
            countable = compare(call("type", value), "in", "COUNTABLE")
            result = function.defined(conditional(length, countable, slow))
        function.known[at] = result
    function.patterns.give(lit.out, result)
    return True


def _substring(function: FunctionBuilder, lit: ir.Call) -> bool:
    """A part of a constant length, or the rest."""
    length = lit.args[2]
    if not isinstance(length, ir.Const) or type(length.value) is not int:
        return False
    if function.terms.static(lit.args[0]) is not MISSING:
        return False
    text, start, _ = operands = _operands(function, lit, literals=True)
    end = sum_of(start, "+", str(length.value), Kind.INT).source if length.value >= 0 else ""
    tests = [*_are([text], Kind.STRING), *_are([start], Kind.INT), compare(start, ">=", "0")]
    slow = _slow(function, lit, operands).of_kind(Kind.STRING)
    result = function.defined(conditional(part(text, start, end), all_of(tests), slow))
    function.patterns.give(lit.out, result)
    return True


def _replace(function: FunctionBuilder, lit: ir.Call) -> bool:
    """Writes ``replace`` for short texts with constants for the old and new parts."""
    for term in lit.args[1:]:
        if not isinstance(term, ir.Const) or type(term.value) is not str or len(term.value) > 64:
            return False
    text, old, new = operands = _operands(function, lit)
    if old.value == "":  # found between bytes, which are no characters
        return False
    tests = [*_are([text], Kind.STRING), compare(call("len", text), "<", str(MAX_REPLACED))]
    slow = _slow(function, lit, operands).of_kind(Kind.STRING)
    fast = method(text, "replace", old, new, kind=Kind.STRING)
    function.patterns.give(lit.out, function.defined(conditional(fast, all_of(tests), slow)))
    return True


def _object_get(function: FunctionBuilder, lit: ir.Call) -> bool:
    of, at, default = operands = _operands(function, lit)
    if at.kind not in (Kind.ANY, Kind.STRING):
        return False
    tests = [*_are([of], Kind.DICT), *_are([at], Kind.STRING)]
    fast = method(of, "get", at, default)
    if not tests:
        function.patterns.give(lit.out, function.assign(fast))
        return True
    slow = _slow(function, lit, operands)
    function.patterns.give(lit.out, function.defined(conditional(fast, all_of(tests), slow)))
    return True


# --- texts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    """Constant parts of a text, and the values between them."""

    parts: list[str]
    shown: list[Expression]


def _sprintf(function: FunctionBuilder, lit: ir.Call) -> bool:
    """A constant template of bare verbs is joined from its parts at once."""
    if len(lit.args) != 2:
        return False
    template, values = lit.args
    if not isinstance(template, ir.Const) or not isinstance(values, ir.Array):
        return False
    if type(template.value) is not str or (simple := simple_format(template.value)) is None:
        return False
    pieces = [piece.replace("%%", "%") for piece in simple[0].split("%s")]
    verbs = simple[1]
    if len(verbs) < len(values.items) or len(pieces) != len(verbs) + 1:
        return False
    if not _CALLED.isdisjoint(verbs) and function.unit.texts >= MAX_INLINE_TEXTS:
        return False
    missing = len(verbs) - len(values.items)
    if missing:  # Go says so in the text
        verbs, absent = verbs[:-missing], verbs[-missing:]
        tail = pieces[-missing:]
        pieces = pieces[:-missing]
        for verb, piece in zip(absent, tail, strict=True):
            pieces[-1] += f"%!{verb}(MISSING){piece}"
    operands = [function.simple(value) for value in function.terms.arguments(values.items)]
    text = _Text([pieces[0]], [])
    tests: dict[str, Expression] = {}
    for piece, verb, value in zip(pieces[1:], verbs, operands, strict=True):
        if value.is_known and (verb == "v" or type(value.value) is _TAKES[verb]):
            shown = quote(value.value) if verb == "q" else argument_text(value.value)
            text.parts[-1] += shown + piece
            continue
        mark = '"' if verb == "q" else ""
        text.parts[-1] += mark
        text.parts.append(mark + piece)
        text.shown.append(value.of_kind(Kind.STRING) if verb != "v" else value)
        tests |= {test.source: test for test in _fits(value, verb)}
    whole = (function.unit.constant(template.value), list_of(operands))
    slow = _slow(function, lit, whole) if tests else None
    function.patterns.give(lit.out, _joined(function, text, [*tests.values()], slow))
    return True


_TAKES: Final = {"v": object, "s": str, "q": str, "d": int}
"""The types that a verb prints as they are, by verb."""

_CALLED: Final = frozenset("dq")
"""Verbs that the built-in formats if no further text may be joined in place."""


def _fits(value: Expression, verb: str) -> list[Expression]:
    """Tests that a value is shown as it is, in quotes for ``%q``; none where anything is."""
    if verb == "v":
        return []
    if verb == "s":
        return _are([value], Kind.STRING)
    if verb == "d":
        return [*_are([value], Kind.INT), compare(method(value, "bit_length"), "<", str(MAX_BITS))]
    marks = [compare(scalar(mark), "not in", value) for mark in ('"', "\\")]
    return [*_are([value], Kind.STRING), method(value, "isprintable", kind=Kind.BOOL), *marks]


def _joined(
    function: FunctionBuilder, text: _Text, tests: Sequence[Expression], slow: Expression | None
) -> Expression:
    """A local with the text; ``slow`` makes it, unless None, where not all tests hold."""
    function.unit.texts += 1
    inline = len(text.shown) > JOINED_MAX or function.unit.texts <= MAX_INLINE_TEXTS
    call = _inline(function, text) if inline else _by_call(function, text)
    if slow is None:
        result = function.assign(call)
    else:
        slow = slow.of_kind(Kind.STRING)
        result = function.defined(conditional(call, all_of(tests), slow))
    if inline:
        function.made(result)
    else:
        function.spend(WORK_STEPS)
    return result


def _inline(function: FunctionBuilder, text: _Text) -> Expression:
    """Writes an f-string: the fastest form, and the form that CPython compiles slowest."""
    parts: list[Expression | str] = [text.parts[0]]
    for value, constant in zip(text.shown, text.parts[1:], strict=True):
        # Only a local may stand in an f-string: a constant would end it with its own quotes.
        local = function.assign(value) if value.is_known else value
        if value.kind is not Kind.STRING:
            shown = call("text", local)
            local = conditional(local, _is_type(local, "str"), shown)
        parts += [local, constant]
    return text_of(parts)


def _by_call(function: FunctionBuilder, text: _Text) -> Expression:
    """A call that pays for the text that it makes."""
    constant = function.unit.constant
    if not text.shown:
        return constant(text.parts[0])
    given: list[Expression] = []
    for value, piece in zip(text.shown, text.parts[1:], strict=True):
        given += [value, constant(piece)]
    join, first = f"join{len(text.shown)}", constant(text.parts[0])
    return call(join, function.state, first, *given, kind=Kind.STRING)


INLINE: Final[dict[str, Form]] = {
    "startswith": _of_strings(lambda a, b: method(a, "startswith", b, kind=Kind.BOOL)),
    "endswith": _of_strings(lambda a, b: method(a, "endswith", b, kind=Kind.BOOL)),
    "contains": _of_strings(lambda a, b: compare(b, "in", a)),
    "trim_prefix": _guarded(
        lambda a, b: method(a, "removeprefix", b, kind=Kind.STRING),
        Kind.STRING,
        always=Kind.STRING,
    ),
    "trim_suffix": _guarded(
        lambda a, b: method(a, "removesuffix", b, kind=Kind.STRING),
        Kind.STRING,
        always=Kind.STRING,
    ),
    "plus": _guarded(lambda a, b: sum_of(a, "+", b, Kind.INT), Kind.INT),
    "minus": _minus,
    "count": _count,
    "object.get": _object_get,
    "regex.match": _regex_match,
    "replace": _replace,
    "substring": _substring,
    "sprintf": _sprintf,
    "internal.member_2": _member,
    "strings.any_prefix_match": _any_affix("startswith"),
    "strings.any_suffix_match": _any_affix("endswith"),
    "is_string": _is(Kind.STRING),
    "is_boolean": _is(Kind.BOOL),
    "is_null": _kind_test(lambda value: compare(value, "is", "None")),
    "is_array": _is(Kind.LIST),
    "is_set": _is(Kind.SET),
    "is_object": _kind_test(_is_object),
    "is_number": _kind_test(_is_number),
}
"""By name: writes the call and returns True, or False where it cannot."""
