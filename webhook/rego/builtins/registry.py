"""The table of built-ins: name, operand and result types, and the function.

A family module registers with the decorator and says where the behaviour is
documented::

    @builtin("strings.reverse", STRING, result=STRING)
    def strings_reverse(x: str) -> str:
        \"\"\"Reverse by code point (OPA reference, "Strings").\"\"\"
        return x[::-1]

Operands declared as null, boolean, number, string, array, object or set are
checked before the function is entered, and a wrong one is ``operand 1 must be
string but got number``, as in OPA. Operands of a union are the function's own
to check, with :func:`wrong_operand`; so are all of them under ``check=False``,
which hot built-ins use to save a call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NoReturn, Protocol

from webhook.rego.builtins.families import HOMES
from webhook.rego.errors import BuiltinError
from webhook.rego.location import Location
from webhook.rego.run.values import RegoObject, RegoSet, Value, type_name
from webhook.rego.types import ArrayType, FunctionType, ObjectType, Scalar, SetType, Type
from webhook.values import dataclass


class Context(Protocol):
    """The evaluation as built-ins see it; each query has its own."""

    @property
    def now_ns(self) -> int:
        """The time of the query in nanoseconds since 1970, equal for all calls."""

    @property
    def random(self) -> Any:
        """A ``random.Random`` of this query, seeded by the caller or the system."""

    @property
    def cache(self) -> dict[Any, Any]:
        """The query's cache, for results that must not change within it."""

    @property
    def runtime(self) -> dict[str, Value]:
        """The value of ``opa.runtime()``."""

    @property
    def services(self) -> dict[str, Any]:
        """The caller's services, such as ``http`` for http.send."""

    @property
    def print_(self) -> Callable[[Location, str], None] | None:
        """Receives the policy's prints with their locations; None drops them."""

    def charge(self, steps: int) -> None:
        """Charges work before it is done in C; raises ``eval_cancel_error`` when the budget is spent.

        One step is about 50 ns of work: an element visited, a few characters
        copied. A built-in whose work is not linear in a small result charges
        before it works.
        """


@dataclass(frozen=True, slots=True)
class Builtin:
    """A registered built-in.

    ``function`` takes the operands, after a :class:`Context` if ``context``, and returns a value,
    or UNDEFINED if the built-in has no answer (``max([])``). A ``relation`` returns an iterable of
    results, each one a solution (``walk``). ``deterministic`` is false if equal operands may give
    different results in different queries. ``result`` is None for a built-in that is called for its
    effect only (``print``).
    """

    name: str
    operands: tuple[Type, ...]
    result: Type | None
    function: Callable[..., Value]
    context: bool = False
    relation: bool = False
    deterministic: bool = True
    deprecated: bool = False
    variadic: Type | None = None
    infix: str = ""

    @property
    def type(self) -> FunctionType:
        """The declaration for the static checker."""
        return FunctionType(self.operands, self.result, self.variadic)


_registered: dict[str, Builtin] = {}
_older: dict[str, Builtin] = {}
"""The older versions of some built-ins, as in Gatekeeper's OPA, by name."""

_GRAPHQL: Final = "graphql."
"""The prefix of the built-ins that need an extra of the package."""

_NEWER: Final = frozenset(("strings.split_n",))
"""The built-ins that Gatekeeper's OPA does not have."""


class _Table(Mapping[str, Builtin]):
    """Every built-in by name; a look-up imports its family.

    All families together take half of the time that a start of the command line may take, and most
    policies use a few. Look-ups are thread-safe: a family is visible once it is complete.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Builtin] = {}

    def __getitem__(self, name: str) -> Builtin:
        builtin = self._loaded.get(name)
        if builtin is None:
            import_module(HOMES[name])
            builtin = self._loaded[name] = _registered[name]
        return builtin

    def __contains__(self, name: object) -> bool:
        return name in HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


BUILTINS: Final[Mapping[str, Builtin]] = _Table()
"""Every built-in by name."""


def lacking(name: object) -> str:
    """Returns which extra a missing built-in needs; empty if it is not missing."""
    if not isinstance(name, str) or not name.startswith(_GRAPHQL) or find_spec("graphql"):
        return ""
    return f"{name}: graphql-core is not installed, which this needs: install the extra graphql"


class Available(Mapping[str, Builtin]):
    """The built-ins with some added and some removed; each is loaded at its look-up."""

    def __init__(
        self, added: Mapping[str, Builtin], disabled: Collection[str], *, older: bool
    ) -> None:
        """``older`` is whether the built-ins are those of Gatekeeper's OPA."""
        self._added = added
        self._disabled = frozenset(disabled) | (_NEWER.difference(added) if older else frozenset())
        self._is_older = older

    def __getitem__(self, name: str) -> Builtin:
        if name in self._disabled:
            raise KeyError(name)
        if name in self._added:
            return self._added[name]
        builtin = BUILTINS[name]
        return _older.get(name, builtin) if self._is_older else builtin

    def __contains__(self, name: object) -> bool:
        return name not in self._disabled and (name in self._added or name in BUILTINS)

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*BUILTINS, *self._added))
        return iter([name for name in names if name not in self._disabled])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def builtin(  # noqa: PLR0913  # one flag for each property of a declaration
    name: str,
    *operands: Type,
    result: Type | None,
    context: bool = False,
    relation: bool = False,
    deterministic: bool = True,
    deprecated: bool = False,
    variadic: Type | None = None,
    infix: str = "",
    check: bool = True,
    older: bool = False,
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Registers the decorated function, which stays unchanged and can be registered again.

    With ``older`` it is the version in Gatekeeper's OPA.
    """

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        table = _older if older else _registered
        assert name not in table, f"{name} is registered twice"
        assert HOMES.get(name) == function.__module__, f"{name} is not in families.py as of here"
        table[name] = make_builtin(
            name,
            operands,
            result,
            function,
            context=context,
            relation=relation,
            deterministic=deterministic,
            deprecated=deprecated,
            variadic=variadic,
            infix=infix,
            check=check,
        )
        return function

    return register


def make_builtin(  # one flag for each property of a declaration
    name: str,
    operands: Sequence[Type],
    result: Type | None,
    function: Callable[..., Value],
    *,
    check: bool = True,
    **properties: Any,
) -> Builtin:
    """Returns a built-in that is not in the table, such as a caller's own."""
    kinds = tuple(map(_kinds, operands))
    checked = function
    if check and any(kinds):
        wrapper = _wrapper(kinds, bool(properties.get("context")))
        checked = wrapper(function, _checker(operands))
    return Builtin(name, tuple(operands), result, checked, **properties)


def wrong_operand(position: int, value: Value, *expected: str) -> NoReturn:
    """Raises OPA's complaint about the operand at ``position``, from 1."""
    allowed = expected[0] if len(expected) == 1 else f"one of {{{', '.join(expected)}}}"
    raise BuiltinError(
        f"operand {position} must be {allowed} but got {type_name(value)}", kind="type"
    )


def wrong_element(position: int, composite: Value, value: Value, *expected: str) -> NoReturn:
    """Raises OPA's complaint about ``value``, found in the operand at ``position``."""
    whole = type_name(composite)
    if len(expected) == 1:
        allowed = f"{whole} of {expected[0]}s"
    else:
        allowed = f"{whole} of (any of) {{{', '.join(expected)}}}"
    raise BuiltinError(
        f"operand {position} must be {allowed} but got {whole} containing {type_name(value)}",
        kind="type",
    )


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict, RegoObject),
    "set": (RegoSet,),
}


def _simple_name(operand: Type) -> str:
    if isinstance(operand, Scalar):
        return operand.name
    if isinstance(operand, ArrayType):
        return "array"
    if isinstance(operand, ObjectType):
        return "object"
    return "set" if isinstance(operand, SetType) else ""


def _kinds(operand: Type) -> tuple[type, ...]:
    return _KINDS.get(_simple_name(operand), ())


def _checker(operands: Sequence[Type]) -> Callable[..., None]:
    """Returns the slow check, which accepts subclasses of numbers and raises."""
    names = tuple(map(_simple_name, operands))

    def check(*values: Value) -> None:
        for position, (name, value) in enumerate(zip(names, values, strict=True), 1):
            if name and type_name(value) != name:
                wrong_operand(position, value, name)

    return check


@cache  # one for each signature of the table
def _wrapper(kinds: tuple[tuple[type, ...], ...], context: bool) -> Callable[..., Any]:
    """Returns generated code that checks exactly these kinds; a loop would cost more."""
    names = [f"x{position}" for position in range(len(kinds))]
    tests, scope = [], {}
    for name, accepted in zip(names, kinds, strict=True):
        if len(accepted) == 1:
            scope[f"T{name}"] = accepted[0]
            tests.append(f"type({name}) is T{name}")
        elif accepted:
            scope[f"T{name}"], scope[f"U{name}"] = accepted
            tests.append(f"((t{name} := type({name})) is T{name} or t{name} is U{name})")
    call = f"function({', '.join(['context'] * context + names)})"
    source = f"""
def make(function, check, {", ".join(scope)}):
    def checked({", ".join(["context"] * context + names)}):
        if {" and ".join(tests)}:
            return {call}
        check({", ".join(names)})
        return {call}
    return checked
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102  # only names made above enter the source
    make = namespace["make"]
    return lambda function, check: make(function, check, **scope)


GATEKEEPER: Final = "1.17.1"
"""The version of OPA inside Gatekeeper v3.23, which compiles ConstraintTemplates.

``tests/differential/opa_versions.py`` lists every difference to :data:`LATEST`, and compares both
programs with both levels of this compiler.
"""

LATEST: Final = "1.22"
"""The version of OPA's language outside of ConstraintTemplates."""


def available(added: Mapping[str, Builtin], disabled: Collection[str], level: str) -> Available:
    """Returns the built-ins that exist at a level, with a caller's own."""
    return Available(added, disabled, older=level == GATEKEEPER)
