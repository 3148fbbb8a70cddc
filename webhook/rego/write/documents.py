"""Stage 10: the rules of one path as Python functions (:mod:`webhook.rego.write.function_requests`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.run.values import UNDEFINED, equal
from webhook.rego.write import function_requests as requests
from webhook.rego.write.bodies import new_function
from webhook.rego.write.expression import (
    Expression,
    Kind,
    call,
    compare,
    conditional,
    is_of,
    method,
    tuple_of,
)
from webhook.rego.write.expression import name as local
from webhook.rego.write.payment import Payment
from webhook.rego.write.rule_bodies import RuleBodies, begin, function_of
from webhook.rego.write.statement import Line, Return, WrittenFunction
from webhook.rego.write.uses import Uses

if TYPE_CHECKING:
    from webhook.rego.check.ir import Rule
    from webhook.rego.check.tree import Node
    from webhook.rego.write.function import FunctionBuilder
    from webhook.rego.write.function_requests import FunctionRequest
    from webhook.rego.write.unit import Unit

MANY_CALLS: Final = 3
"""Places that call a function from which on its answers are kept."""

OUT: Final = local("out")
"""The variable with the results of a function: at its end, the results of all its bodies."""

NONE: Final = local("U")
"""No value."""


class Documents:
    """Writes the functions that a unit wants, until it wants no more."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.functions: list[tuple[str, Node]] = []
        self.kept: list[str] = []
        """Statements that let functions keep their answers, after all functions."""
        self.given: tuple[Expression | None, ...] = ()
        """Operands that the function being written is given as constants."""
        self.repeats = False
        """Whether the function being written may be called any number of times."""

    def run(self) -> None:
        """Writes every function that was requested."""
        while self.unit.requested:
            self.write(*self.unit.requested.pop())
        for name, node in self.functions:
            if self.unit.calls.get(id(node), 0) >= MANY_CALLS and node.worth_keeping:
                self.kept.append(f"{name} = kept({name}, {self.unit.slot()})")
        self.unit.ends += self.kept

    def write(self, name: str, request: FunctionRequest) -> None:
        """Write one function."""
        outer, self.repeats = (
            self.repeats,
            isinstance(request, requests.Function | requests.Matching),
        )
        if isinstance(request, requests.Document):
            self._document(name, request.node)
        elif isinstance(request, requests.Members):
            self._members(name, request.node)
        elif isinstance(request, requests.Collection):
            self._collection(name, request.term)
        elif isinstance(request, requests.Grouped):
            self._grouped(name, request)
        elif isinstance(request, requests.Matching):
            self._matching(name, request)
        elif isinstance(request, requests.Function):
            if not request.given:
                self.functions.append((name, request.node))
            self._function(name, request)
        elif isinstance(request, requests.ObjectDocument):
            self._object(name, request)
        elif isinstance(request, requests.Built):
            self._built(name, request)
        else:
            self._data_node(name, request.node)
        self.repeats = outer

    def _finish(
        self, name: str, params: tuple[str, ...], first: tuple[str, ...], writer: FunctionBuilder
    ) -> None:
        if not writer.effects:
            self.unit.quiet.add(name)
        only = writer.lines[0] if len(writer.lines) == 1 else None
        if isinstance(only, Return):
            if only.value in (NONE, OUT):
                self.unit.fixed[name] = UNDEFINED
            elif only.value.is_known:
                self.unit.fixed[name] = only.value.value
        self.unit.payments[name] = Payment(
            writer.free, writer.straight, writer.callees, pays=writer.pays, repeats=self.repeats
        )
        lines = [*writer.prologue, *writer.lines]
        self.unit.functions.append(WrittenFunction(name, params, lines, first))

    def _function_of(self, rules: list[Rule]) -> FunctionBuilder:
        """A function of rules, to be written."""
        writer = function_of(self.unit, rules)
        writer.is_called_often = self.repeats
        return writer

    def _plain(self, name: str, params: tuple[str, ...], value: Expression) -> None:
        """A function that does nothing that must be paid."""
        lines: list[Line] = [Return(1, value=value)]
        self.unit.functions.append(WrittenFunction(name, params, lines, settled=True))

    def _cached(self, name: str, inner: str, node: Node, slot: int, *, guard: bool = True) -> None:
        """The function that computes a document once, unless a modifier replaces it."""
        if guard and self.unit.replaceable(node.path):
            path = self.unit.constant(tuple(node.path)).source
            self.kept.append(f"{name} = once_unless_replaced({inner}, {slot}, {path})")
        else:
            self.kept.append(f"{name} = once({inner}, {slot})")

    def _of_constraint(self, name: str, inner: str, node: Node) -> None:
        """Writes a document's function; it keeps a value that parameters alone decide."""
        slot = self.unit.slot()
        if self.unit.purity.document(node):
            self.unit.of_constraint.append((slot, name))
        elif self.unit.sharing is not None:
            shared, fields = self.unit.sharing(node, name[0])
            if shared:
                self.kept.append(f"{name} = shared({inner}, {slot}, {shared!r}, {fields!r})")
                return
        self._cached(name, inner, node, slot)

    def _collection(self, name: str, term: ir.Comprehension) -> None:
        """A comprehension that only parameters decide, wherever it stands."""
        slot = self.unit.slot()
        self.kept.append(f"{name} = once({name}e, {slot})")
        self.unit.of_constraint.append((slot, name))
        uses = Uses()
        uses.body([term], [])
        writer = new_function(self.unit, uses)
        writer.location = term.location
        writer.result(writer.nest.collection(term))
        self._finish(f"{name}e", _STATE, (), writer)

    def _grouped(self, name: str, request: requests.Grouped) -> None:
        """The solutions of a comprehension, by the values that variables around it have."""
        self.kept.append(f"{name} = once({name}e, {self.unit.slot()})")
        term, keys = request.term, [ir.Var(key) for key in request.names]
        uses = Uses()
        uses.body([term.value, *keys], term.body)
        writer = new_function(self.unit, uses)
        writer.location = term.location
        writer.repeats = term.kind != "array"
        writer.collecting = OUT.source
        add = "add_item" if term.kind == "array" else "add_member"

        def solve() -> None:
            writer.nest.body(term.body)
            writer.location = term.location
            key_parts = tuple_of([writer.terms.operand(key) for key in keys])
            value = writer.terms.operand(term.value)
            writer.line(method(OUT, add, key_parts, value).source)
            writer.work()

        writer.attempt(solve)
        writer.close()
        writer.end(OUT)
        self._finish(f"{name}e", _STATE, ("out = Groups()",), writer)

    # --- sets --------------------------------------------------------------------------------------

    def entry(self, name: str, node: Node) -> None:
        """Writes the function of the requested document; no other function calls it."""
        if node.rules[0].kind == "set":
            self._set(name, node)
        else:
            self._single(name, _STATE, node)

    def _document(self, name: str, node: Node) -> None:
        inner = f"{name}e"
        self._of_constraint(name, inner, node)
        if node.rules[0].kind == "set":
            self._set(inner, node)
        else:
            self._single(inner, _STATE, node)

    def _set(self, name: str, node: Node) -> None:
        if all(isinstance(rule.key, ir.Object | ir.Array) for rule in node.rules):
            # Keys of composite members are dear and often never needed.
            self._list(name, node, call("lazy_set", OUT))
            return
        writer = self._function_of(node.rules)

        def add(rule: Rule) -> None:
            assert rule.key is not None
            writer.nest.add_member(OUT.source, writer.terms.operand(rule.key))

        RuleBodies(writer, _no_matches, add, OUT.source).write(node.rules)
        writer.end(call("set_of", OUT))
        self._finish(name, _STATE, ("out = {}",), writer)

    def _members(self, name: str, node: Node) -> None:
        inner = f"{name}e"
        self._of_constraint(name, inner, node)
        self._list(inner, node, OUT)
        if inner in self.unit.fixed:
            self.unit.fixed[name] = UNDEFINED

    def _matching(self, name: str, request: requests.Matching) -> None:
        """Writes the function that returns the members of a set with given property values.

        It replaces an iteration over all members. The result holds the ``open`` properties of each
        member.
        """
        params = [local(f"a{i}", kind) for i, (_, kind) in enumerate(request.given)]
        writer = self._function_of(request.node.rules)

        def matches(rule: Rule) -> list[tuple[ir.Term, Expression]]:
            terms = _properties(rule)
            return [
                (terms[key], param) for (key, _), param in zip(request.given, params, strict=True)
            ]

        def add(rule: Rule) -> None:
            terms = _properties(rule)
            key_parts = [writer.terms.operand(terms[key]) for key in request.open]
            value = key_parts[0] if len(key_parts) == 1 else tuple_of(key_parts)
            writer.line(method(OUT, "append", value).source)

        RuleBodies(writer, matches, add, OUT.source).write(request.node.rules)
        writer.end(OUT)
        names = (*_STATE, *(param.source for param in params))
        self._finish(name, names, ("out = []",), writer)

    def _list(self, name: str, node: Node, end: Expression) -> None:
        writer = self._function_of(node.rules)

        def add(rule: Rule) -> None:
            assert rule.key is not None
            writer.line(method(OUT, "append", writer.terms.operand(rule.key)).source)

        RuleBodies(writer, _no_matches, add, OUT.source).write(node.rules)
        writer.end(end)
        self._finish(name, _STATE, ("out = []",), writer)

    # --- single values -------------------------------------------------------------------------------

    def _function(self, name: str, request: requests.Function) -> None:
        """A function; without parameters for the operands that are given."""
        args = request.node.rules[0].args
        assert args is not None
        given = request.given or (None,) * len(args)
        params = (*_STATE, *(f"a{i}" for i, known in enumerate(given) if known is None))
        if request.given or not self._table(name, params, request.node.rules):
            outer, self.given = self.given, given
            self._single(name, params, request.node)
            self.given = outer

    def _table(self, name: str, params: tuple[str, ...], rules: list[Rule]) -> bool:
        """Writes a lookup for a function whose rules only map one string each to a value."""
        values: dict[str, Any] = {}
        for rule in rules:
            if rule.default or rule.else_ is not None or rule.body or len(rule.args or ()) != 1:
                return False
            assert rule.args is not None
            arg, value = rule.args[0], rule.value
            if not isinstance(arg, ir.Const) or not isinstance(value, ir.Const):
                return False
            if type(arg.value) is not str or arg.value in values:
                return False
            values[arg.value] = value.value
        param = local("a0")
        looked_up = method(self.unit.constant(values), "get", param, NONE)
        self._plain(name, params, conditional(looked_up, is_of(param, Kind.STRING), NONE))
        return True

    def _single(self, name: str, params: tuple[str, ...], node: Node) -> None:
        """A complete document or function: all rules must agree on its value."""
        rules = [rule for rule in node.rules if not rule.default]
        defaults = [rule for rule in node.rules if rule.default]
        message = self.unit.conflict(node)
        branches = [branch for rule in rules for branch in rule.branches()]
        if len(rules) <= 1 or _all_equal(branches):
            # Of one and the same value the first body that holds decides, as it does in OPA.
            self._chain(name, params, [*branches, *defaults], message)
        elif len(branches) > len(rules):
            self._chains(name, params, rules, defaults, message)
        else:
            writer = self._function_of([*rules, *defaults])
            add = partial(self._add_value, writer, message)
            RuleBodies(writer, self._matches, add, in_order=True).write(rules)
            if defaults:
                writer.lines.append(Line(1, "if out is not U: return out"))
                self._alternative(writer, defaults[0], message)
            writer.end(OUT)
            self._finish(name, params, ("out = U",), writer)

    def _chains(
        self,
        name: str,
        params: tuple[str, ...],
        rules: list[Rule],
        defaults: list[Rule],
        message: str,
    ) -> None:
        """Several rules with ``else`` branches: each a function, and all must agree."""
        lines = [Line(1, "out = U")]
        calls = [(f"{name}x{i}", 1) for i in range(len(rules))]
        self.unit.payments[name] = Payment(0, 0, calls, pays=False, repeats=self.repeats)
        so_far = local("v")
        for i, rule in enumerate(rules):
            part = f"{name}x{i}"
            self._chain(part, params, [*rule.branches()], message)
            agreed = call("agreed", OUT, so_far, message, self.unit.place(rule.location))
            value = conditional(so_far, compare(OUT, "is", NONE), agreed)
            lines += [
                Line(1, f"v = {call(part, *params).source}"),
                Line(1, "if v is not U:"),
                Line(2, f"out = {value.source}"),
            ]
        if defaults:
            part = f"{name}z"
            self._chain(part, params, defaults, message)
            lines.append(Line(1, f"if out is U: return {call(part, *params).source}"))
        lines.append(Return(1, value=OUT))
        self.unit.functions.append(WrittenFunction(name, params, lines))

    def _chain(self, name: str, params: tuple[str, ...], chain: list[Rule], message: str) -> None:
        """Writes bodies of which only the first that holds counts: ``else``."""
        writer = self._function_of(chain)
        for rule in chain:
            self._alternative(writer, rule, message)
            last = writer.lines[-1] if writer.lines else None
            if isinstance(last, Return) and last.indent == 1:
                break  # always
        else:
            writer.end(NONE)
        self._finish(name, params, (), writer)

    def _matches(self, rule: Rule) -> list[tuple[ir.Term, Expression]]:
        """A rule's parameters and their values."""
        args = zip(rule.args or (), self.given, strict=False)
        return [(arg, known or local(f"a{i}")) for i, (arg, known) in enumerate(args)]

    def _add_value(self, writer: FunctionBuilder, message: str, rule: Rule) -> None:
        assert rule.value is not None
        value = writer.simple(writer.terms.operand(rule.value))
        self._agree(writer, OUT, value, message, rule)

    def _agree(
        self,
        writer: FunctionBuilder,
        so_far: Expression,
        value: Expression,
        message: str,
        rule: Rule,
    ) -> None:
        writer.effects += 1
        agreed = call("agreed", so_far, value, message, self.unit.place(rule.location))
        writer.set(so_far.source, conditional(value, compare(so_far, "is", NONE), agreed))

    def _alternative(self, writer: FunctionBuilder, rule: Rule, message: str) -> None:
        """Writes one body, which returns its value; solutions with other values are a conflict."""
        start = len(writer.lines)
        saved = begin(writer, rule)
        result: Expression | None = None

        def write() -> None:
            nonlocal result
            for arg, operand in self._matches(rule):
                writer.patterns.match(arg, operand)
            writer.nest.body(rule.body)
            writer.location = rule.location
            assert rule.value is not None
            value = writer.terms.operand(rule.value)
            constant = isinstance(rule.value, ir.Const) and not writer.split
            if constant or not writer.loops:
                writer.result(value)
                return
            value = writer.simple(value)
            result = writer.outer()
            self._agree(writer, result, value, message, rule)

        writer.attempt(write)
        writer.restore(saved)
        if result is not None:
            writer.lines.insert(start, Line(1, f"{result.source} = U"))
            writer.lines.append(Line(1, f"if {result.source} is not U: return {result.source}"))

    # --- objects -----------------------------------------------------------------------------------------

    def _object(self, name: str, request: requests.ObjectDocument) -> None:
        """Writes the document of all rules below a node, or of the rules that a path can reach."""
        inner = f"{name}e"
        self._cached(name, inner, request.node, self.unit.slot())
        built = self.unit.want(requests.Built(request.node, request.chosen))
        self._plain(inner, _STATE, method(call(built, *_STATE), "value"))

    def _built(self, name: str, request: requests.Built) -> None:
        """Write the function that builds a document from its rules; its callers raise a conflict in it."""
        inner = f"{name}e"
        self._cached(name, inner, request.node, self.unit.slot(), guard=False)
        rules = [rule for below in request.node.walk() for rule in below.rules]
        if request.chosen is not None:
            rules = [rules[i] for i in request.chosen]
        writer = self._function_of(rules)
        put = partial(self._put, writer, len(request.node.path))
        RuleBodies(writer, _no_matches, put, in_order=True).write(rules)
        writer.end(OUT)
        self._finish(inner, _STATE, ("out = Branch()",), writer)

    def _put(self, writer: FunctionBuilder, depth: int, rule: Rule) -> None:
        steps = [writer.unit.constant(part) for part in rule.path[depth:]]
        steps += [writer.terms.operand(part) for part in rule.rest]
        multi = rule.value is None
        member = rule.key if multi else rule.value
        assert member is not None
        value = writer.terms.operand(member)
        place = self.unit.place(rule.location)
        put = call("put_path", OUT, tuple_of(steps), value, place, f"multi={multi}")
        writer.line(put.source)

    # --- packages ------------------------------------------------------------------------------------------

    def _data_node(self, name: str, node: Node) -> None:
        document = "None"
        children: list[str] = []
        if node.rules:
            if node.dynamic:
                document = self.unit.want(requests.ObjectDocument(node))
            elif node.rules[0].args is not None:
                document = "undefined"
            else:
                document = self.unit.want(requests.Document(node))
        else:
            children = [
                self.unit.want(requests.PackageNode(child)) for child in node.children.values()
            ]
        hidden = node.path == ("system",)
        below = "".join(f"{child}, " for child in children)
        constant = self.unit.constant(node.name).source
        self.unit.data_nodes.append(f"{name} = DataNode({constant}, {document}, hidden={hidden})")
        if children:
            self.unit.child_links.append(f"set_children({name}, ({below}))")


_STATE: Final = ("S",)
"""The parameter of a document: the evaluation's state."""


def _no_matches(rule: Rule) -> list[tuple[ir.Term, Expression]]:  # noqa: ARG001  # as others
    """Returns no operands, for rules whose head has none."""
    return []


def _properties(rule: Rule) -> dict[Any, ir.Term]:
    """The properties of a member that is an object."""
    assert isinstance(rule.key, ir.Object)
    return {key.value: value for key, value in rule.key.items if isinstance(key, ir.Const)}


def _all_equal(rules: list[Rule]) -> bool:
    """Whether all rules have the same constant value."""
    first = rules[0].value
    return isinstance(first, ir.Const) and all(
        isinstance(rule.value, ir.Const) and equal(rule.value.value, first.value)
        for rule in rules[1:]
    )
