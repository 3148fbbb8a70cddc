"""Stage 5a: terms as Python, in one function being written.

The style is "success indents": a condition that fails falls out of the nest, so
that nothing is needed to leave it. Conditions are kept pending and written as
one ``if`` when a statement must follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.ast import NOWHERE
from webhook.rego.compiler import ir
from webhook.rego.compiler.variables import visible

if TYPE_CHECKING:
    from webhook.rego.ast import Location
    from webhook.rego.compiler.documents import Uses
    from webhook.rego.compiler.tree import Node
    from webhook.rego.compiler.unit import Unit
    from webhook.rego.values import Value

MAX_BLOCKS: Final = 17
"""Loops and ``try`` inside each other in one function: CPython allows 20."""

FLAT_FROM: Final = 30
"""Levels of indentation from which conditions leave a loop instead of opening a block.

CPython allows 100 levels.
"""

MAX_ITEMS: Final = 1_000_000
"""Members of a collection that nested iterations may make: some 100 MB."""

STRING, INT, BOOL, LIST, DICT, SET, NULL = "s", "i", "b", "l", "d", "S", "n"

Operand = tuple[str, str]
"""Source of a value, free of effects, and its kind where known."""

_KIND_OF: Final[dict[type, str]] = {
    str: STRING,
    int: INT,
    bool: BOOL,
    list: LIST,
    dict: DICT,
    type(None): NULL,
}


class Writer:
    """Writes one Python function."""

    def __init__(self, unit: Unit, uses: Uses) -> None:
        self.unit = unit
        self.uses = uses
        self.lines: list[tuple[int, str]] = []
        self.indent = 1
        self.pending: list[str] = []
        self.env: dict[str, Operand] = {}
        self.state = "S"
        self.loops: list[int] = []
        self.blocks = 0
        self.known: dict[tuple[Any, ...], Operand] = {}
        self.repeats = True
        """Whether the same solution may be found twice without harm."""
        self.names = 0
        self.charges = False
        self.looping = False
        self.flat = False
        self.collecting = ""
        self.calls = 0
        self.prologue: list[str] = []
        self.hoisted: dict[tuple[str, ...], str] = {}
        self.index = "index"
        self.location: Location = NOWHERE

    # --- lines -----------------------------------------------------------------------------

    def new(self) -> str:
        """A local name."""
        self.names += 1
        return f"v{self.names}"

    def condition(self, source: str) -> None:
        """What follows happens only where this holds."""
        self.pending.append(source)

    def flush(self) -> None:
        """Write the pending conditions, so that a statement can follow."""
        if not self.pending:
            return
        if self.indent >= FLAT_FROM and not self.flat:
            pending, self.pending = self.pending, []
            self.loop(self.new(), "ONCE")  # what fails can leave it
            self.pending = pending
            self.flat = True
        condition = " and ".join(self.pending)
        self.pending = []
        if self.flat:
            self.lines.append((self.indent, f"if not ({condition}): continue"))
            return
        self.lines.append((self.indent, f"if {condition}:"))
        self.indent += 1

    def line(self, text: str) -> None:
        """A statement."""
        if self.pending:
            self.flush()
        self.lines.append((self.indent, text))

    def loop(self, targets: str, source: str) -> None:
        """Open a loop."""
        self.line(f"for {targets} in {source}:")
        self.loops.append(self.indent)
        self.looping = True
        self.indent += 1
        if len(self.loops) > MAX_BLOCKS:
            raise self.unit.refuse("rule has too many nested iterations", self.location)

    def assign(self, source: str) -> str:
        """A local holding the value of an expression that cannot be undefined."""
        name = self.new()
        self.line(f"{name} = {source}")
        return name

    def defined(self, source: str) -> str:
        """A local holding the value of an expression, where that is defined."""
        name = self.new()
        self.condition(f"({name} := {source}) is not U")
        return name

    def charge(self, source: str) -> None:
        """Pay for a loop over something with a length."""
        self.charges = True
        self.line(f"X.left -= {source}")
        self.line("if X.left < X.next_check: X.check()")
        if self.collecting and self.loops:
            self.line(f"if len({self.collecting}) > {MAX_ITEMS}: too_large()")

    def snapshot(self) -> tuple[Any, ...]:
        """What a nested body changes and must give back."""
        return (
            dict(self.env),
            dict(self.known),
            self.indent,
            self.loops,
            self.state,
            self.repeats,
            self.looping,
            self.flat,
            self.collecting,
        )

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Give it back."""
        self.env, self.known, self.indent, self.loops, *rest = saved
        self.state, self.repeats, self.looping, self.flat, self.collecting = rest

    # --- whether variables are bound ---------------------------------------------------------

    def bound(self, term: ir.Term) -> bool:
        """Whether every variable of the term has a value."""
        kind = type(term)
        if kind is ir.Const or kind is ir.Given or kind is ir.Comprehension:
            return True
        if kind is ir.Var:
            return term.name in self.env or term.name in ("input", "data")  # type: ignore[union-attr]
        names: set[str] = set()
        visible(term, names)
        return all(name in self.env or name in ("input", "data") for name in names)

    def evaluable(self, term: ir.Term) -> bool:
        """Whether the term has values now: bound, or a reference that can be iterated."""
        if isinstance(term, ir.Ref):
            return isinstance(term.head, ir.Given) or self.bound(term.head)
        if isinstance(term, ir.Array | ir.Set):
            return all(map(self.evaluable, term.items))
        if isinstance(term, ir.Object):
            return all(self.evaluable(k) and self.evaluable(v) for k, v in term.items)
        return self.bound(term)

    # --- terms -------------------------------------------------------------------------------

    def operand(self, term: ir.Term) -> Operand:
        """Source of the term's value; what must hold for it to have one is written before."""
        if isinstance(term, ir.Const):
            return self.unit.constant(term.value), _KIND_OF.get(type(term.value), "")
        if isinstance(term, ir.Given):
            return term.source, term.kind
        if isinstance(term, ir.Var):
            return self._variable(term)
        if isinstance(term, ir.Ref):
            return self.reference(term)
        if isinstance(term, ir.Array):
            items = [self.operand(item)[0] for item in term.items]
            return f"[{', '.join(items)}]", LIST
        if isinstance(term, ir.Set):
            items = [self.operand(item)[0] for item in term.items]
            return f"RegoSet(({''.join(item + ', ' for item in items)}))", SET
        if isinstance(term, ir.Object):
            return self._object(term)
        if isinstance(term, ir.Comprehension):
            return self.comprehension(term)
        return self.template(term)

    def atom(self, term: ir.Term) -> Operand:
        """As :meth:`operand`, a name or scalar constant that may be repeated at no cost."""
        source, kind = self.operand(term)
        return self.name_of(source, kind), kind

    def name_of(self, source: str, _kind: str = "") -> str:
        """The source itself where it is a name or constant, else a local."""
        if source.isidentifier() or source[0] in "'\"" or source.isdigit():
            return source
        return self.assign(source)

    def _variable(self, term: ir.Var) -> Operand:
        found = self.env.get(term.name)
        if found is not None:
            return self.narrowed(found)
        if term.name == "input":
            return self.root("input")
        if term.name == "data":
            return self.data(ir.Ref(term, []))
        raise self.unit.refuse(f"variable {term.name!r} is not bound here", self.location)

    def narrowed(self, operand: Operand) -> Operand:
        """The operand with the kind that a test before has shown."""
        if operand[1] == "":
            return self.known.get(("kind", operand[0]), operand)
        return operand

    def narrow(self, source: str, kind: str) -> None:
        """What follows happens only where this local has a value of this kind."""
        if source.isidentifier():
            self.known["kind", source] = (source, kind)

    def root(self, name: str) -> Operand:
        """The input, where there is one, or the base documents."""
        at = (self.state, name)
        found = self.known.get(at)
        if found is None:
            if name == "input":
                found = self.defined(f"{self.state}.input"), ""
            else:
                found = self.assign(f"{self.state}.data"), ""
            self.known[at] = found
        return found

    def _object(self, term: ir.Object) -> Operand:
        items = [(self.operand(key), self.operand(value)[0]) for key, value in term.items]
        if all(kind == STRING for (_, kind), _ in items):
            names = [name for (name, _), _ in items]
            constant = all(name[0] in "'\"" for name in names)
            if constant and len(set(names)) == len(names):
                return f"{{{', '.join(f'{key[0]}: {value}' for key, value in items)}}}", DICT
        source = "".join(f"({key[0]}, {value}), " for key, value in items)
        return self.assign(f"build(({source}), {self._place()})"), ""

    def _place(self) -> str:
        return self.unit.place(self.location)

    def comprehension(self, term: ir.Comprehension) -> Operand:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    def template(self, term: ir.Template) -> Operand:
        """Written by the subclass that knows bodies."""
        raise NotImplementedError

    # --- references ----------------------------------------------------------------------------

    def reference(self, ref: ir.Ref) -> Operand:
        """The value of a reference; loops are opened for its unbound variables."""
        head = ref.head
        if isinstance(head, ir.Var):
            if head.name == "data" and head.name not in self.env:
                return self.data(ref)
            if head.name == "input" and head.name not in self.env:
                origin = (f"{self.state}.input", "")
                return self.steps(origin, ref.path, 0, (self.state, "input"))
            if head.name not in self.env:
                raise self.unit.refuse("reference to an unbound variable", self.location)
        found = self.atom(head)
        return self.steps(found, ref.path, 0, (found[0],))

    def steps(
        self, current: Operand, path: list[ir.Term], at: int, origin: tuple[Any, ...] | None = None
    ) -> Operand:
        """Walk the rest of a path from a value; ``origin`` names a constant path to reuse."""
        while at < len(path):
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
            if origin == ("S", "input") and current[0] == "S.input":
                return self._input(run)
        source = current[0] if current[0] == f"{self.state}.input" else self.name_of(current[0])
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

    def _longest(self, full: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """The longest beginning of a path that is shared, read once, and the rest."""
        for length in range(len(full) - 1, 1, -1):
            if self.uses.beginnings.get(full[:length], 0) > 1:
                return self._hoist(full[:length], "E"), full[length:]
        return "S.input", full

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
            if kind == DICT:
                return self.defined(f"{source}.get({name}, U)")
            return self.defined(
                f"({source}.get({name}, U) if type({source}) is dict else index({source}, {name}))"
            )
        chain = "".join(f".get({name!r}, E)" for name in run[:-1])
        name = self.new()
        self.line(f"try: {name} = {source}{chain}.get({run[-1]!r}, U)")
        self.line(
            f"except AttributeError: {name} = path({source}, {self.unit.constant(tuple(run))})"
        )
        self.condition(f"{name} is not U")
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
            test = f"type({source}) is dict and type({name}) is str"
        else:
            return self.defined(f"{self.index}({source}, {name})")
        if kind == DICT and name_kind == STRING:
            return self.defined(f"{source}.get({name}, U)")
        return self.defined(f"({source}.get({name}, U) if {test} else index({source}, {name}))")

    def single_use(self, term: ir.Term) -> bool:
        """Whether the variable's value is wanted nowhere else."""
        return isinstance(term, ir.Var) and (
            ir.is_wildcard(term.name) or self.uses.variables.get(term.name, 0) <= 1
        )

    def iterate(self, current: Operand, part: ir.Term) -> Operand:
        """Open a loop over a collection, binding the part to its keys."""
        source, kind = current
        value = self.new()
        if self.single_use(part):
            if kind in (LIST, SET):
                items = source
            else:
                items = self.assign(f"{source} if type({source}) is list else values({source})")
            self.charge(f"len({items})")
            self.loop(value, items)
            self.env[part.name] = ("None", "")  # type: ignore[union-attr]  # nobody reads it
            return value, ""
        name = self.new()
        if kind == LIST:
            self.charge(f"len({source})")
            self.loop(f"{name}, {value}", f"enumerate({source})")
            self.match(part, (name, INT))
            return value, ""
        self.charge(f"size({source})")
        items = f"{source}.items() if type({source}) is dict else pairs({source})"
        self.loop(f"{name}, {value}", items)
        self.match(part, (name, STRING if kind == DICT else ""))
        return value, ""

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
                found = self.steps(self.root("data"), path, 0, (self.state, "data"))
                self.index = "index"
                return found
            node = child
            at += 1
            if node.rules:
                return self.document(node, path, at)
        return self._explore(node, path, at)

    def _explore(self, node: Node, path: list[ir.Term], at: int) -> Operand:
        """A path that leaves the constants among packages: found at run time."""
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
        if node.dynamic:
            chosen = self._chosen(node, path, at)
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

    def _chosen(self, node: Node, path: list[ir.Term], at: int) -> tuple[int, ...] | None:
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
        items = self.assign(f"{self.unit.want(kind, node)}({self.state})")
        self.charge(f"size({items})" if kind == "d" else f"len({items})")
        value = self.new()
        self.loop(value, items if kind == "i" else f"values({items})")
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
        args = "".join(f", {source}" for source, _ in found)
        items = self.assign(f"{function}({self.state}{args})")
        self.charge(f"len({items})")
        targets = [self.new() for _ in rest]
        self.loop(", ".join(targets), items)
        for name, target in zip(rest, targets, strict=True):
            self.match(values[name], (target, ""))
        return "True", BOOL  # an object, which is not false; nothing reads it

    # --- unification -----------------------------------------------------------------------------

    def match(self, pattern: ir.Term, value: Operand) -> None:
        """What follows happens for a value that fits the pattern, whose variables it binds."""
        source, kind = value
        if isinstance(pattern, ir.Var) and pattern.name not in self.env:
            if pattern.name in ("input", "data"):
                self.same(self.operand(pattern), value)
                return
            self.env[pattern.name] = (self.name_of(source), kind)
        elif isinstance(pattern, ir.Array) and not self.bound(pattern):
            source = self.name_of(source)
            test = f"type({source}) is list and " if kind != LIST else ""
            self.condition(f"{test}len({source}) == {len(pattern.items)}")
            for i, item in enumerate(pattern.items):
                self._part(item, f"{source}[{i}]")
        elif isinstance(pattern, ir.Object) and not self.bound(pattern):
            source = self.name_of(source)
            self.condition(f"is_object({source}, {len(pattern.items)})")
            for name, item in pattern.items:
                at, at_kind = self.atom(name)
                self.match(item, (self.lookup(source, kind, at, at_kind), ""))
        elif isinstance(pattern, ir.Ref):
            self.same(self.operand(pattern), value)
        else:
            self.same(self.operand(pattern), value)

    def _part(self, item: ir.Term, source: str) -> None:
        """Match one item of an array."""
        if isinstance(item, ir.Var) and self.single_use(item) and item.name not in self.env:
            self.env[item.name] = ("None", "")
        else:
            self.match(item, (self.assign(source), ""))

    def same(self, a: Operand, b: Operand) -> None:
        """What follows happens where both values are equal."""
        self.condition(self.equality(a, b))
        if STRING in (a[1], b[1]):
            self.narrow(a[0], STRING)
            self.narrow(b[0], STRING)

    def equality(self, a: Operand, b: Operand) -> str:
        """Source that tells whether two values are equal, as cheap as their kinds allow."""
        if _is_scalar(b[0]) and not _is_scalar(a[0]):
            a, b = b, a
        source, kind = a
        other, other_kind = b
        if STRING in (kind, other_kind):
            return f"{source} == {other}"
        if kind == BOOL and source in ("True", "False"):
            return f"{other} is {source}"
        if kind == NULL and source == "None":
            return f"{other} is None"
        if kind == INT and source.lstrip("-").isdigit():
            if source in ("0", "1") and other_kind != INT:
                other = self.name_of(other)
                return f"({other} == {source} and type({other}) is not bool)"
            return f"{other} == {source}"
        if kind == INT and other_kind == INT:
            return f"{source} == {other}"
        if kind == "" and source.isidentifier():
            return f"({source} == {other} if type({source}) is str else equal({source}, {other}))"
        return f"equal({source}, {other})"

    def unify(self, a: ir.Term, b: ir.Term) -> None:
        """Unify two terms, of which each may hold unbound variables."""
        waiting = [(a, b)]
        while waiting:
            for i, (x, y) in enumerate(waiting):
                if self._unify_now(x, y, waiting, i):
                    break
            else:
                raise self.unit.refuse("cannot unify two unbound terms", self.location)

    def _unify_now(
        self, x: ir.Term, y: ir.Term, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Do one pair if it can be done now; True if it was."""
        if isinstance(x, ir.Var) and not self.bound(x) and self.evaluable(y):
            waiting.pop(i)
            self.match(x, self.operand(y))
        elif isinstance(y, ir.Var) and not self.bound(y) and self.evaluable(x):
            waiting.pop(i)
            self.match(y, self.operand(x))
        elif isinstance(x, ir.Array) and isinstance(y, ir.Array):
            waiting.pop(i)
            if len(x.items) != len(y.items):
                self.condition("False")
                waiting.clear()
            else:
                waiting.extend(zip(x.items, y.items, strict=True))
        elif isinstance(x, ir.Array) and isinstance(y, ir.Const) and type(y.value) is list:
            waiting.pop(i)
            self._against_items(x, y.value, waiting)
        elif isinstance(y, ir.Array) and isinstance(x, ir.Const) and type(x.value) is list:
            waiting.pop(i)
            self._against_items(y, x.value, waiting)
        elif (
            isinstance(x, ir.Object)
            and isinstance(y, ir.Object)
            and not (self.evaluable(x) or self.evaluable(y))
        ):
            return self._unify_objects(x, y, waiting, i)
        elif self.evaluable(x) and not self._binds(x):
            waiting.pop(i)
            value = self.operand(x)
            self.match(y, value)
        elif self.evaluable(y):
            waiting.pop(i)
            value = self.operand(y)
            self.match(x, value)
        elif self.evaluable(x):
            waiting.pop(i)
            value = self.operand(x)
            self.match(y, value)
        else:
            return False
        return True

    def _binds(self, term: ir.Term) -> bool:
        """Whether evaluating the term opens loops."""
        return not self.bound(term)

    def _against_items(
        self, x: ir.Array, values: list[Value], waiting: list[tuple[ir.Term, ir.Term]]
    ) -> None:
        if len(values) != len(x.items):
            self.condition("False")
            waiting.clear()
            return
        waiting.extend((item, ir.Const(value)) for item, value in zip(x.items, values, strict=True))

    def _unify_objects(
        self, x: ir.Object, y: ir.Object, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Objects with unbound variables on both sides: key by key, the keys being constant."""
        sides = []
        for term in (x, y):
            keys = {}
            for name, value in term.items:
                if not isinstance(name, ir.Const) or type(name.value) is not str:
                    return False
                keys[name.value] = value
            sides.append(keys)
        waiting.pop(i)
        if sides[0].keys() != sides[1].keys():
            self.condition("False")
            waiting.clear()
        else:
            waiting.extend((value, sides[1][name]) for name, value in sides[0].items())
        return True


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


def _is_scalar(source: str) -> bool:
    return (
        source[0] in "'\"" or source in ("True", "False", "None") or (source.lstrip("-").isdigit())
    )
