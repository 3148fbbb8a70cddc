"""Built-ins that are written inline: the usual kinds of operands at once, the rest called.

Each entry writes the whole call, or returns False where the general form is
needed. A *slow* call stands in an expression where its operands have unusual
kinds: it is undefined, or ends a strict evaluation, as the built-in decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError
from webhook.rego.run.metered import JOINED_MAX, WORK_STEPS
from webhook.rego.run.patterns import pattern
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.sprintf import simple_format
from webhook.rego.run.text import argument_text
from webhook.rego.run.values import RegoSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.write.call_writer import CallWriter

    Operands = list[tuple[str, str]]

MAX_INLINE_TEXTS: Final = 4
"""Texts that one program joins in place, which saves a tenth of a microsecond each time. Most
policies have no more; one that has many takes CPython 50 µs longer to compile for each."""

MAX_AFFIXES: Final = 256
"""Prefixes or suffixes tried without paying for them: some 10 µs."""


def _operands(writer: CallWriter, lit: ir.Call, *, literals: bool = False) -> Operands:
    """The operands by name; strings by themselves, and other literals where they may stand."""
    found = []
    for source, kind in writer.arguments(lit.args):
        name = writer.name_of(source)
        if (
            not literals
            and kind in ("i", "b", "n")
            and writer.value_of((source, kind)) is not MISSING
        ):
            name = writer.assign(
                name
            )  # CPython complains of 1.get and 1[0], even where not reached
        found.append((name, kind))
    return found


def _slow(writer: CallWriter, lit: ir.Call, operands: Operands) -> str:
    assert isinstance(lit.name, str)
    writer.may_complain()
    name = writer.unit.slow(lit.name)
    given = "".join(f", {source}" for source, _ in operands)
    return f"{name}({writer.state}, {writer.unit.place(lit.location)}{given})"


def _are(operands: Operands, kind: str, python: str) -> str:
    """A test that operands not known to be of a kind are; empty where all are known."""
    tests = [f"type({source}) is {python}" for source, known in operands if known != kind]
    return " and ".join(dict.fromkeys(tests))


def _boolean(form: str) -> Callable[[CallWriter, ir.Call], bool]:
    """A test of two strings."""

    def write(writer: CallWriter, lit: ir.Call) -> bool:
        operands = _operands(writer, lit)
        fast = form.format(*(source for source, _ in operands))
        guard = _are(operands, "s", "str")
        if not guard:
            writer.truth(lit, fast)
        elif lit.out is None:
            slow = _slow(writer, lit, operands)
            writer.condition(f"({fast} if {guard} else {slow} is True)")
            for source, _ in operands:
                writer.narrow(source, "s")
        else:
            slow = _slow(writer, lit, operands)
            writer.match(lit.out, (writer.defined(f"({fast} if {guard} else {slow})"), "b"))
        return True

    return write


def _guarded(form: str, kind: str, python: str, result: str) -> Callable[..., bool]:
    """A value made of operands of one kind."""

    def write(writer: CallWriter, lit: ir.Call, operands: Operands | None = None) -> bool:
        if operands is None:
            operands = _operands(writer, lit, literals=kind == "i")
        fast = form.format(*(source for source, _ in operands))
        guard = _are(operands, kind, python)
        if not guard:
            writer.give(lit, (f"({fast})", result))
        else:
            slow = _slow(writer, lit, operands)
            found = writer.defined(f"({fast} if {guard} else {slow})")
            # Other kinds of operands may have other kinds of results.
            writer.give(lit, (found, result if result == "s" else ""))
        return True

    return write


def _kind_test(form: str, shown: str = "") -> Callable[[CallWriter, ir.Call], bool]:
    def write(writer: CallWriter, lit: ir.Call) -> bool:
        ((source, kind),) = _operands(writer, lit)
        if shown and kind == shown:
            writer.truth(lit, "True")
            return True
        writer.truth(lit, form.format(source))
        if shown and lit.out is None:
            writer.narrow(source, shown)
        return True

    return write


def _count(writer: CallWriter, lit: ir.Call) -> bool:
    operands = _operands(writer, lit)
    ((source, kind),) = operands
    at = ("count", source)
    if at not in writer.known:
        if kind in ("s", "l", "d", "S"):
            found = writer.assign(f"len({source})")
        else:
            slow = _slow(writer, lit, operands)
            found = writer.defined(f"(len({source}) if type({source}) in COUNTABLE else {slow})")
        writer.known[at] = found, "i"
    writer.give(lit, writer.known[at])
    return True


def _substring(writer: CallWriter, lit: ir.Call) -> bool:
    """A part of a constant length, or the rest."""
    length = lit.args[2]
    if not isinstance(length, ir.Const) or type(length.value) is not int:
        return False
    if writer.static(lit.args[0]) is not MISSING:
        return False
    operands = _operands(writer, lit, literals=True)
    (source, kind), (start, start_kind), _ = operands
    end = f"{start} + {length.value}" if length.value >= 0 else ""
    tests = [f"{start} >= 0"]
    if start_kind != "i":
        tests.insert(0, f"type({start}) is int")
    if kind != "s":
        tests.insert(0, f"type({source}) is str")
    slow = _slow(writer, lit, operands)
    fast = f"{source}[{start}:{end}]"
    writer.give(lit, (writer.defined(f"({fast} if {' and '.join(tests)} else {slow})"), "s"))
    return True


def _replace(writer: CallWriter, lit: ir.Call) -> bool:
    """Short texts, with constants for what is sought and put."""
    old, new = lit.args[1:]
    for term in (old, new):
        if not isinstance(term, ir.Const) or type(term.value) is not str or len(term.value) > 64:
            return False
    operands = _operands(writer, lit)
    (source, kind), (x, _), (y, _) = operands
    guard = f"len({source}) < 4096"
    if kind != "s":
        guard = f"type({source}) is str and {guard}"
    slow = _slow(writer, lit, operands)
    found = writer.defined(f"({source}.replace({x}, {y}) if {guard} else {slow})")
    writer.give(lit, (found, "s"))
    return True


def _regex_match(writer: CallWriter, lit: ir.Call) -> bool:
    """A constant pattern is compiled once."""
    text = writer.static(lit.args[0])
    if type(text) is not str:
        return False
    try:
        pattern(text)
    except BuiltinError:
        return False
    search = writer.unit.pattern(text)
    operands = _operands(writer, lit)
    source, kind = operands[1]
    guard = f"len({source}) < 256"
    if kind != "s":
        guard = f"type({source}) is str and {guard}"
    slow = _slow(writer, lit, operands)
    if lit.out is None:
        writer.condition(f"({search}({source}) if {guard} else {slow} is True)")
        writer.narrow(source, "s")
    else:
        found = writer.defined(f"({search}({source}) if {guard} else {slow})")
        writer.match(lit.out, (found, "b"))
    return True


def _minus(writer: CallWriter, lit: ir.Call) -> bool:
    operands = _operands(writer, lit, literals=True)
    (a, kind), (b, other) = operands
    if kind == "S" and other == "S":
        writer.give(lit, (writer.assign(f"{a}.difference({b})"), "S"))
        return True
    return _guarded("{0} - {1}", "i", "int", "i")(writer, lit, operands)


def _object_get(writer: CallWriter, lit: ir.Call) -> bool:
    operands = _operands(writer, lit)
    (source, kind), (name, name_kind), (default, _) = operands
    tests = []
    if kind != "d":
        tests.append(f"type({source}) is dict")
    if name_kind == "":
        tests.append(f"type({name}) is str")
    elif name_kind != "s":
        return False
    fast = f"{source}.get({name}, {default})"
    if not tests:
        writer.give(lit, (writer.assign(fast), ""))
        return True
    slow = _slow(writer, lit, operands)
    writer.give(lit, (writer.defined(f"({fast} if {' and '.join(tests)} else {slow})"), ""))
    return True


def _sprintf(writer: CallWriter, lit: ir.Call) -> bool:
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
    if "d" in verbs or len(verbs) < len(values.items) or len(pieces) != len(verbs) + 1:
        return False
    missing = len(verbs) - len(values.items)
    if missing:  # Go says so in the text
        verbs, absent = verbs[:-missing], verbs[-missing:]
        tail = pieces[-missing:]
        pieces = pieces[:-missing]
        for verb, piece in zip(absent, tail, strict=True):
            pieces[-1] += f"%!{verb}(MISSING){piece}"
    operands = [(writer.name_of(source), kind) for source, kind in writer.arguments(values.items)]
    text = _Text([pieces[0]], [])
    strings = []
    for piece, verb, (source, kind) in zip(pieces[1:], verbs, operands, strict=True):
        known = writer.value_of((source, kind))
        if known is not MISSING and (verb == "v" or type(known) is str):
            text.parts[-1] += argument_text(known) + piece
            continue
        text.parts.append(piece)
        text.shown.append((source, "s" if verb == "s" else kind))
        if verb == "s" and kind != "s":
            strings.append((source, kind))
    guard = _are(strings, "s", "str")
    given = ", ".join(source for source, _ in operands)
    whole: Operands = [(repr(template.value), "s"), (f"[{given}]", "l")]
    slow = _slow(writer, lit, whole) if guard else ""
    writer.give(lit, (_joined(writer, text, guard, slow), "s"))
    return True


@dataclass(frozen=True, slots=True)
class _Text:
    """Constant parts of a text, and what is shown between them."""

    parts: list[str]
    shown: Operands


def _joined(writer: CallWriter, text: _Text, guard: str, slow: str) -> str:
    """A local with the text; ``slow`` makes it where ``guard``, unless empty, does not hold."""
    writer.unit.texts += 1
    inline = len(text.shown) > JOINED_MAX or writer.unit.texts <= MAX_INLINE_TEXTS
    source = _inline(writer, text) if inline else _by_call(writer, text)
    guarded = f"({source} if {guard} else {slow})"
    found = writer.defined(guarded) if guard else writer.assign(source)
    if inline:
        writer.made(found)
    else:
        writer.spend(WORK_STEPS)
    return found


def _inline(writer: CallWriter, text: _Text) -> str:
    """The fastest way, and the one that takes CPython longest to compile."""
    parts = [repr(text.parts[0])]
    for (source, kind), part in zip(text.shown, text.parts[1:], strict=True):
        # Only a name may stand in an f-string: a constant would end it with its own quotes.
        name = source if source.isidentifier() else writer.assign(source)
        shown = name if kind == "s" else f"{name} if type({name}) is str else text({name})"
        parts += [f"f'{{{shown}}}'", repr(part)]
    return f"({' '.join(part for part in parts if part != repr('')) or repr('')})"


def _by_call(writer: CallWriter, text: _Text) -> str:
    """A call that pays for the text that it makes."""
    if not text.shown:
        return repr(text.parts[0])
    pairs = zip(text.shown, text.parts[1:], strict=True)
    given = "".join(f", {source}, {part!r}" for (source, _), part in pairs)
    return f"join{len(text.shown)}({writer.state}, {text.parts[0]!r}{given})"


def _any_affix(method: str) -> Callable[[CallWriter, ir.Call], bool]:
    """One string against a known list of strings."""

    def write(writer: CallWriter, lit: ir.Call) -> bool:
        affixes = writer.static(lit.args[1])
        if not isinstance(affixes, list | RegoSet) or len(affixes) > MAX_AFFIXES:
            return False
        if not all(type(affix) is str for affix in affixes):
            return False
        operands = _operands(writer, lit)
        source, kind = operands[0]
        fast = f"({source}).{method}({writer.unit.constant(tuple(affixes))})"
        if kind == "s":
            writer.truth(lit, fast)
            return True
        slow = _slow(writer, lit, operands)
        if lit.out is None:
            # The value may be a collection of strings as well.
            writer.condition(f"({fast} if type({source}) is str else {slow} is True)")
        else:
            test = f"({fast} if type({source}) is str else {slow})"
            writer.match(lit.out, (writer.defined(test), "b"))
        return True

    return write


def _member(writer: CallWriter, lit: ir.Call) -> bool:
    """Membership in a constant collection of strings, or the general one."""
    (item, _), (collection, kind) = writer.arguments(lit.args)
    members = writer.value_of((collection, kind))
    if isinstance(members, list | RegoSet):
        strings = all(type(member) is str for member in members)
        if strings and members:
            name = writer.unit.strings(sorted(set(members)))
            item = writer.name_of(item)
            writer.truth(lit, f"type({item}) is str and {item} in {name}")
            return True
    writer.truth(lit, f"member({writer.state}, {item}, {collection})")
    return True


INLINE: Final[dict[str, Callable[[Any, ir.Call], bool]]] = {
    "startswith": _boolean("({0}).startswith({1})"),
    "endswith": _boolean("({0}).endswith({1})"),
    "contains": _boolean("{1} in {0}"),
    "trim_prefix": _guarded("({0}).removeprefix({1})", "s", "str", "s"),
    "trim_suffix": _guarded("({0}).removesuffix({1})", "s", "str", "s"),
    "plus": _guarded("{0} + {1}", "i", "int", "i"),
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
    "is_string": _kind_test("type({0}) is str", "s"),
    "is_boolean": _kind_test("type({0}) is bool", "b"),
    "is_null": _kind_test("{0} is None"),
    "is_array": _kind_test("type({0}) is list", "l"),
    "is_set": _kind_test("type({0}) is RegoSet", "S"),
    "is_object": _kind_test("(type({0}) is dict or type({0}) is RegoObject)"),
    "is_number": _kind_test("(type({0}) is int or isinstance({0}, float))"),
}
"""By name: writes the call and returns True, or False where it cannot."""
