"""Stage 1: bodies and their literals: negation, some, every, with, ``and`` and ``or``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.cursor import Cursor, Refused
from webhook.rego.syntax.parser_terms import ROOTS, TermParser

if TYPE_CHECKING:
    from webhook.rego.syntax.parser_logic import LogicParser

_EVERY: Final = ast.Var("every")
_INFIX_EXAMPLES: Final = {"in": "x in xs", "and": "x and y", "or": "x or y"}


def membership(term: ast.Term) -> tuple[ast.Term | None, ast.Term, ast.Term] | None:
    """Key, value and domain if this is ``value in domain`` or ``key, value in domain``."""
    if not isinstance(term, ast.Call) or not isinstance(term.operator, ast.Ref):
        return None
    operator = term.operator
    if operator.head != ast.Var("internal") or len(operator.path) != 1:
        return None
    if operator.path[0] == ast.String("member_2") and len(term.args) == 2:
        return None, term.args[0], term.args[1]
    if operator.path[0] == ast.String("member_3") and len(term.args) == 3:
        return term.args[0], term.args[1], term.args[2]
    return None


class BodyParser:
    """Reads bodies."""

    def __init__(self, cursor: Cursor, terms: TermParser, logic: LogicParser) -> None:
        self.cursor = cursor
        self.terms = terms
        self.logic = logic

    def body(self, end: int) -> ast.Body:
        """Literals up to the token ``end``, which stays."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] == end:
            cursor.refuse("found empty body")
        cursor.enter()
        body = self.body_after(self.literal(), end)
        cursor.depth -= 1
        return body

    def body_after(self, first: ast.Literal_, end: int) -> ast.Body:
        """Reads the rest of a body after its first literal."""
        cursor = self.cursor
        literals = [first]
        kinds = cursor.kinds
        while True:
            kind = kinds[cursor.i]
            if kind == t.SEMICOLON:
                cursor.i += 1
            elif kind == end:
                break
            elif kind == t.ILLEGAL and cursor.texts[cursor.i]:
                raise Refused(cursor.scan_errors())
            elif cursor.i not in cursor.newlines:
                self._hint_at_missing_import()
                cursor.illegal(f"expected \\n or ; or {t.NAMES[end]}")
            literals.append(self.literal())
        return tuple(literals)

    def _hint_at_missing_import(self) -> None:
        cursor = self.cursor
        if cursor.hints:
            return
        kind, name = cursor.kinds[cursor.i], cursor.texts[cursor.i]
        if kind == t.COMMA and cursor.reads_with(t.FUTURE_V0, cursor.i + 1, self._is_membership):
            name, kind = "in", t.IDENT
        if kind == t.IDENT and name in _INFIX_EXAMPLES:
            example = _INFIX_EXAMPLES[name]
            cursor.hint(f"`import future.keywords.{name}` for `{example}` expressions")

    # --- literals --------------------------------------------------------------------------

    def literal(self) -> ast.Literal_:
        """Reads a literal between two lines or semicolons, with its ``with`` modifiers."""
        cursor = self.cursor
        start = cursor.i
        kind = cursor.kinds[start]
        if cursor.logical:
            grouped = self.logic.first_operand(kind)
            if grouped is not None:
                cursor.group(grouped, cursor.starts[start])
                return grouped
        if kind < t.PACKAGE or kind > t.LOGICAL_OR:
            return self._expression_literal(start)
        if cursor.keyword_begins_reference():
            cursor.kinds[start] = t.IDENT
            return self._expression_literal(start)
        negated = kind == t.NOT
        if negated:
            cursor.i = start + 1
            kind = cursor.kinds[cursor.i]
            if kind == t.LBRACE and cursor.not_bodies:
                return self.logic.fold((self.logic.not_body(start),), start)
        if kind in t.ITERATIONS:
            if negated:
                cursor.illegal(f"illegal negation of '{t.NAMES[kind]}'")
            return self._some() if kind == t.SOME else self._every()
        return self._expression_literal(start, negated)

    def _expression_literal(self, start: int, negated: bool = False) -> ast.Literal_:
        cursor = self.cursor
        if negated and cursor.not_bodies and cursor.kinds[cursor.i] in t.PARENTHESES:
            group = self.logic.group(operand=True, prefix="not ")
            if group is not None:
                return self.logic.fold(
                    (ast.Not(group, location=cursor.since(cursor.starts[start])),), start
                )
        term = self.terms.statement()
        kind = cursor.kinds[cursor.i]
        if (
            kind == t.IDENT
            and term == _EVERY
            and cursor.reads_with(t.FUTURE_V0, start, self._is_every)
        ):
            cursor.hint("`import future.keywords.every` for `every x in xs { ... }` expressions")
        with_: tuple[ast.With, ...] = ()
        modifiers = cursor.i
        if kind == t.WITH:
            with_ = self.terms.modifiers()
            kind = cursor.kinds[cursor.i]
        place = cursor.since(cursor.starts[start])
        literal: ast.Literal_
        if negated and cursor.not_bodies:
            literal = ast.Not((ast.Expr(term, location=place),), with_, location=place)
        else:
            literal = ast.Expr(term, negated, with_, location=place)
        if kind in t.LOGICAL:
            operator = t.NAMES[kind]
            if with_:
                self.logic.refuse_with(modifiers, operator)
            if not negated and cursor.kinds[start] == t.LBRACE:
                if isinstance(term, ast.Object) and not term.items:
                    cursor.refuse("found empty body", place)
                self.logic.refuse_braces(place, place.text, operator)
            return self.terms.attach(self.logic.or_chain((literal,), start))
        return literal

    def _some(self) -> ast.Literal_:
        cursor = self.cursor
        start, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        cursor.i = start + 1
        try:
            term = self.terms.expression()
        except Refused:
            term = None
        if isinstance(term, ast.Call):
            parts = membership(term)
            if parts is None:
                cursor.illegal("expected `x in xs` or `x, y in xs` expression")
            with_ = self.terms.modifiers() if cursor.kinds[cursor.i] == t.WITH else ()
            return ast.SomeIn(*parts, with_, location=cursor.since(cursor.starts[start]))
        cursor.i, cursor.wildcards, cursor.depth = start, wildcards, depth
        self._hint_at_some_in(start)
        names = []
        while True:
            cursor.i += 1
            if cursor.kinds[cursor.i] != t.IDENT:
                cursor.illegal("expected var")
            names.append(self.terms.variable(cursor.i))
            cursor.i += 1
            if cursor.kinds[cursor.i] != t.COMMA:
                break
        return ast.SomeDecl(tuple(names), location=cursor.since(cursor.starts[start]))

    def _is_membership(self) -> bool:
        return membership(self.terms.expression()) is not None

    def _is_every(self) -> bool:
        return isinstance(self._every(), ast.Every)

    def _hint_at_some_in(self, start: int) -> None:
        """Advise the import where ``in`` stands behind ``some`` as a plain word."""
        cursor = self.cursor
        i = start + 1
        while i not in cursor.newlines and cursor.kinds[i] != t.EOF:
            if cursor.kinds[i] == t.IDENT and cursor.texts[i] == "in":
                if cursor.reads_with(t.FUTURE_V0, start + 1, self._is_membership):
                    cursor.hint("`import future.keywords.in` for `some x in xs` expressions")
                return
            i += 1

    def _every(self) -> ast.Literal_:
        cursor = self.cursor
        start = cursor.i
        cursor.i += 1
        parts = membership(self.terms.expression())
        if parts is None:
            cursor.illegal("expected `x[, y] in xs { ... }` expression")
        key, value, domain = parts
        if key is not None and (not isinstance(key, ast.Var) or key.name in ROOTS):
            cursor.illegal("expected key to be a variable")
        if not isinstance(value, ast.Var) or value.name in ROOTS:
            cursor.illegal("expected value to be a variable")
        if cursor.kinds[cursor.i] != t.LBRACE:
            cursor.illegal("missing body")
        cursor.i += 1
        body = self.body(t.RBRACE)
        cursor.i += 1
        place = cursor.since(cursor.starts[start])
        return self.terms.attach(ast.Every(key, value, domain, body, location=place))
