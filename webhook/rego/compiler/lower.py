"""Stages 1 to 3: names resolved, variables renamed, calls taken out of terms.

OPA does this in nine passes (resolveAllRefs, rewriteLocalVars, rewriteTemplate-
Strings, rewritePrintCalls, rewriteExprTerms, rewriteComprehensionTerms, rewrite-
RefsInHead, rewriteWithModifiers); here it is one walk over each rule that leaves
literals in the same order. What OPA hoists out of a literal, calls in terms
above all, stands before it here too, *outside* of a ``not``: that decides what
``not f(g(x))`` means where ``g(x)`` is undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego import ast
from webhook.rego.compiler import ir
from webhook.rego.compiler.scope import (
    ARG,
    ASSIGNED,
    DECLARED,
    Scopes,
    declared_in,
    is_assignment,
    term_vars,
)
from webhook.rego.errors import RegoLoadError
from webhook.rego.numbers import number
from webhook.rego.values import RegoSet, make_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.rego.values import Value

_ROOTS: Final = ("input", "data")
_VOID: Final = "assignment"
Globals = dict[str, tuple[str, tuple[str, ...]]]
"""From a name to the root and path that it stands for."""


def package_path(ref: ast.Ref) -> tuple[str, ...]:
    """The path of a package below ``data``."""
    return tuple(part.value for part in ref.path if isinstance(part, ast.String))


def module_globals(module: ast.Module, exports: Mapping[tuple[str, ...], set[str]]) -> Globals:
    """What the names of rules and imports mean in this module."""
    return globals_of(package_path(module.package), module.imports, exports)


def globals_of(
    package: tuple[str, ...],
    imports: Iterable[ast.Import],
    exports: Mapping[tuple[str, ...], set[str]],
) -> Globals:
    """What names mean in a package with these imports."""
    found: Globals = {name: ("data", (*package, name)) for name in exports.get(package, ())}
    for imported in imports:
        root, path = import_path(imported)
        if root in ("future", "rego"):
            continue
        found[import_name(imported)] = (root, path)
    return found


def import_path(imported: ast.Import) -> tuple[str, tuple[str, ...]]:
    """Root and path of an import."""
    head = imported.path.head
    root = head.name if isinstance(head, ast.Var) else ""
    return root, tuple(p.value for p in imported.path.path if isinstance(p, ast.String))


def import_name(imported: ast.Import) -> str:
    """The name under which an import is used."""
    root, path = import_path(imported)
    return imported.alias or (path[-1] if path else root)


def head_name(head: ast.Head) -> str:
    """The first name of a rule's reference."""
    assert isinstance(head.ref.head, ast.Var)
    return head.ref.head.name


class Lowering:
    """Lowers the rules of one module, or one query; faults are collected, not raised."""

    def __init__(
        self,
        globals_: Globals,
        source: str,
        faults: list[RegoLoadError],
        is_function: Callable[[ir.Function], bool],
        metadata: Any = None,
    ) -> None:
        self.globals = globals_
        self.is_function = is_function
        self.source = source
        self.faults = faults
        self.metadata = metadata
        self.scopes = Scopes({})
        self.sink: ir.Body = []
        self.withs: list[ir.With] = []

    # --- rules -----------------------------------------------------------------------------

    def rule(self, module: ast.Module, rule: ast.Rule) -> ir.Rule:
        """One rule with its ``else`` branches."""
        self.scopes = Scopes({})
        hidden: set[str] = set()
        args = rule.head.args or ()
        for arg in args:
            self._argument_names(arg, hidden)
        for name in hidden & set(_ROOTS):
            self._fault(
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
        if isinstance(arg, ast.Call) and not _is_empty_set(arg):
            self._fault("rego_compile_error", "rule arguments cannot contain calls", arg.location)
        names: set[str] = set()
        self._argument_names(arg, names)
        for name in term_vars(arg) if names else ():
            if name in names and self.scopes.declared(name) is None and name not in _ROOTS:
                self.scopes.declare(name, ARG)

    def _branch(self, module: ast.Module, rule: ast.Rule) -> ir.Rule:
        head = rule.head
        self.scopes.hidden.append(declared_in(rule.body))
        outer, self.sink = self.sink, []
        for literal in rule.body:
            self.literal(literal)
        args = None
        if head.args:  # OPA takes `f() = x` for a rule
            args = [self._head_term(arg) for arg in head.args]
        path: list[Value] = list(package_path(module.package)) + [head_name(head)]
        rest: list[ir.Term] = []
        for part in head.ref.path:
            term = self._head_term(part)
            if isinstance(term, ir.Const) and not rest and not isinstance(term.value, list | dict):
                path.append(term.value)
            else:
                rest.append(term if isinstance(term, ir.Const) else self._as_var(term, part))
        key = value = None
        if head.key is not None:
            key = self._head_term(head.key)
        if head.value is not None:
            value = self._head_term(head.value)
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
            _head_text(module, head),
            rule.default,
            names=self.scopes.names,
        )

    def _head_term(self, term: ast.Term) -> ir.Term:
        lowered = self.term(term)
        return self._as_var(lowered, term) if _requires_evaluation(lowered) else lowered

    def _as_var(self, term: ir.Term, where: ast.Term) -> ir.Term:
        """A variable bound to the term by the literal put into the body."""
        if isinstance(term, ir.Var):
            return term
        var = ir.Var(self.scopes.fresh())
        self.sink.append(ir.Eq(var, term, where.location, generated=True, withs=self.withs))
        return var

    # --- bodies ----------------------------------------------------------------------------

    def body(self, body: Sequence[ast.Literal_]) -> ir.Body:
        """A nested body, in the scope that the caller has entered."""
        outer, self.sink = self.sink, []
        withs, self.withs = self.withs, []
        for literal in body:
            self.literal(literal)
        found, self.sink = self.sink, outer
        self.withs = withs
        return found

    def scoped(self, body: Sequence[ast.Literal_]) -> ir.Body:
        """A nested body in a scope of its own."""
        self.scopes.push(declared_in(body))
        found = self.body(body)
        self.scopes.pop()
        return found

    def literal(self, literal: ast.Literal_) -> None:
        """Put the literal, and what is hoisted from it, at the end of the body."""
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

    def _modifiers(self, modifiers: tuple[ast.With, ...]) -> None:
        """The modifiers of the literal at hand; their values are computed before it."""
        if not modifiers:
            return
        lowered = [self._with(modifier) for modifier in modifiers]
        self.withs = lowered

    def _with(self, modifier: ast.With) -> ir.With:
        root, path = self._target(modifier.target)
        target = (root, *path) if root in _ROOTS else (".".join((root, *path)),)
        kind: Any = root if root in _ROOTS else "function"
        function = self._function_value(modifier.value)
        if function is not None and not self.is_function(function):
            function = None
        value: ir.Term = ir.Const(None)
        if function is None:
            value = self.term(modifier.value)
            if _requires_evaluation(value):
                value = self._as_var(value, modifier.value)
        return ir.With(target, kind, value, function, modifier.location)

    def _target(self, target: ast.Var | ast.Ref) -> tuple[str, tuple[str, ...]]:
        """Root and path of a modifier's target, imports resolved."""
        head = target.head if isinstance(target, ast.Ref) else target
        parts = target.path if isinstance(target, ast.Ref) else ()
        assert isinstance(head, ast.Var)
        path = []
        for part in parts:
            if not isinstance(part, ast.String):
                self._fault(
                    "rego_compile_error",
                    "with keyword target must be a constant path",
                    target.location,
                )
                break
            path.append(part.value)
        if head.name not in _ROOTS and not self.scopes.hides(head.name):
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

    def _put(self, literal: ir.Lit) -> None:
        literal.withs = self.withs
        self.sink.append(literal)

    def _expr(self, literal: ast.Expr) -> None:
        term, place = literal.term, literal.location
        if isinstance(term, ast.Call):
            name = term.operator.name if isinstance(term.operator, ast.Var) else ""
            if name == "assign" and len(term.args) == 2:  # others: wrong arity, refused later
                self._assign(literal, term)
                return
            if name == "eq" and len(term.args) == 2 and not self._is_rule("eq"):
                self._modifiers(literal.with_)
                a, b = (self.term(arg) for arg in term.args)
                self._put(ir.Eq(a, b, place, negated=literal.negated))
                return
            if name == "print" and not self._is_rule("print"):
                self._modifiers(literal.with_)
                args = [self._closure(arg) for arg in term.args]
                self._put(ir.Print(args, place, negated=literal.negated))
                return
            if not _is_empty_set(term):
                self._modifiers(literal.with_)
                function = self._function(term)
                args_ = [self.term(arg) for arg in term.args]
                metadata = self._metadata(function)
                if metadata is not None:
                    self._put(ir.Test(metadata, place, negated=literal.negated))
                    return
                self._put(ir.Call(function, args_, place, negated=literal.negated))
                return
        if type(term) is ast.Boolean and term.value and not literal.negated and not literal.with_:
            return  # `true`: how an empty body is written
        self._modifiers(literal.with_)
        self._put(ir.Test(self.term(term), place, negated=literal.negated))

    def _is_rule(self, name: str) -> bool:
        return name in self.globals and not self.scopes.hides(name)

    def _assign(self, literal: ast.Expr, call: ast.Call) -> None:
        if literal.negated:
            self._fault(
                "rego_compile_error", "cannot assign vars inside negated expression", call.location
            )
        self._modifiers(literal.with_)
        value = self.term(call.args[1])
        target = self._assigned(call.args[0])
        self._put(ir.Eq(target, value, literal.location, assign=True, negated=literal.negated))

    def _assigned(self, term: ast.Term) -> ir.Term:
        """The left side of ``:=``, its variables declared."""
        if isinstance(term, ast.Var):
            return ir.Var(self._declare(term.name, ASSIGNED, term.location))
        if isinstance(term, ast.Array):
            return ir.Array([self._assigned(item) for item in term.items])
        if isinstance(term, ast.Object):
            return ir.Object([(self.term(key), self._assigned(value)) for key, value in term.items])
        scalar = {
            ast.Null: "null",
            ast.Boolean: "boolean",
            ast.Number: "number",
            ast.String: "string",
            ast.Ref: "ref",
            ast.Set: "set",
            ast.Call: "call",
            ast.ArrayComprehension: "arraycomprehension",
            ast.SetComprehension: "setcomprehension",
            ast.ObjectComprehension: "objectcomprehension",
            ast.TemplateString: "templatestring",
        }
        self._fault("rego_compile_error", f"cannot assign to {scalar[type(term)]}", term.location)
        return ir.Const(None)

    def _declare(self, name: str, how: str, place: ast.Location) -> str:
        if name[0] == "$":  # a wildcard: nobody can refer to it
            return name
        unique, complaint = self.scopes.declare(name, how)
        if complaint is not None:
            self._fault("rego_compile_error", complaint, place)
        return unique

    def _some_in(self, literal: ast.SomeIn) -> None:
        written = [] if literal.key is None else [*term_vars(literal.key)]
        written.extend(term_vars(literal.value))
        domain_vars = set(term_vars(literal.domain))
        clash = sorted({n for n in written if n in domain_vars and n[0] != "$"})
        for name in clash:
            self._fault("rego_compile_error", f"var {name} assigned before", literal.location)
        self._modifiers(literal.with_)
        domain = self.term(literal.domain)
        for term in (literal.value, literal.key):
            if term is not None:
                for name in _bound_by(term):
                    if name in _ROOTS:
                        continue
                    self._declare(name, DECLARED, literal.location)
        value = self.term(literal.value)
        key: ir.Term = ir.Var("$" + self.scopes.fresh())
        if literal.key is not None:
            key = self.term(literal.key)
        if isinstance(domain, ir.Ref):
            target = ir.Ref(domain.head, [*domain.path, key])
        else:
            target = ir.Ref(self._ref_head(domain, literal.domain), [key])
        self._put(ir.Eq(value, target, literal.location))

    def _every(self, literal: ast.Every) -> None:
        self._modifiers(literal.with_)
        domain = self.term(literal.domain)
        if not isinstance(domain, ir.Var | ir.Const):
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
        self._put(
            ir.Every(
                ir.Var(key), ir.Var(value), domain, body, literal.location, negated=literal.negated
            )
        )

    def _not(self, literal: ast.Not) -> None:
        self._modifiers(literal.with_)
        text = literal.location.text
        explicit = text.startswith("not") and text[3:].lstrip().startswith("{")
        body = self._operand(literal.body, explicit, "cannot assign vars inside negated expression")
        self._put(ir.Not(body, explicit, literal.location))

    def _logic(self, literal: ast.Logic) -> None:
        self._modifiers(literal.with_)
        explicit = [self._is_explicit(side) for side in (literal.left, literal.right)]
        message = f"cannot assign vars inside `{literal.operator}` operand"
        left = self._operand(literal.left, explicit[0], message)
        right = self._operand(literal.right, explicit[1], message)
        self._put(
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
        """Whether an operand was written in braces: what stands before it in the source tells."""
        return self.source[: body[0].location.offset].rstrip().endswith("{")

    def _operand(self, body: ast.Body, explicit: bool, message: str) -> ir.Body:
        if explicit:
            return self.scoped(body)
        for literal in body:
            if isinstance(literal, ast.Expr) and isinstance(literal.term, ast.Call):
                if is_assignment(literal.term):
                    self._fault("rego_compile_error", message, literal.location)
        return self.body(body)

    # --- terms -----------------------------------------------------------------------------

    def term(self, term: ast.Term) -> ir.Term:
        """The term without calls: they have been put into the body, each with a variable."""
        return _LOWER[type(term)](self, term)

    def _scalar(self, term: Any) -> ir.Term:
        return ir.Const(term.value)

    def _null(self, _term: ast.Null) -> ir.Term:
        return ir.Const(None)

    def _number(self, term: ast.Number) -> ir.Term:
        return ir.Const(number(term.text))

    def _var(self, term: ast.Var) -> ir.Term:
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
                return ir.Ref(ir.Var(root), [ir.Const(part) for part in path])
            if name in _ROOTS:
                return ir.Var(name)
        self.scopes.seen(name)
        return ir.Var(name)

    def _ref(self, term: ast.Ref) -> ir.Term:
        head = self.term(term.head)
        path = [self.term(part) for part in term.path]
        if isinstance(head, ir.Ref) and isinstance(term.head, ast.Var):
            return ir.Ref(head.head, [*head.path, *path])
        return ir.Ref(self._ref_head(head, term.head), path)

    def _ref_head(self, head: ir.Term, where: ast.Term) -> ir.Term:
        """The head of a reference as a variable (``[1, 2][i]`` gets one)."""
        if isinstance(head, ir.Var):
            return head
        return self._as_var(head, where)

    def _array(self, term: ast.Array) -> ir.Term:
        items = [self.term(item) for item in term.items]
        if all(isinstance(item, ir.Const) for item in items):
            return ir.Const([item.value for item in items])  # type: ignore[union-attr]
        return ir.Array(items)

    def _set(self, term: ast.Set) -> ir.Term:
        items = [self.term(item) for item in term.items]
        if all(isinstance(item, ir.Const) for item in items):
            return ir.Const(RegoSet(item.value for item in items))  # type: ignore[union-attr]
        return ir.Set(items)

    def _object(self, term: ast.Object) -> ir.Term:
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
        lowered_key = None if key is None else self._head_term(key)
        lowered = self._head_term(value)
        body, self.sink = self.sink, outer
        self.withs = withs
        self.scopes.pop()
        return ir.Comprehension(kind, lowered_key, lowered, body, term.location)

    def _array_comprehension(self, term: ast.ArrayComprehension) -> ir.Term:
        return self._comprehension("array", term, None, term.term)

    def _set_comprehension(self, term: ast.SetComprehension) -> ir.Term:
        return self._comprehension("set", term, None, term.term)

    def _object_comprehension(self, term: ast.ObjectComprehension) -> ir.Term:
        return self._comprehension("object", term, term.key, term.value)

    def _call(self, term: ast.Call) -> ir.Term:
        if _is_empty_set(term):
            return ir.Const(RegoSet())
        function = self._function(term)
        args = [self.term(arg) for arg in term.args]
        metadata = self._metadata(function)
        if metadata is not None:
            return metadata
        var = ir.Var(self.scopes.fresh())
        self.sink.append(
            ir.Call(function, args, term.location, out=var, generated=True, withs=self.withs)
        )
        return var

    def _metadata(self, function: ir.Function) -> ir.Term | None:
        if function in ("rego.metadata.rule", "rego.metadata.chain") and self.metadata is not None:
            return ir.Const(self.metadata(function))
        return None

    def _function(self, call: ast.Call) -> ir.Function:
        """What the call calls."""
        operator = call.operator
        head = operator.head if isinstance(operator, ast.Ref) else operator
        assert isinstance(head, ast.Var)
        parts = operator.path if isinstance(operator, ast.Ref) else ()
        path = tuple(part.value for part in parts if isinstance(part, ast.String))
        if len(path) != len(parts):
            self._fault(
                "rego_type_error", f"undefined function {call.location.text}", call.location
            )
        name = ".".join((head.name, *path))
        if self.scopes.declared(head.name) is not None:
            self._fault("rego_compile_error", f"called function {name} shadowed", call.location)
        if not self.scopes.hides(head.name):
            known = self.globals.get(head.name)
            if known is not None:
                return (known[0], *known[1], *path)
            if head.name in _ROOTS:
                return (head.name, *path)
        return name

    def _closure(self, term: Any) -> ir.Comprehension:
        """The term's values as a set: none where it is undefined."""
        modifiers: tuple[ast.With, ...] = ()
        if isinstance(term, ast.Expr):
            modifiers, term = term.with_, term.term
        self.scopes.push(set())
        outer, self.sink = self.sink, []
        withs, self.withs = self.withs, []
        self._modifiers(modifiers)
        var = ir.Var(self.scopes.fresh())
        value = self.term(term)
        self._put(ir.Eq(var, value, term.location, generated=True))
        body, self.sink = self.sink, outer
        self.withs = withs
        self.scopes.pop()
        return ir.Comprehension("set", None, var, body, term.location)

    def _template(self, term: ast.TemplateString) -> ir.Term:
        parts: list[Any] = []
        for part in term.parts:
            if isinstance(part, ast.Not | ast.Logic):
                kind = {ast.Not: "Not"}.get(type(part), "Logic")
                message = f"unexpected template-string expression type: *ast.{kind}"
                self._fault("rego_compile_error", message, part.location)
                continue
            parts.append(part if isinstance(part, str) else self._closure(part))
        if all(isinstance(part, str) for part in parts):
            return ir.Const("".join(parts))
        var = ir.Var(self.scopes.fresh())
        self.sink.append(
            ir.Eq(var, ir.Template(parts), term.location, generated=True, withs=self.withs)
        )
        return var

    def _fault(self, code: Any, message: str, location: ast.Location) -> None:
        self.faults.append(RegoLoadError(code, message, location))


_LOWER: Final[dict[type, Any]] = {
    ast.Null: Lowering._null,
    ast.Boolean: Lowering._scalar,
    ast.String: Lowering._scalar,
    ast.Number: Lowering._number,
    ast.Var: Lowering._var,
    ast.Ref: Lowering._ref,
    ast.Array: Lowering._array,
    ast.Set: Lowering._set,
    ast.Object: Lowering._object,
    ast.ArrayComprehension: Lowering._array_comprehension,
    ast.SetComprehension: Lowering._set_comprehension,
    ast.ObjectComprehension: Lowering._object_comprehension,
    ast.Call: Lowering._call,
    ast.TemplateString: Lowering._template,
}


def _is_empty_set(call: ast.Call) -> bool:
    return isinstance(call.operator, ast.Var) and call.operator.name == "set" and not call.args


def _requires_evaluation(term: ir.Term) -> bool:
    """Whether the term holds a reference or a comprehension (OPA's requiresEval)."""
    if isinstance(term, ir.Ref | ir.Comprehension | ir.Template):
        return True
    if isinstance(term, ir.Var):
        return term.name in _ROOTS
    if isinstance(term, ir.Array | ir.Set):
        return any(map(_requires_evaluation, term.items))
    if isinstance(term, ir.Object):
        return any(_requires_evaluation(k) or _requires_evaluation(v) for k, v in term.items)
    return False


def _bound_by(term: ast.Term) -> list[str]:
    """Variables that ``some … in`` declares: those a pattern can bind, once each."""
    names: list[str] = []

    def walk(part: ast.Term) -> None:
        if isinstance(part, ast.Var):
            if part.name not in names:
                names.append(part.name)
        elif isinstance(part, ast.Array):
            for item in part.items:
                walk(item)
        elif isinstance(part, ast.Object):
            for _, value in part.items:
                walk(value)

    walk(term)
    return names


def _head_text(module: ast.Module, head: ast.Head) -> str:
    """The rule's reference as OPA prints it in messages: ``data.pkg.p``."""
    return ".".join(("data", *package_path(module.package), head_name(head)))
