"""The exact form of an expression: a function for each node, errors absorbed as in CEL.

It is the reference for the fast form: it runs if the fast form raises, and tests compare the two.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from webhook.cel import folds, paths
from webhook.cel.check import types
from webhook.cel.check.checker import Checked, narrowed_name
from webhook.cel.check.literals import known_members, known_value
from webhook.cel.errors import EvaluationError
from webhook.cel.exact import costed, nodes
from webhook.cel.paths import Key, Keys
from webhook.cel.run import access, equality, membership, messages
from webhook.cel.run.arithmetic import OPERATORS, is_not, negate
from webhook.cel.run.values import (
    NONE,
    NOTHING,
    VARIABLES,
    Duration,
    Lost,
    Optional,
    TypeValue,
    Uint,
    Value,
    type_name,
)
from webhook.cel.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter

_BINARY: Final[dict[str, Callable[[Value, Value], Value]]] = {
    **OPERATORS,
    "_==_": equality.equal,
    "_!=_": equality.not_equal,
    "_<_": equality.less,
    "_<=_": equality.less_or_equal,
    "_>_": equality.greater,
    "_>=_": equality.greater_or_equal,
}
_UNARY: Final[dict[str, Callable[[Value], Value]]] = {"!_": is_not, "-_": negate}

_ZEROS: Final[dict[str, Value]] = {
    "uint": Uint(0),
    "double": 0.0,
    "google.protobuf.Duration": Duration(0),
}

_KEYS_BY_VALUE: Final = frozenset({"bool", "double", "int", "string", "uint"})
"""The types of keys that an equal value finds; a list or map finds only itself."""

_ITEM_READERS: Final = frozenset(
    {"distinct", "first", "flatten", "last", "reverse", "slice", "sort"}
)
"""Functions that read items of a list."""

_SEARCHES: Final = frozenset({"find", "findAll", "matches"})


def exact_form(checked: Checked) -> Run:
    """Returns the function that computes an expression."""
    return _Builder(checked).build(checked.parsed.root)


class _Builder:
    """Builds the functions of an expression's nodes, each from those of its operands.

    A function takes the environment and the meter. A macro's variables have *slots*, which are
    numbers, in the environment.
    """

    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.scopes: list[dict[str, int]] = []
        self.slots = 0
        self.bound: dict[int, Run] = {}
        """The functions that compute the variables of ``cel.bind``, by slot."""

    def build(self, node: ast.Expr) -> Run:
        """Returns the function that computes a node."""
        match node:
            case ast.Constant():
                return nodes.constant(node.value)
            case ast.Select(tests=True):
                return paths.has_value(self.path(node))
            case (
                ast.Name()
                | ast.Select()
                | ast.OptMap()
                | ast.Call(function="_[_]" | "_[?_]" | "_?_:_")
            ):
                return self.path(node)
            case ast.Call():
                return self.call(node)
            case ast.ListOf() | ast.MapOf():
                run = self.list_of(node) if isinstance(node, ast.ListOf) else self.map_of(node)
                return run if known_value(node, self.checked) is NOTHING else nodes.once(run)
            case ast.Message():
                return self.message(node)
            case ast.Fold():
                return self.fold(node)
            case ast.SortBy():
                return self.sort_by(node)
            case ast.Bind():
                return self.bind(node)

    # --- paths --------------------------------------------------------------------------------

    def path(self, node: ast.Expr, keys: Keys = (), *, is_key: bool = False) -> Run:
        """Returns the function that computes a node and then looks up the ``keys`` behind it.

        Three cases: a selection or index adds its key, a conditional looks up the keys in each
        branch, any other node is the root of the path. ``is_key`` is true if the node is itself a
        key of another path.
        """
        match node:
            case ast.Select() if node not in self.checked.names and not self.is_composed(node):
                key = Key(nodes.constant(node.field), optional=node.optional, tests=node.tests)
                return self.path(node.operand, (key, *keys), is_key=is_key)
            case ast.Call(function="_[_]" | "_[?_]"):
                of, at = node.args
                key = Key(
                    self.path(at, is_key=True),
                    optional=node.function == "_[?_]",
                    converts=paths.is_converting(at, self.checked),
                )
                return self.path(of, (key, *keys), is_key=is_key)
            case ast.Call(function="_?_:_"):
                test, *branches = node.args
                taken = [self.path(branch, keys, is_key=is_key) for branch in branches]
                return nodes.conditional(self.build(test), *taken)
        is_composed = self.is_composed(node)
        run = paths.resolved(self.root(node), keys, opens=not is_composed, is_key=is_key)
        if is_key:
            return run if self.is_part(node, keys) else paths.computed(run)
        is_one = not keys and (is_composed or self.is_bound(node))
        return run if is_one or not self.has_other_keys else paths.read(run)

    def is_bound(self, node: ast.Expr) -> bool:
        """Returns whether a node is a macro's variable."""
        meaning = self.checked.names.get(node, getattr(node, "name", ""))
        return meaning[:1] != "." and any(meaning in scope for scope in self.scopes)

    def is_part(self, node: ast.Expr, keys: Keys) -> bool:
        """Returns whether node and keys lead to a value that cel-go keeps as a native value of Go."""
        return paths.is_native(node, self.checked) and not any(key.converts for key in keys)

    def root(self, node: ast.Expr) -> Run:
        """Returns the function that computes the root of a path, without its keys."""
        match node:
            case ast.Name():
                return self.name(self.checked.names.get(node, node.name))
            case ast.Select() if node in self.checked.names:
                return self.name(self.checked.names[node])
            case ast.Select():
                return paths.composited(
                    self.build(node.operand),
                    node.field,
                    tests=node.tests,
                    is_one=self.has_other_keys,
                )
            case ast.OptMap():
                return self.opt_map(node)
        return self.build(node)

    def is_composed(self, node: ast.Expr) -> bool:
        """Returns whether a node is a composed variable (``variables.x``)."""
        if not isinstance(node, ast.Select) or node in self.checked.names:
            return False
        of = self.checked.types.get(node.operand)
        return of is not None and of.name == VARIABLES

    def name(self, meaning: str) -> Run:
        if meaning.startswith(":"):
            return nodes.constant(TypeValue(meaning[1:]))
        if not meaning.startswith("."):
            for scope in reversed(self.scopes):
                if meaning in scope:
                    slot = scope[meaning]
                    return nodes.local(slot, self.bound.get(slot))
        return nodes.variable(meaning.removeprefix("."))

    def slot(self, *names: str) -> list[int]:
        """Returns slots for the variables of a macro, which hide outer ones of the same names."""
        numbers = list(range(self.slots, self.slots + len(names)))
        self.slots += len(names)
        self.scopes.append(dict(zip(names, numbers, strict=True)))
        return numbers

    # --- calls --------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Run:
        """Returns the function of a call.

        There are four cases: 1. ``&&`` and ``||``, which absorb errors. 2. another operator. 3.
        ``in``, with a set of the members if they are constants. 4. a function of the library.
        """
        function = node.function
        if function in {"_&&_", "_||_"}:
            return folds.logic([self.build(arg) for arg in node.args], ends=function == "_||_")
        named = self.checked.functions.get(node, function)
        # Under another name, the function has a namespace, which stands where a target would.
        target = [] if node.target is None or named != function else [node.target]
        args = [self.build(arg) for arg in (*target, *node.args)]
        if function in _UNARY:
            return nodes.unary(_UNARY[function], args[0])
        if function in _BINARY:
            return nodes.binary(_BINARY[function], args[0], args[1])
        if function == "@in" and isinstance(node.args[1], ast.ListOf) and not node.args[1].items:
            return nodes.constant(False)  # cel-go does not evaluate the item
        if function == "@in":
            known = known_members(node.args[1], self.checked)
            return nodes.member(args[0], args[1]) if known is None else nodes.among(args[0], known)
        run = self.library(node, named, args, member=bool(target))
        return paths.taken(run) if self.has_other_keys and function in _ITEM_READERS else run

    def library(self, node: ast.Call, name: str, args: list[Run], *, member: bool) -> Run:
        """Returns the function that calls a library function.

        Six groups of functions have a form of their own: 1. Searches by a constant pattern. 2.
        Functions that panic unless they get a list. 3. ``flatten`` with a depth. 4. ``unwrap``. 5.
        ``or`` and ``orValue``. 6. Sums with a zero of the items' type.
        """
        function, count = node.function, len(args)
        form = self.called(node, name, member=member)
        if function in _SEARCHES and count > 1:
            pattern = [*([node.target] if member and node.target else []), *node.args][1]
            if type(known_value(pattern, self.checked)) is str:
                return costed.search(form, args)
        if function in costed.LISTERS and count == 1 and self.is_at_once(node, function):
            return nodes.invocation(form, [costed.lister(args[0])], at_once=False)
        if function == "flatten" and count == 2:
            return costed.flattened(args[0], args[1])
        if name in {"optional.unwrap", "unwrapOpt"}:
            return paths.unwrapped(form, args[0])
        if function in {"or", "orValue"} and count == 2:
            return paths.alternative(args[0], args[1], function)
        if function == "sum" and count == 1 and node.target is not None:
            item = self.checked.types.get(node.target, types.DYN)
            zero = _ZEROS.get(item.parts[0].name) if item.name == "list" else None
            if zero is not None:
                return nodes.total(form, args[0], zero)
        return nodes.invocation(form, args, at_once=self.is_at_once(node, function))

    def is_at_once(self, node: ast.Call, function: str) -> bool:
        """Returns whether cel-go evaluates both operands of a call before it checks either.

        This is so if the checker found one overload. Otherwise the first error ends the call.
        """
        return function != "format" and self.checked.only_overload(node) is not None

    def called(self, node: ast.Call, name: str, *, member: bool) -> str:
        """Returns the name of a call's function in the library."""
        if name == "ip" and member:
            return ".ip"  # the method of a range, apart from the function of a text
        return narrowed_name(name, node, self.checked)

    # --- literals -----------------------------------------------------------------------------

    def list_of(self, node: ast.ListOf) -> Run:
        items = [(self.build(item), at in node.optional) for at, item in enumerate(node.items)]

        def list_value(env: dict[Any, Value], meter: Meter) -> Value:
            meter.charge(1 + len(items))
            values = []
            for item, optional in items:
                value = item(env, meter)
                if optional:
                    value = access.optional_part(value)
                    if value is NOTHING:
                        continue
                    meter.may_have_lost |= type(value) is Lost
                values.append(value)
            return values

        return list_value

    def map_of(self, node: ast.MapOf) -> Run:
        entries = [(self.build(e.key), self.build(e.value), e.optional) for e in node.entries]

        def map_value(env: dict[Any, Value], meter: Meter) -> Value:
            meter.charge(1 + len(entries))
            members: dict[Value, Value] = {}
            for key, value, optional in entries:
                at = key(env, meter)
                computed = value(env, meter)
                if optional:
                    computed = access.optional_part(computed, at)
                    meter.may_have_lost |= type(computed) is Lost
                membership.set_entry(members, at, computed)
            return members

        return map_value

    def message(self, node: ast.Message) -> Run:
        """Returns the function that makes a message; the last value of a repeated field counts."""
        name = self.checked.names.get(node, node.type_name).removeprefix(":")
        fields = [(field.name, self.build(field.value), field.optional) for field in node.fields]

        def message_value(env: dict[Any, Value], meter: Meter) -> Value:
            if not messages.has_values(name):
                raise EvaluationError(f"unknown type '{name}'")
            values: dict[str, Value] = {}
            for field, run, optional in fields:
                value = run(env, meter)
                values[field] = access.optional_part(value, field) if optional else value
            return messages.message(
                name, {field: value for field, value in values.items() if value is not NOTHING}
            )

        return message_value

    # --- macros -------------------------------------------------------------------------------

    def fold(self, node: ast.Fold) -> Run:
        range_ = self.build(node.range)
        slots = self.slot(*filter(None, (node.first, node.second)))
        turns = folds.turns_of(range_, slots)
        if self.has_other_keys:
            turns = folds.read(turns, slots)
        test = None if node.test is None else self.build(node.test)
        key = None if node.key is None else self.build(node.key)
        body = self.build(node.body)
        self.scopes.pop()
        if node.kind in {"all", "exists"}:
            return folds.quantified(turns, body, ends=node.kind == "exists")
        if node.kind == "exists_one":
            return folds.counted(turns, body)
        if node.kind in {"map_value", "map_entry"}:
            return folds.mapped(turns, test, body, key)
        return folds.listed(turns, test, body)

    @cached_property
    def has_other_keys(self) -> bool:
        """Returns whether a map may have a list or map as key, which is found by identity only."""
        waiting: list[ast.Expr] = [self.checked.parsed.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Fold) and node.key is not None and node.first.startswith("."):
                return True  # transformMap reads another scope's variable
            if isinstance(node, ast.MapOf):
                of = self.checked.types.get(node)
                if of is None or of.parts[0].name not in _KEYS_BY_VALUE:
                    return True
            waiting.extend(ast.children(node))
        return False

    def opt_map(self, node: ast.OptMap) -> Run:
        """Returns the function of ``optMap``; :meth:`path` looks up the keys behind it."""
        target = self.build(node.target)
        (slot,) = self.slot(node.variable.name)
        body = self.build(node.body)
        self.scopes.pop()
        flat = node.flat

        def mapped(env: dict[Any, Value], meter: Meter) -> Value:
            meter.charge(2)
            value = target(env, meter)
            if type(value) is not Optional:
                raise EvaluationError(f"no such overload: hasValue({type_name(value)})")
            if value.value is NOTHING:
                return NONE
            env[slot] = value.value
            mapped = body(env, meter)
            return mapped if flat else Optional(mapped)

        return mapped

    def bind(self, node: ast.Bind) -> Run:
        value = self.build(node.value)
        (slot,) = self.slot(node.name)
        self.bound[slot] = value
        body = self.build(node.body)
        self.scopes.pop()

        def bound(env: dict[Any, Value], meter: Meter) -> Value:
            env[slot] = NOTHING
            return body(env, meter)

        return bound

    def sort_by(self, node: ast.SortBy) -> Run:
        target = self.build(node.target)
        (slot,) = self.slot(node.name)
        key = self.build(node.key)
        self.scopes.pop()
        run = costed.sorted_by(node, target, slot, key, self.checked)
        return paths.taken(run) if self.has_other_keys else run
