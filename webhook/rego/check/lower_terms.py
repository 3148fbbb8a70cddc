"""Stage 3: names resolved, calls taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS, Globals
from webhook.rego.check.scope import Scopes, declared_in
from webhook.rego.errors import RegoLoadError
from webhook.rego.run.numbers import number
from webhook.rego.run.values import RegoSet, make_object
from webhook.rego.syntax import ast
from webhook.rego.syntax.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.location import Location


class TermLowering:
    """Lowers terms, and adds literals hoisted from them to the current body."""

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

    def literal(self, literal: ast.Literal_) -> None:
        """Puts a literal at the end of the body: lowering of bodies knows how."""
        raise NotImplementedError

    def modifiers(self, modifiers: tuple[ast.With, ...]) -> None:
        """Takes the modifiers of the literal at hand: lowering of bodies knows how."""
        raise NotImplementedError

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
    ast.Null: TermLowering.null_,
    ast.Boolean: TermLowering.scalar_,
    ast.String: TermLowering.scalar_,
    ast.Number: TermLowering.number_,
    ast.Var: TermLowering.var_,
    ast.Ref: TermLowering.ref_,
    ast.Array: TermLowering.array_,
    ast.Set: TermLowering.set_,
    ast.Object: TermLowering.object_,
    ast.ArrayComprehension: TermLowering.array_comprehension_,
    ast.SetComprehension: TermLowering.set_comprehension_,
    ast.ObjectComprehension: TermLowering.object_comprehension_,
    ast.Call: TermLowering.call_,
    ast.TemplateString: TermLowering.template_,
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
