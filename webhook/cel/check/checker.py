"""The type of each part of an expression, and the meaning of its names (cel-go, checker).

Errors are collected, with cel-go's texts (checker/checker.go). A macro is a single node here; its
parts get the checks of the calls that cel-go expands it to.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from webhook.cel.check import types
from webhook.cel.check.environment import VALUES, Environment, Overload
from webhook.cel.check.message_literals import field_of, message_type_of
from webhook.cel.check.types import BOOL, DYN, ERROR, INT, Mapping, Type
from webhook.cel.errors import Problem
from webhook.cel.library.all import narrowed
from webhook.cel.run.values import TYPES, Optional, Uint
from webhook.cel.syntax import ast
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cel.library.registry import Operand

_CONSTANTS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


MAX_COPIES: Final = 5
"""Targets of optMap within each other that are checked as often as cel-go checks them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression with the results of its check.

    ``names`` has the variable or type of each name or path of names. ``functions`` has the function
    of calls whose target is a namespace. ``overloads`` has the overloads that a call may run.
    """

    parsed: ast.Parsed
    types: dict[ast.Expr, Type] = field(repr=False)
    names: dict[ast.Expr, str] = field(repr=False)
    functions: dict[ast.Call, str] = field(repr=False)
    overloads: dict[ast.Expr, tuple[Overload, ...]] = field(repr=False)

    @property
    def type(self) -> Type:
        """The type of the whole."""
        return self.types[self.parsed.root]

    def only_overload(self, call: ast.Call) -> Overload | None:
        """Returns the form that a call runs; None where it may run several."""
        fitting = self.overloads.get(call, ())
        return fitting[0] if len(fitting) == 1 else None


def check(parsed: ast.Parsed, environment: Environment) -> tuple[Checked, list[Problem]]:
    """Returns the types of an expression, and its errors."""
    checker = _Checker(parsed.source, environment)
    checker.check(parsed.root)
    checked_type = {
        node: checker.mapping.resolved(of, closed=True) for node, of in checker.types.items()
    }
    return Checked(
        parsed, checked_type, checker.names, checker.functions, checker.overloads
    ), checker.problems


def planned(checked: Checked) -> Checked:
    """Reads each variable that holds a type, and has a type's name, as that type.

    cel-go's planner does the same: it looks at the name only.
    """
    types_of = checked.types
    names = {
        node: f":{meaning}" if types_of[node].name == "type" and meaning in VALUES else meaning
        for node, meaning in checked.names.items()
    }
    return replace(checked, names=names)


class _Checker:
    def __init__(self, source: str, environment: Environment) -> None:
        self.source = source
        self.environment = environment
        self.scopes: list[dict[str, Type]] = []
        self.mapping = Mapping()
        self.types: dict[ast.Expr, Type] = {}
        self.names: dict[ast.Expr, str] = {}
        self.functions: dict[ast.Call, str] = {}
        self.overloads: dict[ast.Expr, tuple[Overload, ...]] = {}
        self.problems: list[Problem] = []
        self.targets = 0
        self.copied_at: int | None = None

    def report(self, at: int, message: str) -> Type:
        self.problems.append(Problem(*ast.place_of(self.source, at), message))
        return ERROR

    def check(self, node: ast.Expr) -> Type:
        match node:
            case ast.Constant():
                checked_type = _CONSTANTS[type(node.value)]
            case ast.Name():
                checked_type = self.name(node)
            case ast.Select():
                checked_type = self.select(node)
            case ast.Call():
                checked_type = self.call(node)
            case ast.ListOf():
                checked_type = self.list_of(node)
            case ast.MapOf():
                checked_type = self.map_of(node)
            case ast.Message():
                checked_type = self.message(node)
            case ast.Fold():
                checked_type = self.fold(node)
            case ast.OptMap():
                checked_type = self.opt_map(node)
            case ast.SortBy():
                checked_type = self.sort_by(node)
            case ast.Bind():
                checked_type = self.bind(node)
        self.types[node] = checked_type
        return checked_type

    # --- names --------------------------------------------------------------------------------

    def lookup(self, node: ast.Expr, name: str) -> Type | None:
        """Returns the type of a name's target, and caches it; inner scopes hide outer scopes."""
        for candidate in self.environment.candidates(name):
            for scope in reversed(self.scopes):
                if candidate in scope:
                    self.names[node] = candidate
                    return scope[candidate]
            variable = self.environment.variables.get(candidate)
            if variable is not None:
                self.names[node] = "." + candidate
                return variable
            named = self.environment.type_named(candidate)
            if named is not None:
                self.names[node] = ":" + candidate
                return types.type_of(named)
        return None

    def undeclared(self, at: int, name: str) -> Type:
        container = self.environment.container
        return self.report(at, f"undeclared reference to '{name}' (in container '{container}')")

    def name(self, node: ast.Name) -> Type:
        return self.lookup(node, node.name) or self.undeclared(node.at, node.name)

    def select(self, node: ast.Select) -> Type:
        path = ast.qualified(node)
        if path is not None:
            selected = self.lookup(node, path)
            if selected is not None:
                return selected
        selected = self.field(node)
        return BOOL if node.tests else self.mapping.resolved(selected)

    def field(self, node: ast.Select) -> Type:
        operand = self.mapping.resolved(self.check(node.operand))
        of, is_optional = types.unwrapped(operand)
        if of.name == "map":
            type_found = of.parts[1]
        elif of.message:
            known = self.environment.field_type(of.name, node.field)
            type_found = known or self.report(node.at, f"undefined field '{node.field}'")
        elif of.name.startswith("kubernetes."):  # an object type, which no provider knows
            type_found = self.report(node.at, f"unexpected failed resolution of '{of}'")
        else:
            if of.free:
                self.mapping.fits(DYN, of)
            elif not of.is_wild:
                self.report(node.at, f"type '{of}' does not support field selection")
            type_found = DYN
        return types.optional_of(type_found) if is_optional or node.optional else type_found

    # --- calls --------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Type:
        args = [self.check(arg) for arg in node.args]
        if node.function in {"_&&_", "_||_"}:
            return self.logic(node, args)
        table = self.environment.functions
        if node.target is None:
            for candidate in self.environment.candidates(node.function):
                if candidate in table:
                    self.functions[node] = candidate
                    return self.resolve(node.at, candidate, args, member=False, call=node)
            return self.undeclared(node.at, node.function)
        prefix = ast.qualified(node.target)
        if prefix is not None:
            for candidate in self.environment.candidates(f"{prefix}.{node.function}"):
                if candidate in table:
                    self.functions[node] = candidate
                    return self.resolve(node.at, candidate, args, member=False, call=node)
        target = self.check(node.target)
        if node.function not in table:
            return self.undeclared(node.at, node.function)
        return self.resolve(node.at, node.function, [target, *args], member=True, call=node)

    def logic(self, node: ast.Call, args: list[Type]) -> Type:
        joined = BOOL
        for arg, of in zip(node.args, args, strict=True):
            if not self.mapping.fits(of, BOOL):
                joined = self.mismatch(arg.at, BOOL, of)
        return joined

    def mismatch(self, at: int, expected: Type, actual: Type) -> Type:
        return self.report(at, f"expected type '{expected}' but found '{actual}'")

    def resolve(
        self,
        at: int,
        function: str,
        args: list[Type],
        *,
        member: bool,
        call: ast.Expr | None = None,
    ) -> Type:
        """The type of a call: of its first overload that fits, or dyn where several differ."""
        common: Type | None = None
        fitting: list[Overload] = []
        for overload in self.environment.functions[function]:
            if overload.member is not member:
                continue
            params, result = self.fresh(overload)  # which counts them, whether it fits or not
            if self.mapping.all_fit(args, params):
                result = self.mapping.resolved(result)
                fitting.append(overload)
                if common is None:
                    common = result
                elif not common.is_dyn and common != result:
                    common = DYN
        if call is not None:
            self.overloads[call] = tuple(fitting)
        if common is not None:
            return common
        closed = [self.mapping.resolved(arg, closed=True) for arg in args]
        return self.no_overload(at, function, closed, member=member)

    def no_overload(self, at: int, function: str, args: Sequence[Type], *, member: bool) -> Type:
        target = f"{args[0]}." if member else ""
        listed = ", ".join([str(arg) for arg in args[member:]])
        return self.report(
            at, f"found no matching overload for '{function}' applied to '{target}({listed})'"
        )

    def fresh(self, overload: Overload) -> tuple[list[Type], Type]:
        """Operands and result of an overload, with free types of their own."""
        if not overload.free:
            return list(overload.args), overload.result
        new = {free: self.mapping.new() for free in overload.free}
        return [_replaced(arg, new) for arg in overload.args], _replaced(overload.result, new)

    # --- literals -----------------------------------------------------------------------------

    def list_of(self, node: ast.ListOf) -> Type:
        joined: Type | None = None
        for index, item in enumerate(node.items):
            joined = self.joined(joined, self.optional_item(item, index in node.optional))
        return types.list_of(joined or self.mapping.new())

    def optional_item(self, node: ast.Expr, optional: bool) -> Type:
        item = self.check(node)
        return self.opened(node, item) if optional else item

    def opened(self, node: ast.Expr, item: Type) -> Type:
        """Returns the type after a question mark: the type within the optional."""
        inner, is_optional = types.unwrapped(item)
        if not is_optional and not inner.is_dyn:
            self.mismatch(node.at, types.optional_of(inner), inner)
        return inner

    def joined(self, before: Type | None, of: Type) -> Type:
        if before is None:
            return of
        return types.more_general(before, of) if self.mapping.fits(before, of) else DYN

    def map_of(self, node: ast.MapOf) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self.joined(key, self.check(entry.key))
            value = self.joined(value, self.optional_item(entry.value, entry.optional))
        return types.map_of(key or self.mapping.new(), value or self.mapping.new())

    def message(self, node: ast.Message) -> Type:
        meaning = self.lookup(node, node.type_name)
        if meaning is None:
            return self.undeclared(node.at, node.type_name)
        message_type = message_type_of(meaning, node.type_name.removeprefix("."))
        if message_type.fault is not None:
            self.report(node.at, message_type.fault)
        for assigned in node.fields:
            item = self.check(assigned.value)
            field_type, fault = field_of(message_type.name, assigned.name, self.environment)
            at = assigned.at if self.copied_at is None else self.copied_at
            if fault is not None:
                self.report(at, fault)
            of = self.opened(assigned.value, item) if assigned.optional else item
            if not self.mapping.fits(field_type, of):
                mismatch = f"is '{field_type}' but provided type is '{of}'"
                self.report(at, f"expected type of field '{assigned.name}' {mismatch}")
        return message_type.type

    # --- macros -------------------------------------------------------------------------------

    def variables_of(self, node: ast.Fold, at: int) -> dict[str, Type]:
        range_ = self.mapping.resolved(self.check(node.range))
        first = second = DYN
        if range_.name == "list" and not range_.free:
            first = second = range_.parts[0]
            if node.second is not None:
                first = INT
        elif range_.name == "map" and not range_.free:
            first, second = range_.parts
        elif range_.is_wild or range_.free:
            self.mapping.fits(DYN, range_)
        else:
            first = second = self.report(
                at,
                f"expression of type '{range_}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)",
            )
        return {node.first: first} | ({node.second: second} if node.second is not None else {})

    def fold(self, node: ast.Fold, range_at: int | None = None) -> Type:
        """``range_at`` is where its range is said to be, if not where it is."""
        variables = self.variables_of(node, node.range.at if range_at is None else range_at)
        begin = self.accumulator(node)
        self.scopes.append(variables)
        step = self.step(node, begin)
        self.scopes.pop()
        if not self.mapping.fits(begin, step):
            self.mismatch(node.at, begin, step)
        if node.kind == "exists_one":
            return self.resolve(node.at, "_==_", [begin, INT], member=False)
        return self.mapping.resolved(begin)

    def accumulator(self, node: ast.Fold) -> Type:
        """Returns the type of a macro's first accumulator.

        The steps decide the type of an empty one.
        """
        match node.kind:
            case "all" | "exists":
                return BOOL
            case "exists_one":
                return INT
            case "map_value" | "map_entry":
                return types.map_of(self.mapping.new(), self.mapping.new())
        return types.list_of(self.mapping.new())

    def step(self, node: ast.Fold, begin: Type) -> Type:
        """Returns the type of a macro's accumulator after an item."""
        test = None if node.test is None else self.check(node.test)
        key = [] if node.key is None else [self.check(node.key)]
        body = self.check(node.body)
        at = node.at
        match node.kind:
            case "all" | "exists":
                if self.mapping.fits(body, BOOL):
                    return BOOL
                return self.mismatch(node.body.at, BOOL, body)
            case "exists_one":
                test, step = body, self.resolve(at, "_+_", [begin, INT], member=False)
            case "map_value" | "map_entry":
                step = self.resolve(at, "cel.@mapInsert", [begin, *key, body], member=False)
            case _:
                step = self.resolve(at, "_+_", [begin, types.list_of(body)], member=False)
        if test is None:
            return step
        return self.resolve(at, "_?_:_", [test, step, begin], member=False)

    def opt_map(self, node: ast.OptMap) -> Type:
        self.targets += 1
        test = self.resolve(node.at, "hasValue", [self.check(node.target)], member=True)
        self.mapping.new()  # of the empty list that the macro goes through
        within = self.resolve(node.at, "value", [self.copied(node)], member=True)
        self.targets -= 1
        self.scopes.append({node.variable.name: within})
        variable = self.check(node.variable)  # another, if there is a point before its name
        if not self.mapping.fits(within, variable):
            self.mismatch(node.at, within, variable)
        mapped = self.mapping.resolved(self.check(node.body))
        self.scopes.pop()
        if not node.flat:
            mapped = self.resolve(node.at, "optional.of", [mapped], member=False)
        nothing = self.resolve(node.at, "optional.none", [], member=False)
        return self.resolve(node.at, "_?_:_", [test, mapped, nothing], member=False)

    def copied(self, node: ast.OptMap) -> Type:
        """Returns the type of the target, which the macro copies: its problems are reported twice.

        A copy's fields of messages are said to be where the macro is. One that is within so many
        others that it would be checked too often is not checked again.
        """
        if self.targets > MAX_COPIES:
            return self.types[node.target]
        before = self.copied_at
        self.copied_at = node.at if before is None else before
        again = self.check(node.target)
        self.copied_at = before
        return again

    def sort_by(self, node: ast.SortBy) -> Type:
        self.mapping.new()  # of the empty list that the macro goes through
        fold = ast.Fold(node.at, "map", node.target, node.name, None, None, node.key)
        keys = self.fold(fold, node.at)
        args = [self.types[node.target], keys]
        return self.resolve(node.at, "@sortByAssociatedKeys", args, member=True, call=node)

    def bind(self, node: ast.Bind) -> Type:
        self.mapping.new()  # of the empty list that the macro goes through
        self.scopes.append({node.name: self.check(node.value)})
        body = self.mapping.resolved(self.check(node.body))
        self.scopes.pop()
        return body


def _replaced(of: Type, new: dict[Type, Type]) -> Type:
    if of.free:
        return new[of]
    if not of.parts:
        return of
    return Type(of.name, tuple([_replaced(part, new) for part in of.parts]), message=of.message)


_BY_NAME: Final[dict[str, Operand]] = {
    name: of for of, name in TYPES.items() if of not in {dict, Optional}
}


def narrowed_name(name: str, node: ast.Call, checked: Checked) -> str:
    """Returns the library's name of a call's form, or of its function if several forms may run."""
    only = checked.only_overload(node)
    return name if only is None else narrowed(name, tuple(map(_operand, only.args)))


def _operand(of: Type) -> Operand:
    """Returns the type that an overload's operand must have at run time."""
    if of.name == "list":
        part = _operand(of.parts[0])
        return list if part is None else (part,)
    return _BY_NAME.get(of.name) or (of.name if "." in of.name else None)
