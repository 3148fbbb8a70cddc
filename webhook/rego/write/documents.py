"""Stage 5c: the rules of one path as Python functions.

``d`` functions give a whole document and keep it for the evaluation, ``i`` the
members of a partial set without telling equal ones apart, ``m`` those of a set of
objects that have given properties, ``f`` are functions, ``o`` (and unfinished
``h``) the documents of rules with variables in their reference, ``n`` describe a
package for paths that are only known at run time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.run.values import UNDEFINED, equal
from webhook.rego.write.literals import BodyWriter
from webhook.rego.write.nesting import share
from webhook.rego.write.payment import Payment, mark, settle
from webhook.rego.write.rule_bodies import Bodies, begin, writer_of
from webhook.rego.write.uses import Uses

if TYPE_CHECKING:
    from webhook.rego.check.ir import Rule
    from webhook.rego.check.tree import Node
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.writer import Operand


MANY_CALLS = 3
"""Places that call a function from which on its answers are kept."""


class Documents:
    """Writes the functions that a unit wants, until it wants no more."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.functions: list[tuple[str, Node]] = []
        self.kept: list[str] = []
        """Statements that let functions keep their answers, after all functions."""
        self.given: tuple[str, ...] = ()
        """Sources of the operands that the function being written is given as constants."""

    def run(self) -> None:
        """Write everything wanted."""
        while self.unit.wanted:
            self.write(*self.unit.wanted.pop())
        for name, node in self.functions:
            if self.unit.calls.get(id(node), 0) >= MANY_CALLS and node.worth_keeping:
                self.kept.append(f"{name} = kept({name}, {self.unit.slot()})")
        settle(self.unit)
        self.unit.add([(0, text) for text in self.kept])

    def write(self, name: str, wanted: tuple[str, Node, Any]) -> None:
        """Write one function."""
        kind, node, detail = wanted
        if kind == "d":
            self._document(name, node)
        elif kind == "i":
            self._members(name, node)
        elif kind == "g":
            self._collection(name, detail)
        elif kind == "m":
            self._matching(name, node, *detail)
        elif kind == "f":
            if detail is None:
                self.functions.append((name, node))
            self._function(name, node, detail)
        elif kind == "o":
            self._object(name, node, detail)
        elif kind == "h":
            self._built(name, node, detail)
        else:
            self._branching(name, node)

    def _finish(self, header: str, prologue: list[str], writer: BodyWriter) -> None:
        lines = [(0, header), *((1, text) for text in prologue)]
        name = header[4 : header.index("(")]
        if not writer.effects:
            self.unit.quiet.add(name)
        if len(writer.lines) == 1:
            source = writer.lines[0][1].removeprefix("return ")
            if source in ("U", "out"):
                self.unit.fixed[name] = UNDEFINED
            elif source in self.unit.values:
                self.unit.fixed[name] = self.unit.values[source]
        self.unit.payments[name] = Payment(
            writer.free, writer.straight, writer.callees, pays=writer.pays
        )
        lines.append((1, mark(name, pays=writer.pays)))
        lines.extend((1, text) for text in writer.prologue)
        lines.extend(writer.lines)
        self.unit.add(share(lines) if writer.split else lines)

    def _cached(self, name: str, inner: str, node: Node, slot: int, *, guard: bool = True) -> None:
        """The function that computes a document once, unless a modifier replaces it."""
        if guard and self.unit.replaceable(node.path):
            path = self.unit.constant(tuple(node.path))
            self.kept.append(f"{name} = once_unless_replaced({inner}, {slot}, {path})")
        else:
            self.kept.append(f"{name} = once({inner}, {slot})")

    def _of_constraint(self, name: str, inner: str, node: Node) -> None:
        """The same of a document that parameters alone may decide: for a constraint it is known."""
        slot = self.unit.slot()
        self._cached(name, inner, node, slot)
        if self.unit.purity.document(node):
            self.unit.of_constraint.append((slot, name))

    def _collection(self, name: str, term: ir.Comprehension) -> None:
        """A comprehension that only parameters decide, wherever it stands."""
        slot = self.unit.slot()
        self.kept.append(f"{name} = once({name}e, {slot})")
        self.unit.of_constraint.append((slot, name))
        uses = Uses()
        uses.body([term], [])
        writer = BodyWriter(self.unit, uses)
        writer.location = term.location
        source, _ = writer.collection(term)
        writer.line(f"return {source}")
        self._finish(f"def {name}e(S):", [], writer)

    # --- sets --------------------------------------------------------------------------------------

    def entry(self, name: str, node: Node) -> None:
        """The function of a document that is asked for: nothing else in the program can use it."""
        if node.rules[0].kind == "set":
            self._set(name, node)
        else:
            self._single(name, "S", node)

    def _document(self, name: str, node: Node) -> None:
        inner = f"{name}e"
        self._of_constraint(name, inner, node)
        if node.rules[0].kind == "set":
            self._set(inner, node)
        else:
            self._single(inner, "S", node)

    def _set(self, name: str, node: Node) -> None:
        if all(isinstance(rule.key, ir.Object | ir.Array) for rule in node.rules):
            # Keys of composite members are dear and often never needed.
            self._list(name, node, "return lazy_set(out)")
            return
        writer = writer_of(self.unit, node.rules)

        def add(rule: Rule) -> None:
            assert rule.key is not None
            writer.add_member("out", writer.operand(rule.key))

        Bodies(writer, _no_matches, add, "out").write(node.rules)
        writer.lines.append((1, "return set_of(out)"))
        self._finish(f"def {name}(S):", ["out = {}"], writer)

    def _members(self, name: str, node: Node) -> None:
        inner = f"{name}e"
        self._of_constraint(name, inner, node)
        self._list(inner, node, "return out")
        if inner in self.unit.fixed:
            self.unit.fixed[name] = UNDEFINED

    def _matching(
        self, name: str, node: Node, given: tuple[tuple[str, str], ...], open_: tuple[str, ...]
    ) -> None:
        """Members of a set of objects whose ``given`` properties have these values.

        Known from the beginning, they save the iterations that would find others.
        The result holds the ``open`` properties of each member.
        """
        params = ", ".join(["S", *(f"a{i}" for i in range(len(given)))])
        writer = writer_of(self.unit, node.rules)

        def matches(rule: Rule) -> list[tuple[ir.Term, Operand]]:
            terms = _properties(rule)
            return [(terms[key], (f"a{i}", kind)) for i, (key, kind) in enumerate(given)]

        def add(rule: Rule) -> None:
            terms = _properties(rule)
            found = [writer.operand(terms[key])[0] for key in open_]
            value = found[0] if len(found) == 1 else f"({''.join(f'{x}, ' for x in found)})"
            writer.line(f"out.append({value})")

        Bodies(writer, matches, add, "out").write(node.rules)
        writer.lines.append((1, "return out"))
        self._finish(f"def {name}({params}):", ["out = []"], writer)

    def _list(self, name: str, node: Node, end: str) -> None:
        writer = writer_of(self.unit, node.rules)

        def add(rule: Rule) -> None:
            assert rule.key is not None
            writer.line(f"out.append({writer.operand(rule.key)[0]})")

        Bodies(writer, _no_matches, add, "out").write(node.rules)
        writer.lines.append((1, end))
        self._finish(f"def {name}(S):", ["out = []"], writer)

    # --- single values -------------------------------------------------------------------------------

    def _function(self, name: str, node: Node, given: tuple[str, ...] | None) -> None:
        """A function; without parameters for the operands that are given."""
        args = node.rules[0].args
        assert args is not None
        given = given or ("",) * len(args)
        params = ", ".join(["S", *(f"a{i}" for i, known in enumerate(given) if not known)])
        if any(given) or not self._table(name, params, node.rules):
            outer, self.given = self.given, given
            self._single(name, params, node)
            self.given = outer

    def _table(self, name: str, params: str, rules: list[Rule]) -> bool:
        """A function whose rules only map one string to a value each is a lookup."""
        found: dict[str, Any] = {}
        for rule in rules:
            if rule.default or rule.else_ is not None or rule.body or len(rule.args or ()) != 1:
                return False
            assert rule.args is not None
            arg, value = rule.args[0], rule.value
            if not isinstance(arg, ir.Const) or not isinstance(value, ir.Const):
                return False
            if type(arg.value) is not str or arg.value in found:
                return False
            found[arg.value] = value.value
        table = self.unit.constant(found)
        self.unit.add(
            [
                (0, f"def {name}({params}):"),
                (1, f"return {table}.get(a0, U) if type(a0) is str else U"),
            ]
        )
        return True

    def _single(self, name: str, params: str, node: Node) -> None:
        """A complete document or function: all rules must agree on its value."""
        rules = [rule for rule in node.rules if not rule.default]
        defaults = [rule for rule in node.rules if rule.default]
        message = self.unit.conflict(node)
        if len(rules) <= 1:
            self._chain(
                name, params, [b for r in (*rules, *defaults) for b in r.branches()], message
            )
        elif any(rule.else_ for rule in rules):
            self._chains(name, params, rules, defaults, message)
        elif _all_equal(rules):
            self._chain(name, params, [*rules, *defaults], message)
        else:
            writer = writer_of(self.unit, [*rules, *defaults])
            add = partial(self._add_value, writer, message)
            matches = partial(self._matches, writer)
            Bodies(writer, matches, add, in_order=True).write(rules)
            if defaults:
                writer.lines.append((1, "if out is not U: return out"))
                self._alternative(writer, defaults[0], message)
            writer.lines.append((1, "return out"))
            self._finish(f"def {name}({params}):", ["out = U"], writer)

    def _chains(
        self, name: str, params: str, rules: list[Rule], defaults: list[Rule], message: str
    ) -> None:
        """Several rules with ``else`` branches: each a function, and all must agree."""
        lines = [(0, f"def {name}({params}):"), (1, mark(name, pays=False)), (1, "out = U")]
        calls = [(f"{name}x{i}", 1) for i in range(len(rules))]
        self.unit.payments[name] = Payment(0, 0, calls, pays=False)
        for i, rule in enumerate(rules):
            part = f"{name}x{i}"
            self._chain(part, params, [*rule.branches()], message)
            place = self.unit.place(rule.location)
            lines += [
                (1, f"v = {part}({params})"),
                (1, "if v is not U:"),
                (2, f"out = v if out is U else agreed(out, v, {message}, {place})"),
            ]
        if defaults:
            part = f"{name}z"
            self._chain(part, params, defaults, message)
            lines.append((1, f"if out is U: return {part}({params})"))
        lines.append((1, "return out"))
        self.unit.add(lines)

    def _chain(self, name: str, params: str, chain: list[Rule], message: str) -> None:
        """Bodies of which the first that holds decides."""
        writer = writer_of(self.unit, chain)
        for rule in chain:
            self._alternative(writer, rule, message)
            if writer.lines and writer.lines[-1][0] == 1 and writer.lines[-1][1][:7] == "return ":
                break  # always
        else:
            writer.lines.append((1, "return U"))
        self._finish(f"def {name}({params}):", [], writer)

    def _matches(self, writer: BodyWriter, rule: Rule) -> list[tuple[ir.Term, Operand]]:
        """A rule's parameters and their values."""
        return [
            (arg, writer.constant(self.unit.values[known]) if known else (f"a{i}", ""))
            for i, (arg, known) in enumerate(zip(rule.args or (), self.given, strict=False))
        ]

    def _add_value(self, writer: BodyWriter, message: str, rule: Rule) -> None:
        self._agree(writer, "out", writer.name_of(self._value(writer, rule)), message, rule)

    def _value(self, writer: BodyWriter, rule: Rule) -> str:
        assert rule.value is not None
        return writer.operand(rule.value)[0]

    def _agree(self, writer: BodyWriter, found: str, value: str, message: str, rule: Rule) -> None:
        place = self.unit.place(rule.location)
        writer.effects += 1
        agreed = f"agreed({found}, {value}, {message}, {place})"
        writer.line(f"{found} = {value} if {found} is U else {agreed}")

    def _alternative(self, writer: BodyWriter, rule: Rule, message: str) -> None:
        """One body, which returns its value; solutions that disagree are a conflict."""
        start = len(writer.lines)
        saved = begin(writer, rule)
        found = ""

        def write() -> None:
            nonlocal found
            for arg, operand in self._matches(writer, rule):
                writer.match(arg, operand)
            writer.body(rule.body)
            writer.location = rule.location
            value = self._value(writer, rule)
            constant = isinstance(rule.value, ir.Const) and not writer.split
            if constant or not writer.loops:
                writer.line(f"return {value}")
                return
            value = writer.name_of(value)
            found = writer.new()
            self._agree(writer, found, value, message, rule)

        writer.attempt(write)
        writer.restore(saved)
        if found:
            writer.lines.insert(start, (1, f"{found} = U"))
            writer.lines.append((1, f"if {found} is not U: return {found}"))

    # --- objects -----------------------------------------------------------------------------------------

    def _object(self, name: str, node: Node, chosen: tuple[int, ...] | None) -> None:
        """The document of all rules below a node, or of those that a path can meet."""
        inner = f"{name}e"
        self._cached(name, inner, node, self.unit.slot())
        built = self.unit.want("h", node, chosen)
        self.unit.add([(0, f"def {inner}(S):"), (1, f"return {built}(S).value()")])

    def _built(self, name: str, node: Node, chosen: tuple[int, ...] | None) -> None:
        """The same document unfinished: a conflict in it matters to those who ask for it."""
        inner = f"{name}e"
        self._cached(name, inner, node, self.unit.slot(), guard=False)
        rules = [rule for below in node.walk() for rule in below.rules]
        if chosen is not None:
            rules = [rules[i] for i in chosen]
        depth = len(node.path)
        writer = writer_of(self.unit, rules)
        Bodies(writer, _no_matches, partial(self._put, writer, depth), in_order=True).write(rules)
        writer.lines.append((1, "return out"))
        self._finish(f"def {inner}(S):", ["out = Branch()"], writer)

    def _put(self, writer: BodyWriter, depth: int, rule: Rule) -> None:
        steps = [writer.unit.constant(part) for part in rule.path[depth:]]
        steps += [writer.operand(part)[0] for part in rule.rest]
        multi = rule.key is not None and rule.value is None
        member = rule.key if multi else rule.value
        assert member is not None
        value = writer.operand(member)[0]
        place = self.unit.place(rule.location)
        names = "".join(f"{step}, " for step in steps)
        writer.line(f"put_path(out, ({names}), {value}, {place}, multi={multi})")

    # --- packages ------------------------------------------------------------------------------------------

    def _branching(self, name: str, node: Node) -> None:
        document = "None"
        children: list[str] = []
        if node.rules:
            if node.dynamic:
                document = self.unit.want("o", node)
            elif node.rules[0].args is not None:
                document = "undefined"
            else:
                document = self.unit.want("d", node)
        else:
            children = [self.unit.want("n", child) for child in node.children.values()]
        hidden = node.path == ("system",)
        below = "".join(f"{child}, " for child in children)
        constant = self.unit.constant(node.name)
        self.unit.branchings.append(f"{name} = Branching({constant}, {document}, hidden={hidden})")
        if children:
            self.unit.adoptions.append(f"adopt({name}, ({below}))")


def _no_matches(rule: Rule) -> list[tuple[ir.Term, Operand]]:  # noqa: ARG001  # as others
    """Rules whose head asks for nothing."""
    return []


def _properties(rule: Rule) -> dict[Any, ir.Term]:
    """The properties of a member that is an object."""
    assert isinstance(rule.key, ir.Object)
    return {key.value: value for key, value in rule.key.items if isinstance(key, ir.Const)}


def _all_equal(rules: list[Rule]) -> bool:
    """Whether the rules all have one and the same constant value."""
    first = rules[0].value
    return isinstance(first, ir.Const) and all(
        isinstance(rule.value, ir.Const) and equal(rule.value.value, first.value)
        for rule in rules[1:]
    )
