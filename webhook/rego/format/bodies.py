"""The layout of bodies and their literals."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from webhook.rego.format.lines import LayoutFault, Lines, UnexpectedComment, closing_row
from webhook.rego.format.names import INFIX, arity, text
from webhook.rego.format.nodes import (
    BodyNode,
    EveryNode,
    ExprNode,
    LogicalNode,
    NotNode,
    Place,
    SomeNode,
    TermNode,
    WithNode,
)
from webhook.rego.format.terms import TermLayout, grouped, is_union


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand of ``and`` or ``or``: in braces (with their place), in parentheses, or bare."""

    body: BodyNode
    brace: Place | None = None
    parentheses: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    """An operator with its right operand, and the line on which the text before it ends."""

    operator: str
    right: _Operand
    left_end_row: int

    def breaks_line(self) -> bool:
        """Returns whether the operand has a line of its own."""
        begins = self.right.brace or self.right.body[0].place
        return begins.row > self.left_end_row


class BodyLayout:
    """Writes bodies."""

    def __init__(self, lines: Lines, terms: TermLayout) -> None:
        self.lines = lines
        self.terms = terms
        self.in_parentheses: ExprNode | None = None
        """A literal whose terms get parentheses when it is written."""

    # --- bodies ----------------------------------------------------------------------------

    def body(self, body: BodyNode) -> None:
        """Writes literals on lines of their own; blank lines between them stay."""
        lines = self.lines
        lines.insert(body[0].place.row)
        for position, expr in enumerate(body):
            if position > 0 and expr.place.row > body[position - 1].place.end_row + 1:
                lines.blank_line()
            lines.start_line()
            try:
                self.expr(expr)
            except UnexpectedComment:
                pass
            except LayoutFault as fault:
                lines.faults.append(str(fault))
            lines.end_line()

    def inner_body(self, brackets: str, body: BodyNode, before: Place, whole: Place) -> None:
        """Writes a body within ``brackets``, on the current line or on lines of its own."""
        lines = self.lines
        if body[0].place.row <= before.row and len(grouped(list(body), before)) == 1:
            lines.write(" ")
            for expr in body[:-1]:
                self.expr(expr)
                lines.write("; ")
            self.expr(body[-1])
            lines.attempt(lines.insert, closing_row(whole, *brackets))
            return
        lines.end_line()
        lines.up()
        try:
            self.body(body)
            lines.attempt(lines.insert, closing_row(whole, *brackets))
        finally:
            lines.down()
            lines.start_line()

    def _braced(self, body: BodyNode, before: Place, whole: Place) -> None:
        with suppress(UnexpectedComment):
            self.inner_body("{}", body, before, whole)

    # --- literals --------------------------------------------------------------------------

    def expr(self, expr: ExprNode) -> None:
        """Writes a literal."""
        lines = self.lines
        parentheses = self.in_parentheses is expr
        if parentheses:
            self.in_parentheses = None
        lines.insert(expr.place.row)
        if not lines.inline:
            lines.start_line()
        grouped_negation = expr.negated and isinstance(expr.terms, LogicalNode)
        if expr.negated:
            lines.write("not (" if grouped_negation else "not ")
        if parentheses:
            lines.write("(")
        self._terms(expr)
        if parentheses:
            lines.write(")")
        if grouped_negation:
            lines.write(")")
        if expr.withs:
            self._withs(expr)

    def _terms(self, expr: ExprNode) -> None:
        terms = expr.terms
        if isinstance(terms, TermNode):
            self.terms.term(terms)
        elif isinstance(terms, list):
            self._call(terms)
        elif isinstance(terms, SomeNode):
            self.lines.attempt(self._some, terms)
        elif isinstance(terms, EveryNode):
            self.lines.attempt(self._every, terms, expr.place)
        elif isinstance(terms, NotNode):
            self.lines.attempt(self._not, terms, expr.place)
        else:
            self.lines.attempt(self._logical, expr)

    def _withs(self, expr: ExprNode) -> None:
        lines, withs = self.lines, expr.withs
        row = _terms_end_row(expr)
        if withs[0].place.row == row:
            self._with(withs[0], indented=False)
            row, withs = withs[0].place.row, withs[1:]
        up = False
        try:
            for modifier in withs:
                below = modifier.place.row > row
                if below:
                    if not up:
                        lines.up()
                        up = True
                    lines.next_line()
                    row = modifier.place.row
                self._with(modifier, indented=below)
        finally:
            if up:
                lines.down()

    def _with(self, modifier: WithNode, *, indented: bool) -> None:
        lines = self.lines
        lines.attempt(lines.insert, modifier.place.row)
        lines.write("with " if indented else " with ")
        lines.attempt(self.terms.term, modifier.target)
        lines.write(" as ")
        with suppress(UnexpectedComment):
            self.terms.term(modifier.value)

    def _some(self, decl: SomeNode) -> None:
        lines = self.lines
        lines.insert(decl.place.row)
        lines.write("some ")
        row = decl.place.row
        for position, term in enumerate(decl.symbols):
            if term.kind == "call":
                self.terms.membership(term.value, decl.place, parentheses=False)
                continue
            if term.place.row > row:
                lines.next_line()
                lines.write("\t")
                row = term.place.row
            elif position > 0:
                lines.write(" ")
            self.terms.term(term)
            if position < len(decl.symbols) - 1:
                lines.write(",")

    def _every(self, every: EveryNode, place: Place) -> None:
        lines = self.lines
        lines.insert(place.row)
        lines.write("every ")
        if every.key is not None:
            self.terms.term(every.key)
            lines.write(", ")
        self.terms.term(every.value)
        lines.write(" in ")
        self.terms.term(every.domain)
        lines.write(" {")
        self._braced(every.body, place, place)
        if len(every.body) == 1 and every.body[0].place.row == every.place.row:
            lines.write(" ")
        lines.write("}")

    def _not(self, node: NotNode, place: Place) -> None:
        lines = self.lines
        lines.insert(place.row)
        lines.write("not ")
        if node.explicit or len(node.body) > 1:
            self._mark_union(node.body[0])
            lines.write("{")
            self._braced(node.body, place, place)
            lines.write(" }" if node.body[-1].place.row == place.row else "}")
            return
        only = node.body[0]
        parentheses = (
            bool(only.withs)
            or isinstance(only.terms, LogicalNode | NotNode)
            or _begins_with_brace(only)
        )
        if parentheses:
            lines.write("(")
        with suppress(UnexpectedComment):
            self.expr(only)
        if parentheses:
            lines.write(")")

    def _call(self, terms: list[TermNode]) -> None:
        lines = self.lines
        name = text(terms[0])
        if INFIX.get(name) == "in":
            self.terms.membership(terms, terms[0].place, parentheses=False)
            return
        symbol, count = INFIX.get(name), len(terms) - 1 - arity(name)
        if symbol is None:
            self.terms.plain_call(terms)
        elif count == 0:
            lines.attempt(self.terms.term, terms[1])
            lines.write(f" {symbol} ")
            self.terms.term(terms[2])
        elif count == 1:
            lines.attempt(self.terms.term, terms[3])
            lines.write(" = ")
            lines.attempt(self.terms.term, terms[1])
            lines.write(f" {symbol} ")
            lines.attempt(self.terms.term, terms[2])
        else:
            self.terms.refuse_arity(terms[1:], name, terms[0].place)
            self.terms.plain_call(terms)

    # --- unions that begin a body ----------------------------------------------------------

    def _mark_union(self, expr: ExprNode) -> None:
        """Marks ``x | y`` for parentheses: in braces it would be parsed as a comprehension."""
        if _is_union(expr):
            self.in_parentheses = expr

    def mark_leading_union(self, expr: ExprNode) -> None:
        """Marks a union at the beginning of a rule's body, also as the first operand of a call."""
        terms = expr.terms
        if expr.negated:
            return
        if isinstance(terms, LogicalNode):
            first, _ = _flat(expr)
            if first.brace is None and not first.parentheses:
                self.mark_leading_union(first.body[0])
        elif _is_union(expr):
            self.in_parentheses = expr
        elif isinstance(terms, list) and (lead := _leading(terms)) is not None and is_union(lead):
            self.terms.in_parentheses = lead

    # --- logic -----------------------------------------------------------------------------

    def _logical(self, expr: ExprNode) -> None:
        lines = self.lines
        first, steps = _flat(expr)
        self._operand(first)
        indented = False
        for step in steps:
            lines.write(f" {step.operator}")
            if step.breaks_line():
                if not indented:
                    lines.up()
                    indented = True
                lines.next_line()
            else:
                lines.write(" ")
            self._operand(step.right)
        if indented:
            lines.down()

    def _operand(self, operand: _Operand) -> None:
        lines = self.lines
        try:
            if operand.brace is None:
                if operand.parentheses:
                    lines.write("(")
                try:
                    self.expr(operand.body[0])
                finally:
                    if operand.parentheses:
                        lines.write(")")
                return
        except UnexpectedComment:
            return
        self._mark_union(operand.body[0])
        lines.write("{")
        self._braced(operand.body, operand.brace, operand.brace)
        lines.write(" }" if operand.body[-1].place.row == operand.brace.row else "}")


def _terms_end_row(expr: ExprNode) -> int:
    """Returns the line on which a literal ends, without its modifiers."""
    written = expr.place.text
    before = expr.withs[0].place.offset - expr.place.offset
    if 0 < before <= len(written):
        written = written[:before]
    return expr.place.row + written.rstrip(" \t\r\n").count("\n")


def _flat(expr: ExprNode) -> tuple[_Operand, list[_Step]]:
    """Returns the first operand of a chain of ``and`` and ``or``, and the steps behind it."""
    node = expr.terms
    assert isinstance(node, LogicalNode)
    right = _operand(node, expr.place, right=True)
    first = node.left[0]
    inner = not node.explicit_left and len(node.left) == 1 and isinstance(first.terms, LogicalNode)
    if inner and not _needs_parentheses(first, node.operator, right=False):
        end = first.place.row + first.place.text.rstrip(" \t\r\n").count("\n")
        operand, steps = _flat(first)
        return operand, [*steps, _Step(node.operator, right, end)]
    left = _operand(node, expr.place, right=False)
    return left, [_Step(node.operator, right, _end_row(left))]


def _operand(node: LogicalNode, place: Place, *, right: bool) -> _Operand:
    body = node.right if right else node.left
    if (node.explicit_right if right else node.explicit_left) or len(body) != 1:
        return _Operand(body, _brace(place, body))
    return _Operand(body, None, _needs_parentheses(body[0], node.operator, right=right))


def _brace(place: Place, body: BodyNode) -> Place:
    """Returns the place of the brace before a body."""
    within = min(body[0].place.offset - place.offset, len(place.text))
    at = place.text.rfind("{", 0, max(within, 0))
    if at < 0:
        return place
    return Place(place.source, place.start + at, place.start + at, place.end)


def _end_row(operand: _Operand) -> int:
    if operand.brace is not None and (row := closing_row(operand.brace, "{", "}")) > 0:
        return row
    last = operand.body[-1].place
    return last.row + last.text.rstrip(" \t\r\n").count("\n")


def _needs_parentheses(expr: ExprNode, parent: str, *, right: bool) -> bool:
    """Returns whether an operand without braces needs parentheses to be parsed back."""
    if expr.withs:
        return True
    terms = expr.terms
    if isinstance(terms, LogicalNode):
        if terms.operator == "or":
            return parent == "and" or right
        return parent == "and" and right
    return _begins_with_brace(expr)


def _is_union(expr: ExprNode) -> bool:
    terms = expr.terms
    return isinstance(terms, list) and len(terms) == 3 and text(terms[0]) == "or"


def _leading(terms: list[TermNode]) -> TermNode | None:
    """Returns the first written operand of an infix call; None for other calls."""
    name = text(terms[0])
    if name not in INFIX:
        return None
    given = len(terms) - 1 - arity(name)
    if given == 0:
        return terms[1]
    return terms[-1] if given == 1 else None


def _begins_with_brace(expr: ExprNode) -> bool:
    """Returns whether a literal is written with a brace first, which could begin a body."""
    terms = expr.terms
    if isinstance(terms, TermNode):
        return _term_begins_with_brace(terms)
    lead = _leading(terms) if isinstance(terms, list) else None
    return lead is not None and _term_begins_with_brace(lead)


def _term_begins_with_brace(term: TermNode) -> bool:
    kind, value = term.kind, term.value
    if kind == "set":
        return bool(value)
    if kind in {"object", "setcomprehension", "objectcomprehension"}:
        return True
    if kind == "ref":
        return _term_begins_with_brace(value[0])
    if kind == "call":
        name = text(value[0])
        infix = name in INFIX and len(value) == arity(name) + 1
        return infix and _term_begins_with_brace(value[1])
    return False
