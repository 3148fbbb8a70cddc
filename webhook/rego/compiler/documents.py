"""Stage 5c: the rules of one path as Python functions.

``d`` functions give a whole document and keep it for the evaluation, ``i`` the
members of a partial set without telling equal ones apart, ``f`` are functions,
``o`` the documents of rules with variables in their reference, ``n`` describe a
package for paths that are only known at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.compiler import ir
from webhook.rego.compiler.checks import branches
from webhook.rego.compiler.literals import BodyWriter
from webhook.rego.compiler.variables import terms_of
from webhook.rego.values import equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.compiler.ir import Rule
    from webhook.rego.compiler.tree import Node
    from webhook.rego.compiler.unit import Unit
    from webhook.rego.compiler.writer import Operand


def count_uses(terms: list[ir.Term | None], body: ir.Body) -> dict[str, int]:
    """How often each variable occurs, at any depth."""
    uses: dict[str, int] = {}

    def term(t: ir.Term | None) -> None:
        if isinstance(t, ir.Var):
            uses[t.name] = uses.get(t.name, 0) + 1
        elif isinstance(t, ir.Ref):
            term(t.head)
            for part in t.path:
                term(part)
        elif isinstance(t, ir.Array | ir.Set):
            for item in t.items:
                term(item)
        elif isinstance(t, ir.Object):
            for name, value in t.items:
                term(name)
                term(value)
        elif isinstance(t, ir.Comprehension):
            term(t.key)
            term(t.value)
            literals(t.body)
        elif isinstance(t, ir.Template):
            for part in t.parts:
                if not isinstance(part, str):
                    term(part)

    def literals(lits: ir.Body) -> None:
        for lit in lits:
            for t in terms_of(lit):
                term(t)
            for modifier in lit.withs:
                term(modifier.value)
            if isinstance(lit, ir.Every | ir.Not):
                literals(lit.body)
            elif isinstance(lit, ir.Logic):
                literals(lit.left)
                literals(lit.right)

    for t in terms:
        term(t)
    literals(body)
    return uses


def _uses(rule: Rule) -> dict[str, int]:
    return count_uses([*rule.rest, *(rule.args or ()), rule.key, rule.value], rule.body)


class Documents:
    """Writes the functions that a unit wants, until it wants no more."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def run(self) -> None:
        """Write everything wanted."""
        while self.unit.wanted:
            name, (kind, node, detail) = self.unit.wanted.pop()
            if kind == "d":
                self._document(name, node)
            elif kind == "i":
                self._members(name, node)
            elif kind == "f":
                self._function(name, node)
            elif kind == "o":
                self._object(name, node, detail)
            else:
                self._branching(name, node)

    def _writer(self, rule: Rule) -> BodyWriter:
        writer = BodyWriter(self.unit, _uses(rule))
        writer.location = rule.location
        return writer

    def _finish(self, header: str, prologue: list[str], writer: BodyWriter) -> None:
        lines = [(0, header), *((1, text) for text in prologue)]
        if writer.charges:
            lines.append((1, "X = S.context"))
        lines.extend(writer.lines)
        self.unit.add(lines)

    def _cached(self, name: str, inner: str, node: Node, slot: int) -> None:
        """The function that computes a document once, unless a modifier replaces it."""
        lines = [(0, f"def {name}(S):")]
        if self.unit.replaceable(node.path):
            names = self.unit.constant(tuple(node.path))
            lines += [
                (1, "if S.replaced:"),
                (2, f"v = replaced(S, {names})"),
                (2, "if v is not N: return v"),
            ]
        lines += [
            (1, f"v = S.cache[{slot}]"),
            (1, "if v is not N: return v"),
            (1, f"v = {inner}(S)"),
            (1, f"S.cache[{slot}] = v"),
            (1, "return v"),
        ]
        self.unit.add(lines)

    # --- sets --------------------------------------------------------------------------------------

    def _document(self, name: str, node: Node) -> None:
        slot = self.unit.slot()
        inner = f"{name}e"
        self._cached(name, inner, node, slot)
        if node.rules[0].kind == "set":
            writer = self._solutions(
                node, "{}", lambda writer, value: writer.add_member("out", value), repeats=True
            )
            writer.lines.append((1, "return set_of(out)"))
            self._finish(f"def {inner}(S):", ["out = {}"], writer)
        else:
            self._single(inner, "S", node)

    def _members(self, name: str, node: Node) -> None:
        slot = self.unit.slot()
        inner = f"{name}e"
        self._cached(name, inner, node, slot)

        def add(writer: BodyWriter, value: Operand) -> None:
            writer.line(f"out.append({value[0]})")

        writer = self._solutions(node, "[]", add, repeats=True)
        writer.lines.append((1, "return out"))
        self._finish(f"def {inner}(S):", ["out = []"], writer)

    def _solutions(
        self,
        node: Node,
        _start: str,
        add: Callable[[BodyWriter, Operand], None],
        *,
        repeats: bool,
    ) -> BodyWriter:
        """All bodies of a partial set, one after another in one function."""
        writer = self._writer(node.rules[0])
        for rule in node.rules:
            writer.uses = _uses(rule)
            saved = writer.snapshot()
            writer.repeats = repeats
            writer.loops = []
            writer.body(rule.body)
            writer.location = rule.location
            assert rule.key is not None
            add(writer, writer.operand(rule.key))
            writer.restore(saved)
        return writer

    # --- single values -------------------------------------------------------------------------------

    def _function(self, name: str, node: Node) -> None:
        args = node.rules[0].args
        assert args is not None
        params = ", ".join(["S", *(f"a{i}" for i in range(len(args)))])
        self._single(name, params, node)

    def _single(self, name: str, params: str, node: Node) -> None:
        """A complete document or function: all rules must agree on its value."""
        rules = [rule for rule in node.rules if not rule.default]
        default = next((rule for rule in node.rules if rule.default), None)
        message = self.unit.conflict(node)
        if not rules:
            assert default is not None
            self._chain(name, params, [default], message)
            return
        if len(rules) == 1:
            chain = [*branches(rules[0])]
            self._chain(name, params, chain + ([default] if default else []), message)
            return
        value = _common_constant(rules)
        if value is not None and not any(rule.else_ for rule in rules):
            self._any(name, params, rules, default, message)
            return
        parts = []
        for i, rule in enumerate(rules):
            part = f"{name}x{i}"
            parts.append((part, rule))
            self._chain(part, params, [*branches(rule)], message)
        lines = [(0, f"def {name}({params}):"), (1, "out = U")]
        for part, rule in parts:
            place = self.unit.place(rule.location)
            lines += [
                (1, f"v = {part}({params})"),
                (1, "if v is not U:"),
                (2, "if out is U: out = v"),
                (2, f"elif not equal(out, v): raise conflict({message}, {place})"),
            ]
        if default is not None:
            part = f"{name}z"
            self._chain(part, params, [default], message)
            lines.append((1, f"if out is U: return {part}({params})"))
        lines.append((1, "return out"))
        self.unit.add(lines)

    def _any(
        self, name: str, params: str, rules: list[Rule], default: Rule | None, message: str
    ) -> None:
        """Rules that all have the same constant value: the first that holds decides."""
        writer = self._writer(rules[0])
        for rule in [*rules, *([default] if default else [])]:
            self._alternative(writer, rule, message)
        writer.lines.append((1, "return U"))
        self._finish(f"def {name}({params}):", [], writer)

    def _chain(self, name: str, params: str, chain: list[Rule], message: str) -> None:
        """A rule and its ``else`` branches: the first that holds decides."""
        writer = self._writer(chain[0])
        for rule in chain:
            self._alternative(writer, rule, message)
        writer.lines.append((1, "return U"))
        self._finish(f"def {name}({params}):", [], writer)

    def _alternative(self, writer: BodyWriter, rule: Rule, message: str) -> None:
        """One body, which returns its value; solutions that disagree are a conflict."""
        writer.uses = _uses(rule)
        writer.location = rule.location
        saved = writer.snapshot()
        start = len(writer.lines)
        writer.repeats = True
        writer.loops = []
        for i, arg in enumerate(rule.args or ()):
            writer.match(arg, (f"a{i}", ""))
        writer.body(rule.body)
        writer.location = rule.location
        assert rule.value is not None
        value = writer.operand(rule.value)[0]
        if not writer.loops or isinstance(rule.value, ir.Const):
            writer.line(f"return {value}")
            writer.restore(saved)
            return
        found = writer.new()
        value = writer.name_of(value)
        place = self.unit.place(rule.location)
        writer.line(f"if {found} is U: {found} = {value}")
        writer.line(f"elif not equal({found}, {value}): raise conflict({message}, {place})")
        writer.restore(saved)
        writer.lines.insert(start, (1, f"{found} = U"))
        writer.lines.append((1, f"if {found} is not U: return {found}"))

    # --- objects -----------------------------------------------------------------------------------------

    def _object(self, name: str, node: Node, chosen: tuple[int, ...] | None) -> None:
        """The document of all rules below a node, or of those that a path can meet."""
        slot = self.unit.slot()
        inner = f"{name}e"
        self._cached(name, inner, node, slot)
        rules = [rule for below in node.walk() for rule in below.rules]
        if chosen is not None:
            rules = [rules[i] for i in chosen]
        depth = len(node.path)
        writer = self._writer(rules[0])
        for rule in rules:
            writer.uses = _uses(rule)
            writer.location = rule.location
            saved = writer.snapshot()
            writer.repeats = True
            writer.loops = []
            writer.body(rule.body)
            writer.location = rule.location
            steps = [writer.unit.constant(part) for part in rule.path[depth:]]
            steps += [writer.operand(part)[0] for part in rule.rest]
            multi = rule.key is not None and rule.value is None
            member = rule.key if multi else rule.value
            assert member is not None
            value = writer.operand(member)[0]
            place = self.unit.place(rule.location)
            names = "".join(f"{step}, " for step in steps)
            writer.line(f"put_path(out, ({names}), {value}, {place}, multi={multi})")
            writer.restore(saved)
        writer.lines.append((1, "return out.value()"))
        self._finish(f"def {inner}(S):", ["out = Branch()"], writer)

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


def _common_constant(rules: list[Rule]) -> Any:
    """The rules' values where all are one and the same scalar, as a list of it; else None."""
    first = rules[0].value
    if not isinstance(first, ir.Const):
        return None
    for rule in rules[1:]:
        if not isinstance(rule.value, ir.Const) or not equal(rule.value.value, first.value):
            return None
    return [first.value]
