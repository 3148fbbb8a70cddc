"""Stage 1: terms with ``:=`` and ``=`` between, and the modifiers that follow a literal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import Call, Literal_, Ref, SomeDecl, Term, Var, With

if TYPE_CHECKING:
    from webhook.rego.syntax.cursor import Cursor
    from webhook.rego.syntax.parser_terms import TermParser


class StatementParser:
    """Reads the parts of a literal and its modifiers."""

    def __init__(self, cursor: Cursor, terms: TermParser) -> None:
        self.cursor = cursor
        self.terms = terms

    def statement(self) -> Term:
        """Returns a term, an assignment or a unification."""
        cursor = self.cursor
        start = cursor.starts[cursor.i]
        left = self.terms.expression()
        i = cursor.i
        kind = cursor.kinds[i]
        if kind not in t.EQUATIONS:
            return left
        cursor.i = i + 1
        right = self.terms.expression()
        operator = Var(t.NAMES[kind], location=cursor.at(i))
        return Call(operator, (left, right), infix=True, location=cursor.since(start))

    def modifiers(self) -> tuple[With, ...]:
        """Reads one or more ``with target as value``."""
        cursor = self.cursor
        replaced = []
        while cursor.kinds[cursor.i] == t.WITH:
            start = cursor.i
            cursor.i += 1
            if cursor.kinds[cursor.i] != t.IDENT:
                cursor.illegal("expected ident")
            target = self.terms.term()
            if not isinstance(target, Ref | Var):
                cursor.illegal("expected with target path")
            if cursor.kinds[cursor.i] != t.AS:
                cursor.illegal("expected as keyword")
            cursor.i += 1
            value = self.terms.expression()
            replaced.append(With(target, value, location=cursor.since(cursor.starts[start])))
        return tuple(replaced)

    def attach(self, literal: Literal_) -> Literal_:
        """Returns the literal with the modifiers that follow it."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.WITH or isinstance(literal, SomeDecl):
            return literal
        return replace(literal, with_=self.modifiers())
