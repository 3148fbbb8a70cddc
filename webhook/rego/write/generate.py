"""Stage 12: the program's source, compiled, and the names it runs with."""

from __future__ import annotations

import marshal
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.errors import GENERATED, BuiltinError
from webhook.rego.location import NOWHERE, Location
from webhook.rego.run import memo as kept
from webhook.rego.run import metered, packages, runtime
from webhook.rego.run.numbers import Numeral
from webhook.rego.run.patterns import pattern
from webhook.rego.run.text import argument_text
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, equal, lazy_set, make_object
from webhook.rego.write.payment import sources
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.run.values import Value
    from webhook.rego.write.unit import Unit


def _set_of(items: dict[Any, Value]) -> RegoSet:
    return RegoSet._of(items)  # noqa: SLF001  # generated code has made the keys


def _undefined(_state: runtime.State) -> Value:
    return UNDEFINED


NAMESPACE: Final[dict[str, Any]] = {
    "__builtins__": {
        name: getattr(__import__("builtins"), name)
        for name in (
            "type",
            "len",
            "dict",
            "list",
            "str",
            "int",
            "bool",
            "float",
            "enumerate",
            "AttributeError",
            "frozenset",
            "isinstance",
        )
    },
    "COUNTABLE": frozenset((list, dict, str, RegoSet, RegoObject)),
    "U": UNDEFINED,
    "ONCE": (None,),
    "E": {},
    "RegoSet": RegoSet,
    "RegoObject": RegoObject,
    "Numeral": Numeral,
    "BuiltinError": BuiltinError,
    "Branch": runtime.Branch,
    "DataNode": packages.DataNode,
    "Groups": kept.Groups,
    "Mock": runtime.Mock,
    "COMPLETE": runtime.COMPLETE,
    "FUNCTION": runtime.FUNCTION,
    "set_children": packages.set_children,
    "agreed": runtime.agreed,
    "as_mock": runtime.as_mock,
    "build": make_object,
    "call": runtime.call,
    "entry": runtime.entry,
    "equal": equal,
    "explore": packages.explore,
    "extent": packages.extent,
    "failed": runtime.failed,
    "finish": runtime.finish,
    "join1": metered.join1,
    "join2": metered.join2,
    "join3": metered.join3,
    "made": metered.made,
    "index": runtime.index,
    "index_base": runtime.index_base,
    "is_collection": runtime.is_collection,
    "is_object": runtime.is_object,
    "before": metered.before,
    "member": metered.member,
    "member_at": metered.member_at,
    "member_key": metered.member_key,
    "not_after": metered.not_after,
    "once": kept.once,
    "once_unless_replaced": kept.once_unless_replaced,
    "pairs": runtime.pairs,
    "pairs_in_order": runtime.pairs_in_order,
    "path": runtime.path,
    "pattern": pattern,
    "print_values": runtime.print_values,
    "put": runtime.put,
    "put_path": runtime.put_path,
    "replace": runtime.replace,
    "kept": kept.kept,
    "lazy_set": lazy_set,
    "same": metered.same,
    "shared": kept.shared,
    "set_of": _set_of,
    "size": runtime.size,
    "template": runtime.template,
    "text": argument_text,
    "too_large": runtime.too_large,
    "too_long": runtime.too_long,
    "undefined": _undefined,
    "values": runtime.values,
    "values_in_order": runtime.values_in_order,
}
"""The names available to generated code, besides its own definitions."""


DEEP: Final = 100
"""Levels from which on CPython's parser may say that memory lacks where it has no place left for
more: it does at about two hundred brackets and blocks in each other."""


ENTRY: Final = "q"
"""The name of the generated entry function; several in one program are numbered."""


def parts_of(unit: Unit) -> list[str]:
    """Returns the source text in parts: the header, each function, and the definitions after them.

    CPython's compiler blocks all other threads while it runs, so it compiles one part at a time.
    """
    functions = sources(unit.functions, unit.payments, modifies=unit.modifies)
    ends = [*unit.ends, *unit.data_nodes, *unit.child_links]
    parts = ["\n".join(unit.header), *functions, "\n".join(ends)]
    return [f"{part}\n" for part in parts if part]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Generated code, ready to run."""

    function: Callable[[runtime.State], Value]
    """The function that computes the requested document."""
    slots: int
    """Documents of an evaluation's state."""
    of_constraint: tuple[tuple[int, Callable[[runtime.State], Value]], ...]
    """Slots of documents that depend only on a constraint's parameters, with the function of
    each."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Compiled source and the names that it uses; all fields can be written to a file."""

    codes: tuple[CodeType, ...]
    used: dict[str, str]
    slow: dict[str, str]
    places: list[tuple[str, int, int]]
    slots: int
    of_constraint: list[tuple[int, str]]

    @property
    def size(self) -> int:
        """Approximate bytes in memory: twice the size by marshal and the size of the namespace.

        Measured over the templates of the public library.
        """
        return 2 * (len(marshal.dumps(self.codes)) + sys.getsizeof(NAMESPACE))

    def load(self, builtins: Mapping[str, Builtin]) -> Loaded:
        """Runs the definitions of one document."""
        return self.load_all(builtins, [ENTRY])[0]

    def load_all(self, builtins: Mapping[str, Builtin], entries: Sequence[str]) -> list[Loaded]:
        """Runs the shared definitions of documents; ``entries`` names a function for each."""
        names = dict(NAMESPACE)
        names["L"] = [Location(*place) for place in self.places]
        for name, alias in self.used.items():
            names[alias] = builtins[name].function
        for name, alias in self.slow.items():
            builtin = builtins[name]
            names[alias] = runtime.slow(builtin.function, name, context=builtin.context)
        for code in self.codes:
            exec(code, names)  # noqa: S102  # only names made by the compiler and constants
        of_constraint = tuple([(slot, names[name]) for slot, name in self.of_constraint])
        return [Loaded(names[entry], self.slots, of_constraint) for entry in entries]


def compile_parts(parts: Sequence[str]) -> tuple[CodeType, ...]:
    """CPython's own compiler, which raises SyntaxError, RecursionError and MemoryError."""
    return tuple(compile(part, GENERATED, "exec", dont_inherit=True, optimize=2) for part in parts)


_UNITS_MAX: Final = 8
"""The most code units, of two bytes each, that one entry of a line table covers."""

_NO_COLUMNS: Final = 0x80 | 13 << 3
"""The first byte of an entry with a line and no columns (CPython's Objects/locations.md), to which
the number of its units less one is added."""


def _on_one_line(code: CodeType) -> CodeType:
    """Returns the code with its first line for all of it: lines take an eighth of a template's memory.

    Nobody could look the lines up, since the generated source is not kept. The table covers every
    instruction, because Python cannot print a traceback through code without one.
    """
    constants = tuple(
        _on_one_line(value) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    whole, rest = divmod(len(code.co_code) // 2, _UNITS_MAX)
    table = bytes((_NO_COLUMNS | _UNITS_MAX - 1, 0)) * whole
    if rest:
        table += bytes((_NO_COLUMNS | rest - 1, 0))
    return code.replace(co_consts=constants, co_linetable=table)


def _nesting(source: str) -> int:
    """How deep brackets and blocks stand in each other at most; brackets in texts count, too."""
    deepest = 0
    for line in source.splitlines():
        depth = (len(line) - len(line.lstrip(" "))) // 4  # blanks a block
        for letter in line:
            if letter in "([{":
                depth += 1
                deepest = max(deepest, depth)
            elif letter in ")]}":
                depth -= 1
    return deepest


def generate(
    unit: Unit, compile_: Callable[[Sequence[str]], tuple[CodeType, ...]] = compile_parts
) -> Generated:
    """Compiles the unit's source.

    Raises :class:`RegoErrors` beyond CPython's own bounds, and MemoryError.
    """
    parts: Sequence[str] = ()
    try:
        parts = parts_of(unit)
        codes = tuple(map(_on_one_line, compile_(parts)))
    except (SyntaxError, RecursionError, MemoryError) as error:
        # CPython's own bounds on nesting, where ours are wider; anything else is a bug of ours.
        if isinstance(error, SyntaxError) and "too many" not in str(error):
            raise
        if isinstance(error, MemoryError) and all(_nesting(part) < DEEP for part in parts):
            raise  # it is memory that lacks
        raise unit.refuse("policy is nested too deeply", NOWHERE) from None
    places = [place.position() for place in unit.places]
    return Generated(
        codes,
        unit.used_builtins,
        unit.slow_builtins,
        places,
        unit.slots,
        unit.of_constraint,
    )
