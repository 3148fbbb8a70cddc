"""Stage 1: ``and``, ``or``, and ``not`` before a body: operands in braces and in parentheses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import Body, Call, Expr, Literal_, Logic, Not, Term, Var
from webhook.rego.syntax.cursor import Cursor, Refused
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM, TermParser

if TYPE_CHECKING:
    from webhook.rego.syntax.lexer import SourceLocation
    from webhook.rego.syntax.parser_bodies import BodyParser


class LogicParser:
    """Reads operands of ``and`` and ``or``, and refuses ambiguous forms."""

    bodies: BodyParser
    """The parser of a module sets it: a body holds terms, and a term may hold a body."""

    def __init__(self, cursor: Cursor, terms: TermParser) -> None:
        self.cursor = cursor
        self.terms = terms

    def not_body(self, start: int) -> Not:
        """``{ body }`` after ``not``."""
        cursor = self.cursor
        opening = cursor.i
        body = self._operand_body("not ", "not ")
        self._refuse_ambiguous(body, opening, "not ")
        return Not(body, location=cursor.since(cursor.starts[start]))

    def _operand_body(self, operator: str, prefix: str = "") -> Body:
        """Returns the body in braces of an operand; ``operator`` is empty while only trying."""
        cursor = self.cursor
        opening, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        cursor.i = opening + 1
        empty = cursor.kinds[cursor.i] == t.RBRACE
        try:
            body = self.bodies.body(t.RBRACE)
        except Refused:
            if empty or not operator:
                raise
            # The braces may be a value instead, which must be in parentheses.
            cursor.i, cursor.wildcards, cursor.depth = opening, wildcards, depth
            failure = None
            try:
                term = self.terms.expression()
            except Refused as refusal:
                failure = refusal
            if failure is not None:
                raise
            written = cursor.since(cursor.starts[opening]).text
            if prefix:
                self._refuse_value(opening, written, term, prefix)
            self.refuse_braces(cursor.at(opening), written, operator)
        cursor.i += 1
        return body

    def first_operand(self, kind: int) -> Literal_ | None:
        """Reads a literal that begins with a braced or grouped operand; returns None for others."""
        cursor = self.cursor
        start, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        if kind == t.LBRACE:
            try:
                body = self._operand_body("")
            except Refused:
                body = ()
            if body and cursor.kinds[cursor.i] in t.LOGICAL:
                self._refuse_ambiguous(body, start, "")
                return self.terms.attach(self.or_chain(body, start))
            cursor.i, cursor.wildcards, cursor.depth = start, wildcards, depth
        elif kind in t.PARENTHESES:
            group = self.group(operand=False, prefix="")
            if group is not None:
                return self.fold(group, start)
        return None

    def fold(self, body: Body, start: int) -> Literal_:
        """Returns the operand, or the chain of ``and`` and ``or`` it begins."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] in t.LOGICAL:
            return self.terms.attach(self.or_chain(body, start))
        return self.terms.attach(body[0])

    def or_chain(self, left: Body, start: int) -> Literal_:
        """Combines a first operand and the following operands by ``or`` and ``and``."""
        cursor = self.cursor
        height = 0
        if cursor.kinds[cursor.i] == t.LOGICAL_AND:
            left = (self._and_chain(left, start),)
        while cursor.kinds[cursor.i] == t.LOGICAL_OR:
            cursor.enter()
            height += 1
            cursor.i += 1
            operand = cursor.i
            right = self._operand("or")
            if cursor.kinds[cursor.i] == t.LOGICAL_AND:
                right = (self._and_chain(right, operand),)
            left = (self._logic("or", left, right, start),)
        cursor.depth -= height
        return left[0]

    def _and_chain(self, left: Body, start: int) -> Literal_:
        cursor = self.cursor
        height = 0
        while cursor.kinds[cursor.i] == t.LOGICAL_AND:
            cursor.enter()
            height += 1
            cursor.i += 1
            left = (self._logic("and", left, self._operand("and"), start),)
        cursor.depth -= height
        return left[0]

    def _logic(self, operator: Literal["and", "or"], left: Body, right: Body, start: int) -> Logic:
        cursor = self.cursor
        for body in (left, right):
            self._refuse_void(body, operator)
        return Logic(operator, left, right, location=cursor.since(cursor.starts[start]))

    def _operand(self, operator: str) -> Body:
        """Reads one operand of ``and`` or ``or``; ``operator`` is empty for a mere attempt."""
        cursor = self.cursor
        start = cursor.i
        kind = cursor.kinds[start]
        if kind == t.LBRACE:
            body = self._operand_body(operator)
            self._refuse_ambiguous(body, start, "")
            return body
        negated = kind == t.NOT and not cursor.keyword_begins_reference()
        if negated:
            cursor.i += 1
            kind = cursor.kinds[cursor.i]
            if kind == t.LBRACE and cursor.not_bodies:
                return (self.not_body(start),)
        if kind in t.PARENTHESES and cursor.logical and (cursor.not_bodies or not negated):
            group = self.group(operand=True, prefix="not " if negated else "")
            if group is not None:
                if negated:
                    return (Not(group, location=cursor.since(cursor.starts[start])),)
                return group
        term = self.terms.statement()
        place = cursor.since(cursor.starts[start])
        if negated and cursor.not_bodies:
            return (Not((Expr(term, location=place),), location=place),)
        return (Expr(term, negated, location=place),)

    def group(self, *, operand: bool, prefix: str) -> Body | None:
        """A group ``( … )`` of literals; None, nothing consumed, where it is a plain term."""
        cursor = self.cursor
        start, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        cursor.enter()
        cursor.i += 1
        if cursor.kinds[cursor.i] == t.RPAREN:
            if operand:
                cursor.refuse("empty parenthesized group", cursor.at(start))
            cursor.i, cursor.depth = start, depth
            return None
        explicit = cursor.kinds[cursor.i] == t.LBRACE
        try:
            left = self._operand("")
        except Refused:
            left = ()
        kind = cursor.kinds[cursor.i]
        body: Body | None = None
        if not left:
            pass
        elif kind in t.LOGICAL:
            body = (self.terms.attach(self.or_chain(left, start + 1)),)
            self._close_group()
        elif kind == t.WITH and not explicit and len(left) == 1:
            body = self._group_with(left, operand)
        elif explicit:
            self._refuse_body_in_parentheses(start, prefix)
        elif len(left) == 1 and _is_logical(left[0]):
            self._close_group()
            body = left
        cursor.depth = depth
        if body is None:
            cursor.i, cursor.wildcards = start, wildcards
        return body

    def _group_with(self, left: Body, operand: bool) -> Body | None:
        cursor = self.cursor
        modifiers = cursor.i
        left = (self.terms.attach(left[0]),)
        if cursor.kinds[cursor.i] in t.LOGICAL:
            self.refuse_with(modifiers, t.NAMES[cursor.kinds[cursor.i]])
        self._close_group()
        if operand or cursor.kinds[cursor.i] in t.LOGICAL:
            return left
        return None

    def _close_group(self) -> None:
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.RPAREN:
            cursor.refuse("expected ) to close parenthesized group")
        cursor.i += 1

    def refuse_with(self, modifiers: int, operator: str) -> None:
        """Refuses a modifier of one operand."""
        cursor = self.cursor
        cursor.hint(
            "Wrap the operand in `(...)` or `{...}` to scope, or move `with` after the "
            f"`{operator}` expression to apply it to the whole expression"
        )
        cursor.refuse(
            f"`with` modifier is not allowed on operand of `{operator}`", cursor.at(modifiers)
        )

    def refuse_braces(self, place: SourceLocation, written: str, operator: str) -> None:
        """Refuses an operand that is a value in braces."""
        cursor = self.cursor
        cursor.hint(f"wrap the operand to keep the value: `({written}) {operator} ...`")
        cursor.refuse(
            f"operand of `{operator}` cannot begin with `{{` unless the braces hold a body", place
        )

    def _refuse_value(self, opening: int, written: str, term: Term, prefix: str) -> None:
        cursor = self.cursor
        while isinstance(term, Call) and term.infix:
            term = term.args[0]
        cursor.hint(
            f"write `{prefix}({written})` to negate the value, or `{prefix}{{{written}}}` "
            "for a body holding it"
        )
        cursor.refuse(
            "`{...}` in an operand position must contain expression(s), got: "
            + KINDS_OF_TERM[type(term)],
            cursor.at(opening),
        )

    def _refuse_body_in_parentheses(self, start: int, prefix: str) -> None:
        """Refuses ``({ body })`` unless the braces also read as a value."""
        cursor = self.cursor
        end = cursor.i
        cursor.i = start + 1
        try:
            self.terms.term()
        except Refused:
            written = cursor.source.text[cursor.starts[start + 1] : cursor.ends[end - 1]]
            cursor.hint(f"drop the parens to keep the body: `{prefix}{written}`")
            cursor.refuse("`(...)` in an operand position cannot contain a body", cursor.at(start))

    def _refuse_ambiguous(self, body: Body, opening: int, prefix: str) -> None:
        """Refuses ``{a | b}`` as a body: it reads as a comprehension too."""
        cursor = self.cursor
        first = body[0]
        if not isinstance(first, Expr) or not isinstance(first.term, Call):
            return
        term = first.term
        if not term.infix or term.operator != Var("or") or first.location.text.startswith("("):
            return
        braces = cursor.since(cursor.starts[opening])
        inside = first.location.offset - braces.offset
        text = first.location.text
        union = f"{braces.text[:inside]}({text}){braces.text[inside + len(text) :]}"
        cursor.hint(
            f"write `{prefix}({braces.text})` for the comprehension, or `{prefix}{union}` "
            "for the set union"
        )
        cursor.refuse(
            "ambiguous `{ ... | ... }` operand: read as a body holding a set-union expression, "
            "not as a comprehension",
            cursor.at(opening),
        )

    def _refuse_void(self, body: Body, operator: str) -> None:
        """Refuses an operand of nothing but ``print``: it can never fail."""
        cursor = self.cursor
        for literal in body:
            if not isinstance(literal, Expr) or literal.negated:
                return
            term = literal.term
            if not isinstance(term, Call) or term.operator != Var("print"):
                return
        cursor.hint(
            "`print` produces no value and always succeeds, so the operand can never fail; move "
            "it out of the operand, or add an expression that can fail"
        )
        cursor.refuse(
            f"operand of `{operator}` cannot consist only of calls to `print`", body[0].location
        )


def _is_logical(literal: Literal_) -> bool:
    return isinstance(literal, Logic | Not) or (isinstance(literal, Expr) and literal.negated)
