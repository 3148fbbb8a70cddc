"""The exact form of an expression: a function for each node, errors absorbed as CEL absorbs them.

It is what an expression means. It is run where the fast form raises, and compared with it in tests.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from webhook.cel import costed, folds, nodes, paths
from webhook.cel.check import types
from webhook.cel.check.literals import known_members, known_value
from webhook.cel.errors import EvaluationError
from webhook.cel.narrowing import called
from webhook.cel.run import access, equality, membership, messages
from webhook.cel.run.arithmetic import OPERATORS, is_not, negate
from webhook.cel.run.values import (
    NONE,
    NOTHING,
    Duration,
    Lost,
    Optional,
    TypeValue,
    Uint,
    type_name,
)
from webhook.cel.syntax.ast import (
    Call,
    Constant,
    Fold,
    ListOf,
    MapOf,
    Message,
    Name,
    OptMap,
    Select,
    SortBy,
    children,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.check.checker import Checked
    from webhook.cel.folds import Run
    from webhook.cel.run.meter import Meter
    from webhook.cel.run.values import Value
    from webhook.cel.syntax.ast import Expr

VARIABLES: Final = "kubernetes.variables"
"""The type of ``variables``: its fields are computed when they are read."""

_BINARY: Final[dict[str, Callable[[Value, Value], Value]]] = {
    **OPERATORS,
    "_==_": equality.equal,
    "_!=_": equality.not_equal,
    "_<_": equality.less,
    "_<=_": equality.less_or_equal,
    "_>_": equality.greater,
    "_>=_": equality.greater_or_equal,
    "_[_]": access.item,
    "_[?_]": access.optional_item,
}
_UNARY: Final[dict[str, Callable[[Value], Value]]] = {"!_": is_not, "-_": negate}

_ZEROS: Final[dict[str, Value]] = {
    "uint": Uint(0),
    "double": 0.0,
    "google.protobuf.Duration": Duration(0),
}

_FOUND_BY_VALUE: Final = frozenset({"bool", "double", "int", "string", "uint"})
_SEARCHES: Final = frozenset({"find", "findAll", "matches"})


def exact_form(checked: Checked) -> Run:
    """What computes an expression."""
    return _Builder(checked).build(checked.parsed.root)


class _Builder:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.scopes: list[dict[str, int]] = []
        self.slots = 0
        self.is_key = False
        self.native: list[str] = []
        """Variables of macros that hold what is part of a variable, if there may be such keys."""

    def build(self, node: Expr) -> Run:
        """What computes a node: of a key, part of a variable is another each time it is read."""
        run = self.built(node)
        return paths.copied(run) if self.is_key and self.is_read_anew(node) else run

    def is_read_anew(self, node: Expr) -> bool:
        """Whether it is part of a variable, and no variable of a macro itself."""
        is_bound = isinstance(node, Name) and self.checked.names.get(node) in self.native
        return not is_bound and paths.is_native(node, self.checked, self.native)

    def has_native_items(self, range_: Expr) -> bool:
        """Whether what a macro goes through gives parts of variables, each another in each turn."""
        match range_:
            case ListOf(items=items):
                return all(map(self.is_read_anew, items))
            case Call(function="_+_", args=parts):
                return all(map(self.has_native_items, parts))
        return paths.is_native(range_, self.checked, self.native)

    def built(self, node: Expr) -> Run:
        match node:
            case Constant():
                return nodes.constant(node.value)
            case Name():
                return self.name(self.checked.names.get(node, node.name))
            case Select():
                return self.select(node)
            case Call():
                return self.call(node)
            case ListOf() | MapOf():
                made = self.list_of(node) if isinstance(node, ListOf) else self.map_of(node)
                return made if known_value(node, self.checked) is NOTHING else nodes.once(made)
            case Message():
                return self.message(node)
            case Fold():
                return self.fold(node)
            case OptMap():
                return self.opt_map(node)
            case SortBy():
                return self.sort_by(node)

    # --- names --------------------------------------------------------------------------------

    def operand(self, node: Expr) -> Run:
        """What a path goes on from."""
        if isinstance(node, Name):
            return self.name(self.checked.names.get(node, node.name), is_read=False)
        if isinstance(node, Call) and node.function == "_?_:_":
            test, *branches = node.args
            opened = [paths.opened(self.operand(one)) for one in branches]
            return nodes.conditional(self.build(test), *opened)
        return self.build(node)

    def name(self, meaning: str, *, is_read: bool = True) -> Run:
        if meaning.startswith(":"):
            return nodes.constant(TypeValue(meaning[1:]))
        if not meaning.startswith("."):
            for scope in reversed(self.scopes):
                if meaning in scope:
                    return nodes.local(scope[meaning], is_read=is_read)
        return nodes.variable(meaning.removeprefix("."))

    def slot(self, *names: str) -> list[int]:
        """Numbers for the variables of a macro, which hide those around it."""
        numbers = list(range(self.slots, self.slots + len(names)))
        self.slots += len(names)
        self.scopes.append(dict(zip(names, numbers, strict=True)))
        return numbers

    def select(self, node: Select) -> Run:
        meaning = self.checked.names.get(node)
        if meaning is not None:
            return self.name(meaning)
        operand, field = self.operand(node.operand), node.field
        known = self.checked.types.get(node.operand)
        if known is not None and known.name == VARIABLES:
            return paths.composited(operand, field, tests=node.tests)
        if paths.goes_on(node.operand, self.checked):
            return paths.further(operand, nodes.constant(field), tests=node.tests)
        branches = self.branches_going_on(node.operand)
        if branches is not None:
            tested = field if node.tests else None
            return branches(nodes.constant(field), node.optional, tested)
        stored = self.stored(node.operand)
        if node.tests:
            return paths.presence(operand, field, stored)
        if node.optional:
            return paths.optional(operand, nodes.constant(field), stored)
        if stored is not None:
            return paths.within(operand, nodes.constant(field), stored)

        def selected(env: dict[Any, Value], meter: Meter) -> Value:
            meter.charge(1)
            return access.item(operand(env, meter), field)

        return selected

    def stored(self, node: Expr) -> Run | None:
        """Whether an optional that a path leads to was found there, and is no part of the way.

        cel-go looks into an optional at the root of a path, and once it has met a question mark, but
        not into one that it finds on its way (interpreter/attributes.go, refQualify).
        """
        root = paths.stored_in(node)
        if root is None:
            return None
        of = self.operand(root)
        return lambda env, meter: type(of(env, meter)) is not Optional

    def branches_going_on(self, node: Expr) -> Callable[[Run, bool, str | None], Run] | None:
        """What takes an item of a conditional: by a key, with a question mark or without.

        With a field as well it is asked whether this is there. None where neither branch is a path
        with a question mark in it, which goes on by itself.
        """
        if not (isinstance(node, Call) and node.function == "_?_:_"):
            return None
        test, *branches = node.args
        going_on = [paths.goes_on(one, self.checked) for one in branches]
        if not any(going_on):
            return None

        def taken(key: Run, optional: bool, tested: str | None) -> Run:
            runs = []
            for one, goes_on in zip(branches, going_on, strict=True):
                run = self.operand(one)
                if goes_on:
                    runs.append(paths.further(run, key, tests=tested is not None))
                elif tested is not None:
                    runs.append(paths.presence(paths.opened(run), tested, None))
                elif optional:
                    runs.append(paths.optional(paths.opened(run), key, None))
                else:
                    runs.append(nodes.index(access.item, paths.opened(run), key))
            return nodes.conditional(self.build(test), *runs)

        return taken

    def branch(self, node: Expr) -> Run:
        """One of a conditional."""
        run = self.build(node)
        if not paths.may_nest(node, self.checked):
            return run
        return lambda env, meter: access.unnested(run(env, meter))

    def item(self, node: Call) -> Run:
        of, key = self.operand(node.args[0]), self.key(node.args[1])
        if paths.goes_on(node.args[0], self.checked):
            return paths.further(of, key)
        branches = self.branches_going_on(node.args[0])
        if branches is not None:
            return branches(key, node.function == "_[?_]", None)
        stored = self.stored(node.args[0])
        if stored is None:
            return nodes.index(_BINARY[node.function], of, key)
        take = paths.optional if node.function == "_[?_]" else paths.within
        return take(of, key, stored)

    def key(self, node: Expr) -> Run:
        """What an item is asked for by: what is a key to nobody is told as what it is in Go."""
        if isinstance(node, Call) and node.function == "_?_:_":
            test, *branches = node.args
            return nodes.conditional(self.build(test), *[self.key(one) for one in branches])
        if paths.is_native(node, self.checked):
            return self.build(node)
        run = self.branch(node)

        def computed(env: dict[Any, Value], meter: Meter) -> Value:
            return access.computed_key(run(env, meter))

        return computed

    # --- calls --------------------------------------------------------------------------------

    def call(self, node: Call) -> Run:
        function = node.function
        if function in {"_&&_", "_||_"}:
            return folds.logic([self.build(arg) for arg in node.args], ends=function == "_||_")
        if function == "_?_:_":
            test, *branches = node.args
            return nodes.conditional(self.build(test), *[self.branch(one) for one in branches])
        if function in {"_[_]", "_[?_]"}:
            return self.item(node)
        named = self.checked.functions.get(node)
        target = (
            []
            if node.target is None or (named is not None and named != function)
            else [node.target]
        )
        args = [self.build(arg) for arg in (*target, *node.args)]
        if function in _UNARY:
            return nodes.unary(_UNARY[function], args[0])
        if function in _BINARY:
            return nodes.binary(_BINARY[function], args[0], args[1])
        if function == "@in" and isinstance(node.args[1], ListOf) and not node.args[1].items:
            return nodes.constant(False)  # cel-go does not look at what would be in it
        if function == "@in":
            known = known_members(node.args[1], self.checked)
            return nodes.member(args[0], args[1]) if known is None else nodes.among(args[0], known)
        return self.library(node, named or function, args, member=bool(target))

    def library(self, node: Call, name: str, args: list[Run], *, member: bool) -> Run:
        """A function of the library."""
        function, count = node.function, len(args)
        form = self.called(node, name, member=member)
        if function in _SEARCHES and count > 1:
            pattern = [*([node.target] if member and node.target else []), *node.args][1]
            if type(known_value(pattern, self.checked)) is str:
                return costed.search(form, args)
        if function in costed.LISTERS and count == 1 and node in self.checked.overloads:
            return nodes.invocation(form, [costed.lister(args[0])])
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
        return nodes.invocation(form, args)

    def called(self, node: Call, name: str, *, member: bool) -> str:
        """The name in the library of what a call may run."""
        if name == "ip" and member:
            return ".ip"  # what is a member of a range is a function of a text
        return called(name, node, self.checked)

    # --- literals -----------------------------------------------------------------------------

    def list_of(self, node: ListOf) -> Run:
        items = [(self.build(item), at in node.optional) for at, item in enumerate(node.items)]

        def made(env: dict[Any, Value], meter: Meter) -> Value:
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

        return made

    def map_of(self, node: MapOf) -> Run:
        entries = [(self.entry_key(e.key), self.build(e.value), e.optional) for e in node.entries]

        def made(env: dict[Any, Value], meter: Meter) -> Value:
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

        return made

    def entry_key(self, node: Expr) -> Run:
        """What a map has an entry by: a list or a map is found by itself alone."""
        before, self.is_key = self.is_key, True
        run = self.build(node)
        self.is_key = before
        return run

    def message(self, node: Message) -> Run:
        """A message of its fields; of one that is named twice the last value stays."""
        name = self.checked.names.get(node, node.type_name).removeprefix(":")
        fields = [(one.name, self.build(one.value), one.optional) for one in node.fields]

        def made(env: dict[Any, Value], meter: Meter) -> Value:
            if name not in messages.NAMES:
                raise EvaluationError(f"unknown type '{name}'")
            values: dict[str, Value] = {}
            for field, run, optional in fields:
                value = run(env, meter)
                values[field] = access.optional_part(value, field) if optional else value
            return messages.message(
                name, {field: value for field, value in values.items() if value is not NOTHING}
            )

        return made

    # --- macros -------------------------------------------------------------------------------

    def fold(self, node: Fold) -> Run:
        before = self.is_key
        self.is_key = before or node.kind == "map_entry"
        run = self.folded(node)
        self.is_key = before
        return run

    def folded(self, node: Fold) -> Run:
        range_ = self.build(node.range)
        names = [node.first] if node.second is None else [node.first, node.second]
        slots = self.slot(*names)
        turns = folds.turns_of(range_, slots)
        before, is_anew = (
            self.native,
            self.may_have_other_keys and self.has_native_items(node.range),
        )
        self.native = [name for name in before if name not in names]
        if is_anew:
            # One that is written with a point is never read.
            self.native += [name for name in names if not name.startswith(".")]
            turns = folds.anew(turns, slots)
        test = None if node.test is None else self.build(node.test)
        key = None if node.key is None else self.entry_key(node.key)
        body = self.build(node.body)
        self.scopes.pop()
        self.native = before
        if node.kind in {"all", "exists"}:
            return folds.quantified(turns, body, ends=node.kind == "exists")
        if node.kind == "exists_one":
            return folds.counted(turns, body)
        if node.kind in {"map_value", "map_entry"}:
            return folds.mapped(turns, test, body, key)
        return folds.listed(turns, test, body)

    @cached_property
    def may_have_other_keys(self) -> bool:
        """Whether a map may have a list or a map for a key, which is found by itself alone."""
        waiting: list[Expr] = [self.checked.parsed.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Fold) and node.kind == "map_entry":
                return True
            if isinstance(node, MapOf):
                key = self.checked.types[node].parts[0]
                if key.name not in _FOUND_BY_VALUE:
                    return True
            waiting.extend(children(node))
        return False

    def opt_map(self, node: OptMap) -> Run:
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
            return access.unnested(mapped if flat else Optional(mapped))

        return mapped

    def sort_by(self, node: SortBy) -> Run:
        target = self.build(node.target)
        (slot,) = self.slot(node.name)
        key = self.build(node.key)
        self.scopes.pop()
        return costed.sorted_by(node, target, slot, key, self.checked)
