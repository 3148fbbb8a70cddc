"""Stage 7: orders each body so that every variable is bound before its use.

The algorithm and its messages are OPA's (v1/ast/compile.go, reorderBodyFor- Safety): literals keep
their order, except literals that wait for a variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webhook.rego.check import ir
from webhook.rego.check.names import ROOTS
from webhook.rego.check.strict import nodes
from webhook.rego.check.variables import (
    LEAVES,
    NESTING,
    add_all_variables,
    add_closure_variables,
    add_pattern_variables,
    add_variables,
    composites_of,
    outputs,
    parts_of,
    terms_of,
)
from webhook.rego.errors import RegoLoadError
from webhook.rego.location import Location
from webhook.rego.syntax import ast

Unsafe = dict[int, "tuple[ir.Lit, set[str]]"]
"""By identity, literals that cannot be ordered, and variables that are missing for each."""

_FUTURE: Final = frozenset({"in", "every", "contains", "if", "and", "or", "not"})


class Safety:
    """Orders the bodies of a program; faults are collected."""

    def __init__(self, arity: Callable[[ir.Function], int], faults: list[RegoLoadError]) -> None:
        self.arity = arity
        self.faults = faults
        self._known: dict[ir.Lit, set[str]] = {}

    def rule(self, rule: ir.Rule, scope: str = "") -> None:
        """Order the bodies of a rule and its ``else`` branches, and check its head."""
        branch: ir.Rule | None = rule
        while branch is not None:
            safe = set(ROOTS)
            for arg in branch.args or ():
                add_variables(arg, safe)
            self._head(branch, safe, scope)
            branch.body = self.body(branch.body, safe, branch.names, scope)
            branch = branch.else_

    def body(
        self, body: ir.Body, safe: set[str], names: dict[str, str], scope: str = ""
    ) -> ir.Body:
        """Returns the body in a safe order; reports literals that cannot be ordered."""
        ordered, unsafe = self._reorder(body, safe)
        if unsafe:
            self.faults.extend(_errors(unsafe, names, scope))
            return body
        return ordered

    def _head(self, rule: ir.Rule, args: set[str], scope: str) -> None:
        bound = set(args)
        for lit in rule.body:
            bound |= self._visible(lit)
        needed: set[str] = set()
        for term in (*rule.rest, rule.key, rule.value):
            if term is not None:
                add_variables(term, needed)
        for name in sorted(needed - bound):
            if not ir.is_generated(name):
                written = _text(rule.names.get(name, name))
                self._fault(f"var {written} is unsafe{scope}", _place_in_head(rule, written))

    def _fault(self, message: str, location: Location) -> None:
        self.faults.append(RegoLoadError("rego_unsafe_var_error", message, location))

    def _visible(self, lit: ir.Lit) -> set[str]:
        """Returns the literal's variables that count towards its body's; callers do not change it."""
        names = self._known.get(lit)
        if names is None:
            names = self._known[lit] = self._counted(lit)
        return names

    def _counted(self, lit: ir.Lit) -> set[str]:
        names: set[str] = set()
        for term in terms_of(lit):
            add_variables(term, names)
        for modifier in lit.withs:
            add_variables(modifier.value, names)
        if type(lit) not in NESTING:
            return names
        if isinstance(lit, ir.Not):
            if not lit.explicit:
                names |= self._promoted(lit.body)
        elif isinstance(lit, ir.Logic):
            if not lit.explicit_left:
                names |= self._promoted(lit.left)
            if not lit.explicit_right:
                names |= self._promoted(lit.right)
        return names

    def _promoted(self, body: ir.Body) -> set[str]:
        """Variables of an operand without braces that its own literals do not bind."""
        seen: dict[str, int] = {}
        for lit in body:
            for name in self._visible(lit):
                seen[name] = seen.get(name, 0) + 1
        if len(body) == 1:
            return set(seen)
        safe = {*ROOTS, *seen}
        for lit in body:
            if isinstance(lit, ir.Eq):
                for side in (lit.a, lit.b):
                    names: set[str] = set()
                    add_variables(side, names)
                    if isinstance(side, ir.Var):
                        safe -= names
        bound: set[str] = set()
        changed = True
        while changed:
            changed = False
            for lit in body:
                if isinstance(lit, ir.Eq):
                    new = outputs(lit, safe, self.arity) - bound
                    if new:
                        bound |= new
                        safe |= new
                        changed = True
        for lit in body:
            if not isinstance(lit, ir.Eq):
                self._bound_by_call(lit, bound)
        return {name for name, count in seen.items() if name not in bound or count == 1}

    def _bound_by_call(self, lit: ir.Lit, bound: set[str]) -> None:
        if isinstance(lit, ir.Call):
            count = self.arity(lit.name)
            given = lit.args if lit.out is None else [*lit.args, lit.out]
            if 0 <= count < len(given):
                for term in given[count:]:
                    add_pattern_variables(term, bound, sets=False)

    def _reorder(self, body: ir.Body, globals_: set[str]) -> tuple[ir.Body, Unsafe]:
        shown = [self._visible(lit) for lit in body]
        body_vars: set[str] = set().union(*shown) if shown else set()
        safe = body_vars & globals_
        unsafe: Unsafe = {}
        for lit, names in zip(body, shown, strict=True):
            if missing := names - safe:
                unsafe[id(lit)] = (lit, missing)
        closed = []
        nested = False
        for lit in body:
            inner: set[str] = set()
            add_closure_variables(lit, inner)
            nested = nested or bool(inner)
            closed.append((inner & body_vars) - globals_ if inner else inner)
        if not nested:  # most bodies hold no others with variables
            return self._ordered(body, closed, safe, unsafe)
        ordered, remaining = self._ordered(body, closed, set(safe), _copied(unsafe))
        if remaining:
            # OPA ignores the other needs of a literal that has a comprehension with a variable in
            # it: it accepts `not [{x | p[x]; x > v}, q[i]]` with any `i`. Its order is worse, so
            # ours comes first.
            again, still = self._ordered(body, closed, safe, unsafe, forgetting=True)
            if not still:
                ordered, remaining = again, still
        self._closures(ordered, globals_, remaining)
        return ordered, remaining

    def _ordered(
        self,
        body: ir.Body,
        closed: list[set[str]],
        safe: set[str],
        unsafe: Unsafe,
        *,
        forgetting: bool = False,
    ) -> tuple[ir.Body, Unsafe]:
        """Returns the literals in a safe order, and the missing variables of all other literals."""
        ordered: ir.Body = []
        waiting = list(zip(body, closed, strict=True))
        while waiting:
            remaining = []
            for lit, inner in waiting:
                bound = outputs(lit, safe, self.arity)
                if inner and (missing := inner if forgetting else inner - safe):
                    if missing == bound:  # it closes over variables that it binds itself
                        remaining.append((lit, inner))
                        continue
                    known = set() if forgetting else unsafe.get(id(lit), (lit, set()))[1]
                    unsafe[id(lit)] = (lit, known | missing)
                entry = unsafe.get(id(lit))
                if entry is not None:
                    entry[1].difference_update(bound)
                    entry[1].difference_update(safe)
                if entry is None or not entry[1]:
                    unsafe.pop(id(lit), None)
                    ordered.append(lit)
                    safe |= bound
                else:
                    remaining.append((lit, inner))
            if len(remaining) == len(waiting):
                break
            waiting = remaining
        return ordered, unsafe

    # --- nested bodies -----------------------------------------------------------------------

    def _closures(self, ordered: ir.Body, globals_: set[str], unsafe: Unsafe) -> None:
        known = set(globals_)
        for i, lit in enumerate(ordered):
            if i:
                known |= self._visible(ordered[i - 1])
            for term in composites_of(lit):
                self._in_term(term, lit, known, unsafe)
            if isinstance(lit, ir.Every):
                known |= {lit.key.name, lit.value.name}
                lit.body = self._nested(lit.body, known, unsafe)
            elif isinstance(lit, ir.Not):
                lit.body = self._nested(lit.body, known, unsafe)
            elif isinstance(lit, ir.Logic):
                lit.left = self._nested(lit.left, known, unsafe)
                lit.right = self._nested(lit.right, known, unsafe)
            if isinstance(lit, ir.Print):
                self._check_print(lit.args, known)
            elif isinstance(lit, ir.Eq) and isinstance(lit.b, ir.Template):
                shown = [part for part in lit.b.parts if isinstance(part, ir.Comprehension)]
                self._check_print([part for part in shown if not _is_variable(part)], known)

    def _check_print(self, args: list[ir.Comprehension], known: set[str]) -> None:
        """Checks that a printed term uses only variables that are bound before."""
        for arg in args:
            for inner in arg.body:
                for name in sorted(self._visible(inner) - known):
                    if not ir.is_generated(name):
                        self.faults.append(
                            RegoLoadError(
                                "rego_compile_error",
                                f"var {_text(name)} is undeclared",
                                arg.location,
                            )
                        )

    def _nested(self, body: ir.Body, known: set[str], unsafe: Unsafe) -> ir.Body:
        ordered, faults = self._reorder(body, known)
        if not faults:
            return ordered
        for key, (lit, names) in faults.items():
            entry = unsafe.setdefault(key, (lit, set()))
            entry[1].update(names)
        return body

    def _in_term(self, term: ir.Term, lit: ir.Lit, known: set[str], unsafe: Unsafe) -> None:
        if isinstance(term, ir.Comprehension):
            needed: set[str] = set()
            if term.key is not None:
                add_all_variables(term.key, needed)
            add_all_variables(term.value, needed)
            bound = set(known)
            for inner in term.body:
                bound |= self._visible(inner)
            if missing := needed - bound:
                unsafe.setdefault(id(lit), (lit, set()))[1].update(missing)
            term.body = self._nested(term.body, known, unsafe)
        for part in parts_of(term):
            if type(part) not in LEAVES:
                self._in_term(part, lit, known, unsafe)


def _place_in_head(rule: ir.Rule, name: str) -> Location:
    """Returns a variable's place in a rule's head; the rule's place if it is not in the head."""
    head = rule.head
    for node in nodes((head.ref.path, head.key, head.value)):
        if isinstance(node, ast.Var) and node.name == name:
            return node.location
    return rule.location


def _copied(unsafe: Unsafe) -> Unsafe:
    return {at: (lit, set(names)) for at, (lit, names) in unsafe.items()}


def _is_variable(part: ir.Comprehension) -> bool:
    """Whether a part of a template is a variable and nothing else: that may be bound later."""
    lit = part.body[-1]
    return len(part.body) == 1 and isinstance(lit, ir.Eq) and isinstance(lit.b, ir.Var)


def _text(name: str) -> str:
    return "_" if ir.is_wildcard(name) else name.rsplit(" ", 1)[-1]


def _errors(unsafe: Unsafe, names: dict[str, str], scope: str) -> list[RegoLoadError]:
    """Returns OPA's errors: for variables by name, or for expressions without names."""
    assigned: set[str] = set()
    for lit, _ in unsafe.values():
        if isinstance(lit, ir.Eq) and lit.assign:
            add_variables(lit.a, assigned)
    places: dict[str, Location] = {}
    for lit, missing in unsafe.values():
        for name in missing:
            if name not in places or lit.location.position() < places[name].position():
                places[name] = lit.location
    named = [
        (name, place)
        for name, place in sorted(places.items(), key=lambda item: item[1].position())
        if not ir.is_generated(name) and not name.startswith("$ ")
    ]
    others = [item for item in named if item[0] not in assigned]
    errors = []
    for name, place in others or named:
        text = _text(names.get(name, name))
        hint = ""
        if text in _FUTURE:
            hint = f" (hint: `import future.keywords.{text}` to import a future keyword)"
        errors.append(
            RegoLoadError("rego_unsafe_var_error", f"var {text} is unsafe{scope}{hint}", place)
        )
    if errors:
        return errors
    seen: set[str] = set()
    for lit, missing in sorted(unsafe.values(), key=lambda item: item[0].location.position()):
        if new := {name for name in missing if ir.is_generated(name)} - seen:
            seen |= new
            errors.append(
                RegoLoadError("rego_unsafe_var_error", f"expression is unsafe{scope}", lit.location)
            )
    return errors
