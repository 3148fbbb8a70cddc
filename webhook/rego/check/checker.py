"""Stage 8: types. Refuses terms that no data could satisfy (OPA v1/ast/check.go).

Runs over rules whose bodies are in a safe order, each after its dependencies. It infers the types
of variables and documents and complains about operands of impossible types, terms that can never be
equal, and references to items that cannot exist. The target of a ``with`` modifier may also have
the type of its replacement, and rules that depend on the target may have any type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from webhook.rego.builtins.registry import GATEKEEPER
from webhook.rego.check import ir
from webhook.rego.check.checker_refs import (
    RefFault,
    check_reference,
    references_in,
    with_steps_apart,
)
from webhook.rego.check.checker_scope import BODIES_MAX, Scope
from webhook.rego.check.checker_types import relaxed, unifies
from webhook.rego.check.checker_unify import unify_terms, unify_type
from webhook.rego.check.checker_written import Written
from webhook.rego.check.checks import expected_texts, function_text
from webhook.rego.check.names import ROOTS
from webhook.rego.check.schemas import SchemaError, annotated_type, input_type, overridden
from webhook.rego.check.variables import LEAVES, bodies_of, parts_of, terms_of
from webhook.rego.errors import RegoLoadError
from webhook.rego.location import NOWHERE
from webhook.rego.types import (
    ANY,
    ArrayType,
    FunctionType,
    ObjectType,
    SetType,
    bounded,
    is_unknown,
    keys,
    type_text,
    union,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check.schemas import SchemaPath
    from webhook.rego.location import Location
    from webhook.rego.types import Type

_DOCS = "https://www.openpolicyagent.org/docs/errors/rego-type-error/match-error"


class Checker:
    """The types of a program; queries are checked against it."""

    def __init__(self, builtins: Mapping[str, Builtin], level: str) -> None:
        self._builtins = builtins
        self._level = level
        self._documents = Scope(WeakMethod(self._check_closure), older=level == GATEKEEPER)
        self.dependents: Callable[[list[ir.Term]], Iterable[tuple[Any, ...]]] = lambda _: ()
        """Returns the paths of rules that depend on the targets of a reference below ``data``."""
        self.replaced: frozenset[tuple[Any, ...]] = frozenset()
        """The paths of rules that some ``with`` replaces."""
        self._written = Written({}, [])
        self._functions: dict[str, FunctionType] = {}
        self._bodies = 0
        self.schemas: Mapping[SchemaPath, Any] | None = None
        self._annotated: dict[int, list[dict[str, Any]]] = {}

    def annotate(self, rule: ir.Rule, schemas: list[dict[str, Any]]) -> None:
        """Sets the schemas that annotations give to the documents of a rule and its branches."""
        if schemas:
            for branch in rule.branches():
                self._annotated[id(branch)] = schemas

    # --- rules -----------------------------------------------------------------------------

    def rules(self, rules: Iterable[ir.Rule]) -> list[RegoLoadError]:
        """Checks rules, given in an order in which each follows its dependencies."""
        faults: list[RegoLoadError] = []
        try:
            if (of_input := input_type(self.schemas)) is not None:
                self._documents.put_below("input", (), of_input)
        except SchemaError as error:
            faults.append(_fault(str(error), NOWHERE))
        for rule in rules:
            faults += self._rule(rule)
        faults.sort(key=lambda fault: fault.location.position())
        return faults

    def query(self, body: ir.Body, names: dict[str, str]) -> list[RegoLoadError]:
        """Checks a query over the rules."""
        self._begin(names, body)
        return self._body(self._documents, body)[1]

    def _begin(self, names: dict[str, str], body: ir.Body) -> None:
        self._written = Written(names, body)
        self._bodies = 0

    def _rule(self, rule: ir.Rule) -> list[RegoLoadError]:
        self._begin(rule.names, rule.body)
        around = self._documents
        unknown: list[RegoLoadError] = []
        if id(rule) in self._annotated:
            around, unknown = self._as_annotated(rule, self._annotated[id(rule)])
        scope, faults = self._body(around, rule.body)
        faults = unknown + faults
        if faults:
            self._documents.put(rule.path, ANY)
            return faults
        type_ = self._function(scope, rule) if rule.args else self._document(scope, rule)
        if type_ is not None:
            if rule.path in self.replaced and self._level != GATEKEEPER:
                type_ = relaxed(type_)  # such as `default x := {}`, which a test replaces
            self._documents.define(rule.path, type_)
        return []

    def _as_annotated(
        self, rule: ir.Rule, annotations: list[dict[str, Any]]
    ) -> tuple[Scope, list[RegoLoadError]]:
        """The documents as schemas of annotations have them, and which of these cannot be used."""
        scope, faults = self._documents.inner(), []
        for annotation in annotations:
            try:
                type_ = annotated_type(annotation, self.schemas)
            except SchemaError as error:
                faults.append(_fault(str(error), rule.location))
                continue
            if type_ is None:
                continue
            root, *path = annotation["path"]
            known = scope.roots.get(root) or self._documents.roots.get(root)
            if known is not None and known.type is not None:
                scope.put_below(root, (), overridden(known.type, path, type_))
            else:
                scope.put_below(root, path, type_)
        return scope, faults

    def _function(self, scope: Scope, rule: ir.Rule) -> Type:
        assert rule.args is not None
        for arg in rule.args:
            for name in _variables(arg):
                if scope.get_var(name) is None:
                    scope.learn(name, ANY)
        args = tuple(scope.get(arg) for arg in rule.args)
        result = None if rule.value is None else bounded(scope.get(rule.value))
        return FunctionType(args, result)  # type: ignore[arg-type]

    def _document(self, scope: Scope, rule: ir.Rule) -> Type | None:
        if rule.key is not None:
            member = scope.get(rule.key)
            type_: Type | None = None if member is None else SetType(member)
        else:
            type_ = None if rule.value is None else scope.get(rule.value)
        for part in reversed(rule.rest):
            name = scope.get(part)
            if type_ is None or name is None:
                return None
            type_ = ObjectType((), (name, type_))
        return type_

    # --- bodies ----------------------------------------------------------------------------

    def _check_closure(self, around: Scope, body: ir.Body) -> tuple[Scope, bool]:
        """Returns the scope of a comprehension's body, and whether the body is sound."""
        self._bodies += 1
        if self._bodies > BODIES_MAX:
            return _Anything(around.check, around), True
        scope, faults = self._body(around, body)
        return scope, not faults

    def _body(self, around: Scope, body: ir.Body) -> tuple[Scope, list[RegoLoadError]]:
        scope = around.inner()
        faults: list[RegoLoadError] = []
        for lit in body:
            at = self._modified(scope, lit) if lit.withs else scope
            below = self._inside(at, lit)
            faults += below
            fault, unknown = self._modifiers(scope, lit) if lit.withs else None, False
            if fault is None:
                fault, unknown = self._literal(at, lit)
            if fault is not None and not (below and unknown):
                faults.append(fault)
        return scope, faults

    def _inside(self, scope: Scope, lit: ir.Lit) -> list[RegoLoadError]:
        """Returns the faults of comprehensions and references in the terms of a literal."""
        faults: list[RegoLoadError] = []
        closures: list[ir.Comprehension] = []
        references: list[tuple[list[ir.Term], Location]] = []
        _parts_of(lit, closures, references)
        for closure in closures:
            self._bodies += 1
            if self._bodies <= BODIES_MAX:
                faults = self._body(scope, closure.body)[1] or faults
        for terms, place in references:
            try:
                check_reference(scope, terms, self._written, self._level)
            except RefFault as fault:
                at = place if place.row else lit.location
                faults = [*faults, _fault(fault.message, at, *fault.details)]
        return faults

    def _modified(self, scope: Scope, lit: ir.Lit) -> Scope:
        """Returns the types within a literal with modifiers (OPA v1/ast/check.go, withEnv)."""
        at = scope.inner(of_literal=True)
        replaced: list[tuple[ir.With, Type]] = []
        for modifier in lit.withs:
            root, *names = modifier.target
            path: list[ir.Term] = [ir.Const(name) for name in names]
            have = scope.get_ref([ir.Var(root), *path]) if root in ROOTS else None
            if root == "data":
                for dependent in self.dependents(path):
                    if modifier.kind != "function" or dependent != tuple(names):
                        at.put(dependent, ANY)
            if modifier.kind != "function":
                value = None if have is None else scope.get(modifier.value)
                either = None if value is None else union(have, value)
                replaced.append((modifier, ANY if either is None else either))
        for modifier, type_ in replaced:
            at.put_below(modifier.target[0], modifier.target[1:], type_)
        return at

    def _modifiers(self, scope: Scope, lit: ir.Lit) -> RegoLoadError | None:
        """A function replaced by another that takes other operands."""
        for modifier in lit.withs:
            if modifier.kind != "function" or modifier.function is None:
                continue
            target = modifier.target if modifier.target[0] == "data" else modifier.target[0]
            old, new = self._declared(scope, target), self._declared(scope, modifier.function)
            if old is not None and new is not None and not unifies(old, new):
                have = f"have: ({', '.join(map(type_text, new.args))})"
                want = f"want: ({expected_texts(target, old.args)})"
                message = f"{function_text(target)}: arity mismatch"
                return _fault(message, modifier.location, have, want)
        return None

    def _literal(self, scope: Scope, lit: ir.Lit) -> tuple[RegoLoadError | None, bool]:
        """Returns the fault of a literal itself, and whether a term of no type may be the cause."""
        if isinstance(lit, ir.Eq):
            if isinstance(lit.b, ir.Template):
                _shown(scope, lit.b)
            return self._equal(scope, lit, lit.a, lit.b)
        if not isinstance(lit, ir.Call):
            return None, False
        if lit.name == "equal" and len(lit.args) == 2 and lit.out is None:
            return self._equal(scope, lit, lit.args[0], lit.args[1])
        is_member = lit.name in ("internal.member_2", "internal.member_3")
        if is_member and self._level != GATEKEEPER:
            fault = self._member(scope, lit)
            if fault is not None:
                return fault
        return self._call(scope, lit)

    def _equal(
        self, scope: Scope, lit: ir.Lit, a: ir.Term, b: ir.Term
    ) -> tuple[RegoLoadError | None, bool]:
        left, right = scope.get(a), scope.get(b)
        if unify_terms(scope, a, b):
            return None, False
        return _match_error(left, right, lit.location)

    def _member(self, scope: Scope, lit: ir.Call) -> tuple[RegoLoadError, bool] | None:
        """``x in xs``: whether ``xs`` can hold such an ``x``; no fault where it holds nothing."""
        collection = scope.get(lit.args[-1])
        inside = values(collection)
        if inside is None:
            return None
        expected = [inside] if len(lit.args) == 2 else [keys(collection), inside]
        for term, type_ in zip(lit.args, expected, strict=False):
            if is_unknown(type_):
                continue
            have = scope.get(term)
            sound = is_unknown(have) or unifies(have, type_)
            if not sound or not unify_type(scope, term, type_):
                return _match_error(have, type_, lit.location)
        return None

    def _call(self, scope: Scope, lit: ir.Call) -> tuple[RegoLoadError | None, bool]:
        declared = self._declared(scope, lit.name)
        given = lit.args if lit.out is None else [*lit.args, lit.out]
        if declared is None and self._is_value(scope, lit.name):
            return _fault(f"undefined function {function_text(lit.name)}", lit.location), False
        if declared is None:
            for term in given:
                unify_type(scope, term, ANY)
            return None, False
        expected: list[Type | None] = list(declared.args)
        if declared.result is not None:
            expected.append(declared.result)
        have = [scope.get(term) for term in given]
        for i, term in enumerate(given):
            type_ = expected[i] if i < len(expected) else declared.variadic
            if type_ is None:
                continue
            sound = is_unknown(have[i]) or unifies(have[i], type_)
            if not sound or not unify_type(scope, term, type_):
                shown = have if not sound else [scope.get(arg) for arg in given]
                return _argument_error(lit, shown, expected, declared.variadic)
        return None, False

    def _is_value(self, scope: Scope, name: ir.Function) -> bool:
        """Whether a call names a document and no function."""
        if isinstance(name, str):
            return False
        of = scope.get_ref([ir.Var(name[0]), *map(ir.Const, name[1:])])
        return of is not None and not isinstance(of, FunctionType) and of != ANY

    def _declared(self, scope: Scope, name: ir.Function) -> FunctionType | None:
        """Returns the type of the called function; None if it is unknown."""
        if isinstance(name, str):
            builtin = self._builtins.get(name)
            if builtin is None:
                return None
            known = self._functions.get(name)
            if known is None:
                known = FunctionType(builtin.operands, builtin.result, builtin.variadic)
                self._functions[name] = known
            return known
        of = scope.get_ref([ir.Var(name[0]), *map(ir.Const, name[1:])])
        return of if isinstance(of, FunctionType) else None


class _Anything(Scope):
    """A scope in which every term may be anything: where checking would cost too much."""

    def get(self, term: ir.Term) -> Type | None:  # noqa: ARG002  # every term has the same type
        return ANY


def _shown(scope: Scope, template: ir.Template) -> None:
    """Gives the values in a template string type any from there on: OPA sees them as ``{x}``."""
    for part in template.parts:
        if isinstance(part, ir.Comprehension) and len(part.body) == 1:
            (lit,) = part.body
            if isinstance(lit, ir.Eq) and isinstance(lit.b, ir.Var):
                unify_type(scope, ir.Set([lit.b]), ANY)


def _variables(term: ir.Term) -> Iterator[str]:
    if isinstance(term, ir.Var):
        yield term.name
    elif isinstance(term, (ir.Array, ir.Set)):
        for item in term.items:
            yield from _variables(item)
    elif isinstance(term, ir.Object):
        for name, value in term.items:
            yield from _variables(name)
            yield from _variables(value)


def _parts_of(
    lit: ir.Lit,
    closures: list[ir.Comprehension],
    references: list[tuple[list[ir.Term], Location]],
    *,
    is_nested: bool = False,
) -> None:
    """Collects the outermost comprehensions and all references of a literal and its bodies."""
    for term in terms_of(lit):
        kind = type(term)
        if kind is ir.Const or (kind is ir.Var and term.name not in ROOTS):  # type: ignore[union-attr]
            continue  # most terms are
        if kind is not ir.Var:
            _closures_in(term, closures)
        refs = references_in(term)
        if is_nested:
            refs = [(with_steps_apart(terms), place) for terms, place in refs]
        references += refs
    for body in bodies_of(lit):
        for inner in body:
            _parts_of(inner, closures, references, is_nested=True)


def _closures_in(term: ir.Term, closures: list[ir.Comprehension]) -> None:
    if isinstance(term, ir.Comprehension):
        closures.append(term)
    for part in parts_of(term):
        if type(part) not in LEAVES:
            _closures_in(part, closures)


# --- messages --------------------------------------------------------------------------------


def _fault(message: str, location: Location, *details: str) -> RegoLoadError:
    return RegoLoadError("rego_type_error", message, location, details=details)


def _match_error(
    left: Type | None, right: Type | None, location: Location
) -> tuple[RegoLoadError, bool]:
    lines = [f"left  : {type_text(left)}", f"right : {type_text(right)}"]
    for kind, plural in ((ObjectType, "objects"), (ArrayType, "arrays"), (SetType, "sets")):
        if isinstance(left, kind) and isinstance(right, kind):
            lines.append(
                f"hint  : both sides are {plural} but their types differ, so they can never be "
                f"equal (see {_DOCS})"
            )
    return _fault("match error", location, *lines), is_unknown(left) or is_unknown(right)


def _argument_error(
    lit: ir.Call,
    have: Sequence[Type | None],
    expected: Sequence[Type | None],
    variadic: Type | None,
) -> tuple[RegoLoadError, bool]:
    message = f"{function_text(lit.name)}: invalid argument(s)"
    want = expected_texts(lit.name, expected, variadic)
    details = (f"have: ({', '.join(map(type_text, have))})", f"want: ({want})")
    return _fault(message, lit.location, *details), any(map(is_unknown, have))
