"""The layout of rules."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from webhook.rego.format.lines import LayoutFault, Lines, UnexpectedComment, closing_row
from webhook.rego.format.names import text
from webhook.rego.format.nodes import TermNode, is_constant, is_true

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.format.bodies import BodyLayout
    from webhook.rego.format.nodes import ExprNode, HeadNode, Place, RuleNode
    from webhook.rego.format.options import LayoutRules
    from webhook.rego.format.terms import TermLayout


class RuleLayout:
    """Writes rules: heads, bodies and ``else`` branches."""

    def __init__(
        self, lines: Lines, terms: TermLayout, bodies: BodyLayout, options: LayoutRules
    ) -> None:
        self.lines = lines
        self.terms = terms
        self.bodies = bodies
        self.options = options

    def rules(self, rules: list[RuleNode]) -> None:
        """Writes rules with blank lines between, except one-line rules that stood together."""
        lines = self.lines
        for position, rule in enumerate(rules):
            self._guarded(lines.insert, rule.place.row)
            self._guarded(self._rule, rule)
            following = rules[position + 1] if position + 1 < len(rules) else None
            together = (
                following is not None
                and self._is_one_line(rule)
                and self._is_one_line(following)
                and following.place.row == rule.place.row + 1
            )
            if not together:
                lines.blank_line()

    def _guarded(self, write: Callable[..., None], *args: object) -> None:
        try:
            write(*args)
        except UnexpectedComment:
            pass
        except LayoutFault as fault:
            self.lines.faults.append(str(fault))

    def _is_one_line(self, rule: RuleNode) -> bool:
        if len(rule.body) > 1 or rule.default or rule.else_ is not None or _is_set(rule.body[0]):
            return False
        return self._uses_if(rule)

    def _uses_if(self, rule: RuleNode) -> bool:
        has_if = self.options.v1 or self.options.ifs
        return has_if and (self.options.contains or rule.head.value is not None)

    # --- a rule ----------------------------------------------------------------------------

    def _rule(self, rule: RuleNode) -> None:
        lines = self.lines
        if not rule.head.is_else:
            lines.start_line()
        if rule.default:
            lines.write("default ")
        constant = is_constant(rule)
        lines.comment_on_final_line = constant
        unexpected = False
        try:
            self._head(rule.head, default=rule.default, constant=constant)
        except UnexpectedComment:
            unexpected = True
        if constant:
            lines.end_line()
            return
        lines.comment_on_final_line = True
        uses_if = self._uses_if(rule)
        if uses_if:
            lines.write(" if")
            if self._is_beside_head(rule):
                self._inline_body(rule)
                return
        if unexpected and lines.comments:
            lines.write(" { ")
        else:
            lines.write(" {")
            lines.end_line()
        if uses_if and not rule.head.is_else:
            self.bodies.mark_leading_union(rule.body[0])
        self._block(rule)

    def _is_beside_head(self, rule: RuleNode) -> bool:
        """Returns whether the only literal is on the line on which the head ends."""
        head = rule.head.place
        only = len(rule.body) == 1 and not _is_set(rule.body[0])
        return only and rule.body[0].place.row == head.end_row

    def _inline_body(self, rule: RuleNode) -> None:
        lines = self.lines
        lines.write(" ")
        with suppress(UnexpectedComment):  # the rest is written even so
            self.bodies.expr(rule.body[0])
        lines.end_line()
        if rule.else_ is not None:
            self._else(rule, rule.else_)

    def _block(self, rule: RuleNode) -> None:
        lines = self.lines
        lines.up()
        with suppress(UnexpectedComment):
            self.bodies.body(rule.body)
        skip = "()" if rule.head.args else "[]" if rule.head.key is not None else ""
        lines.attempt(lines.insert, closing_row(rule.place, "{", "}", skip))
        lines.down()
        lines.start_line()
        lines.write("}")
        if rule.else_ is not None:
            self._else(rule, rule.else_)

    def _else(self, rule: RuleNode, branch: RuleNode) -> None:
        lines, head = self.lines, branch.head
        beside = _is_beside(rule.place, branch.place)
        above = bool(lines.comments and lines.comments[0].row < head.place.row)
        above = above or lines.before_end is not None
        if beside and not above:
            lines.write(" ")
        else:
            lines.blank_line()
            lines.start_line()
        head.ref = [TermNode("var", "else", head.place)]
        head.args = []
        lines.attempt(lines.insert, head.place.row)
        if above and not beside:
            lines.start_line()
        if head.value is not None:
            head.value.place = head.place
        self._rule(branch)

    # --- heads -----------------------------------------------------------------------------

    def _head(self, head: HeadNode, *, default: bool, constant: bool) -> None:
        lines = self.lines
        if self.options.ref_heads or len(self._reference(head)) == 1:
            lines.attempt(self.terms.ref, self._reference(head))
        elif lines.comments and head.ref[1].place.row == lines.comments[0].row:
            lines.unformatted(head.place, lines.comments)
            return
        else:
            lines.write(f"{text(head.ref[0])}[{text(head.ref[1])}]")
        if head.args:
            lines.write("(")
            with lines.closed_by(")"):
                self.terms.listed(list(head.args), head.place, "()", self.terms.element)
        if head.key is not None and head.value is None:
            self._key(head.key)
        self._value(head, default=default, constant=constant)

    def _reference(self, head: HeadNode) -> list[TermNode]:
        ref = head.ref
        if head.key is None or head.value is not None or _is_dynamic(ref):
            return ref
        ground = next((i for i in range(1, len(ref)) if not _is_ground(ref[i])), len(ref))
        return ref[:ground]

    def _key(self, key: TermNode) -> None:
        lines = self.lines
        if self.options.contains:
            lines.write(" contains ")
            self.terms.term(key)
            return
        lines.write("[")
        self.terms.term(key)
        lines.write("]")

    def _value(self, head: HeadNode, *, default: bool, constant: bool) -> None:
        value = head.value
        if value is None:
            return
        if head.key is None and is_true(value) and not constant and not default:
            return
        named = self.options.v1 and constant and head.key is None and not head.args
        implied = head.place is value.place and not head.is_else and is_true(value)
        if implied and not named:
            return
        self.lines.write(" := " if head.assign or self.options.v1 else " = ")
        self.terms.term(value)


def _is_set(expr: ExprNode) -> bool:
    return not expr.negated and isinstance(expr.terms, TermNode) and expr.terms.kind == "set"


def _is_beside(whole: Place, branch: Place) -> bool:
    """Returns whether ``else`` stood behind code on its line."""
    rows = whole.text.split("\n")
    row = branch.row - whole.row
    return 0 < row < len(rows) and not rows[row].strip().startswith("else")


_CONSTANT = frozenset({"null", "boolean", "number", "string"})


def _is_dynamic(ref: list[TermNode]) -> bool:
    """Returns whether an element of a reference is not constant."""
    return any(not _is_constant_term(part) for part in ref[1:])


def _is_constant_term(term: TermNode) -> bool:
    if term.kind in {"array", "set"}:
        return all(map(_is_constant_term, term.value))
    if term.kind == "object":
        return all(_is_constant_term(k) and _is_constant_term(v) for k, v in term.value)
    return term.kind in _CONSTANT


def _is_ground(term: TermNode) -> bool:
    return term.kind != "var"
