"""Finds the reads of the document at a path, by interpreting checked rules over abstract values.

Bodies are in the order in which they bind their variables. A literal that can never hold ends its
body, so fields excluded by a constraint's parameters are not read. Functions are interpreted for
each kind of operands that they are called with; there is no recursion in Rego.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.reads.abstract import (
    ANYTHING,
    EMPTY,
    Abstract,
    AbstractReader,
    Unclear,
    are_different,
    at_place,
    constant,
    scalar,
    united,
)
from webhook.reads.read_set import EVERY_KEY, WHOLE, PolicyReads, ReadPath, ReadSet
from webhook.rego.check import ir
from webhook.rego.check.variables import (
    bound_properties,
    every_literal,
    properties_of,
    walk,
    walk_body,
)
from webhook.rego.known_calls import joined, of_known
from webhook.rego.text_calls import of_texts
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.ir import Body, Lit, Rule, Term
    from webhook.rego.check.tree import Node, Tree

INPUT: Final = "input"
DATA: Final = "data"
PROVIDER: Final = "external_data"

_KINDS_ALONE: Final = frozenset(
    f"is_{kind}" for kind in ("array", "boolean", "null", "number", "object", "set", "string")
) | {"type_name"}
"""Built-ins whose result does not depend on the values within a container."""

_ORDERED: Final = frozenset({"equal", "neq", "lt", "lte", "gt", "gte"})
"""Comparisons: values of different kinds are ordered by their kinds."""

_EFFECTS: Final = frozenset({"trace"})
"""Built-ins that are called for their effect, as prints are."""

_PRINT: Final = "print"

_MESSAGE: Final = "msg"
"""The field of a violation without which it is none."""

_FALSE: Final = ("bool", False)

_NO_PROPERTIES: Final[Mapping[str, Abstract]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reading:
    """The dependencies of a document, and its rules that can hold."""

    dependencies: PolicyReads
    holding: frozenset[int]
    """The identities of the rules of the document, branches of ``else`` included."""


def read(
    tree: Tree,
    builtins: Mapping[str, Builtin],
    path: Sequence[str],
    given: Mapping[ReadPath, Abstract | None] | None = None,
) -> Reading:
    """Finds the reads of the document at a path below ``data``.

    ``given`` has known values of places, None for one where nothing is.
    """
    node = tree.find(tuple(path))
    assert node is not None
    interpretation = _Interpretation(tree, builtins, given or {})
    distinct = None
    try:
        reads, deciding = interpretation.reads_of(node)
        changing = interpretation.changing
        holding = frozenset(interpretation.holding)
        if interpretation.compares_by_key:
            again = _Interpretation(tree, builtins, given or {}, has_distinct_keys=True)
            distinct = again.reads_of(node)
    except (Unclear, RecursionError):
        everything = _every_rule(tree)
        reads = deciding = WHOLE
        changing = {name for rule in everything for name in _changing(rule, builtins)}
        holding = frozenset(map(id, everything))
    asks = PROVIDER in changing
    functions = tuple(sorted(changing - {PROVIDER}))
    dependencies = PolicyReads(reads, deciding, functions, asks)
    if distinct is not None and distinct != (reads, deciding):
        of_distinct = PolicyReads(*distinct, functions, asks)
        dependencies = replace(dependencies, distinct=of_distinct)
    return Reading(dependencies, holding)


def _every_rule(tree: Tree) -> list[Rule]:
    """Returns all rules of a program, branches of ``else`` included."""
    return [branch for of in tree.root.walk() for rule in of.rules for branch in rule.branches()]


def _literals(rule: Rule) -> Iterator[Lit]:
    """Yields the literals anywhere in a rule."""
    bodies = [rule.body]
    heads = [
        term for term in (*rule.rest, *(rule.args or ()), rule.key, rule.value) if term is not None
    ]
    terms = [*(part for head in heads for part in walk(head)), *walk_body(rule.body)]
    bodies += [term.body for term in terms if isinstance(term, ir.Comprehension)]
    for body in bodies:
        yield from every_literal(body)


def _changing(rule: Rule, builtins: Mapping[str, Builtin]) -> set[str]:
    """Built-ins anywhere in a rule that may answer otherwise another time."""
    names = set()
    for lit in _literals(rule):
        called = [lit.name] if isinstance(lit, ir.Call) else []
        called += [modifier.function for modifier in lit.withs if modifier.function is not None]
        names |= {name for name in called if isinstance(name, str)}
        if isinstance(lit, ir.Print):
            names.add(_PRINT)
    return {name for name in names if name == _PRINT or _is_changing(name, builtins)}


def _is_changing(name: str, builtins: Mapping[str, Builtin]) -> bool:
    return not builtins[name].deterministic or name == PROVIDER or name in _EFFECTS


class _Fails(Exception):
    """A literal that can never hold: the body has no solution."""


class _Interpretation:
    """Evaluates the rules of one program over abstract values."""

    def __init__(
        self,
        tree: Tree,
        builtins: Mapping[str, Builtin],
        given: Mapping[ReadPath, Abstract | None],
        *,
        has_distinct_keys: bool = False,
    ) -> None:
        """With ``has_distinct_keys`` no two values are found for one key of an object."""
        self.reader = AbstractReader(given)
        self._has_distinct_keys = has_distinct_keys
        self.compares_by_key = False
        """Whether parts of the input are read only to compare two values of one key."""
        self.changing: set[str] = set()
        self.holding: set[int] = set()
        self._tree = tree
        self._builtins = builtins
        self._documents: dict[int, Abstract | None] = {}
        self._calls: dict[tuple[int, tuple[Abstract, ...]], Abstract | None] = {}
        self._members: dict[tuple[int, tuple[tuple[str, Abstract], ...]], Abstract | None] = {}
        """Members of sets by node and properties."""
        self._has_modifiers = any(
            lit.withs for rule in _every_rule(tree) for lit in _literals(rule)
        )
        """Whether a rule is evaluated with other documents somewhere."""
        self._repeats = False
        """Whether the body at hand may have several solutions."""
        self._keeps_order = False
        """Whether it matters how many solutions it has, and in which order."""

    def reads_of(self, node: Node) -> tuple[ReadSet, ReadSet]:
        """Returns the reads of a document, and those that decide whether there are violations."""
        value = self.document(node)
        deciding = self._deciding(value)
        self.reader.whole(value)
        return self.reader.record.frozen(), deciding

    def _deciding(self, value: Abstract | None) -> ReadSet:
        if value is not None:
            if value.members is None or value.places or value.anything or value.fields:
                self.reader.whole(value)
            else:
                self.reader.shallow(value.members)
                if (message := self.reader.step(value.members, _MESSAGE)) is not None:
                    self.reader.present(message)
        return self.reader.record.frozen()

    # --- rules -------------------------------------------------------------------------------

    def document(self, node: Node) -> Abstract | None:
        """Returns the value of the rules at a node and below it; None without rules."""
        if id(node) not in self._documents:
            self._documents[id(node)] = self._document(node)
        return self._documents[id(node)]

    def _document(self, node: Node) -> Abstract | None:
        ruled = self._rules(node.rules, ()) if node.rules else None
        if node.rules and not node.children:
            return ruled
        fields = [
            (child.name, value)
            for child in node.children.values()
            if (value := self.document(child)) is not None
        ]
        base = at_place(DATA, *(str(name) for name in node.path))
        return united((ruled, base, Abstract(fields=tuple(fields), container=True)))

    def _rules(
        self,
        rules: Sequence[Rule],
        args: tuple[Abstract, ...],
        properties: Mapping[str, Abstract] = _NO_PROPERTIES,
    ) -> Abstract | None:
        """Returns the value of the rules of one name; a value that must be unique is read whole.

        ``properties`` are those of the members of a set that are sought.
        """
        if rules[0].args is not None and not args and rules[0].args:
            return ANYTHING  # a function's name in a package that is read whole
        values: list[Abstract | None] = []
        unique: list[Abstract] = []
        """The values that must be equal if several rules hold."""
        holding = 0
        for rule in rules:
            before = len(values)
            for branch in rule.branches():
                outer = self._repeats, self._keeps_order
                self._repeats = self._keeps_order = False
                value = self._branch(branch, args, properties)
                if value is not None:
                    self.holding.add(id(branch))
                    if branch.kind == "object" and branch.key is None:
                        self._compare_by_key(value)
                    elif branch.kind != "set":
                        unique.append(value)
                        if self._repeats or branch.rest:
                            self.reader.whole(value)
                    values.append(value)
                self._repeats, self._keeps_order = outer
            holding += not rule.default and len(values) > before
        if holding > 1:
            for value in unique:
                self.reader.whole(value)
        if rules[0].kind in {"set", "object"}:
            values.append(EMPTY)
        return united(values)

    def _compare_by_key(self, value: Abstract) -> None:
        """Records that a value is compared with another one of the same key, if there is one."""
        if self.reader.is_below(INPUT, value):
            self.compares_by_key = True
            if self._has_distinct_keys:
                return
        self.reader.whole(value)

    def _branch(
        self, rule: Rule, args: tuple[Abstract, ...], properties: Mapping[str, Abstract]
    ) -> Abstract | None:
        env: dict[str, Abstract] = {}
        try:
            for pattern, arg in zip(rule.args or (), args, strict=True):
                self._match(pattern, arg, env)
            if properties:
                assert isinstance(rule.key, ir.Object)  # Else its members are not sought by them.
                terms = properties_of(rule.key) or {}
                for name, given in properties.items():
                    self._match(terms[name], given, env)
            self._body(rule.body, env)
            if rule.key is not None and rule.value is None:
                value = Abstract(members=self._term(rule.key, env), container=True)
            else:
                value = scalar(True) if rule.value is None else self._term(rule.value, env)
            for part in reversed(rule.rest):
                self.reader.whole(self._term(part, env))
                value = Abstract(items=value, container=True)
        except _Fails:
            return None
        return value

    def _call_rules(self, node: Node, args: tuple[Abstract, ...]) -> Abstract | None:
        key = id(node), args
        if key not in self._calls:
            self._calls[key] = self._rules(node.rules, args)
        return self._calls[key]

    # --- bodies ------------------------------------------------------------------------------

    def _body(self, body: Body, env: dict[str, Abstract]) -> None:
        """Follows a body; raises _Fails where it can have no solution."""
        for lit in body:
            self.reader.pay()
            if lit.withs:
                raise Unclear
            if lit.negated:
                self._closed(lambda lit=lit: self._literal(lit, dict(env)))  # type: ignore[misc]
            else:
                self._literal(lit, env)

    def _closed(self, follow: Callable[[], None]) -> bool:
        """Evaluates a literal without solutions of its own; returns whether it can hold."""
        outer = self._repeats, self._keeps_order
        self._keeps_order = False
        try:
            follow()
        except _Fails:
            return False
        finally:
            self._repeats, self._keeps_order = outer
        return True

    def _literal(self, lit: Lit, env: dict[str, Abstract]) -> None:
        if isinstance(lit, ir.Eq):
            self._unify(lit.a, lit.b, env)
        elif isinstance(lit, ir.Call):
            self._call(lit, env)
        elif isinstance(lit, ir.Test):
            self._holds(self._term(lit.term, env))
        elif isinstance(lit, ir.Not):
            self._closed(lambda: self._body(lit.body, dict(env)))
        elif isinstance(lit, ir.Every):
            self._every(lit, env)
        elif isinstance(lit, ir.Logic):
            self._logic(lit, env)
        else:
            self.changing.add(_PRINT)
            for arg in lit.args:
                self.reader.whole(self._term(arg, env))

    def _holds(self, value: Abstract) -> None:
        """Looks whether a value is there, and not false."""
        self.reader.present(value)
        if value.only == _FALSE:
            raise _Fails

    def _every(self, lit: ir.Every, env: dict[str, Abstract]) -> None:
        domain = self._term(lit.domain, env)
        self.reader.shallow(domain)
        self.reader.keys(domain)
        item = self.reader.step(domain)
        if item is None:
            return
        inner = {**env, lit.value.name: item, lit.key.name: self.reader.names(domain) or ANYTHING}
        self._closed(lambda: self._body(lit.body, inner))

    def _logic(self, lit: ir.Logic, env: dict[str, Abstract]) -> None:
        held = [
            self._closed(lambda side=side: self._body(side, dict(env)))  # type: ignore[misc]
            for side in (lit.left, lit.right)
        ]
        if not (all(held) if lit.operator == "and" else any(held)):
            raise _Fails

    def _unify(self, a: Term, b: Term, env: dict[str, Abstract]) -> None:
        for pattern, term in ((a, b), (b, a)):
            if self._is_unbound(pattern, env):
                self._match(pattern, self._term(term, env), env)
                return
        if _is_pattern(a) and _binds(a, env):
            if isinstance(a, ir.Array) and isinstance(b, ir.Array) and _binds(b, env):
                if len(a.items) != len(b.items):
                    raise _Fails
                for first, other in zip(a.items, b.items, strict=True):
                    self._unify(first, other, env)
                return
            self._match(a, self._term(b, env), env)
        elif _is_pattern(b) and _binds(b, env):
            self._match(b, self._term(a, env), env)
        else:
            self._equal(self._term(a, env), self._term(b, env))

    def _is_unbound(self, term: Term, env: Mapping[str, Abstract]) -> bool:
        return isinstance(term, ir.Var) and term.name not in env and term.name not in (INPUT, DATA)

    def _equal(self, first: Abstract, other: Abstract) -> None:
        if of_texts(self.reader, "equal", (first, other)) is None:
            self.reader.compare(first, other)
        if are_different(first, other):
            raise _Fails

    def _match(self, pattern: Term, value: Abstract, env: dict[str, Abstract]) -> None:
        """Unifies a value with a pattern, and binds the pattern's unbound variables."""
        if isinstance(pattern, ir.Var) and self._is_unbound(pattern, env):
            env[pattern.name] = value
        elif isinstance(pattern, ir.Array):
            self._look_into(value)
            for at, item in enumerate(pattern.items):
                self._match_below(item, value, at, env)
        elif isinstance(pattern, ir.Object):
            self._look_into(value)
            for name, item in pattern.items:
                known = name.value if isinstance(name, ir.Const) else EVERY_KEY
                if known is EVERY_KEY:
                    self.reader.whole(self._term(name, env))
                self._match_below(item, value, known, env)
        else:
            self._equal(value, self._term(pattern, env))

    def _look_into(self, value: Abstract) -> None:
        self.reader.shallow(value)
        self.reader.keys(value)

    def _match_below(
        self, pattern: Term, value: Abstract, key: Any, env: dict[str, Abstract]
    ) -> None:
        below = self.reader.step(value, key if type(key) in (str, int) else EVERY_KEY)
        if below is None:
            raise _Fails
        self._match(pattern, below, env)

    # --- calls -------------------------------------------------------------------------------

    def _call(self, call: ir.Call, env: dict[str, Abstract]) -> None:
        args = tuple(self._term(arg, env) for arg in call.args)
        if isinstance(call.name, str):
            result = self._joined(call, env) or self._builtin(call.name, args)
        else:
            node = self._tree.function(call.name)
            if node is None:
                raise Unclear
            result = self._call_rules(node, args)
        if result is None:
            raise _Fails
        if call.out is None:
            self._holds(result)
        else:
            self._match(call.out, result, env)

    def _joined(self, call: ir.Call, env: dict[str, Abstract]) -> Abstract | None:
        """Returns the result of ``concat`` with an array that is written there, of known texts."""
        if call.name != "concat" or not isinstance(call.args[1], ir.Array):
            return None
        items = [self._term(item, env) for item in call.args[1].items]
        return joined(self._term(call.args[0], env), items)

    def _builtin(self, name: str, args: tuple[Abstract, ...]) -> Abstract | None:
        builtin = self._builtins[name]
        if _is_changing(name, self._builtins):
            self.changing.add(name)
        if builtin.relation:
            self._repeats = True
        if (known := of_known(name, args)) is not None:
            return known
        if (tested := of_texts(self.reader, name, args)) is not None:
            return tested
        if name in _ORDERED:
            return self._compared(name, *args)
        if name in _KINDS_ALONE:
            self.reader.shallow(args[0])
            return ANYTHING
        if name == "count":
            self.reader.shallow(args[0])
            self.reader.keys(args[0])
            return ANYTHING
        if name == "object.get":
            return self._get(*args)
        if name == "sprintf" and _is_text(args[0]) and _is_written_array(args[1]):
            return Abstract(anything=True, text=args[1])
        if name == "array.concat":
            return self._concatenated(args)
        if name in ("or", "internal.member_2") and len(args) == 2:
            return self._of_sets(name, *args)
        for arg in args:
            self.reader.whole(arg)
        return ANYTHING

    def _compared(self, name: str, first: Abstract, other: Abstract) -> Abstract:
        self.reader.compare(first, other)
        if name in ("equal", "neq"):
            if are_different(first, other):
                return scalar(name == "neq")
            if first.only is not None and first.only == other.only:
                return scalar(name == "equal")
        return ANYTHING

    def _get(self, value: Abstract, key: Abstract, default: Abstract) -> Abstract | None:
        self.reader.shallow(value)
        names = _written_path(key)
        if names is None:
            self.reader.whole(key)
            self.reader.whole(value)
            return united((ANYTHING, default))
        results: list[Abstract | None] = [default]
        at: Abstract | None = value
        for choices in names:
            at = united(self._child(at, choice) for choice in choices) if at is not None else None
            if at is not None:
                self.reader.present(at)
        results.append(at)
        return united(results)

    def _child(self, value: Abstract, key: Any) -> Abstract | None:
        """Returns the value at a known key; for a set, the membership of the key."""
        if value.members is not None:
            sought = constant(key)
            self.reader.compare(value.members, sought)
            if are_different(value.members, sought):
                value = replace(value, members=None)
        return self.reader.step(value, key if type(key) in (str, int) else EVERY_KEY)

    def _concatenated(self, args: Iterable[Abstract]) -> Abstract:
        items: list[Abstract | None] = []
        for arg in args:
            self._look_into(arg)
            items.append(self.reader.step(arg))
        return Abstract(items=united(items), container=True)

    def _of_sets(self, name: str, first: Abstract, other: Abstract) -> Abstract:
        if name == "or":
            self.reader.shallow(first)
            self.reader.shallow(other)
            return united((first, other)) or EMPTY
        items = self.reader.step(other)
        self.reader.shallow(other)
        self.reader.keys(Abstract(places=other.places))
        if items is not None:
            self.reader.compare(first, items)
        return scalar(False) if items is None or are_different(first, items) else ANYTHING

    # --- terms -------------------------------------------------------------------------------

    def _term(self, term: Term, env: dict[str, Abstract]) -> Abstract:
        """Returns the value of a term; raises _Fails for a term without a value."""
        self.reader.pay()
        if isinstance(term, ir.Const):
            return constant(term.value)
        if isinstance(term, ir.Var):
            return self._variable(term, env)
        if isinstance(term, ir.Ref):
            return self._reference(term, env)
        if isinstance(term, ir.Array):
            items = tuple((at, self._term(item, env)) for at, item in enumerate(term.items))
            return Abstract(fields=items, container=True)
        if isinstance(term, ir.Set):
            members = united(self._term(item, env) for item in term.items)
            return Abstract(members=members, container=True)
        if isinstance(term, ir.Object):
            return self._object(term, env)
        if isinstance(term, ir.Comprehension):
            return self._comprehension(term, env)
        if isinstance(term, ir.Template):
            for part in term.parts:
                if not isinstance(part, str):
                    self.reader.whole(self._term(part, env))
            return ANYTHING
        raise Unclear

    def _variable(self, var: ir.Var, env: Mapping[str, Abstract]) -> Abstract:
        if var.name in env:
            return env[var.name]
        if var.name == INPUT:
            return at_place(INPUT)
        if var.name == DATA:
            return self._below_data([], {})
        raise Unclear

    def _object(self, term: ir.Object, env: dict[str, Abstract]) -> Abstract:
        fields: dict[Any, Abstract] = {}
        others: list[Abstract | None] = []
        for name, item in term.items:
            value = self._term(item, env)
            if isinstance(name, ir.Const) and type(name.value) is str and name.value not in fields:
                fields[name.value] = value
            else:
                self.reader.whole(self._term(name, env))
                self.reader.whole(value)  # two of equal names must not differ
                others.append(value)
        return Abstract(fields=tuple(fields.items()), items=united(others), container=True)

    def _comprehension(self, term: ir.Comprehension, env: dict[str, Abstract]) -> Abstract:
        inner = dict(env)
        value: Abstract | None = None
        outer = self._repeats, self._keeps_order
        self._repeats, self._keeps_order = False, term.kind == "array"
        try:
            self._body(term.body, inner)
            value = self._term(term.value, inner)
            if term.key is not None:
                self.reader.whole(self._term(term.key, inner))
                self._compare_by_key(value)
        except _Fails:
            value = None
        self._repeats, self._keeps_order = outer
        if term.kind == "set":
            return Abstract(members=value, container=True)
        return Abstract(items=value, container=True)

    def _reference(self, ref: ir.Ref, env: dict[str, Abstract]) -> Abstract:
        head = ref.head
        if isinstance(head, ir.Var) and head.name == DATA and DATA not in env:
            return self._below_data(ref.path, env)
        return self._steps(self._term(head, env), ref.path, env)

    def _below_data(self, path: Sequence[Term], env: dict[str, Abstract]) -> Abstract:
        """Returns the value at a path below data: of rules, or base documents."""
        node: Node | None = self._tree.root
        names: list[str] = []
        for at, part in enumerate(path):
            assert node is not None
            if node.rules or not isinstance(part, ir.Const) or type(part.value) is not str:
                break
            below = node.child(part.value)
            names.append(part.value)
            if below is None:
                return self._steps(at_place(DATA, *names), path[at + 1 :], env)
            node = below
        else:
            assert node is not None
            return self._existing(self.document(node))
        if node is None or (node.rules and node.rules[0].args is not None):
            raise Unclear
        rest = path[len(names) :]
        if len(rest) == 1 and isinstance(rest[0], ir.Object):
            properties = self._sought(node, rest[0], env)
            if properties:
                self._repeats = True
                members = self._members_with(node, properties)
                return self._matched(rest[0], self._existing(members), env)
        value = self._existing(self.document(node))
        return self._steps(value, rest, env)

    def _sought(
        self, node: Node, pattern: ir.Object, env: dict[str, Abstract]
    ) -> dict[str, Abstract]:
        """Returns the known properties by which evaluations seek members of a set.

        Empty if they look at all members.
        """
        if node.children or node.rules[0].kind != "set" or self._keeps_order or self._has_modifiers:
            return {}
        values = properties_of(pattern) or {}
        if not all(isinstance(value, ir.Var | ir.Const) for value in values.values()):
            return {}
        names = bound_properties(node.rules, pattern, lambda term: not self._is_unbound(term, env))
        return {name: self._term(values[name], env) for name in names or ()}

    def _members_with(self, node: Node, properties: Mapping[str, Abstract]) -> Abstract | None:
        """Returns the members of a set that have these properties."""
        key = id(node), tuple(properties.items())
        if key not in self._members:
            self._members[key] = self._rules(node.rules, (), properties)
        return self._members[key]

    def _existing(self, value: Abstract | None) -> Abstract:
        if value is None:
            raise _Fails
        self.reader.present(value)
        return value

    def _steps(self, value: Abstract, path: Sequence[Term], env: dict[str, Abstract]) -> Abstract:
        for part in path:
            value = self._step(value, part, env)
        self.reader.present(value)
        return value

    def _step(self, value: Abstract, part: Term, env: dict[str, Abstract]) -> Abstract:
        if isinstance(part, ir.Const):
            return self._existing_step(self._child(value, part.value))
        if isinstance(part, ir.Var) and self._is_unbound(part, env):
            self._repeats = True
            below = self._existing_step(self.reader.step(value))
            self.reader.present(below)
            if self._keeps_order and value.members is not None:
                self.reader.whole(value.members)
            env[part.name] = self.reader.names(value) or ANYTHING
            return below
        if _is_pattern(part) and _binds(part, env):
            self._repeats = True
            if self._is_of_set(value):
                return self._matched(part, value, env)
            self.reader.whole(value)
            return self._bound_whole(part, value, env)
        key = self._term(part, env)
        known = key.known
        if known is not None:
            return self._existing_step(united(self._child(value, name) for _, name in known))
        self.reader.whole(key)
        if value.members is not None:
            self.reader.whole(value.members)
        below = self._existing_step(self.reader.step(value))
        self.reader.present(below)
        return below

    def _is_of_set(self, value: Abstract) -> bool:
        """Whether it is some set alone, and how many members it has makes no difference."""
        is_other = value.places or value.anything or value.fields or value.items is not None
        return value.members is not None and not is_other and not self._keeps_order

    def _matched(self, pattern: Term, value: Abstract, env: dict[str, Abstract]) -> Abstract:
        """Returns the members of a set that a pattern fits."""
        members = self._existing_step(value.members)
        self.reader.shallow(members)
        self._match(pattern, members, env)
        return members

    def _bound_whole(self, pattern: Term, value: Abstract, env: dict[str, Abstract]) -> Abstract:
        """Returns a pattern for members of a set that has been read whole."""
        for name in _variables(pattern):
            if name not in env and name not in (INPUT, DATA):
                env[name] = ANYTHING
        self.reader.whole(self._term(pattern, env))
        return self._existing_step(self.reader.step(value))

    def _existing_step(self, value: Abstract | None) -> Abstract:
        if value is None:
            raise _Fails
        return value


def _is_text(value: Abstract) -> bool:
    known = value.known
    return known is not None and all(kind == "str" for kind, _ in known)


def _is_written_array(value: Abstract) -> bool:
    """Whether it is an array of terms, each of which has a value."""
    is_other = value.places or value.anything or value.scalars or value.members or value.items
    return (
        value.container
        and not is_other
        and [at for at, _ in value.fields] == list(range(len(value.fields)))
    )


def _is_pattern(term: Term) -> bool:
    return isinstance(term, (ir.Array, ir.Object))


def _variables(term: Term) -> list[str]:
    """Variables that unification with a pattern binds."""
    if isinstance(term, ir.Var):
        return [term.name]
    if isinstance(term, ir.Array):
        return [name for item in term.items for name in _variables(item)]
    if isinstance(term, ir.Object):
        return [name for _, item in term.items for name in _variables(item)]
    return []


def _binds(term: Term, env: Mapping[str, Abstract]) -> bool:
    return any(name not in env and name not in (INPUT, DATA) for name in _variables(term))


def _written_path(key: Abstract) -> list[list[Any]] | None:
    """Returns the keys, with their possible values, of an operand of object.get.

    None if unknown.
    """
    known = key.known
    if known is not None:
        return [[name for _, name in known]]
    if key.places or key.anything or key.items is not None or key.members is not None:
        return None
    if key.scalars or key.varies:  # It has one step or another number of them.
        return None
    steps = []
    for at, (name, value) in enumerate(key.fields):
        if name != at or value.known is None:
            return None
        steps.append([name for _, name in value.known])
    return steps
