"""Stage 5b: references as Python: paths in values, documents, packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.run.runtime import MISSING, index, is_collection, pairs_in_order
from webhook.rego.run.values import UNDEFINED
from webhook.rego.write.constants import UnreachableError
from webhook.rego.write.writer import BOOL, DICT, INT, KIND_OF, LIST, SET, STRING, Operand, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.rego.check.tree import Node
    from webhook.rego.run.values import Value


class ReferenceWriter(Writer):
    """Writes references; loops are opened for their unbound variables."""

    __slots__ = ()

    def reference(self, ref: ir.Ref) -> Operand:
        """The value of a reference; loops are opened for its unbound variables."""
        head = ref.head
        if isinstance(head, ir.Var):
            if head.name == "data" and head.name not in self.env:
                return self.data(ref)
            if head.name == "input" and head.name not in self.env:
                origin = (f"{self.state}[0]", "")
                return self.steps(origin, ref.path, 0, (self.state, "input"))
            if head.name not in self.env:
                raise self.unit.refuse("reference to an unbound variable", self.location)
        value, at = self._followed(self.static(head), ref.path, 0)
        if at:
            return self.steps(self.constant(value), ref.path, at)
        found = self.atom(head)
        return self.steps(found, ref.path, 0, (found[0],))

    def _followed(self, value: Value, path: list[ir.Term], at: int) -> tuple[Value, int]:
        """A known value followed as far as the path is known; and how far."""
        while value is not MISSING and value is not UNDEFINED and at < len(path):
            name = self.static(path[at])
            if name is MISSING or name is UNDEFINED:
                break
            value = index(value, name)
            at += 1
        return value, at

    def steps(
        self, current: Operand, path: list[ir.Term], at: int, origin: tuple[Any, ...] | None = None
    ) -> Operand:
        """Walk the rest of a path from a value; ``origin`` names a constant path to reuse."""
        while at < len(path):
            known = self.value_of(current)
            if known is not MISSING:
                value, reached = self._followed(known, path, at)
                if reached > at:
                    current, origin, at = self.constant(value), None, reached
                    continue
                if not is_collection(known):
                    raise UnreachableError
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
                current = self._names(current, run, origin)
                origin = None if origin is None else (*origin, *run)
                continue
            origin = None
            current = self._step(current, part)
            at += 1
        return current

    def _names(self, current: Operand, run: list[str], origin: tuple[Any, ...] | None) -> Operand:
        """Follow constant names, from the longest beginning that is already known."""
        if origin is not None:
            for length in range(len(run), 0, -1):
                found = self.known.get((*origin, *run[:length]))
                if found is not None:
                    rest = run[length:]
                    if not rest:
                        return found
                    return self._names(found, rest, (*origin, *run[:length]))
            if origin == ("S", "input") and current[0] == "S[0]":
                return self._input(run)
            if origin[0] == current[0] and self.uses.operands.get((*origin, *run), 0) > 1:
                return self._of_operand(current[0], run)
        source = current[0] if current[0] == f"{self.state}[0]" else self.name_of(current[0])
        found = self.get(source, current[1], run), ""
        if origin is not None:
            self.known[(*origin, *run)] = found
        return found

    def _input(self, run: list[str]) -> Operand:
        """A path of the input, read at the function's beginning where that pays."""
        full = tuple(run)
        if self.looping or self.uses.paths.get(full, 0) > 1:
            name = self._hoist(full, "U")
            self.condition(f"{name} is not U")
            found = name, ""
        else:
            base, rest = self._longest(full)
            found = self.get(base, "", list(rest)), ""
        self.known[("S", "input", *full)] = found
        return found

    def _of_operand(self, source: str, run: list[str]) -> Operand:
        """A path in an operand that is read more than once: read at the function's beginning."""
        at = ("U", source, *run)
        name = self.hoisted.get(at)
        if name is None:
            name = self.hoisted[at] = f"p{len(self.hoisted)}"
            last = repr(run[-1])
            if len(run) == 1:
                self.prologue.append(
                    f"{name} = {source}.get({last}, U) if type({source}) is dict"
                    f" else index({source}, {last})"
                )
            else:
                chain = "".join(f".get({step!r}, E)" for step in run[:-1])
                names = self.unit.constant(tuple(run))
                self.prologue.append(f"try: {name} = {source}{chain}.get({last}, U)")
                self.prologue.append(f"except AttributeError: {name} = path({source}, {names})")
        self.condition(f"{name} is not U")
        self.known[(source, *run)] = name, ""
        return name, ""

    def _longest(self, full: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The longest beginning of a path that is shared, read once, and the rest."""
        for length in range(len(full) - 1, 1, -1):
            if self.uses.beginnings.get(full[:length], 0) > 1:
                return self._hoist(full[:length], "E"), full[length:]
        return "S[0]", full

    def _hoist(self, full: tuple[str, ...], absent: str) -> str:
        """A local read at the function's beginning; ``absent`` is its value where there is none."""
        name = self.hoisted.get((absent, *full))
        if name is None:
            base, rest = self._longest(full)
            name = self.hoisted[(absent, *full)] = f"p{len(self.hoisted)}"
            chain = "".join(f".get({step!r}, E)" for step in rest[:-1])
            self.prologue.append(f"try: {name} = {base}{chain}.get({rest[-1]!r}, {absent})")
            self.prologue.append(
                f"except AttributeError: {name} = path({base}, {self.unit.constant(rest)})"
            )
        return name

    def get(self, source: str, kind: str, run: list[str]) -> str:
        """A local holding ``source.a.b.c`` where it is defined."""
        if len(run) == 1:
            name = repr(run[0])
            reading = f"{source}.get({name}, U)"
            if kind != DICT:
                reading = f"({reading} if type({source}) is dict else index({source}, {name}))"
            common = self.common.get(source)
            local = None if common is None else common.local(reading, self.new)
            if local is None:
                return self.defined(reading)
            self.condition(f"{local} is not U")
            return local
        read = self.reads.get((source, *run))
        name = self._read(source, run) if read is None else read[0]
        self.condition(f"{name} is not U")
        return name

    def _read(self, source: str, run: list[str]) -> str:
        """A local holding ``source.a.b.c``, undefined where there is none."""
        chain = "".join(f".get({name!r}, E)" for name in run[:-1])
        name = self.new()
        self.line(f"try: {name} = {source}{chain}.get({run[-1]!r}, U)")
        names = self.unit.constant(tuple(run))
        self.line(f"except AttributeError: {name} = path({source}, {names})")
        if source.isidentifier():
            self.reads[(source, *run)] = name, self.indent
        return name

    def _step(self, current: Operand, part: ir.Term) -> Operand:
        """One step that is no constant name."""
        source = self.name_of(current[0])
        if self.bound(part):
            name, kind = self.atom(part)
            return self.lookup(source, current[1], name, kind), ""
        if isinstance(part, ir.Ref):
            name, kind = self.atom(part)
            return self.lookup(source, current[1], name, kind), ""
        return self.iterate((source, current[1]), part)

    def lookup(self, source: str, kind: str, name: str, name_kind: str) -> str:
        """``source[name]`` for a bound name."""
        if name_kind == STRING:
            test = f"type({source}) is dict"
        elif name_kind == "":
            test = f"type({name}) is str"
            if kind != DICT:
                test = f"type({source}) is dict and {test}"
        else:
            return self.defined(f"{self.index}({source}, {name})")
        if kind == DICT and name_kind == STRING:
            return self.defined(f"{source}.get({name}, U)")
        general = f"{self.index}({source}, {name})"
        return self.defined(f"({source}.get({name}, U) if {test} else {general})")

    def single_use(self, term: ir.Term) -> bool:
        """Whether the variable's value is wanted nowhere else."""
        return isinstance(term, ir.Var) and (
            ir.is_wildcard(term.name) or self.uses.variables.get(term.name, 0) <= 1
        )

    def iterate(self, current: Operand, part: ir.Term) -> Operand:
        """Open a loop over a collection, binding the part to its keys."""
        source, kind = current
        known = self.value_of(current)
        if known is not MISSING:
            return self._iterate_known(known, part)
        value = self.new()
        if self.single_use(part):
            if kind == LIST or (kind == SET and self.repeats):
                items = source
            else:
                values = "values" if self.repeats else "values_in_order"
                items = self.assign(f"{source} if type({source}) is list else {values}({source})")
            # A set's own length takes a call of Python's.
            self.charge(f"len({self.known.get(('size', items), (items, ''))[0]})")
            self.loop(value, items)
            self.env[part.name] = ("None", "")  # type: ignore[union-attr]  # nobody reads it
            return value, ""
        name = self.new()
        if kind == LIST:
            self.charge(f"len({source})")
            self.loop(f"{name}, {value}", f"enumerate({source})")
            self.match(part, (name, INT))
            return value, ""
        items = f"{source}.items() if type({source}) is dict else pairs({source})"
        if not self.repeats:
            items = f"pairs_in_order({source})"
        items = self.assign(items)
        self.charge(f"len({items})")
        self.loop(f"{name}, {value}", items)
        self.match(part, (name, STRING if kind == DICT else ""))
        return value, ""

    def _iterate_known(self, known: Value, part: ir.Term) -> Operand:
        """Open a loop over a constant, or none where it has one item; empty ones end the body."""
        items = list(pairs_in_order(known))
        if not items:
            raise UnreachableError
        if len(items) == 1:
            self.match(part, self.constant(items[0][0]))
            return self.constant(items[0][1])
        self.charge_constant(len(items))
        value = self.new()
        kind = _kind_of_all(item for _, item in items)
        if self.single_use(part):
            self.loop(value, self.unit.constant(tuple(item for _, item in items)))
            self.env[part.name] = ("None", "")  # type: ignore[union-attr]  # nobody reads it
            return value, kind
        name = self.new()
        self.loop(f"{name}, {value}", self.unit.constant(tuple(items)))
        self.match(part, (name, _kind_of_all(name for name, _ in items)))
        return value, kind

    # --- data ------------------------------------------------------------------------------------

    def data(self, ref: ir.Ref) -> Operand:
        """A reference below ``data``: documents of rules, base documents, or both."""
        node: Node = self.unit.tree.root
        path = ref.path
        at = 0
        while at < len(path):
            part = path[at]
            if not isinstance(part, ir.Const):
                break
            child = node.child(part.value)
            if child is None:
                self.index = "index_base"
                try:
                    found = self.steps(self.root("data"), path, 0, (self.state, "data"))
                finally:
                    self.index = "index"
                return found
            node = child
            at += 1
            if node.rules:
                return self.document(node, path, at)
        return self._explore(node, path, at)

    def _explore(self, node: Node, path: list[ir.Term], at: int) -> Operand:
        """A path that leaves the constants among packages: found at run time."""
        self.effects += 1
        branching = self.unit.want("n", node)
        names = self.unit.constant(tuple(node.path))
        if at == len(path):
            return self.defined(f"extent({self.state}, {branching}, {names})"), ""
        steps, opened = [], []
        for part in path[at:]:
            if self.bound(part) or isinstance(part, ir.Ref):
                steps.append(self.atom(part)[0])
            else:
                steps.append("U")
                opened.append(part)
        targets = [self.new() for _ in opened]
        value = self.new()
        source = "".join(f"{step}, " for step in steps)
        self.charge_turns()
        self.loop(
            "".join(f"{name}, " for name in (*targets, value)),
            f"explore({self.state}, {branching}, {names}, ({source}))",
        )
        for part, name in zip(opened, targets, strict=True):
            self.match(part, (name, ""))
        return value, ""

    def document(self, node: Node, path: list[ir.Term], at: int) -> Operand:
        """The document of the rules at a node, and the rest of the path in it."""
        rules = node.rules
        meant = None if self.unit.replaceable(node.path) else node.stands_for
        if isinstance(meant, ir.Const):
            return self.steps(self.constant(meant.value), path, at)
        if meant is not None:
            return self.reference(ir.Ref(meant.head, [*meant.path, *path[at:]]))
        if self.unit.ahead is not None and not node.dynamic and rules[0].args is None:
            value = self.unit.ahead.document(node)
            if value is not MISSING:
                return self.steps(self.constant(value), path, at)
        self.effects += 1
        if node.dynamic:
            chosen = self._chosen(node, path)
            replaceable = self.unit.replaceable(node.path)
            if chosen == ():
                if not replaceable:
                    raise UnreachableError  # no rule's reference meets the path
                chosen = None
            if at < len(path) and self.bound(path[at]) and not replaceable:
                part, _ = self.operand(path[at])
                name = self.unit.want("h", node, chosen)
                current = self.defined(f"entry({name}({self.state}), {part})")
                return self.steps((current, ""), path, at + 1)
            name = self.unit.want("o", node, chosen)
            current = self.defined(f"{name}({self.state})")
            return self.steps((current, ""), path, at)
        if rules[0].args is not None:
            self.condition("False")
            return "None", ""
        if rules[0].kind == "set" and at < len(path):
            return self._member(node, path, at)
        name = self.unit.want("d", node)
        key = (self.state, "data", *node.path)
        found = self.known.get(key)
        if found is None:
            if rules[0].kind == "set":
                found = self.assign(f"{name}({self.state})"), ""
            else:
                found = self.defined(f"{name}({self.state})"), ""
            self.known[key] = found
        return self.steps(found, path, at)

    def _chosen(self, node: Node, path: list[ir.Term]) -> tuple[int, ...] | None:
        """Which of the rules below a node the path can meet; None for all of them."""
        everything = [rule for below in node.walk() for rule in below.rules]
        met = {id(rule) for rule in self.unit.tree.reached(path)}
        chosen = tuple(i for i, rule in enumerate(everything) if id(rule) in met)
        return None if len(chosen) == len(everything) else chosen

    def _member(self, node: Node, path: list[ir.Term], at: int) -> Operand:
        """A member of a partial set."""
        part = path[at]
        if self.bound(part) or isinstance(part, ir.Ref):
            name, kind = self.atom(part)
            document = self.unit.want("d", node)
            found = self.defined(f"index({document}({self.state}), {name})")
            return self.steps((found, kind), path, at + 1)
        plain = self.repeats and not self.unit.replaceable(node.path)
        if plain and isinstance(part, ir.Object) and at == len(path) - 1:
            given = self._given(node, part)
            if given is not None:
                return self._matching(node, part, given)
        kind = "i" if plain else "d"
        document = self.unit.want(kind, node)
        if kind == "i" and document in self.unit.fixed:
            raise UnreachableError
        items = self.assign(f"{document}({self.state})")
        self.charge(f"size({items})" if kind == "d" else f"len({items})")
        value = self.new()
        values = "values" if self.repeats else "values_in_order"
        self.loop(value, items if kind == "i" else f"{values}({items})")
        self.match(part, (value, ""))
        return self.steps((value, ""), path, at + 1)

    def _given(self, node: Node, pattern: ir.Object) -> list[str] | None:
        """Names of the pattern's bound properties, where members can be sought by them."""
        names = _property_names(pattern)
        if names is None or not node.rules:
            return None
        for rule in node.rules:
            if not isinstance(rule.key, ir.Object):
                return None
            theirs = _property_names(rule.key)
            if theirs is None or theirs.keys() != names.keys():
                return None
        given = [name for name, value in names.items() if self.bound(value)]
        if not given or len(given) == len(names):
            return None
        for rule in node.rules:
            theirs = _property_names(rule.key)
            if theirs and not all(isinstance(theirs[name], ir.Var | ir.Const) for name in given):
                return None
        return given

    def _matching(self, node: Node, pattern: ir.Object, given: list[str]) -> Operand:
        """Open a loop over the members of a set that have the pattern's bound properties."""
        values = _property_names(pattern)
        assert values is not None
        found = [self.operand(values[name]) for name in given]
        kinds = tuple((name, kind) for name, (_, kind) in zip(given, found, strict=True))
        rest = tuple(name for name in values if name not in given)
        function = self.unit.want("m", node, (kinds, rest))
        if function in self.unit.fixed:
            raise UnreachableError
        args = "".join(f", {source}" for source, _ in found)
        self.called(function)
        items = self.assign(f"{function}({self.state}{args})")
        self.charge(f"len({items})")
        targets = [self.new() for _ in rest]
        self.loop(", ".join(targets), items)
        for name, target in zip(rest, targets, strict=True):
            self.match(values[name], (target, ""))
        return "True", BOOL  # an object, which is not false; nothing reads it


def _kind_of_all(values: Iterable[Value]) -> str:
    """The kind of values that all have one."""
    found = {KIND_OF.get(type(value), "") for value in values}
    return found.pop() if len(found) == 1 else ""


def _property_names(term: ir.Term | None) -> dict[str, ir.Term] | None:
    """The properties of an object term by name, if all names are constant strings."""
    if not isinstance(term, ir.Object):
        return None
    found: dict[str, ir.Term] = {}
    for name, value in term.items:
        if not isinstance(name, ir.Const) or type(name.value) is not str or name.value in found:
            return None
        found[name.value] = value
    return found
