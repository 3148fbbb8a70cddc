"""Stage 9: references as Python: paths in values, documents, packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import bound_properties, properties_of
from webhook.rego.run.runtime import MISSING, index, is_collection, pairs_in_order
from webhook.rego.run.values import UNDEFINED, Value
from webhook.rego.write.constants import NeverHolds
from webhook.rego.write.expression import (
    FALSE,
    KIND_OF,
    TRUE,
    Expression,
    Kind,
    all_of,
    call,
    compare,
    conditional,
    is_of,
    item,
    method,
    name,
    tuple_of,
)
from webhook.rego.write.facts import Origin, SizeOf, ValueAt
from webhook.rego.write.function_requests import (
    Built,
    Document,
    Matching,
    Members,
    ObjectDocument,
    PackageNode,
)
from webhook.rego.write.statement import Line
from webhook.rego.write.unification import UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.check.tree import Node
    from webhook.rego.write.function import FunctionBuilder

MAX_POSITION: Final = 1000
"""The limit of array positions in policies that are tested before the general lookup."""


class References:
    """Writes references into a function; loops are opened for their unbound variables."""

    __slots__ = ("_function", "_index")

    def __init__(self, function: FunctionBuilder) -> None:
        self._function = function
        self._index = "index"
        """The function that reads a value at a name: base documents are read otherwise."""

    def reference(self, ref: ir.Ref) -> Expression:
        """The value of a reference; loops are opened for its unbound variables."""
        function, terms = self._function, self._function.terms
        head = ref.head
        if isinstance(head, ir.Var) and head.name not in function.env:
            if head.name == "data":
                return self.data(ref)
            if head.name == "input":
                origin = Origin(function.state, "input")
                return self._steps(item(function.state, 0), ref.path, 0, origin)
            raise function.unit.refuse("reference to an unbound variable", function.location)
        value, at = self._followed(terms.static(head), ref.path, 0)
        if at:
            return self._steps(terms.constant(value), ref.path, at)
        base = terms.atom(head)
        return self._steps(base, ref.path, 0, Origin(base.source))

    def _followed(self, value: Value, path: list[ir.Term], at: int) -> tuple[Value, int]:
        """A known value followed as far as the path is known; and how far."""
        while value is not MISSING and value is not UNDEFINED and at < len(path):
            step = self._function.terms.static(path[at])
            if step is MISSING or step is UNDEFINED:
                break
            value = index(value, step)
            at += 1
        return value, at

    def _steps(
        self, current: Expression, path: list[ir.Term], at: int, origin: Origin | None = None
    ) -> Expression:
        """Writes the rest of a path from a value.

        Values read from an ``origin`` can be used again.
        """
        walked: tuple[str, ...] = ()
        while at < len(path):
            if current.is_known:
                value, reached = self._followed(current.value, path, at)
                if reached > at:
                    current, origin, at = self._function.terms.constant(value), None, reached
                    continue
                if not is_collection(current.value):
                    raise NeverHolds
            part = path[at]
            if isinstance(part, ir.Const) and type(part.value) is str:
                run = [part.value]
                at += 1
                while at < len(path):
                    part = path[at]
                    if not (isinstance(part, ir.Const) and type(part.value) is str):
                        break
                    run.append(part.value)
                    at += 1
                current = self._names(current, walked, tuple(run), origin)
                walked = (*walked, *run)
                continue
            origin = None
            current = self._step(current, part)
            at += 1
        return current

    # --- paths of constant names ----------------------------------------------------------------

    def _names(
        self,
        current: Expression,
        walked: tuple[str, ...],
        run: tuple[str, ...],
        origin: Origin | None,
    ) -> Expression:
        """Follows constant names, from the longest beginning that is already known."""
        function = self._function
        if origin is None:
            return self._get(self._simple(current), run)
        for length in range(len(run), 0, -1):
            value = function.known.get(ValueAt(origin, (*walked, *run[:length])))
            if value is not None:
                rest = run[length:]
                if not rest:
                    return value
                return self._names(value, (*walked, *run[:length]), rest, origin)
        path = (*walked, *run)
        if not walked:
            if origin == Origin("S", "input"):
                return self._input(run)
            if not origin.root and function.uses.operands.get((origin.local, *run), 0) > 1:
                return self._of_operand(current, run)
        value = self._get(self._simple(current), run)
        function.known[ValueAt(origin, path)] = value
        return value

    def _simple(self, value: Expression) -> Expression:
        """Returns a value that may be repeated at no cost; the input already may."""
        is_input = value.source == item(self._function.state, 0).source
        return value if is_input else self._function.simple(value)

    def _input(self, run: tuple[str, ...]) -> Expression:
        """A path of the input, read at the function's beginning where that pays."""
        function = self._function
        if function.looping or function.uses.paths.get(run, 0) > 1:
            value = self._hoist(run, "U")
            function.condition(compare(value, "is not", "U"))
        else:
            base, rest = self._longest(run)
            value = self._get(base, rest)
        function.known[ValueAt(Origin("S", "input"), run)] = value
        return value

    def _of_operand(self, operand: Expression, run: tuple[str, ...]) -> Expression:
        """A path in an operand that is read more than once: read at the function's beginning."""
        function = self._function
        at = ("U", operand.source, *run)
        local = function.hoisted.get(at)
        if local is None:
            local = function.hoisted[at] = name(f"p{len(function.hoisted)}")
            if len(run) == 1:
                reading = conditional(
                    method(operand, "get", repr(run[0]), "U"),
                    compare(call("type", operand), "is", "dict"),
                    call("index", operand, repr(run[0])),
                )
                function.prologue.append(Line(1, f"{local.source} = {reading.source}"))
            else:
                function.prologue += self._reading(local, operand, run, "U", 1)
        function.condition(compare(local, "is not", "U"))
        function.known[ValueAt(Origin(operand.source), run)] = local
        return local

    def _longest(self, full: tuple[str, ...]) -> tuple[Expression, tuple[str, ...]]:
        """The longest beginning of a path that is shared, read once, and the rest."""
        for length in range(len(full) - 1, 1, -1):
            if self._function.uses.beginnings.get(full[:length], 0) > 1:
                return self._hoist(full[:length], "E"), full[length:]
        return item("S", 0), full

    def _hoist(self, full: tuple[str, ...], absent: str) -> Expression:
        """A local read at the function's beginning; ``absent`` is its value where there is none."""
        function = self._function
        local = function.hoisted.get((absent, *full))
        if local is None:
            base, rest = self._longest(full)
            local = function.hoisted[(absent, *full)] = name(f"p{len(function.hoisted)}")
            function.prologue += self._reading(local, base, rest, absent, 1)
        return local

    def _reading(
        self, local: Expression, base: Expression, run: tuple[str, ...], absent: str, indent: int
    ) -> tuple[Line, Line]:
        """Statements that read a path of names into a local."""
        read = base
        for step in run[:-1]:
            read = method(read, "get", repr(step), "E")
        read = method(read, "get", repr(run[-1]), absent)
        slow = call("path", base, self._function.unit.constant(run))
        return (
            Line(indent, f"try: {local.source} = {read.source}"),
            Line(indent, f"except AttributeError: {local.source} = {slow.source}"),
        )

    def _get(self, of: Expression, run: tuple[str, ...]) -> Expression:
        """A local holding ``of.a.b.c`` where it is defined."""
        function = self._function
        if len(run) == 1:
            reading = method(of, "get", repr(run[0]), "U")
            if of.kind is not Kind.DICT:
                is_dict = compare(call("type", of), "is", "dict")
                reading = conditional(reading, is_dict, call("index", of, repr(run[0])))
            common = function.common.get(of.source)
            local = None if common is None else common.local(reading, function.new)
            if local is None:
                return function.defined(reading)
            function.condition(compare(local, "is not", "U"))
            return local
        read = function.reads.get((of.source, run))
        value = self._read(of, run) if read is None else read[0]
        function.condition(compare(value, "is not", "U"))
        return value

    def _read(self, of: Expression, run: tuple[str, ...]) -> Expression:
        """A local holding ``of.a.b.c``, undefined where there is none."""
        function = self._function
        value = function.new()
        function.flush()
        function.lines += self._reading(value, of, run, "U", function.indent)
        if of.is_simple:
            function.reads[of.source, run] = value, function.indent
        return value

    # --- other steps ------------------------------------------------------------------------------

    def _step(self, current: Expression, part: ir.Term) -> Expression:
        """Writes one step whose name is not constant."""
        terms = self._function.terms
        current = self._function.simple(current)
        if terms.bound(part) or isinstance(part, ir.Ref):
            return self.lookup(current, terms.atom(part))
        return self._iterate(current, part)

    def lookup(self, of: Expression, at: Expression) -> Expression:
        """``of[at]`` for a bound name."""
        function = self._function
        general = call(self._index, of, at)
        if at.kind is Kind.INT and at.is_known and 0 <= at.value < MAX_POSITION:
            tests = [is_of(of, Kind.LIST)] if of.kind is not Kind.LIST else []
            tests.append(compare(call("len", of), ">", at))
            return function.defined(conditional(item(of, at.value), all_of(tests), general))
        if at.kind not in (Kind.STRING, Kind.ANY):
            return function.defined(general)
        reading = method(of, "get", at, "U")
        tests = []
        if of.kind is not Kind.DICT:
            tests.append(is_of(of, Kind.DICT))
        if at.kind is not Kind.STRING:
            tests.append(is_of(at, Kind.STRING))
        if not tests:
            return function.defined(reading)
        return function.defined(conditional(reading, all_of(tests), general))

    def _iterate(self, current: Expression, part: ir.Term) -> Expression:
        """Opens a loop over a collection, binding the part to its keys."""
        if current.is_known:
            return self._iterate_known(current.value, part)
        function, kind = self._function, current.kind
        value = function.new()
        if function.terms.single_use(part):
            if kind is Kind.LIST or (kind is Kind.SET and function.repeats):
                items = current
            else:
                values = "values" if function.repeats else "values_in_order"
                is_list = compare(call("type", current), "is", "list")
                items = function.assign(conditional(current, is_list, call(values, current)))
            # A set's own length takes a call of Python's.
            size = function.known.get(SizeOf(items.source), items)
            function.charge(call("len", size).source)
            function.loop(value, items)
            function.env[part.name] = UNREAD  # type: ignore[union-attr]  # generated code never reads it
            return value
        key = function.new({Kind.LIST: Kind.INT, Kind.DICT: Kind.STRING}.get(kind, Kind.ANY))
        if kind is Kind.LIST:
            function.charge(call("len", current).source)
            function.loop(f"{key.source}, {value.source}", call("enumerate", current))
            function.patterns.match(part, key)
            return value
        if function.repeats:
            is_dict = compare(call("type", current), "is", "dict")
            pairs = conditional(method(current, "items"), is_dict, call("pairs", current))
        else:
            pairs = call("pairs_in_order", current)
        items = function.assign(pairs)
        function.charge(call("len", items).source)
        function.loop(f"{key.source}, {value.source}", items)
        function.patterns.match(part, key)
        return value

    def _iterate_known(self, known: Value, part: ir.Term) -> Expression:
        """Opens a loop over a constant. There are three cases.

        1. no items: the body has no solution.

        2. one item: it is matched without a loop.

        3. more items: a loop.
        """
        function, constant = self._function, self._function.terms.constant
        items = list(pairs_in_order(known))
        if not items:
            raise NeverHolds
        if len(items) == 1:
            function.patterns.match(part, constant(items[0][0]))
            return constant(items[0][1])
        function.charge_constant(len(items))
        value = function.new(_kind_of_all(item for _, item in items))
        if function.terms.single_use(part):
            function.loop(value, function.unit.constant(tuple(item for _, item in items)))
            function.env[part.name] = UNREAD  # type: ignore[union-attr]  # nobody reads it
            return value
        key = function.new(_kind_of_all(key for key, _ in items))
        function.loop(f"{key.source}, {value.source}", function.unit.constant(tuple(items)))
        function.patterns.match(part, key)
        return value

    # --- data ------------------------------------------------------------------------------------

    def data(self, ref: ir.Ref) -> Expression:
        """A reference below ``data``: documents of rules, base documents, or both."""
        node: Node = self._function.unit.tree.root
        path = ref.path
        at = 0
        while at < len(path):
            part = path[at]
            if not isinstance(part, ir.Const):
                break
            child = node.child(part.value)
            if child is None:
                return self._base(path)
            node = child
            at += 1
            if node.rules:
                return self.document(node, path, at)
        return self._explore(node, path, at)

    def _base(self, path: list[ir.Term]) -> Expression:
        """A path in base documents, which OPA reads in a way of its own."""
        function = self._function
        self._index = "index_base"
        try:
            root = function.terms.root("data")
            return self._steps(root, path, 0, Origin(function.state, "data"))
        finally:
            self._index = "index"

    def _explore(self, node: Node, path: list[ir.Term], at: int) -> Expression:
        """A path that leaves the constants among packages: found at run time."""
        function = self._function
        function.effects += 1
        data_node = function.unit.want(PackageNode(node))
        names = function.unit.constant(tuple(node.path))
        if at == len(path):
            return function.defined(call("extent", function.state, data_node, names))
        steps: list[Expression | str] = []
        opened = []
        for part in path[at:]:
            if function.terms.bound(part) or isinstance(part, ir.Ref):
                steps.append(function.terms.atom(part))
            else:
                steps.append("U")
                opened.append(part)
        targets = [function.new() for _ in opened]
        value = function.new()
        function.charge_turns()
        function.loop(
            "".join(f"{local.source}, " for local in (*targets, value)),
            call("explore", function.state, data_node, names, tuple_of(steps)),
        )
        for part, local in zip(opened, targets, strict=True):
            function.patterns.match(part, local)
        return value

    def document(self, node: Node, path: list[ir.Term], at: int) -> Expression:
        """The document of the rules at a node, and the rest of the path in it."""
        function, unit = self._function, self._function.unit
        rules = node.rules
        replacement = None if unit.replaceable(node.path) else node.stands_for
        if isinstance(replacement, ir.Const):
            return self._steps(function.terms.constant(replacement.value), path, at)
        if replacement is not None:
            return self.reference(ir.Ref(replacement.head, [*replacement.path, *path[at:]]))
        if unit.ahead is not None and not node.dynamic and rules[0].args is None:
            value = unit.ahead.document(node)
            if value is not MISSING:
                return self._steps(function.terms.constant(value), path, at)
        function.effects += 1
        if node.dynamic:
            return self._built(node, path, at)
        if rules[0].args is not None:
            function.condition(FALSE)
        is_set = rules[0].kind == "set"
        if is_set and at < len(path):
            return self._member(node, path, at)
        document = unit.want(Document(node))
        key = ValueAt(Origin(function.state, "data"), node.path)
        local = function.known.get(key)
        if local is None:
            computed = call(document, function.state)
            local = function.assign(computed) if is_set else function.defined(computed)
            function.known[key] = local
        return self._steps(local, path, at)

    def _built(self, node: Node, path: list[ir.Term], at: int) -> Expression:
        """The document of rules with variables in their references, or a property of it."""
        function, unit = self._function, self._function.unit
        chosen = self._chosen(node, path)
        replaceable = unit.replaceable(node.path)
        if chosen == ():
            if not replaceable:
                raise NeverHolds  # no rule's reference meets the path
            chosen = None
        if at < len(path) and function.terms.bound(path[at]) and not replaceable:
            part = function.terms.operand(path[at])
            built = call(unit.want(Built(node, chosen)), function.state)
            current = function.defined(call("entry", built, part))
            return self._steps(current, path, at + 1)
        document = unit.want(ObjectDocument(node, chosen))
        return self._steps(function.defined(call(document, function.state)), path, at)

    def _chosen(self, node: Node, path: list[ir.Term]) -> tuple[int, ...] | None:
        """Returns the rules below a node that the path can meet; None for all of them."""
        everything = [rule for below in node.walk() for rule in below.rules]
        met = {id(rule) for rule in self._function.unit.tree.reached(path)}
        chosen = tuple(i for i, rule in enumerate(everything) if id(rule) in met)
        return None if len(chosen) == len(everything) else chosen

    def _member(self, node: Node, path: list[ir.Term], at: int) -> Expression:
        """A member of a partial set."""
        function, unit = self._function, self._function.unit
        part = path[at]
        if function.terms.bound(part) or isinstance(part, ir.Ref):
            member = function.terms.atom(part)
            document = call(unit.want(Document(node)), function.state)
            element = function.defined(call("index", document, member, kind=member.kind))
            return self._steps(element, path, at + 1)
        plain = function.repeats and not unit.replaceable(node.path)
        if plain and isinstance(part, ir.Object) and at == len(path) - 1:
            given = bound_properties(node.rules, part, function.terms.bound)
            if given is not None:
                return self._matching(node, part, given)
        if plain:
            members = unit.want(Members(node))
            if members in unit.fixed:
                raise NeverHolds
            items = function.assign(call(members, function.state))
            function.charge(call("len", items).source)
        else:
            items = function.assign(call(unit.want(Document(node)), function.state))
            function.charge(call("size", items).source)
        value = function.new()
        values = "values" if function.repeats else "values_in_order"
        function.loop(value, items if plain else call(values, items))
        function.patterns.match(part, value)
        return self._steps(value, path, at + 1)

    def _matching(self, node: Node, pattern: ir.Object, given: list[str]) -> Expression:
        """Opens a loop over the members of a set that have the pattern's bound properties."""
        function, unit = self._function, self._function.unit
        values = properties_of(pattern)
        assert values is not None
        operands = [function.terms.operand(values[key]) for key in given]
        kinds = tuple((key, value.kind) for key, value in zip(given, operands, strict=True))
        rest = tuple(key for key in values if key not in given)
        members = unit.want(Matching(node, kinds, rest))
        if members in unit.fixed:
            raise NeverHolds
        function.called(members)
        items = function.assign(call(members, function.state, *operands))
        function.charge(call("len", items).source)
        targets = [function.new() for _ in rest]
        function.loop(", ".join(local.source for local in targets), items)
        for key, local in zip(rest, targets, strict=True):
            function.patterns.match(values[key], local)
        return TRUE  # an object, which is not false; nothing reads it


def _kind_of_all(values: Iterable[Value]) -> Kind:
    """Returns the kind of all values; ANY if their kinds differ."""
    kinds = {KIND_OF.get(type(value), Kind.ANY) for value in values}
    return kinds.pop() if len(kinds) == 1 else Kind.ANY
