"""Every overload with every operand of every kind of JSON, known to nobody before it is run."""

import json
from collections.abc import Iterator
from typing import Final

from tests.differential.cel.grammar import LITERALS, filled, overloads, written
from tests.differential.cel.texts import READ
from webhook.cel.check import types
from webhook.cel.check.types import Type

KINDS: Final = (
    "object.i", "object.d", "object.s", "object.num", "object.t", "object['null']", "object.ints",
    "object.strs", "object.m", "dyn(1u)", "dyn(b'a')", "dyn(duration('1h'))", "dyn(timestamp(0))",
    "dyn(optional.of(1))", "dyn(int)", "dyn(quantity('1'))", "dyn(semver('1.0.0'))", "object.missing",
    "dyn([quantity('1')])",
)  # fmt: skip

_RIGHT: Final = {
    "int": "1", "string": "'ab'", "bool": "true", "double": "1.5", "uint": "1u", "dyn": "1",
}  # fmt: skip


def right(of: Type) -> str:
    """An operand of a type."""
    match of.name:
        case "list":
            return f"[{right(of.parts[0])}]"
        case "map":
            return f"{{{right(of.parts[0])}: {right(of.parts[1])}}}"
        case "optional_type":
            return f"optional.of({right(of.parts[0])})"
        case "type":
            return "int"
    return _RIGHT.get(of.name) or LITERALS[of.name][0]


def calls() -> Iterator[str]:
    """Each overload as it should be, and with each operand in turn of each kind."""
    for name, overload in overloads():
        known = dict.fromkeys(overload.free, types.INT)
        args = [f"dyn({right(filled(one, known))})" for one in overload.args]
        yield written(name, args, member=overload.member)
        for at in range(len(args)):
            for kind in KINDS:
                changed = [*args[:at], kind, *args[at + 1 :]]
                yield written(name, changed, member=overload.member)


MACROS: Final = (
    "all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap",
    "transformMapEntry", "optMap", "optFlatMap", "sortBy", "has", "bind", "greatest", "encode",
)  # fmt: skip
"""Names of macros, and of functions that other environments have."""


def arities() -> Iterator[str]:
    """Each function and macro of none to three operands, and as a member of one."""
    for name in dict.fromkeys([*(name for name, _ in overloads()), *MACROS]):
        if name.isidentifier() or "." in name:
            for count in range(4):
                args = ["object.s"] * count
                yield written(name, args, member=False)
                if name.isidentifier():
                    yield written(name, ["object.s", *args], member=True)


def readings() -> Iterator[str]:
    """Each function that reads a text with each text of its kind, known ahead or not."""
    for name, overload in overloads():
        known = dict.fromkeys(overload.free, types.INT)
        for at, of in enumerate(overload.args):
            for text in READ.get((name, at), ()) if of == types.STRING else ():
                for reading in _reading(text):
                    args = [right(filled(one, known)) for one in overload.args]
                    args[at] = reading
                    call = written(name, args, member=overload.member)
                    yield call
                    yield from _parts(call, overload.result)


def _reading(text: str) -> tuple[str, str]:
    literal = json.dumps(text, ensure_ascii=False)
    return literal, f"({literal} + object.empty)"


def _parts(call: str, of: Type) -> Iterator[str]:
    """Yields the calls without operands on a value of this type."""
    for name, overload in overloads():
        is_part = overload.member and overload.args == (of,) and "." in of.name
        if is_part or (name == "string" and overload.args == (of,)):
            yield written(name, [call], member=overload.member)
