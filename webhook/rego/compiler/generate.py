"""Stage 5: the program's source, compiled, and the names it runs with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego import runtime
from webhook.rego.errors import BuiltinError
from webhook.rego.numbers import Numeral
from webhook.rego.values import UNDEFINED, RegoObject, RegoSet, equal, key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.compiler.unit import Unit
    from webhook.rego.values import Value


def _set_of(items: dict[Any, Value]) -> RegoSet:
    return RegoSet._of(items)  # noqa: SLF001  # generated code has made the keys


def _build(state: runtime.State, items: tuple[tuple[Value, Value], ...], place: int) -> Value:
    entries: dict[Any, Any] = {}
    for name, value in items:
        runtime.put(state, entries, name, value, runtime.KEYS, place)
    return runtime.finish(entries)


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
            "TypeError",
            "tuple",
        )
    },
    "U": UNDEFINED,
    "N": runtime.MISSING,
    "E": {},
    "RegoSet": RegoSet,
    "RegoObject": RegoObject,
    "Numeral": Numeral,
    "BuiltinError": BuiltinError,
    "Branch": runtime.Branch,
    "Branching": runtime.Branching,
    "Mock": runtime.Mock,
    "COMPLETE": runtime.COMPLETE,
    "FUNCTION": runtime.FUNCTION,
    "KEYS": runtime.KEYS,
    "adopt": runtime.adopt,
    "build": _build,
    "call": runtime.call,
    "equal": equal,
    "explore": runtime.explore,
    "extent": runtime.extent,
    "finish": runtime.finish,
    "index": runtime.index,
    "index_base": runtime.index_base,
    "is_collection": runtime.is_collection,
    "is_object": runtime.is_object,
    "key": key,
    "less": runtime.less,
    "less_equal": runtime.less_equal,
    "member": runtime.member,
    "member_at": runtime.member_at,
    "pairs": runtime.pairs,
    "path": runtime.path,
    "print_values": runtime.print_values,
    "put": runtime.put,
    "put_path": runtime.put_path,
    "replace": runtime.replace,
    "replaced": runtime.replaced,
    "set_of": _set_of,
    "size": runtime.size,
    "template": runtime.template,
    "undefined": _undefined,
    "values": runtime.values,
}
"""What generated code may name, besides what it defines."""


def source_of(unit: Unit) -> str:
    """The program's source text."""
    return "\n".join([*unit.header, *unit.lines, *unit.branchings, *unit.adoptions, ""])


def load(source: str, used: Mapping[str, str], builtins: Mapping[str, Builtin]) -> dict[str, Any]:
    """Compile and run the source; returns its names."""
    code = compile(source, "<rego>", "exec", dont_inherit=True, optimize=2)
    return run(code, used, builtins)


def run(code: Any, used: Mapping[str, str], builtins: Mapping[str, Builtin]) -> dict[str, Any]:
    """Run compiled source with the built-ins that it names."""
    names = dict(NAMESPACE)
    context_of = {alias: builtins[name] for name, alias in used.items()}
    for alias, builtin in context_of.items():
        names[alias] = builtin.function
    names["as_function"] = _as_function(builtins)
    exec(code, names)  # noqa: S102  # only names made by the compiler and constants are in it
    return names


def _as_function(builtins: Mapping[str, Builtin]) -> Callable[..., Callable[..., Value]]:
    """How a built-in is called where a function of a state is wanted."""

    def make(function: Callable[..., Value], name: str, place: int = 0) -> Callable[..., Value]:
        context = builtins[name].context

        def called(state: runtime.State, *args: Value) -> Value:
            try:
                return function(state.context, *args) if context else function(*args)
            except BuiltinError as error:
                return state.fail(name, error, place)

        return called

    return make
