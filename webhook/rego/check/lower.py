"""Stage 3: names resolved, variables renamed, calls taken out of terms.

OPA does this in nine passes (resolveAllRefs, rewriteLocalVars, rewriteTemplateStrings,
rewritePrintCalls, rewriteExprTerms, rewriteComprehensionTerms, rewriteRefsInHead,
rewriteWithModifiers); here it is one walk over each rule that leaves literals in the same order.
Terms that OPA hoists out of a literal, calls above all, precede the literal here too, *outside* of
a ``not``. That decides the value of ``not f(g(x))`` if ``g(x)`` is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS, Globals, head_name
from webhook.rego.check.scope import (
    ARG,
    ASSIGNED,
    DECLARED,
    Scopes,
    declared_in,
    is_assignment,
    term_vars,
)
from webhook.rego.errors import RegoLoadError
from webhook.rego.location import Location
from webhook.rego.run.numbers import number
from webhook.rego.run.values import RegoSet, Value, make_object
from webhook.rego.syntax import ast
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM
from webhook.rego.syntax.unparse import unparse


class Lowering:
    """Lowers the rules of one module, or one query; faults are collected, not raised."""

    def __init__(
        self,
        globals_: Globals,
        source: str,
        faults: list[RegoLoadError],
        is_function: Callable[[ir.Function], bool],
        package: tuple[str, ...] = (),
        metadata: Any = None,
    ) -> None:
        self.globals = globals_
        self.package = package
        """The path of the module's package below ``data``; a query has none."""
        self.is_function = is_function
        self.source = source
        self.faults = faults
        self.metadata = metadata
        self.scopes = Scopes({})
        self.sink: ir.Body = []
        self.withs: list[ir.With] = []

    def put(self, literal: ir.Lit) -> None:
        """Puts a literal at the end of the body, under the modifiers at hand."""
        literal.withs = self.withs
        self.sink.append(literal)

    def fault(self, code: Any, message: str, location: Location) -> None:
        """Adds an error of compilation to the list."""
        self.faults.append(RegoLoadError(code, message, location))

    def is_rule(self, name: str) -> bool:
        """Whether the name is a rule or import here."""
        return name in self.globals and not self.scopes.hides(name)

    def head_term(self, term: ast.Term) -> ir.Term:
        """A term of a head or of a comprehension: a variable where it needs evaluation."""
        lowered = self.term(term)
        return self.as_var(lowered, term) if requires_evaluation(lowered) else lowered

    def as_var(self, term: ir.Term, where: ast.Term) -> ir.Term:
        """A variable bound to the term by the literal put into the body."""
        if isinstance(term, ir.Var):
            return term
        var = ir.Var(self.scopes.fresh())
        self.sink.append(ir.Eq(var, term, where.location, generated=True, withs=self.withs))
        return var

    # --- rules -----------------------------------------------------------------------------

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

    # --- terms -----------------------------------------------------------------------------

    def term(self, term: ast.Term) -> ir.Term:
        """The term without calls: they have been put into the body, each with a variable."""
        lowered: ir.Term = _LOWER[type(term)](self, term)
        return lowered

    def scalar_(self, term: Any) -> ir.Term:
        """A string or boolean."""
        return ir.Const(term.value)

    def null_(self, _term: ast.Null) -> ir.Term:
        """A constant."""
        return ir.Const(None)

    def number_(self, term: ast.Number) -> ir.Term:
        """Returns an exact constant for a number of any size."""
        return ir.Const(number(term.text))

    def var_(self, term: ast.Var) -> ir.Term:
        """Returns a variable, or the target of an import or rule of that name."""
        name = term.name
        if name[0] == "$":
            return ir.Var(name)
        declared = self.scopes.declared(name)
        if declared is not None:
            return ir.Var(declared)
        if not self.scopes.hides(name):
            known = self.globals.get(name)
            if known is not None:
                root, path = known
                if not path:
                    return ir.Var(root)
                return ir.Ref(ir.Var(root), [ir.Const(part) for part in path], term.location)
            if name in ROOTS:
                return ir.Var(name)
        self.scopes.seen(name)
        return ir.Var(name)

    def ref_(self, term: ast.Ref) -> ir.Term:
        """A reference."""
        head = self.term(term.head)
        path = [self.term(part) for part in term.path]
        if isinstance(head, ir.Ref) and isinstance(term.head, ast.Var):
            return ir.Ref(head.head, [*head.path, *path], term.location)
        return ir.Ref(self.ref_head(head, term.head), path, term.location)

    def ref_head(self, head: ir.Term, where: ast.Term) -> ir.Term:
        """The head of a reference as a variable (``[1, 2][i]`` gets one)."""
        if isinstance(head, ir.Var):
            return head
        return self.as_var(head, where)

    def array_(self, term: ast.Array) -> ir.Term:
        """Returns a constant if every item is constant, else an array built by the evaluation."""
        items = [self.term(item) for item in term.items]
        if all(isinstance(item, ir.Const) for item in items):
            return ir.Const([item.value for item in items])  # type: ignore[union-attr]
        return ir.Array(items)

    def set_(self, term: ast.Set) -> ir.Term:
        """Returns a set, constant if every item is; equal members count once."""
        items = [self.term(item) for item in term.items]
        if all(isinstance(item, ir.Const) for item in items):
            return ir.Const(RegoSet(item.value for item in items))  # type: ignore[union-attr]
        return ir.Set(items)

    def object_(self, term: ast.Object) -> ir.Term:
        """As an array, by its keys and values."""
        items = [(self.term(key), self.term(value)) for key, value in term.items]
        if all(isinstance(k, ir.Const) and isinstance(v, ir.Const) for k, v in items):
            return ir.Const(make_object((k.value, v.value) for k, v in items))  # type: ignore[union-attr]
        return ir.Object(items)

    def _comprehension(
        self, kind: Any, term: Any, key: ast.Term | None, value: ast.Term
    ) -> ir.Term:
        self.scopes.push(declared_in(term.body))
        outer, self.sink = self.sink, []
        withs, self.withs = self.withs, []
        for literal in term.body:
            self.literal(literal)
        lowered_key = None if key is None else self.head_term(key)
        lowered = self.head_term(value)
        body, self.sink = self.sink, outer
        self.withs = withs
        self.scopes.pop()
        place = term.location if key is None else key.location
        return ir.Comprehension(kind, lowered_key, lowered, body, place)

    def array_comprehension_(self, term: ast.ArrayComprehension) -> ir.Term:
        """``[x | …]``."""
        return self._comprehension("array", term, None, term.term)

    def set_comprehension_(self, term: ast.SetComprehension) -> ir.Term:
        """``{x | …}``."""
        return self._comprehension("set", term, None, term.term)

    def object_comprehension_(self, term: ast.ObjectComprehension) -> ir.Term:
        """``{k: v | …}``."""
        return self._comprehension("object", term, term.key, term.value)

    def call_(self, term: ast.Call) -> ir.Term:
        """A call, put into the body with a variable for its result."""
        if is_empty_set(term):
            return ir.Const(RegoSet())
        function = self.function(term)
        args = [self.term(arg) for arg in term.args]
        metadata = self.metadata_of(function)
        if metadata is not None:
            return metadata
        var = ir.Var(self.scopes.fresh())
        self.sink.append(
            ir.Call(function, args, term.location, out=var, generated=True, withs=self.withs)
        )
        return var

    def metadata_of(self, function: ir.Function) -> ir.Term | None:
        """Returns the constant that ``rego.metadata`` gives here."""
        if function in ("rego.metadata.rule", "rego.metadata.chain") and self.metadata is not None:
            return ir.Const(self.metadata(function))
        return None

    def function(self, call: ast.Call) -> ir.Function:
        """Returns the function that the call names."""
        head: Any = call.operator
        path: tuple[str, ...] = ()
        if isinstance(head, ast.Ref):
            path = tuple([part.value for part in head.path if isinstance(part, ast.String)])
            if len(path) != len(head.path):
                message = f"undefined function {call.location.text}"
                self.fault("rego_type_error", message, call.location)
            head = head.head
        if not isinstance(head, ast.Var):  # ``[1](2)``
            name = unparse(call.operator)
            self.fault("rego_type_error", f"undefined function {name}", call.location)
            return name
        name = ".".join((head.name, *path)) if path else head.name
        if self.scopes.declared(head.name) is not None:
            self.fault("rego_compile_error", f"called function {name} shadowed", call.location)
        if not self.scopes.hides(head.name):
            known = self.globals.get(head.name)
            if known is not None:
                return (known[0], *known[1], *path)
            if head.name in ROOTS:
                return (head.name, *path)
        return name

    def closure(self, term: Any) -> ir.Comprehension:
        """The term's values as a set: none where it is undefined."""
        modifiers: tuple[ast.With, ...] = ()
        if isinstance(term, ast.Expr):
            modifiers, term = term.with_, term.term
        self.scopes.push(set())
        outer, self.sink = self.sink, []
        withs, self.withs = self.withs, []
        self.modifiers(modifiers)
        var = ir.Var(self.scopes.fresh())
        value = self.term(term)
        self.put(ir.Eq(var, value, term.location, generated=True))
        body, self.sink = self.sink, outer
        self.withs = withs
        self.scopes.pop()
        return ir.Comprehension("set", None, var, body, term.location)

    def template_(self, term: ast.TemplateString) -> ir.Term:
        """A template string."""
        parts: list[Any] = []
        for part in term.parts:
            if isinstance(part, (ast.Not, ast.Logic)):
                kind = "Not" if isinstance(part, ast.Not) else "Logic"
                message = f"unexpected template-string expression type: *ast.{kind}"
                self.fault("rego_compile_error", message, part.location)
                continue
            parts.append(part if isinstance(part, str) else self.closure(part))
        if all(isinstance(part, str) for part in parts):
            return ir.Const("".join(parts))
        var = ir.Var(self.scopes.fresh())
        self.sink.append(
            ir.Eq(var, ir.Template(parts), term.location, generated=True, withs=self.withs)
        )
        return var


_LOWER: Final[dict[type, Any]] = {
    ast.Null: Lowering.null_,
    ast.Boolean: Lowering.scalar_,
    ast.String: Lowering.scalar_,
    ast.Number: Lowering.number_,
    ast.Var: Lowering.var_,
    ast.Ref: Lowering.ref_,
    ast.Array: Lowering.array_,
    ast.Set: Lowering.set_,
    ast.Object: Lowering.object_,
    ast.ArrayComprehension: Lowering.array_comprehension_,
    ast.SetComprehension: Lowering.set_comprehension_,
    ast.ObjectComprehension: Lowering.object_comprehension_,
    ast.Call: Lowering.call_,
    ast.TemplateString: Lowering.template_,
}


def is_empty_set(call: ast.Call) -> bool:
    """Whether this is how the empty set is written."""
    return isinstance(call.operator, ast.Var) and call.operator.name == "set" and not call.args


def requires_evaluation(term: ir.Term) -> bool:
    """Whether the term holds a reference or a comprehension (OPA's requiresEval)."""
    if isinstance(term, (ir.Ref, ir.Comprehension, ir.Template)):
        return True
    if isinstance(term, ir.Var):
        return term.name in ROOTS
    if isinstance(term, (ir.Array, ir.Set)):
        return any(map(requires_evaluation, term.items))
    if isinstance(term, ir.Object):
        return any(requires_evaluation(k) or requires_evaluation(v) for k, v in term.items)
    return False


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
