"""Stage 9: unification, equality and truth as Python."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.run.values import Value, equal, key
from webhook.rego.write.expression import (
    FALSE,
    TRUE,
    Expression,
    Kind,
    all_of,
    call,
    compare,
    conditional,
    is_decimal,
    is_of,
    item,
    name,
    negation,
)

if TYPE_CHECKING:
    from webhook.rego.write.function import FunctionBuilder

UNREAD = name("None")
"""The value of a variable that nothing reads."""


class Unification:
    """Writes unification into a function: values against patterns, and patterns against each other."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionBuilder) -> None:
        self._function = function

    def match(self, pattern: ir.Term, value: Expression) -> None:
        """Matches a value: code written next runs if it fits the pattern, and binds its variables."""
        function, terms = self._function, self._function.terms
        if isinstance(pattern, ir.Var) and pattern.name not in function.env:
            if pattern.name in ("input", "data"):
                self._same(terms.operand(pattern), value)
                return
            function.env[pattern.name] = function.simple(value)
        elif isinstance(pattern, ir.Array) and not terms.bound(pattern):
            known = value.value
            if type(known) is list and len(known) == len(pattern.items):
                for element, its in zip(pattern.items, known, strict=True):
                    self.match(element, terms.constant(its))
                return
            if value.is_known:  # of an item of a number, written out, CPython would warn
                function.condition(FALSE)
            value = function.simple(value)
            tests = [compare(call("len", value), "==", str(len(pattern.items)))]
            if value.kind is not Kind.LIST:
                tests.insert(0, compare(call("type", value), "is", "list"))
            function.condition(all_of(tests))
            for i, element in enumerate(pattern.items):
                self._part(element, item(value, i))
        elif isinstance(pattern, ir.Object) and not terms.bound(pattern):
            value = function.simple(value)
            function.condition(call("is_object", value, str(len(pattern.items))))
            for key, element in pattern.items:
                at = terms.atom(key)
                self.match(element, function.references.lookup(value, at))
        else:
            self._same(terms.operand(pattern), value)

    def _part(self, pattern: ir.Term, value: Expression) -> None:
        """Matches an item of an array."""
        function = self._function
        if (
            isinstance(pattern, ir.Var)
            and function.terms.single_use(pattern)
            and pattern.name not in function.env
        ):
            function.env[pattern.name] = UNREAD
        else:
            self.match(pattern, function.assign(value))

    # --- tests -----------------------------------------------------------------------------------

    def true(self, value: Expression) -> None:
        """Tests a (defined) value: code written next runs if the value is not false."""
        function = self._function
        if value.is_known:
            function.condition(FALSE if value.value is False else TRUE)
        elif value.kind is Kind.BOOL:
            function.condition(value)
        elif value.kind is Kind.ANY:
            function.condition(compare(function.simple(value), "is not", "False"))

    def give(self, out: ir.Term | None, value: Expression) -> None:
        """The result of a call goes to its output, or must be true."""
        if out is None:
            self.true(value)
        else:
            self.match(out, value)

    def truth(self, out: ir.Term | None, test: Expression) -> None:
        """The result of a test goes to its output, or the test must hold."""
        if out is None:
            self._function.condition(test)
        else:
            self.match(out, test)

    # --- equality -----------------------------------------------------------------------------

    def _same(self, a: Expression, b: Expression) -> None:
        """Tests that two values are equal; code written next may rely on their equal kinds."""
        test = self.equality(a, b)
        if Kind.STRING in (a.kind, b.kind):
            test = test.proving((a, Kind.STRING), (b, Kind.STRING))
        self._function.condition(test)

    def equality(self, a: Expression, b: Expression) -> Expression:
        """Whether two values are equal, as cheap as their kinds allow."""
        if a.is_known and b.is_known:
            return TRUE if equal(a.value, b.value) else FALSE
        if _is_scalar(b) and not _is_scalar(a):
            a, b = b, a
        if Kind.STRING in (a.kind, b.kind):
            return compare(a, "==", b)
        if a.value is None or type(a.value) is bool:
            return compare(b, "is", a)
        if type(a.value) is int and is_decimal(a.value):
            if a.value in (0, 1) and b.kind is not Kind.INT:
                b = self._function.simple(b)
                is_bool = compare(call("type", b), "is not", "bool")
                return all_of([compare(b, "==", a), is_bool])
            return compare(b, "==", a)
        if a.kind is Kind.INT and b.kind is Kind.INT:
            return compare(a, "==", b)
        general = call("same", self._function.state, a, b, kind=Kind.BOOL)
        if a.kind is Kind.ANY and a.is_simple:
            return conditional(compare(a, "==", b), is_of(a, Kind.STRING), general)
        return general

    # --- two patterns -------------------------------------------------------------------------

    def unify(self, a: ir.Term, b: ir.Term) -> None:
        """Unifies two terms; both may hold unbound variables."""
        waiting = [(a, b)]
        while waiting:
            for i, (x, y) in enumerate(waiting):
                if self._unify_now(x, y, waiting, i):
                    break
            else:
                function = self._function
                raise function.unit.refuse("cannot unify two unbound terms", function.location)

    def _unify_now(
        self, x: ir.Term, y: ir.Term, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Writes one pair if that is possible now; returns whether it was."""
        terms = self._function.terms
        if isinstance(x, ir.Array) and isinstance(y, ir.Array):
            waiting.pop(i)
            if len(x.items) != len(y.items):
                waiting.clear()
                self._function.condition(FALSE)
            else:
                waiting.extend(zip(x.items, y.items, strict=True))
        elif isinstance(x, ir.Array) and isinstance(y, ir.Const) and type(y.value) is list:
            waiting.pop(i)
            self._against_items(x, y.value, waiting)
        elif isinstance(y, ir.Array) and isinstance(x, ir.Const) and type(x.value) is list:
            waiting.pop(i)
            self._against_items(y, x.value, waiting)
        elif (
            isinstance(x, ir.Object)
            and isinstance(y, ir.Object)
            and not (terms.evaluable(x) or terms.evaluable(y))
        ):
            return self._unify_objects(x, y, waiting, i)
        elif terms.bound(x) or (terms.evaluable(x) and not terms.bound(y)):
            # If both open loops, the loops of the first are the outer loops.
            waiting.pop(i)
            self.match(y, terms.operand(x))
        elif terms.evaluable(y):
            waiting.pop(i)
            self.match(x, terms.operand(y))
        else:
            return False
        return True

    def _against_items(
        self, x: ir.Array, values: list[Value], waiting: list[tuple[ir.Term, ir.Term]]
    ) -> None:
        if len(values) != len(x.items):
            waiting.clear()
            self._function.condition(FALSE)
            return
        waiting.extend((item, ir.Const(value)) for item, value in zip(x.items, values, strict=True))

    def _unify_objects(
        self, x: ir.Object, y: ir.Object, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Unifies objects with unbound variables on both sides, name by name.

        A name is a constant or a bound variable, and both sides have the same names. The names of an object are unique, so two names with equal values do not match.
        """
        terms = self._function.terms
        names = [at for at, _ in (*x.items, *y.items)]
        variables = [at for at in names if not isinstance(at, ir.Const)]
        if not all(isinstance(at, ir.Var) and terms.bound(at) for at in variables):
            return False
        here, there = _by_name(x), _by_name(y)
        if here.keys() != there.keys():
            if variables:
                return False
            waiting.clear()
            self._function.condition(FALSE)
            return True
        waiting.pop(i)
        for first, second in itertools.combinations([at for at, _ in x.items], 2):
            if not (isinstance(first, ir.Const) and isinstance(second, ir.Const)):
                same = self.equality(terms.operand(first), terms.operand(second))
                self._function.condition(negation(same))
        waiting.extend((value, there[at]) for at, value in here.items())
        return True


def _by_name(term: ir.Object) -> dict[tuple[bool, Any], ir.Term]:
    """An object's values by names that are constants or variables."""
    return {
        (True, at.name) if isinstance(at, ir.Var) else (False, key(at.value)): value
        for at, value in term.items
        if isinstance(at, (ir.Var, ir.Const))
    }


def _is_scalar(value: Expression) -> bool:
    """Whether it is a known string, truth, null or integer, which is compared at no cost."""
    known = value.value
    if type(known) is int:
        return is_decimal(known)
    return type(known) in (str, bool, type(None))
