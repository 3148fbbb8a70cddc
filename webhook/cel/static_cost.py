"""Estimates the highest cost of an expression as cel-go does, by the sizes that a schema declares.

An API server refuses a rule of a CRD by this number, so the number is exact to the unit, including
oddities: keys of maps have no length, and an item of a computed list has the size of the whole
declared list (checker/cost.go). The module ``cost`` estimates one evaluation of a policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.check.call_costs import CallCost, CallToCost, call_cost
from webhook.cel.check.estimates import (
    ANY_SIZE,
    LIST,
    MAP,
    MESSAGE,
    MOST,
    ONE,
    Entries,
    Path,
    Size,
    SizedOperand,
    onward,
    plus,
    size_of_type,
    times,
    union,
    union_of_entries,
)
from webhook.cel.check.types import Type, list_of
from webhook.cel.syntax import ast
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checked
    from webhook.cel.check.environment import Overload
    from webhook.cel.check.objects import Declared

_SORTED: Final = "@__sortBy_input__"
"""The variable that the macro ``sortBy`` makes of its target."""

_EMPTY: Final[Size] = (0, 0)

# The costs of a macro's beginning, of each turn and of its end, as cel-go expands it.
_BEGIN: Final = {"map": LIST, "filter": LIST, "list": LIST, "map_value": MAP, "map_entry": MAP}
_TURN: Final = {"all": 3, "exists": 4, "exists_one": 2, "map_value": 2, "map_entry": 2}
_END: Final = {"exists_one": 2}


def static_cost(checked: Checked, declared: Declared) -> int:
    """Estimates the highest cost of an expression about declared values."""
    return _Estimate(checked, declared).cost(checked.parsed.root)


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a macro."""

    path: Path | None
    size: Size | None
    entries: Entries | None = None


class _Estimate:
    """Walks an expression once, operands first.

    The method of each form returns the cost of its node, and records what later costs depend on:
    its path in the declared values, its size, and the sizes of its entries.
    """

    def __init__(self, checked: Checked, declared: Declared) -> None:
        self.checked = checked
        self.declared = declared
        self.types: dict[ast.Expr, Type] = dict(checked.types)
        self.paths: dict[ast.Expr, Path] = {}
        self.sizes: dict[ast.Expr, Size] = {}
        self.entries: dict[ast.Expr, Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: ast.Expr) -> int:
        if isinstance(node, ast.Constant):
            return 0
        if isinstance(node, ast.Name) or node in self.checked.names:
            return self.name(node)
        match node:
            case ast.Select():
                return self.select(node)
            case ast.Call():
                return self.call(node)
            case ast.ListOf():
                return self.list_of(node)
            case ast.MapOf():
                return self.map_of(node)
            case ast.Fold():
                return self.fold(node)
            case ast.OptMap():
                return self.opt_map(node)
            case ast.SortBy():
                return self.sort_by(node)
        return plus(MESSAGE, self.operands_cost(node))

    def operands_cost(self, node: ast.Expr) -> int:
        return min(sum(map(self.cost, ast.children(node))), MOST)

    # --- properties of nodes ---------------------------------------------------------------------

    def resolved_name(self, node: ast.Expr) -> str:
        source_name = node.name if isinstance(node, ast.Name) else ""
        return self.checked.names.get(node, source_name).lstrip(".:")

    def local(self, node: ast.Expr) -> _Local | None:
        stack = self.locals.get(self.resolved_name(node))
        return stack[-1] if stack else None

    def path(self, node: ast.Expr) -> Path | None:
        local = self.local(node) if isinstance(node, ast.Name) else None
        return self.paths.get(node) if local is None else local.path

    def declared_size(self, path: Path | None) -> Size | None:
        if path is None:
            return None
        declared: Declared | None = self.declared
        for name in path.names[1:]:
            if declared is None:
                return None
            if name in {"@items", "@values"}:
                declared = declared.item
            else:
                declared = declared.key if name == "@keys" else declared.fields.get(name)
        return None if declared is None else (0, declared.elements)

    def size(self, node: ast.Expr) -> Size | None:
        """Returns the size of a node, None if it has no bound.

        The first of these counts: 1. its recorded size, 2. the length of a literal, 3. the declared
        size at its path, 4. the size of its type, 5. that of a macro's variable.
        """
        if node in self.sizes:
            return self.sizes[node]
        match node:
            case ast.Constant():
                length = len(node.value) if isinstance(node.value, str | bytes) else 1
                return length, length
            case ast.ListOf():
                return len(node.items), len(node.items)
            case ast.MapOf():
                return len(node.entries), len(node.entries)
        declared = self.declared_size(self.path(node))
        if declared is not None:
            self.sizes[node] = declared
            return declared
        local = self.local(node) if isinstance(node, ast.Name) else None
        return size_of_type(self.types[node]) or (None if local is None else local.size)

    def entries_of(self, node: ast.Expr) -> Entries | None:
        if node in self.entries:
            return self.entries[node]
        local = self.local(node) if isinstance(node, ast.Name) else None
        return None if local is None else local.entries

    def copy(self, source: ast.Expr, to: ast.Expr) -> None:
        size, entries = self.size(source), self.entries_of(source)
        if size is not None:
            self.sizes[to] = size
        if entries is not None:
            self.entries[to] = entries

    def operand(self, node: ast.Expr) -> SizedOperand:
        return SizedOperand(node, self.types[node], self.path(node), self.size(node))

    # --- forms ----------------------------------------------------------------------------------

    def name(self, node: ast.Expr) -> int:
        local = self.local(node)
        if local is None:
            self.paths[node] = Path.of(self.resolved_name(node))
        elif local.path is not None:
            self.paths[node] = local.path
        return 1

    def select(self, node: ast.Select) -> int:
        cost = self.cost(node.operand)
        if node.optional:  # a call of a function
            return plus(cost, 1)
        if node.tests:
            return cost
        of = self.types[node.operand]
        self.paths[node] = onward(self.path(node.operand), node.field)
        return plus(cost, 1) if of.name == "map" or of.message else cost

    def list_of(self, node: ast.ListOf) -> int:
        cost, items = LIST, (MOST if node.items else 0, 0)
        for item in node.items:
            cost = plus(cost, self.cost(item))
            items = union(items, self.size(item) or ANY_SIZE)
        self.entries[node] = Entries(is_list=True, key=ONE, value=items)
        return cost

    def map_of(self, node: ast.MapOf) -> int:
        cost = MAP
        keys = values = (MOST if node.entries else 0, 0)
        for entry in node.entries:
            cost = plus(cost, plus(self.cost(entry.key), self.cost(entry.value)))
            keys = union(keys, self.size(entry.key) or ANY_SIZE)
            values = union(values, self.size(entry.value) or ANY_SIZE)
        self.entries[node] = Entries(is_list=False, key=keys, value=values)
        return cost

    # --- calls ----------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> int:
        """Returns the cost of a call.

        There are four cases: 1. ``&&`` and ``||`` cost what their operands cost. 2. A conditional
        has the dearer branch. 3. ``dyn`` passes its operand on. 4. Any other call has the dearest of
        its overloads, and the union of their sizes.
        """
        name = self.checked.functions.get(node, node.function)
        costs: list[int] = []
        args: list[SizedOperand] = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self.operand(arg))
        cost, target = min(sum(costs), MOST), None
        if name in {"_&&_", "_||_"}:
            return cost
        if name == "_?_:_":
            return self.conditional(node, costs, args)
        if name == "dyn":
            self.copy(node.args[0], node)
            return plus(cost, 1)
        if node.target is not None and node not in self.checked.functions:
            cost = plus(cost, self.cost(node.target))
            target = self.operand(node.target)
        call_cost_max, size = 0, None
        for overload in self.checked.overloads[node]:
            call = CallToCost(name, overload, target, args, self.declared_size)
            overload_cost, overload_size = call_cost(call)
            call_cost_max = max(call_cost_max, overload_cost)
            if overload_size is not None:
                size = overload_size if size is None else union(size, overload_size)
            size = self.indexed(node, overload, size) if name == "_[_]" else size
            size = size or self.size(node)
        if name == "_+_":
            entries = union_of_entries(*map(self.entries_of, node.args))
            if entries is not None:
                self.entries[node] = entries
        if size is not None:
            self.sizes[node] = size
        return plus(cost, call_cost_max)

    def indexed(self, node: ast.Call, overload: Overload, size: Size | None) -> Size | None:
        """Returns the size of an item; its path continues that of its list or map."""
        step = {"list": "@items", "map": "@values"}.get(overload.args[0].name)
        if step is None:
            return size
        entries = self.entries_of(node.args[0])
        self.paths[node] = onward(self.path(node.args[0]), step)
        return None if entries is None else entries.value

    def conditional(self, node: ast.Call, costs: list[int], args: list[SizedOperand]) -> int:
        self.sizes[node] = union(args[1].size, args[2].size)
        entries = union_of_entries(*map(self.entries_of, node.args[1:]))
        if entries is not None:
            self.entries[node] = entries
        return plus(costs[0], max(costs[1:]))

    # --- macros ---------------------------------------------------------------------------------

    def fold(self, node: ast.Fold) -> int:
        cost = plus(self.cost(node.range), _BEGIN.get(node.kind, 0))
        self.enter(node)
        test = 0 if node.test is None else self.cost(node.test)
        key = 0 if node.key is None else self.cost(node.key)
        turn = plus(plus(test, key), plus(self.cost(node.body), _TURN.get(node.kind, 2 + LIST)))
        item = self.size(node.body) or ANY_SIZE
        for name in (node.first, node.second):
            if name is not None:
                self.locals[name].pop()
        count = self.size(node.range) or ANY_SIZE
        self.sizes[node] = ONE if node.kind in {"all", "exists", "exists_one"} else count
        if _BEGIN.get(node.kind) == LIST:
            self.entries[node] = Entries(is_list=True, key=ONE, value=union(_EMPTY, item))
        return plus(plus(cost, _END.get(node.kind, 1)), times(count[1], turn))

    def enter(self, node: ast.Fold) -> None:
        """Adds the variables of a macro: an item or a key, or both."""
        entries = self.entries_of(node.range)
        is_list = self.types[node.range].name == "list" if entries is None else entries.is_list
        at_key, at_value = ("@indices", "@items") if is_list else ("@keys", "@values")
        path = self.path(node.range)
        key = onward(path, at_key), None if entries is None else entries.key
        value = onward(path, at_value), None if entries is None else entries.value
        if node.second is not None:
            self.push(node.first, *key)
            self.push(node.second, *value)
        else:
            self.push(node.first, *(value if is_list else key))

    def push(
        self, name: str, path: Path | None, size: Size | None, entries: Entries | None = None
    ) -> None:
        self.locals.setdefault(name, []).append(_Local(path, size, entries))

    def opt_map(self, node: ast.OptMap) -> int:
        """``target.hasValue() ? optional.of(bind target.value()) : optional.none()``."""
        test = plus(self.cost(node.target), 1)
        value = plus(self.cost(node.target), 1)
        self.push(node.variable.name, None, size_of_type(self.types[node.variable]))
        bound = plus(plus(LIST, value), self.cost(node.body))
        self.locals[node.variable.name].pop()
        nothing = size_of_type(self.types[node]) or ANY_SIZE
        some = (self.size(node.body) or ANY_SIZE) if node.flat else nothing
        self.sizes[node] = union(some, nothing)
        return plus(test, bound if node.flat else plus(bound, 1))

    def sort_by(self, node: ast.SortBy) -> int:
        """``bind target: target.@sortByAssociatedKeys(target.map(name, key))``."""
        target = node.target
        cost = plus(LIST, self.cost(target))
        source = ast.Name(node.at, _SORTED)
        keys = ast.Fold(node.at, "map", source, node.name, None, None, node.key)
        self.push(_SORTED, self.path(target), self.size(target), self.entries_of(target))
        self.types[source] = self.types[target]
        self.types[keys] = list_of(self.types[node.key])
        cost = plus(cost, plus(self.cost(keys), self.cost(source)))
        args, items = [self.operand(keys)], self.operand(source)
        self.locals[_SORTED].pop()
        costs: list[CallCost] = [
            call_cost(
                CallToCost("@sortByAssociatedKeys", overload, items, args, self.declared_size)
            )
            for overload in self.checked.overloads[node]
        ]
        call_cost_max, size = max(costs)
        if size is not None:
            self.sizes[node] = size
        return plus(cost, call_cost_max)
