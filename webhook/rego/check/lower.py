"""Stage 3: names resolved, variables renamed, calls taken out of terms.

OPA does this in nine passes (resolveAllRefs, rewriteLocalVars, rewriteTemplate- Strings,
rewritePrintCalls, rewriteExprTerms, rewriteComprehensionTerms, rewrite- RefsInHead,
rewriteWithModifiers); here it is one walk over each rule that leaves literals in the same order.
Terms that OPA hoists out of a literal, calls above all, precede the literal here too, *outside* of
a ``not``. That decides the value of ``not f(g(x))`` if ``g(x)`` is undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.check.lower_bodies import BodyLowering
from webhook.rego.check.lower_terms import is_empty_set
from webhook.rego.check.names import ROOTS, head_name
from webhook.rego.check.scope import ARG, Scopes, declared_in, term_vars
from webhook.rego.syntax import ast

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


class Lowering(BodyLowering):
    """Lowers the rules of one module, or one query; faults are collected, not raised."""

    def rule(self, module: ast.Module, rule: ast.Rule) -> ir.Rule:
        """Lowers one rule with its ``else`` branches."""
        self.scopes = Scopes({})
        hidden: set[str] = set()
        args = rule.head.args or ()
        for arg in args:
            self._argument_names(arg, hidden)
        for name in hidden & ROOTS:
            self.fault(
                "rego_compile_error",
                f"args must not shadow {name} (use a different variable name)",
                rule.location,
            )
        self.scopes.hidden.append(hidden)
        for arg in args:
            self._declare_arguments(arg)
        base = dict(self.scopes.levels[0])
        first = last = None
        branch: ast.Rule | None = rule
        while branch is not None:
            self.scopes.levels = [dict(base)]
            lowered = self._branch(module, branch)
            if last is None:
                first = lowered
            else:
                last.else_ = lowered
            last = lowered
            branch = branch.else_
        assert first is not None
        return first

    def _argument_names(self, arg: ast.Term, names: set[str]) -> None:
        """Variables that an argument's pattern may bind."""
        if isinstance(arg, ast.Var):
            names.add(arg.name)
        elif isinstance(arg, ast.Array):
            for item in arg.items:
                self._argument_names(item, names)
        elif isinstance(arg, ast.Object):
            for _, value in arg.items:
                self._argument_names(value, names)
        elif isinstance(arg, ast.Ref):
            names.update(term_vars(arg))

    def _declare_arguments(self, arg: ast.Term) -> None:
        if isinstance(arg, ast.Call) and not is_empty_set(arg):
            self.fault("rego_compile_error", "rule arguments cannot contain calls", arg.location)
        names: set[str] = set()
        self._argument_names(arg, names)
        for name in term_vars(arg) if names else ():
            if name in names and self.scopes.declared(name) is None and name not in ROOTS:
                self.scopes.declare(name, ARG)

    def _branch(self, module: ast.Module, rule: ast.Rule) -> ir.Rule:
        head = rule.head
        self.scopes.hidden.append(declared_in(rule.body))
        outer, self.sink = self.sink, []
        for literal in rule.body:
            self.literal(literal)
        args = None
        if head.args:  # OPA takes `f() = x` for a rule
            args = [self.head_term(arg) for arg in head.args]
        path: list[Value] = [*self.package, head_name(head)]
        rest: list[ir.Term] = []
        for part in head.ref.path:
            term = self.head_term(part)
            if isinstance(term, ir.Const) and not rest and not isinstance(term.value, (list, dict)):
                path.append(term.value)
            else:
                rest.append(term if isinstance(term, ir.Const) else self.as_var(term, part))
        key = value = None
        if head.key is not None:
            key = self.head_term(head.key)
        if head.value is not None:
            value = self.head_term(head.value)
        elif head.key is None:
            value = ir.Const(value=True)
        body, self.sink = self.sink, outer
        self.scopes.hidden.pop()
        return ir.Rule(
            tuple(path),
            rest,
            args,
            key,
            value,
            body,
            rule.location,
            module,
            rule.default,
            names=self.scopes.names,
            head=head,
        )
