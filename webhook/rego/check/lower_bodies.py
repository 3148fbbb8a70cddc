"""Stage 3: declarations, modifiers, the forms of literals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.check.lower_terms import TermLowering, is_empty_set, requires_evaluation
from webhook.rego.check.names import ROOTS
from webhook.rego.check.scope import ASSIGNED, DECLARED, declared_in, is_assignment, term_vars
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.rego.location import Location


class BodyLowering(TermLowering):
    """Lowers bodies, literal after literal."""

    # --- bodies ----------------------------------------------------------------------------

    def body(self, body: Sequence[ast.Literal_]) -> ir.Body:
        """A nested body, in the scope that the caller has entered."""
        outer, self.sink = self.sink, []
        withs, self.withs = self.withs, []
        for literal in body:
            self.literal(literal)
        lowered, self.sink = self.sink, outer
        self.withs = withs
        return lowered

    def scoped(self, body: Sequence[ast.Literal_]) -> ir.Body:
        """A nested body in a scope of its own."""
        self.scopes.push(declared_in(body))
        lowered = self.body(body)
        self.scopes.pop()
        return lowered

    def literal(self, literal: ast.Literal_) -> None:
        """Appends the literal to the body, after the terms hoisted from it."""
        if isinstance(literal, ast.SomeDecl):
            for var in literal.names:
                self._declare(var.name, DECLARED, literal.location)
            return
        outer = self.withs
        pending = literal.with_
        if isinstance(literal, ast.Expr):
            self._expr(literal)
        elif isinstance(literal, ast.SomeIn):
            self._some_in(literal)
        elif isinstance(literal, ast.Every):
            self._every(literal)
        elif isinstance(literal, ast.Not):
            self._not(literal)
        else:
            self._logic(literal)
        assert pending is literal.with_
        self.withs = outer

    def _expr(self, literal: ast.Expr) -> None:
        term, place = literal.term, literal.location
        if isinstance(term, ast.Call):
            name = term.operator.name if isinstance(term.operator, ast.Var) else ""
            if name == "assign" and len(term.args) == 2:  # others: wrong arity, refused later
                self._assign(literal, term)
                return
            if name == "eq" and len(term.args) == 2 and not self.is_rule("eq"):
                self.modifiers(literal.with_)
                a, b = (self.term(arg) for arg in term.args)
                self.put(ir.Eq(a, b, place, negated=literal.negated))
                return
            if name == "print" and not self.is_rule("print"):
                # OPA writes a literal anew for it, which is without `not` and `with`.
                args = [self.closure(arg) for arg in term.args]
                self.put(ir.Print(args, place))
                return
            if not is_empty_set(term):
                self.modifiers(literal.with_)
                function = self.function(term)
                args_ = [self.term(arg) for arg in term.args]
                metadata = self.metadata_of(function)
                if metadata is not None:
                    self.put(ir.Test(metadata, place, negated=literal.negated))
                    return
                self.put(ir.Call(function, args_, place, negated=literal.negated))
                return
        if type(term) is ast.Boolean and term.value and not literal.negated and not literal.with_:
            return  # `true`: how an empty body is written
        self.modifiers(literal.with_)
        self.put(ir.Test(self.term(term), place, negated=literal.negated))

    def _assign(self, literal: ast.Expr, call: ast.Call) -> None:
        if literal.negated:
            self.fault(
                "rego_compile_error", "cannot assign vars inside negated expression", call.location
            )
        self.modifiers(literal.with_)
        value = self.term(call.args[1])
        target = self._assigned(call.args[0])
        self.put(ir.Eq(target, value, literal.location, assign=True, negated=literal.negated))

    def _assigned(self, term: ast.Term) -> ir.Term:
        """The left side of ``:=``, its variables declared."""
        if isinstance(term, ast.Var):
            return ir.Var(self._declare(term.name, ASSIGNED, term.location))
        if isinstance(term, ast.Array):
            return ir.Array([self._assigned(item) for item in term.items])
        if isinstance(term, ast.Object):
            return ir.Object([(self.term(key), self._assigned(value)) for key, value in term.items])
        kind = KINDS_OF_TERM[type(term)]
        self.fault("rego_compile_error", f"cannot assign to {kind}", term.location)
        return ir.Const(None)

    def _declare(self, name: str, how: str, place: Location) -> str:
        if name[0] == "$":  # a wildcard: no reference to it is possible
            return name
        unique, complaint = self.scopes.declare(name, how)
        if complaint is not None:
            self.fault("rego_compile_error", complaint, place)
        return unique

    def _some_in(self, literal: ast.SomeIn) -> None:
        written = [] if literal.key is None else bound_by(literal.key)
        written += bound_by(literal.value)
        domain_vars = set(term_vars(literal.domain))
        clash = sorted({n for n in written if n in domain_vars and n[0] != "$"})
        for name in clash:
            self.fault("rego_compile_error", f"var {name} assigned before", literal.location)
        if clash:
            return
        self.modifiers(literal.with_)
        domain = self.term(literal.domain)
        for name in dict.fromkeys(written):  # `some x, x in xs` declares one variable
            if name not in ROOTS:
                self._declare(name, DECLARED, literal.location)
        value = self.term(literal.value)
        key: ir.Term = ir.Var("$" + self.scopes.fresh())
        if literal.key is not None:
            key = self.term(literal.key)
        place = literal.domain.location
        if isinstance(domain, ir.Ref):
            target = ir.Ref(domain.head, [*domain.path, key], place)
        else:
            target = ir.Ref(self.ref_head(domain, literal.domain), [key], place)
        self.put(ir.Eq(value, target, literal.location))

    def _every(self, literal: ast.Every) -> None:
        self.modifiers(literal.with_)
        domain = self.term(literal.domain)
        if not isinstance(domain, ir.Const):
            # A variable, too, as in OPA: if it has no type yet, it has type any from here on.
            var = ir.Var(self.scopes.fresh())
            self.sink.append(
                ir.Eq(var, domain, literal.domain.location, generated=True, withs=self.withs)
            )
            domain = var
        names = {v.name for v in (literal.key, literal.value) if v is not None}
        self.scopes.push(names | declared_in(literal.body))
        if literal.key is None:
            key = self.scopes.fresh()
        else:
            key = self._declare(literal.key.name, DECLARED, literal.location)
        value = self._declare(literal.value.name, DECLARED, literal.location)
        body = self.body(literal.body)
        self.scopes.pop()
        self.put(
            ir.Every(
                ir.Var(key),
                ir.Var(value),
                domain,
                body,
                literal.location,
                negated=literal.negated,
                domain_location=literal.domain.location,
            )
        )

    def _not(self, literal: ast.Not) -> None:
        self.modifiers(literal.with_)
        text = literal.location.text
        explicit = text.startswith("not") and text[3:].lstrip().startswith("{")
        body = self._operand(literal.body, explicit, "cannot assign vars inside negated expression")
        self.put(ir.Not(body, explicit, literal.location))

    def _logic(self, literal: ast.Logic) -> None:
        self.modifiers(literal.with_)
        explicit = [self._is_explicit(side) for side in (literal.left, literal.right)]
        message = f"cannot assign vars inside `{literal.operator}` operand"
        left = self._operand(literal.left, explicit[0], message)
        right = self._operand(literal.right, explicit[1], message)
        self.put(
            ir.Logic(
                literal.operator,
                left,
                right,
                explicit[0],
                explicit[1],
                literal.location,
                negated=literal.negated,
            )
        )

    def _is_explicit(self, body: ast.Body) -> bool:
        """Whether an operand was written in braces: the source before it shows that."""
        return self.source[: body[0].location.offset].rstrip().endswith("{")

    def _operand(self, body: ast.Body, explicit: bool, message: str) -> ir.Body:
        if explicit:
            return self.scoped(body)
        for literal in body:
            term = literal.term if isinstance(literal, ast.Expr) else None
            if isinstance(term, ast.Call) and is_assignment(term):
                self.fault("rego_compile_error", message, literal.location)
        return self.body(body)

    def modifiers(self, modifiers: tuple[ast.With, ...]) -> None:
        """The modifiers of the literal at hand; their values are computed before it."""
        if not modifiers:
            return
        lowered = [self._with(modifier) for modifier in modifiers]
        self.withs = lowered

    def _with(self, modifier: ast.With) -> ir.With:
        root, path = self._target(modifier.target)
        target = (root, *path) if root in ROOTS else (".".join((root, *path)),)
        kind: Any = root if root in ROOTS else "function"
        function = self._function_value(modifier.value)
        if function is not None and not self.is_function(function):
            function = None
        value: ir.Term = ir.Const(None)
        if function is None:
            value = self.term(modifier.value)
            if requires_evaluation(value):
                value = self.as_var(value, modifier.value)
        return ir.With(target, kind, value, function, modifier.location)

    def _target(self, target: ast.Var | ast.Ref) -> tuple[str, tuple[str, ...]]:
        """Root and path of a modifier's target, imports resolved."""
        head = target.head if isinstance(target, ast.Ref) else target
        parts = target.path if isinstance(target, ast.Ref) else ()
        assert isinstance(head, ast.Var)
        path = []
        for part in parts:
            if not isinstance(part, ast.String):
                self.fault(
                    "rego_compile_error",
                    "with keyword target must be a constant path",
                    target.location,
                )
                break
            path.append(part.value)
        if head.name not in ROOTS and not self.scopes.hides(head.name):
            known = self.globals.get(head.name)
            if known is not None:
                return known[0], (*known[1], *path)
        return head.name, tuple(path)

    def _function_value(self, term: ast.Term) -> ir.Function | None:
        """The function that the value of a modifier may name; later stages know whether it is."""
        head = term.head if isinstance(term, ast.Ref) else term
        if not isinstance(head, ast.Var) or self.scopes.hides(head.name):
            return None
        parts = term.path if isinstance(term, ast.Ref) else ()
        path = [part.value for part in parts if isinstance(part, ast.String)]
        if len(path) != len(parts):
            return None
        if head.name in self.globals:
            root, known = self.globals[head.name]
            return ("data", *known, *path) if root == "data" else None
        if head.name == "data":
            return ("data", *path) if path else None
        return None if head.name == "input" else ".".join((head.name, *path))


def bound_by(term: ast.Term) -> list[str]:
    """Returns the variables of ``some … in``: each variable that a pattern can bind, once."""
    names: dict[str, None] = {}
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Var):
            names[part.name] = None
        elif isinstance(part, ast.Array):
            waiting.extend(reversed(part.items))
        elif isinstance(part, ast.Object):
            waiting.extend(value for _, value in reversed(part.items))
    return list(names)
