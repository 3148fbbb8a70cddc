"""Checked rules evaluated from the top down, one step after the other (OPA v1/topdown/eval.go).

Each part of a query is given what goes on after it, and answers with what ends the search early, as
OPA's does: so the steps come in OPA's order, those after an early exit included.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.rego.check import ir
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.location import NOWHERE, Location
from webhook.rego.run.packages import merge
from webhook.rego.run.text import display
from webhook.rego.run.values import (
    UNDEFINED,
    RegoObject,
    RegoSet,
    equal,
    key,
    make_object,
    ordered,
)
from webhook.rego.trace import index
from webhook.rego.trace.documents import Collection, entries, replaced, step_into
from webhook.rego.trace.events import Event, place_of
from webhook.rego.trace.text import documents_of, written_path
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.ir import Term
    from webhook.rego.check.tree import Node, Tree
    from webhook.rego.run.limits import EvaluationContext
    from webhook.rego.run.values import Value
    from webhook.rego.trace.events import Step, Tracer


@dataclass(frozen=True, slots=True)
class Exit:
    """The search may end: at once (``early``), or once what is begun has been checked."""

    early: bool
    before: Exit | None = None


Signal: TypeAlias = Exit | None
Then: TypeAlias = "Callable[[], Signal]"


@dataclass(slots=True, eq=False)
class Query:
    """A body under evaluation."""

    body: Sequence[ir.Lit]
    number: int
    parent: int
    values: dict[str, Value]
    names: Mapping[str, str]
    find_one: bool = False
    defined: bool = False
    at: ir.Lit | None = None
    place: Location = NOWHERE


@dataclass(slots=True)
class _World:
    """What ``with`` replaces."""

    input: Value
    data: Value
    replaced: tuple[tuple[str, ...], ...] = ()
    """Paths of documents that are no rules' now."""
    functions: dict[ir.Function, ir.With] = field(default_factory=dict)
    values: dict[ir.Function, Value] = field(default_factory=dict)
    known: dict[Any, Value] = field(default_factory=dict)
    """Documents and answers of functions that have been computed."""


_ABSENT: Final = object()
_EFFECTS: Final = frozenset({"trace", "internal.print", "internal.test_case"})
"""Built-ins that answer true, whatever they do beside."""


class Evaluation:
    """Evaluates queries over a program's rules, and tells a tracer of each step."""

    def __init__(  # noqa: PLR0913  # each is a part of the world around a query
        self,
        tree: Tree,
        builtins: Mapping[str, Builtin],
        input_value: Value,
        data: Value,
        context: EvaluationContext,
        trace: Tracer,
        *,
        indexing: bool = True,
        early_exit: bool = True,
    ) -> None:
        self._tree = tree
        self._builtins = builtins
        self._context = context
        self._trace = trace
        self._world = _World(input_value, data)
        self._indexing = indexing
        self._early_exit = early_exit
        self._count = 0
        self._named: dict[int, list[tuple[str, Any]]] = {}
        self._nodes: list[Any] = []
        """What is named by its identity lives as long."""

    def run(self, body: Sequence[ir.Lit], names: Mapping[str, str]) -> None:
        """Evaluate a query for all its solutions; raises :class:`EvaluationError`."""
        query = Query(body, 0, 0, {}, names)
        self._tell("Enter", query, body)

        def solved() -> Signal:
            self._tell("Exit", query, body)
            self._tell("Redo", query, body)
            return None

        self._query(query, 0, solved)

    # --- steps -------------------------------------------------------------------------------

    def _tell(self, step: Step, query: Query, node: Any, message: str = "") -> None:
        place = place_of(node)
        if place.row:
            query.place = place
        if step == "Exit" and query.find_one:
            message = "early"
        event = Event(step, node, query.place, query.number, query.parent, message, query.names)
        event.body = query.body
        if self._trace.values:
            event.values = dict(query.values)
            event.documents = {
                text: value
                for text, at in self._references(node)
                if (value := self._world.known.get(at, UNDEFINED)) is not UNDEFINED
            }
        self._trace(event)

    def _references(self, node: Any) -> list[tuple[str, Any]]:
        """The documents that a node names, and where they are kept once they are known."""
        found = self._named.get(id(node))
        if found is None:
            found = self._named[id(node)] = list(documents_of(node))
            self._nodes.append(node)
        return found

    def _child(
        self, query: Query, body: Sequence[ir.Lit], *, rule: ir.Rule | None = None
    ) -> Query:
        """A body that is evaluated for a part of a query: a closure over it, or a rule's own."""
        self._context.charge(20)
        self._count += 1
        if rule is None:
            return Query(body, self._count, query.number, query.values, query.names)
        return Query(body, self._count, query.number, {}, rule.names)

    # --- bodies ------------------------------------------------------------------------------

    def _query(self, query: Query, at: int, then: Then) -> Signal:
        if at >= len(query.body):
            signal = then()
            if signal is not None:
                return Exit(query.find_one, signal)
            return Exit(early=True) if query.find_one else None
        lit = query.body[at]
        query.at = lit
        self._context.charge(20)
        self._tell("Eval", query, lit)

        def on() -> Signal:
            return self._query(query, at + 1, then)

        return self._with(query, lit, on) if lit.withs else self._step(query, lit, on)

    def _step(self, query: Query, lit: ir.Lit, on: Then) -> Signal:
        if lit.negated:
            return self._negated(query, lit, on)
        defined = False

        def held() -> Signal:
            nonlocal defined
            defined = True
            signal = on()
            query.at = lit
            self._tell("Redo", query, lit)
            return signal

        signal = _SOLVE[type(lit)](self, query, lit, held)
        if signal is None and not defined:
            self._tell("Fail", query, lit)
        return signal

    def _negated(self, query: Query, lit: ir.Lit, on: Then) -> Signal:
        plain = _plain(lit)
        if not self._holds(query, [plain]):
            return on()
        self._tell("Fail", query, lit)
        return None

    def _holds(self, query: Query, body: Sequence[ir.Lit], *, find_one: bool = False) -> bool:
        """Whether a body has a solution; each is told."""
        child = self._child(query, body)
        child.find_one = find_one
        self._tell("Enter", child, body)

        def solved() -> Signal:
            self._tell("Exit", child, body)
            self._tell("Redo", child, body)
            child.defined = True
            return None

        self._query(child, 0, solved)
        return child.defined

    def _with(self, query: Query, lit: ir.Lit, on: Then) -> Signal:
        outer = self._world
        inner = _World(outer.input, outer.data, outer.replaced, outer.functions, outer.values)
        inner.functions, inner.values = dict(outer.functions), dict(outer.values)
        for modifier in lit.withs:
            value = self._plug(query, modifier.value)
            if modifier.kind == "input":
                inner.input = replaced(inner.input, modifier.target[1:], value)
            elif modifier.kind == "data":
                inner.data = replaced(inner.data, modifier.target[1:], value)
                inner.replaced = (*inner.replaced, modifier.target[1:])
            else:
                name: ir.Function = (
                    modifier.target if modifier.target[0] == "data" else modifier.target[0]
                )
                inner.functions[name] = modifier
                inner.values[name] = value

        def outside() -> Signal:
            self._world = outer
            signal = on()
            inner.known = {}  # OPA's cache for the modifier ends with it, and begins anew
            self._world = inner
            return signal

        self._world = inner
        try:
            return self._step(query, lit, outside)
        finally:
            self._world = outer

    # --- literals ----------------------------------------------------------------------------

    def _eq(self, query: Query, lit: ir.Eq, then: Then) -> Signal:
        return self._unify(query, lit.a, lit.b, then)

    def _test(self, query: Query, lit: ir.Test, then: Then) -> Signal:
        shown = ir.Var("$term")

        def found(value: Value) -> Signal:
            if self._trace.unifications:
                self._tell("Unify", query, ir.Eq(ir.Const(value), shown, NOWHERE))
            return then() if value is not False else None

        if self._trace.unifications:
            self._tell("Unify", query, ir.Eq(_applied(query, lit.term), shown, NOWHERE))
        return self._each(query, lit.term, found)

    def _not(self, query: Query, lit: ir.Not, then: Then) -> Signal:
        return None if self._holds(query, lit.body) else then()

    def _logic(self, query: Query, lit: ir.Logic, then: Then) -> Signal:
        left = self._holds(query, lit.left, find_one=True)
        if left == (lit.operator == "or") or self._holds(query, lit.right, find_one=True):
            return then() if left or lit.operator == "or" else None
        return None

    def _every(self, query: Query, lit: ir.Every, then: Then) -> Signal:
        domain = self._plug(query, lit.domain)
        if not isinstance(domain, (list, dict, RegoObject, RegoSet)):
            self._tell("Fail", query, lit)
            return None
        place = lit.location
        generator: list[ir.Lit] = [ir.Eq(ir.Ref(lit.domain, [lit.key], place), lit.value, place)]
        child = self._child(query, generator)
        self._tell("Enter", child, lit)
        every = True

        def item() -> Signal:
            nonlocal every
            if every:
                every = self._holds(child, lit.body, find_one=True)
                self._tell("Redo", child, lit)
            return None

        self._query(child, 0, item)
        if not every:
            self._tell("Fail", child, lit)
            return None
        signal = then()
        self._tell("Exit", child, lit)
        return signal

    # --- calls -------------------------------------------------------------------------------

    def _call(self, query: Query, lit: ir.Call, then: Then) -> Signal:
        out = lit.out
        args = lit.args
        expected = self._arity(lit.name)
        if out is None and len(args) > expected >= 0:
            args, out = args[:expected], args[expected]

        def found(value: Value) -> Signal:
            if out is None:
                return then() if value is not False else None
            return self._unify(query, out, ir.Const(value), then)

        return self._called(query, lit.name, args, found)

    def _arity(self, name: ir.Function) -> int:
        if isinstance(name, str):
            builtin = self._builtins.get(name)
            return len(builtin.operands) if builtin is not None else -1
        node = self._tree.function(name)
        return -1 if node is None else len(node.rules[0].args or ())

    def _called(
        self,
        query: Query,
        name: ir.Function,
        args: Sequence[Term],
        found: Callable[[Value], Signal],
    ) -> Signal:
        world = self._world
        mock = world.functions.get(name)
        if mock is not None:
            if mock.function is None:
                return found(world.values[name])
            # What replaces a function may call the function itself.
            self._world = inner = _World(
                world.input, world.data, world.replaced, {}, {}, world.known
            )

            def outside(value: Value) -> Signal:
                self._world = world
                signal = found(value)
                self._world = inner
                return signal

            try:
                return self._called(query, mock.function, args, outside)
            finally:
                self._world = world
        operands = [self._plug(query, arg) for arg in args]
        if any(operand is UNDEFINED for operand in operands):
            return None
        if isinstance(name, str):
            return self._builtin(query, name, operands, found)
        return self._function(query, name, operands, found)

    def _builtin(
        self, query: Query, name: str, operands: list[Value], found: Callable[[Value], Signal]
    ) -> Signal:
        if name == "trace" and isinstance(operands[0], str):
            self._tell("Note", query, query.at, operands[0])
        if name in _EFFECTS:
            return found(True)  # noqa: FBT003  # a value
        if name == "internal.template_string":
            return found("".join(map(_shown, operands[0])))
        builtin = self._builtins[name]
        try:
            given = [self._context, *operands] if builtin.context else operands
            result = builtin.function(*given)
            results = list(result) if builtin.relation else [result]
        except BuiltinError:
            return None
        for one in results:
            if one is UNDEFINED:
                continue
            signal = found(True if builtin.result is None else one)
            if signal is not None:
                return signal
        return None

    def _function(
        self,
        query: Query,
        name: tuple[str, ...],
        operands: list[Value],
        found: Callable[[Value], Signal],
    ) -> Signal:
        node = self._tree.function(name)
        if node is None:
            return None
        matched = self._matched(query, node, name, operands)
        at = (name, *map(key, operands))
        known = self._world.known.get(at, _ABSENT)
        if known is not _ABSENT:
            return found(known)
        return self._rules(query, matched, at, found, operands)

    def _matched(
        self, query: Query, node: Node, path: Sequence[Value], operands: Sequence[Value] | None
    ) -> index.Matched:
        matched = index.matched(
            node.rules,
            None if not self._indexing else self._resolved,
            operands or (),
            early_exit=self._early_exit,
        )
        count = len(matched.rules)
        text = f"(matched {count} rule{'' if count == 1 else 's'}"
        early = ", early exit)" if matched.early_exit else ")"
        self._tell("Index", query, query.at, f"{written_path(path)} {text}{early}")
        return matched

    def _resolved(self, path: Sequence[Value]) -> Value:
        """The base document at a path below ``input`` or ``data``."""
        root, *rest = path
        value = self._world.input if root == "input" else self._world.data
        for step in rest:
            value = step_into(value, step)
        return value

    # --- rules -------------------------------------------------------------------------------

    def _rules(
        self,
        query: Query,
        matched: index.Matched,
        at: Any,
        found: Callable[[Value], Signal],
        operands: Sequence[Value] | None = None,
    ) -> Signal:
        """Complete rules and functions: their one value, each definition checked."""
        previous: list[Value] = []
        deferred: Signal = None
        for first in matched.rules:
            for rule in (first, *matched.others.get(id(first), ())):
                held, signal = self._rule(query, matched, rule, at, previous, found, operands)
                if signal is not None:
                    if signal.early:
                        return signal.before
                    deferred = deferred or signal
                if held:
                    break
        if matched.default is not None and not previous:
            _, signal = self._rule(query, matched, matched.default, at, previous, found, operands)
            return None if signal is None else signal.before
        if not previous and operands is None:
            self._world.known[at] = UNDEFINED
        return None if deferred is None else deferred.before

    def _rule(  # noqa: PLR0913, PLR0917  # what a definition shares with those before it
        self,
        query: Query,
        matched: index.Matched,
        rule: ir.Rule,
        at: Any,
        previous: list[Value],
        found: Callable[[Value], Signal],
        operands: Sequence[Value] | None,
    ) -> tuple[bool, Signal]:
        child = self._child(query, rule.body, rule=rule)
        child.find_one = matched.early_exit
        held = False
        self._tell("Enter", child, rule)

        def solved() -> Signal:
            nonlocal held
            held = True
            self._tell("Exit", child, rule)
            value = ir.Const(True) if rule.value is None else rule.value
            result = self._plug(child, value)
            self._world.known[at] = result
            if previous:
                if not equal(previous[0], result):
                    raise EvaluationError("eval_conflict_error", "conflict", rule.location)
                self._tell("Redo", child, rule)
                return None
            previous.append(result)
            signal = found(result)
            if signal is None:
                self._tell("Redo", child, rule)
            return signal

        def body() -> Signal:
            return self._query(child, 0, solved)

        args = rule.args or [] if operands is not None else []
        signal = self._arguments(child, args, operands or [], body)
        return held, signal

    def _arguments(
        self, child: Query, args: Sequence[Term], operands: Sequence[Value], then: Then
    ) -> Signal:
        if not args:
            return then()
        return self._unify(
            child,
            ir.Const(operands[0]),
            args[0],
            lambda: self._arguments(child, args[1:], operands[1:], then),
        )

    def _partial(
        self, query: Query, node: Node, path: tuple[Value, ...], rest: Sequence[Value]
    ) -> Value:
        """Partial rules: all that they make, or with constant steps what these may reach."""
        matched = self._matched(query, node, ("data", *path), None)
        whole = ("data", *map(key, path))
        steps = [*rest]
        for length in range(len(steps) + 1):
            known = self._world.known.get((*whole, *map(key, steps[:length])), _ABSENT)
            if known is not _ABSENT:
                return _within(known, steps[:length])
        result = Collection(node)
        for rule in matched.rules:
            self._member(query, rule, result, steps)
        value = result.value()
        kept = min(len(steps), result.depth)
        found = value
        for step in steps[:kept]:
            found = step_into(found, step)
        if found is not UNDEFINED:
            self._world.known[*whole, *map(key, steps[:kept])] = found
        return value

    def _member(
        self, query: Query, rule: ir.Rule, result: Collection, steps: Sequence[Value]
    ) -> None:
        child = self._child(query, rule.body, rule=rule)
        self._tell("Enter", child, rule)
        head = [*rule.rest, *([] if rule.key is None else [rule.key])]

        def solved() -> Signal:
            self._tell("Exit", child, rule)
            twice = result.add(
                [self._plug(child, part) for part in head],
                UNDEFINED if rule.key is not None else self._plug(child, rule.value or ir.Const(True)),
                rule.location,
            )
            if twice and steps:
                self._tell("Duplicate", child, rule)
            self._tell("Redo", child, rule)
            return None

        def body() -> Signal:
            child.defined = True
            return self._query(child, 0, solved)

        self._arguments(child, head[: len(steps)], steps[: len(head)], body)
        if steps and not child.defined:
            self._tell("Fail", child, rule)

    # --- terms -------------------------------------------------------------------------------

    def _unify(self, query: Query, a: Term, b: Term, then: Then) -> Signal:
        a, b = _applied(query, a), _applied(query, b)
        if self._trace.unifications:
            self._tell("Unify", query, ir.Eq(a, b, NOWHERE))
        if _iterates(a):
            return self._each(query, a, lambda v: self._unify(query, ir.Const(v), b, then))
        if _iterates(b):
            return self._each(query, b, lambda v: self._unify(query, ir.Const(v), a, then))
        if isinstance(b, ir.Const) and not isinstance(a, ir.Const):
            a, b = b, a
        if not isinstance(a, ir.Const):
            return self._unify_both(query, a, b, then)
        value = a.value
        if isinstance(b, ir.Var):
            query.values[b.name] = value
            try:
                return then()
            finally:
                query.values.pop(b.name, None)
        if isinstance(b, ir.Const):
            return then() if equal(value, b.value) else None
        if isinstance(b, ir.Array):
            if not isinstance(value, list) or len(value) != len(b.items):
                return None
            return self._pairs(query, [*zip(map(ir.Const, value), b.items, strict=True)], then)
        if isinstance(b, ir.Object):
            return self._unify_object(query, value, b, then)
        plugged = self._plug(query, b)
        return then() if plugged is not UNDEFINED and equal(value, plugged) else None

    def _unify_both(self, query: Query, a: Term, b: Term, then: Then) -> Signal:
        """Two terms neither of which has a value yet as a whole."""
        if isinstance(a, ir.Array) and isinstance(b, ir.Array) and len(a.items) == len(b.items):
            return self._pairs(query, [*zip(a.items, b.items, strict=True)], then)
        for one, other in ((a, b), (b, a)):
            value = self._plug(query, one)
            if value is not UNDEFINED:
                return self._unify(query, ir.Const(value), other, then)
        return None

    def _unify_object(self, query: Query, value: Value, b: ir.Object, then: Then) -> Signal:
        if not isinstance(value, (dict, RegoObject)) or len(value) != len(b.items):
            return None
        pairs: list[tuple[Term, Term]] = []
        for name, item in b.items:
            found = step_into(value, self._plug(query, name))
            if found is UNDEFINED:
                return None
            pairs.append((ir.Const(found), item))
        return self._pairs(query, pairs, then)

    def _pairs(self, query: Query, pairs: list[tuple[Term, Term]], then: Then) -> Signal:
        if not pairs:
            return then()
        (a, b), *rest = pairs
        return self._unify(query, a, b, lambda: self._pairs(query, rest, then))

    def _each(self, query: Query, term: Term, found: Callable[[Value], Signal]) -> Signal:
        """Go on with each value that a term has."""
        term = _applied(query, term)
        if isinstance(term, ir.Ref):
            head = term.head
            if isinstance(head, ir.Var) and head.name == "data":
                return self._tree_step(query, term, 0, self._tree.root, (), found)
            value = self._plug(query, head)
            return None if value is UNDEFINED else self._walk(query, term, 0, value, found)
        value = self._plug(query, term)
        return None if value is UNDEFINED else found(value)

    def _walk(
        self, query: Query, ref: ir.Ref, at: int, value: Value, found: Callable[[Value], Signal]
    ) -> Signal:
        """Follow a reference into a value; steps without a value are tried one by one."""
        while at < len(ref.path):
            step = self._plug(query, ref.path[at])
            if step is UNDEFINED:
                break
            value = step_into(value, step)
            if value is UNDEFINED:
                return None
            at += 1
        else:
            return found(value)
        deferred: Signal = None
        for name, item in entries(value):
            self._context.charge(10)
            signal = self._unify(
                query,
                ir.Const(name),
                ref.path[at],
                lambda item=item: self._walk(query, ref, at + 1, item, found),  # type: ignore[misc]
            )
            if signal is not None:
                if signal.early:
                    return signal
                deferred = deferred or signal
        return deferred

    def _tree_step(  # noqa: PLR0913, PLR0917  # where the reference is, and what is there
        self,
        query: Query,
        ref: ir.Ref,
        at: int,
        node: Node | None,
        path: tuple[Value, ...],
        found: Callable[[Value], Signal],
    ) -> Signal:
        if at == len(ref.path):
            value = self._extent(query, node, path)
            return None if value is UNDEFINED else found(value)
        step = self._plug(query, ref.path[at])
        if step is not UNDEFINED:
            return self._tree_next(query, ref, at, node, (*path, step), found)
        names = [name for name, _ in entries(self._resolved(("data", *path)))]
        below = [] if node is None else [child.name for child in node.children.values()]
        seen = {key(name) for name in names}
        names += [name for name in ordered(below) if key(name) not in seen]
        for name in names:
            signal = self._unify(
                query,
                ir.Const(name),
                ref.path[at],
                lambda name=name: self._tree_next(  # type: ignore[misc]
                    query, ref, at, node, (*path, name), found
                ),
            )
            if signal is not None:
                return signal
        return None

    def _tree_next(  # noqa: PLR0913, PLR0917  # as above
        self,
        query: Query,
        ref: ir.Ref,
        at: int,
        node: Node | None,
        path: tuple[Value, ...],
        found: Callable[[Value], Signal],
    ) -> Signal:
        below = None if node is None else node.child(path[-1])
        if any(path[: len(target)] == target for target in self._world.replaced):
            below = None
        if below is None or not below.rules:
            return self._tree_step(query, ref, at + 1, below, path, found)
        first = below.rules[0]
        if first.args is not None:
            self._matched(query, below, ("data", *path), None)
            return None
        if all(rule.kind == "complete" for rule in below.rules):
            return self._complete(query, below, path, lambda v: self._walk(query, ref, at + 1, v, found))
        steps: list[Value] = []
        for part in ref.path[at + 1 :]:
            value = self._plug(query, part)
            if value is UNDEFINED or len(steps) >= Collection(below).depth:
                break
            steps.append(value)
        value = self._partial(query, below, path, steps)
        return self._walk(query, ref, at + 1, value, found)

    def _complete(
        self,
        query: Query,
        node: Node,
        path: tuple[Value, ...],
        found: Callable[[Value], Signal],
    ) -> Signal:
        matched = self._matched(query, node, ("data", *path), None)
        at = ("data", *map(key, path))
        known = self._world.known.get(at, _ABSENT)
        if known is not _ABSENT:
            return None if known is UNDEFINED else found(known)
        return self._rules(query, matched, at, found)

    def _extent(self, query: Query, node: Node | None, path: tuple[Value, ...]) -> Value:
        base = self._resolved(("data", *path))
        if node is None:
            return base
        virtual = self._leaves(query, node, path)
        return virtual if base is UNDEFINED else merge(base, virtual)

    def _leaves(self, query: Query, node: Node, path: tuple[Value, ...]) -> Value:
        items: list[tuple[Value, Value]] = []
        for name in ordered([child.name for child in node.children.values()]):
            child = node.child(name)
            assert child is not None
            if not child.rules:
                items.append((name, self._leaves(query, child, (*path, name))))
                continue
            found: list[Value] = []
            ref = ir.Ref(ir.Var("data"), [ir.Const(step) for step in (*path, name)])

            def keep(value: Value, found: list[Value] = found) -> Signal:
                found.append(value)
                return None

            self._each(query, ref, keep)
            items += [(name, value) for value in found[:1]]
        return make_object(items)

    def _plug(self, query: Query, term: Term) -> Value:
        """The one value of a term; UNDEFINED where it has none, or variables have none yet."""
        if isinstance(term, ir.Const):
            return term.value
        if isinstance(term, ir.Var):
            return self._variable(query, term.name)
        if isinstance(term, ir.Comprehension):
            return self._comprehension(query, term)
        if isinstance(term, ir.Ref):
            found: list[Value] = []

            def keep(value: Value) -> Signal:
                found.append(value)
                return None

            self._each(query, term, keep)
            return found[0] if found else UNDEFINED
        if isinstance(term, ir.Object):
            pairs = [(self._plug(query, k), self._plug(query, v)) for k, v in term.items]
            if any(k is UNDEFINED or v is UNDEFINED for k, v in pairs):
                return UNDEFINED
            return make_object(pairs)
        assert isinstance(term, (ir.Array, ir.Set))
        items = [self._plug(query, item) for item in term.items]
        if any(item is UNDEFINED for item in items):
            return UNDEFINED
        return items if isinstance(term, ir.Array) else RegoSet(items)

    def _variable(self, query: Query, name: str) -> Value:
        if name == "input":
            return self._world.input
        if name == "data":
            return self._extent(query, self._tree.root, ())
        return query.values.get(name, UNDEFINED)

    def _comprehension(self, query: Query, term: ir.Comprehension) -> Value:
        child = self._child(query, term.body)
        self._tell("Enter", child, term.body)
        members: list[Any] = []

        def solved() -> Signal:
            self._tell("Exit", child, term.body)
            value = self._plug(child, term.value)
            members.append(value if term.key is None else (self._plug(child, term.key), value))
            self._tell("Redo", child, term.body)
            return None

        self._query(child, 0, solved)
        if term.kind == "array":
            return members
        return RegoSet(members) if term.kind == "set" else make_object(members)


_SOLVE: Final[dict[type, Any]] = {
    ir.Eq: Evaluation._eq,
    ir.Call: Evaluation._call,
    ir.Test: Evaluation._test,
    ir.Every: Evaluation._every,
    ir.Not: Evaluation._not,
    ir.Logic: Evaluation._logic,
}


def _plain(lit: ir.Lit) -> ir.Lit:
    """The literal without its negation and modifiers."""
    return replace(lit, negated=False, withs=[])


def _applied(query: Query, term: Term) -> Term:
    """The term, or the value that a variable has by now."""
    if isinstance(term, ir.Var) and term.name in query.values:
        return ir.Const(query.values[term.name])
    return term


def _iterates(term: Term) -> bool:
    """Whether a term is looked up or computed, and may have several values."""
    if isinstance(term, ir.Var):
        return term.name in {"input", "data"}
    return isinstance(term, ir.Ref | ir.Comprehension)


def _within(value: Value, steps: Sequence[Value]) -> Value:
    """A value below objects of one key each."""
    for step in reversed(steps):
        value = make_object([(step, value)])
    return value


def _shown(part: Value) -> str:
    """A part of a template string: text, or a set of what is shown."""
    if isinstance(part, str):
        return part
    value = next(iter(part), UNDEFINED)
    if value is UNDEFINED:
        return "<undefined>"
    return value if isinstance(value, str) else display(value)
