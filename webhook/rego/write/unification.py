"""Stage 5c: unification and equality as Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.check import ir
from webhook.rego.run.runtime import MISSING
from webhook.rego.run.values import equal
from webhook.rego.write.references import ReferenceWriter
from webhook.rego.write.writer import BOOL, INT, LIST, NULL, STRING, Operand

if TYPE_CHECKING:
    from webhook.rego.run.values import Value


class UnificationWriter(ReferenceWriter):
    """Writes unification: values against patterns, and patterns against each other."""

    __slots__ = ()

    def match(self, pattern: ir.Term, value: Operand) -> None:
        """What follows happens for a value that fits the pattern, whose variables it binds."""
        source, kind = value
        if isinstance(pattern, ir.Var) and pattern.name not in self.env:
            if pattern.name in ("input", "data"):
                self.same(self.operand(pattern), value)
                return
            self.env[pattern.name] = (self.name_of(source), kind)
        elif isinstance(pattern, ir.Array) and not self.bound(pattern):
            known = self.value_of(value)
            if type(known) is list and len(known) == len(pattern.items):
                for item, one in zip(pattern.items, known, strict=True):
                    self.match(item, self.constant(one))
                return
            source = self.name_of(source)
            test = f"type({source}) is list and " if kind != LIST else ""
            self.condition(f"{test}len({source}) == {len(pattern.items)}")
            for i, item in enumerate(pattern.items):
                self._part(item, f"{source}[{i}]")
        elif isinstance(pattern, ir.Object) and not self.bound(pattern):
            source = self.name_of(source)
            self.condition(f"is_object({source}, {len(pattern.items)})")
            for name, item in pattern.items:
                at, at_kind = self.atom(name)
                self.match(item, (self.lookup(source, kind, at, at_kind), ""))
        elif isinstance(pattern, ir.Ref):
            self.same(self.operand(pattern), value)
        else:
            self.same(self.operand(pattern), value)

    def _part(self, item: ir.Term, source: str) -> None:
        """Match one item of an array."""
        if isinstance(item, ir.Var) and self.single_use(item) and item.name not in self.env:
            self.env[item.name] = ("None", "")
        else:
            self.match(item, (self.assign(source), ""))

    def same(self, a: Operand, b: Operand) -> None:
        """What follows happens where both values are equal."""
        self.condition(self.equality(a, b))
        if STRING in (a[1], b[1]):
            self.narrow(a[0], STRING)
            self.narrow(b[0], STRING)

    def equality(self, a: Operand, b: Operand) -> str:
        """Source that tells whether two values are equal, as cheap as their kinds allow."""
        known, wanted = self.value_of(a), self.value_of(b)
        if known is not MISSING and wanted is not MISSING:
            return str(equal(known, wanted))
        if _is_scalar(b[0]) and not _is_scalar(a[0]):
            a, b = b, a
        source, kind = a
        other, other_kind = b
        if STRING in (kind, other_kind):
            return f"{source} == {other}"
        if kind == BOOL and source in ("True", "False"):
            return f"{other} is {source}"
        if kind == NULL and source == "None":
            return f"{other} is None"
        if kind == INT and source.lstrip("-").isdigit():
            if source in ("0", "1") and other_kind != INT:
                other = self.name_of(other)
                return f"({other} == {source} and type({other}) is not bool)"
            return f"{other} == {source}"
        if kind == INT and other_kind == INT:
            return f"{source} == {other}"
        if kind == "" and source.isidentifier():
            return f"({source} == {other} if type({source}) is str else same({self.state}, {source}, {other}))"
        return f"same({self.state}, {source}, {other})"

    def unify(self, a: ir.Term, b: ir.Term) -> None:
        """Unify two terms, of which each may hold unbound variables."""
        waiting = [(a, b)]
        while waiting:
            for i, (x, y) in enumerate(waiting):
                if self._unify_now(x, y, waiting, i):
                    break
            else:
                raise self.unit.refuse("cannot unify two unbound terms", self.location)

    def _unify_now(
        self, x: ir.Term, y: ir.Term, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Do one pair if it can be done now; True if it was."""
        if isinstance(x, ir.Var) and not self.bound(x) and self.evaluable(y):
            waiting.pop(i)
            self.match(x, self.operand(y))
        elif isinstance(y, ir.Var) and not self.bound(y) and self.evaluable(x):
            waiting.pop(i)
            self.match(y, self.operand(x))
        elif isinstance(x, ir.Array) and isinstance(y, ir.Array):
            waiting.pop(i)
            if len(x.items) != len(y.items):
                self.condition("False")
                waiting.clear()
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
            and not (self.evaluable(x) or self.evaluable(y))
        ):
            return self._unify_objects(x, y, waiting, i)
        elif self.evaluable(x) and not self._binds(x):
            waiting.pop(i)
            value = self.operand(x)
            self.match(y, value)
        elif self.evaluable(y):
            waiting.pop(i)
            value = self.operand(y)
            self.match(x, value)
        elif self.evaluable(x):
            waiting.pop(i)
            value = self.operand(x)
            self.match(y, value)
        else:
            return False
        return True

    def _binds(self, term: ir.Term) -> bool:
        """Whether evaluating the term opens loops."""
        return not self.bound(term)

    def _against_items(
        self, x: ir.Array, values: list[Value], waiting: list[tuple[ir.Term, ir.Term]]
    ) -> None:
        if len(values) != len(x.items):
            self.condition("False")
            waiting.clear()
            return
        waiting.extend((item, ir.Const(value)) for item, value in zip(x.items, values, strict=True))

    def _unify_objects(
        self, x: ir.Object, y: ir.Object, waiting: list[tuple[ir.Term, ir.Term]], i: int
    ) -> bool:
        """Objects with unbound variables on both sides: key by key, the keys being constant."""
        sides = []
        for term in (x, y):
            keys = {}
            for name, value in term.items:
                if not isinstance(name, ir.Const) or type(name.value) is not str:
                    return False
                keys[name.value] = value
            sides.append(keys)
        waiting.pop(i)
        if sides[0].keys() != sides[1].keys():
            self.condition("False")
            waiting.clear()
        else:
            waiting.extend((value, sides[1][name]) for name, value in sides[0].items())
        return True


def _is_scalar(source: str) -> bool:
    return (
        source[0] in "'\"" or source in ("True", "False", "None") or (source.lstrip("-").isdigit())
    )
