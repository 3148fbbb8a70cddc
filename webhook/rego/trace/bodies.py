"""Checked rules in the form of OPA's compiler: terms computed within a literal precede it.

OPA's last stages take references and comprehensions out of calls, and write prints and template
strings as calls. Generated code needs none of that; a trace shows it. Generated variables are
numbered as in OPA: stage after stage, module after module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.tree import Tree
from webhook.rego.trace.places import branches, implied_place, whole_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.rego.location import Location
    from webhook.rego.syntax import ast

_DECLARED, _PRINTED, _CALLED, _MODIFIED, _MOVED, _TESTED = range(6)


class RewrittenRules:
    """The rules of a program in OPA's form."""

    def __init__(self, rules: Iterable[ir.Rule], *, tests: bool = False) -> None:
        """With ``tests`` the terms that tests compare have variables with known values."""
        self.tree = Tree()
        self._tests = tests
        self._written: dict[int, tuple[ast.Rule, bool]] = {}
        self._modules: set[int] = set()
        numbers = _Numbers()
        for rule in rules:
            self.tree.add(self._rewritten(rule, _Rewriting(dict(rule.names), numbers)))
        numbers.give()

    def _rewritten(self, rule: ir.Rule, rewriting: _Rewriting) -> ir.Rule:
        body = rewriting.body(rule.body)
        if self._tests and any(str(name).startswith("test_") for name in rule.path[-1:]):
            body = rewriting.compared(body)
        written, is_else = self._as_written(rule)
        if not body:
            body = [ir.Test(ir.Const(True), implied_place(written, is_else=is_else))]
        elif place := whole_place(written, is_else=is_else):
            body[-1] = replace(body[-1], location=place)
        else_ = None if rule.else_ is None else self._rewritten(rule.else_, rewriting)
        return replace(rule, body=body, else_=else_, names=rewriting.names)

    def _as_written(self, rule: ir.Rule) -> tuple[ast.Rule, bool]:
        """The rule in its module, and whether it is an ``else``."""
        if id(rule.module) not in self._modules:
            self._modules.add(id(rule.module))
            self._written.update(
                (id(branch.head), (branch, is_else)) for branch, is_else in branches(rule.module)
            )
        return self._written[id(rule.head)]


class _Numbers:
    """The numbers of generated variables: of each stage, in the order of the rules."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float, dict[str, str], str]] = []
        self._rules = 0

    def rule(self, names: dict[str, str]) -> None:
        """The next rule: each variable that it declares has a number, though its name is shown."""
        self._rules += 1
        for unique in names:
            self.ask(_DECLARED, {}, unique, float(unique.lstrip("$").split()[0]))

    def ask(self, stage: int, names: dict[str, str], name: str, place: float = 0) -> None:
        """Gives this variable a number of that stage."""
        self._entries.append((stage, self._rules, place, names, name))

    def give(self) -> None:
        """Assigns the numbers that were requested."""
        ordered = sorted(self._entries, key=lambda entry: entry[:3])
        for number, (_, _, _, names, name) in enumerate(ordered):
            names.setdefault(name, f"__local{number}__")


class _Rewriting:
    """Rewrites the bodies of one rule and its branches."""

    def __init__(self, names: dict[str, str], numbers: _Numbers) -> None:
        self.names = names
        self._numbers = numbers
        self._seen = set(names)
        self._count = 0
        numbers.rule(names)

    def body(self, body: ir.Body) -> ir.Body:
        """A body in OPA's form."""
        for lit in body:
            for modifier in lit.withs:
                self._number(modifier.value, _MODIFIED)
        result: ir.Body = []
        for lit in body:
            self._literal(lit, result)
        return result

    def compared(self, body: ir.Body) -> ir.Body:
        """Returns a test's body, with variables for the compared terms."""
        result: ir.Body = []
        for lit in body:
            if isinstance(lit, ir.Eq) and not lit.generated:
                a, b = (
                    self._bound(term, term.location, lit, result, _TESTED)
                    if isinstance(term, ir.Ref | ir.Comprehension)
                    else term
                    for term in (lit.a, lit.b)
                )
                result.append(replace(lit, a=a, b=b))
            else:
                result.append(lit)
        return result

    def _literal(self, lit: ir.Lit, result: ir.Body) -> None:
        def moved(term: ir.Term) -> ir.Term:
            return self._moved(term, lit, result)

        match lit:
            case ir.Eq(b=ir.Template()):
                assert isinstance(lit.b, ir.Template)
                parts = [self._part(part, lit, result) for part in lit.b.parts]
                self._number(lit.a, _CALLED)
                operands: list[ir.Term] = [ir.Array(parts)]
                result.append(
                    ir.Call(
                        "internal.template_string",
                        operands,
                        lit.location,
                        out=lit.a,
                        withs=lit.withs,
                    )
                )
            case ir.Eq():
                if lit.generated:
                    self._number(lit.a, _CALLED)
                a, b = self._within(lit.a, moved), self._within(lit.b, moved)
                result.append(replace(lit, a=a, b=b))
            case ir.Call(name="equal", out=None) if len(lit.args) == 2:
                a, b = (self._within(arg, moved) for arg in lit.args)
                result.append(
                    ir.Eq(
                        a,
                        b,
                        lit.location,
                        generated=lit.generated,
                        negated=lit.negated,
                        withs=lit.withs,
                    )
                )
            case ir.Call():
                if lit.out is not None:
                    self._number(lit.out, _CALLED)
                result.append(replace(lit, args=[moved(arg) for arg in lit.args]))
            case ir.Print():
                self._print(lit, result, moved)
            case ir.Test():
                result.append(replace(lit, term=self._within(lit.term, moved)))
            case ir.Every():
                self._number(lit.key, _DECLARED)
                domain = lit.domain
                if not isinstance(domain, ir.Var):
                    domain = self._bound(domain, lit.domain_location, lit, result, _CALLED)
                result.append(replace(lit, domain=domain, body=self.body(lit.body)))
            case ir.Not():
                result.append(replace(lit, body=self.body(lit.body)))
            case ir.Logic():
                result.append(replace(lit, left=self.body(lit.left), right=self.body(lit.right)))

    def _print(self, lit: ir.Print, result: ir.Body, moved: Callable[[ir.Term], ir.Term]) -> None:
        for arg in lit.args:
            self._number(arg.value, _PRINTED)
        array = ir.Array([moved(arg) for arg in lit.args])
        result.append(ir.Call("internal.print", [array], lit.location, withs=lit.withs))

    def _part(self, part: str | ir.Term, lit: ir.Lit, result: ir.Body) -> ir.Term:
        """Returns the value of an expression in a template string: a set of at most one."""
        if isinstance(part, str):
            return ir.Const(part)
        if isinstance(part, ir.Comprehension) and len(part.body) == 1:
            only = part.body[0]
            if isinstance(only, ir.Eq) and isinstance(only.b, ir.Var | ir.Const) and not only.withs:
                return ir.Set([only.b])
        return self._moved(part, lit, result)

    def _within(self, term: ir.Term, moved: Callable[[ir.Term], ir.Term]) -> ir.Term:
        """Returns a term with its inner references and comprehensions moved out.

        Not the term itself.
        """
        if isinstance(term, ir.Ref):
            for part in term.path:
                self._key(part)
            return replace(term, path=[moved(part) for part in term.path])
        if isinstance(term, ir.Comprehension):
            return replace(term, body=self.body(term.body))
        return moved(term)

    def _moved(self, term: ir.Term, lit: ir.Lit, result: ir.Body) -> ir.Term:
        if isinstance(term, ir.Ref | ir.Comprehension):
            place = term.location if term.location.row else lit.location
            inner = self._within(term, lambda part: self._moved(part, lit, result))
            return self._bound(inner, place, lit, result, _MOVED)
        if isinstance(term, ir.Array):
            return ir.Array([self._moved(item, lit, result) for item in term.items])
        if isinstance(term, ir.Set):
            return ir.Set([self._moved(item, lit, result) for item in term.items])
        if isinstance(term, ir.Object):
            return ir.Object(
                [(self._moved(k, lit, result), self._moved(v, lit, result)) for k, v in term.items]
            )
        return term

    def _bound(  # bound variables, their places, and their order
        self, term: ir.Term, place: Location, lit: ir.Lit, result: ir.Body, stage: int
    ) -> ir.Var:
        """A variable for the term, bound before the literal."""
        self._count += 1
        var = ir.Var(f" moved{self._count}")
        self._number(var, stage)
        result.append(ir.Eq(var, term, place, generated=True, withs=lit.withs))
        return var

    def _key(self, part: ir.Term) -> None:
        """Declares the key of `some x in xs`: before x, and with one more variable."""
        if isinstance(part, ir.Var) and part.name.startswith("$ ") and part.name not in self._seen:
            self._seen.add(part.name)
            place = float(part.name.split()[1]) - 1.5
            self._numbers.ask(_DECLARED, self.names, part.name, place)
            self._numbers.ask(_DECLARED, {}, part.name, place + 1)

    def _number(self, term: ir.Term, stage: int) -> None:
        if isinstance(term, ir.Var) and ir.is_generated(term.name) and term.name not in self._seen:
            self._seen.add(term.name)
            declared = stage == _DECLARED and term.name.split()
            self._numbers.ask(stage, self.names, term.name, float(declared[0]) if declared else 0)
