"""Stage 1: collections and comprehensions, which begin alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.cursor import Cursor, Refused

if TYPE_CHECKING:
    from webhook.rego.syntax.parser_bodies import BodyParser
    from webhook.rego.syntax.parser_terms import TermParser


class CollectionParser:
    """Reads terms in brackets and braces."""

    bodies: BodyParser
    """The parser of a module sets it: a body holds terms, and a term may hold a body."""

    def __init__(self, cursor: Cursor, terms: TermParser) -> None:
        self.cursor = cursor
        self.terms = terms

    def collection(self, first: int, kind: int) -> ast.Term:
        """Reads a literal or comprehension; a second call for the same token uses the cache."""
        cursor = self.cursor
        known = cursor.remembered.get(first)
        if known is not None:
            term, cursor.i, cursor.wildcards, errors = known
            if term is None:
                raise Refused(list(errors))
            return term
        cursor.enter()
        depth = cursor.depth
        try:
            parsed = self._braces(first) if kind == t.LBRACE else self._brackets(first)
        except Refused as refusal:
            cursor.depth = depth - 1
            cursor.remembered[first] = (None, cursor.i, cursor.wildcards, refusal.errors)
            raise
        cursor.depth = depth - 1
        cursor.remembered[first] = (parsed, cursor.i, cursor.wildcards, [])
        return parsed

    def _first(self) -> bool:
        """Step over the opening token and a leading comma; whether there was none."""
        cursor = self.cursor
        cursor.i += 1
        if cursor.kinds[cursor.i] == t.COMMA:
            cursor.i += 1
            return False
        return True

    def _brackets(self, first: int) -> ast.Term:
        cursor = self.cursor
        start = cursor.starts[first]
        if cursor.kinds[first + 1] == t.RBRACK:
            cursor.i = first + 2
            return ast.Array((), location=cursor.since(start))
        may_comprehend = self._first()
        head = self.terms.term()
        if cursor.kinds[cursor.i] == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACK)
            if body is not None:
                return ast.ArrayComprehension(head, body, location=cursor.since(start))
        return ast.Array(
            self._list_after(self.terms.rest(head), t.RBRACK), location=cursor.since(start)
        )

    def _comprehension_body(self, end: int) -> ast.Body | None:
        """Parses ``| body end``; None, and nothing consumed, if a list continues instead."""
        cursor = self.cursor
        bar, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        cursor.i = bar + 1
        try:
            body = self.bodies.body(end)
        except Refused:
            if cursor.kinds[cursor.i] != t.COMMA:
                raise
            cursor.i, cursor.wildcards, cursor.depth = bar, wildcards, depth
            return None
        cursor.i += 1
        return body

    def _list_after(self, first: ast.Term, end: int) -> tuple[ast.Term, ...]:
        cursor = self.cursor
        kind = cursor.kinds[cursor.i]
        if kind == end:
            cursor.i += 1
            return (first,)
        if kind != t.COMMA:
            cursor.illegal(f'expected "," or "{t.NAMES[end]}"')
        cursor.i += 1
        return self.terms.listed(end, [first])

    def _braces(self, first: int) -> ast.Term:
        cursor = self.cursor
        start = cursor.starts[first]
        if cursor.kinds[first + 1] == t.RBRACE:
            cursor.i = first + 2
            return ast.Object((), location=cursor.since(start))
        may_comprehend = self._first()
        head = self.terms.term()
        kind = cursor.kinds[cursor.i]
        if kind == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACE)
            if body is not None:
                return ast.SetComprehension(head, body, location=cursor.since(start))
        if kind != t.COLON:
            head = self.terms.rest(head)
            kind = cursor.kinds[cursor.i]
        if kind == t.COLON:
            return self._object(head, may_comprehend, start)
        if kind not in t.BRACES_END_OR_COMMA:
            cursor.illegal("non-terminated set")
        return ast.Set(self._list_after(head, t.RBRACE), location=cursor.since(start))

    def _object(self, key: ast.Term, may_comprehend: bool, start: int) -> ast.Term:
        cursor = self.cursor
        cursor.i += 1
        value = self.terms.term()
        if cursor.kinds[cursor.i] == t.OR and may_comprehend:
            bar, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
            cursor.i = bar + 1
            try:
                body = self.bodies.body(t.RBRACE)
            except Refused:
                cursor.i, cursor.wildcards, cursor.depth = bar, wildcards, depth
            else:
                cursor.i += 1
                return ast.ObjectComprehension(key, value, body, location=cursor.since(start))
        value = self.terms.rest(value)
        kind = cursor.kinds[cursor.i]
        if kind not in t.BRACES_END_OR_COMMA:
            cursor.illegal("non-terminated object")
        return ast.Object(self._pairs([(key, value)]), location=cursor.since(start))

    def _pairs(
        self, pairs: list[tuple[ast.Term, ast.Term]]
    ) -> tuple[tuple[ast.Term, ast.Term], ...]:
        cursor = self.cursor
        kinds = cursor.kinds
        while kinds[cursor.i] != t.RBRACE:
            if kinds[cursor.i] != t.COMMA:
                cursor.illegal('expected "," or "}"')
            cursor.i += 1
            if kinds[cursor.i] == t.RBRACE:
                break
            key = self.terms.expression(pairs=False)
            if kinds[cursor.i] != t.COLON:
                cursor.illegal('expected ":"')
            cursor.i += 1
            pairs.append((key, self.terms.expression(pairs=False)))
        cursor.i += 1
        return tuple(pairs)
