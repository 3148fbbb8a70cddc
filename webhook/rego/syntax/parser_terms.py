"""Stage 1: terms: references, calls, operators, collections, comprehensions, templates.

Three levels read each other. :meth:`TermParser.expression` reads operands with operators between
them, :meth:`TermParser.term` one operand, and :meth:`TermParser.reference` the parts after an
operand without a space: ``.name``, ``[term]`` and ``(args)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.cursor import DEPTH_EXCEEDED, MAX_ELEMENTS, Cursor, Refused
from webhook.rego.syntax.lexer import SourceLocation
from webhook.rego.syntax.parser_scalars import ScalarParser, without_brace_escapes

if TYPE_CHECKING:
    from webhook.rego.syntax.parser_bodies import BodyParser
    from webhook.rego.syntax.parser_collections import CollectionParser

_NO_HEAD: Final = (ast.Null, ast.Boolean, ast.Number, ast.String, ast.Ref, ast.TemplateString)
"""Tokens that cannot begin a reference."""

ROOTS: Final = ("input", "data")
"""OPA reads these names as references, also where nothing follows them."""

WHITESPACE: Final = "unexpected whitespace token"
"""The beginning of OPA's message for a space within a reference."""

KINDS_OF_TERM: Final[dict[type, str]] = {
    ast.Null: "null",
    ast.Boolean: "boolean",
    ast.Number: "number",
    ast.String: "string",
    ast.Var: "var",
    ast.Ref: "ref",
    ast.Array: "array",
    ast.Object: "object",
    ast.Set: "set",
    ast.ArrayComprehension: "arraycomprehension",
    ast.SetComprehension: "setcomprehension",
    ast.ObjectComprehension: "objectcomprehension",
    ast.Call: "call",
    ast.TemplateString: "templatestring",
}
"""OPA's name of each kind of term, as its messages give it."""


class TermParser:
    """Reads terms from the tokens of a cursor, and moves the cursor behind them."""

    collections: CollectionParser
    bodies: BodyParser
    """The parser of a module sets both: a term may hold a body, and a body holds terms."""

    def __init__(self, cursor: Cursor, scalars: ScalarParser) -> None:
        self.cursor = cursor
        self.scalars = scalars

    # --- operators -------------------------------------------------------------------------

    def expression(self, pairs: bool = True) -> ast.Term:
        """Reads a term with its operators; with ``pairs`` also ``k, v in xs``."""
        cursor = self.cursor
        start = cursor.starts[cursor.i]
        return self._membership(self._operators(self.term(), 1), start, pairs)

    def rest(self, left: ast.Term) -> ast.Term:
        """Reads the operators after ``left``, the first operand of an element of a list."""
        return self._membership(self._operators(left, 1), left.location.offset, pairs=False)

    def _membership(self, left: ast.Term, start: int, pairs: bool) -> ast.Term:
        """Reads each ``in xs``, and with ``pairs`` each ``, v in xs``, after ``left``.

        ``in`` binds less than all other operators.
        """
        cursor = self.cursor
        kinds = cursor.kinds
        while True:
            i = cursor.i
            kind = kinds[i]
            if kind == t.COMMA and pairs:
                call = self._pair_membership(left, start)
                if call is None:
                    return left
                left = call
            elif t.PACKAGE <= kind <= t.LOGICAL_OR:
                if cursor.keyword_begins_reference():
                    kinds[i] = (
                        t.IDENT
                    )  # `with.x` begins the next literal: it is no modifier of this literal
                    return left
                if kind != t.IN:
                    return left
                cursor.i = i + 1
                right = self._operators(self.term(), 1)
                left = self._member("member_2", i, (left, right), start)
            else:
                return left

    def _pair_membership(self, left: ast.Term, start: int) -> ast.Call | None:
        """Reads ``, v in xs`` after ``left``; None, and nothing consumed, for other tokens."""
        cursor = self.cursor
        comma, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        try:
            cursor.i = comma + 1
            value = self._operators(self.term(), 1)
            operator = cursor.i
            if cursor.kinds[operator] == t.IN:
                cursor.i = operator + 1
                domain = self._operators(self.term(), 1)
                return self._member("member_3", operator, (left, value, domain), start)
        except Refused:
            pass
        cursor.i, cursor.wildcards, cursor.depth = comma, wildcards, depth
        return None

    def _member(self, name: str, operator: int, args: tuple[ast.Term, ...], start: int) -> ast.Call:
        """Makes the call of ``internal.member_2`` or ``member_3``, as which OPA reads ``in``."""
        cursor = self.cursor
        place = cursor.at(operator)
        reference = ast.Ref(
            ast.Var("internal", location=place), (ast.String(name, location=place),), location=place
        )
        return ast.Call(reference, args, infix=True, location=cursor.since(start))

    def _operators(self, left: ast.Term, floor: int) -> ast.Term:
        """Reads the binary operators after ``left`` that bind at least as tightly as ``floor``.

        Precedence climbing: a tighter operator to the right takes the right operand first.
        """
        cursor = self.cursor
        kinds = cursor.kinds
        precedences = t.PRECEDENCE
        precedence = precedences[kinds[cursor.i]]
        if precedence < floor:
            return left
        start: int = left.location.offset
        height = 0
        while precedence >= floor:
            i = cursor.i
            cursor.i = i + 1
            height += 1
            cursor.enter()
            right = self.term()
            if precedences[kinds[cursor.i]] > precedence:
                right = self._operators(right, precedence + 1)
            operator = ast.Var(t.NAMES[kinds[i]], location=cursor.at(i))
            left = ast.Call(operator, (left, right), infix=True, location=cursor.since(start))
            precedence = precedences[kinds[cursor.i]]
        cursor.depth -= height
        return left

    # --- a single term ---------------------------------------------------------------------

    def term(self) -> ast.Term:
        """Reads one operand; its first token selects one of the cases below."""
        cursor = self.cursor
        i = cursor.i
        kind = cursor.kinds[i]
        term: ast.Term
        if kind in t.VARIABLES:
            term = self.scalars.variable(i)
            cursor.i = i + 1
        elif kind in t.STRINGS:
            term = self.scalars.string(i, kind)
            cursor.i = i + 1
        elif kind in t.NUMBERS:
            term = self.scalars.number("", i)
        elif kind in t.COLLECTIONS:
            term = self.collections.collection(i, kind)
        elif kind in t.BOOLEANS:
            term = ast.Boolean(kind == t.TRUE, location=cursor.here())
            cursor.i = i + 1
        elif kind == t.NULL:
            term = ast.Null(location=cursor.here())
            cursor.i = i + 1
        elif kind in t.PARENTHESES:
            term = self._group(i)
        elif kind == t.SUB:
            return self._minus(i)
        elif t.TEMPLATE_PART <= kind <= t.RAW_TEMPLATE_END:
            term = self._template(i)
        elif kind in t.LOGICAL and cursor.kinds[i + 1] == t.LPAREN_ATTACHED:
            term = self.scalars.variable(i)
            cursor.i = i + 1
        else:
            cursor.illegal()
        if cursor.kinds[cursor.i] >= t.DOT_ATTACHED:
            return self.reference(term)
        return term

    def _group(self, first: int) -> ast.Term:
        """Reads ``( term )``."""
        cursor = self.cursor
        cursor.i = first + 1
        cursor.enter()
        term = self.expression()
        if cursor.kinds[cursor.i] != t.RPAREN:
            cursor.refuse("non-terminated expression")
        cursor.i += 1
        cursor.depth -= 1
        cursor.group(term, cursor.starts[first])
        return term

    def _minus(self, first: int) -> ast.Term:
        """Reads the operand of a minus sign: a number is negative, a variable becomes ``0 - x``."""
        cursor = self.cursor
        kind = cursor.kinds[first + 1]
        if kind not in t.VARIABLES:
            cursor.i = first + 1
            if kind not in t.NUMBERS:
                cursor.illegal("expected number")
            number: ast.Term = self.scalars.number("-", first)
            return self.reference(number) if cursor.kinds[cursor.i] >= t.DOT_ATTACHED else number
        cursor.i = first + 2
        operand: ast.Term = self.scalars.variable(first + 1)
        if cursor.kinds[cursor.i] >= t.DOT_ATTACHED:
            operand = self.reference(operand)
        place = cursor.at(first)
        zero = ast.Number("0", location=place)
        return ast.Call(
            ast.Var("minus", location=place),
            (zero, operand),
            location=cursor.since(cursor.starts[first]),
        )

    # --- templates -------------------------------------------------------------------------

    def _template(self, first: int) -> ast.TemplateString:
        """Reads a template string: parts of text with expressions in braces between them."""
        cursor = self.cursor
        raw = cursor.kinds[first] >= t.RAW_TEMPLATE_PART
        if cursor.version == "v0":
            cursor.refuse("template strings are not supported by current capabilities")
        parts: list[str | ast.Term | ast.Literal_] = []
        cursor.enter()
        while True:
            i = cursor.i
            text = cursor.texts[i]
            if raw:
                text = text.replace("\\{", "{")
            elif "\\" in text:
                text = self.scalars.unescape(
                    f'"{without_brace_escapes(text)}"', i, "template-string part"
                )
            if text:
                parts.append(text)
            cursor.i = i + 1
            if cursor.kinds[i] in t.TEMPLATE_ENDS:
                break
            parts.append(self._template_expression())
        cursor.depth -= 1
        return ast.TemplateString(
            tuple(parts), raw=raw, location=cursor.since(cursor.starts[first])
        )

    def _template_expression(self) -> ast.Term | ast.Literal_:
        """Reads the expression in braces; refuse the literals that OPA does not allow there."""
        cursor = self.cursor
        place = cursor.here()
        try:
            literal = self.bodies.literal()
        except Refused as refusal:
            refusal.errors.append(cursor.error("invalid template-string expression"))
            raise
        where = "in template-string expression"
        if isinstance(literal, ast.Every):
            cursor.refuse(f"unexpected 'every' {where}", place)
        if isinstance(literal, ast.SomeDecl | ast.SomeIn):
            cursor.refuse(f"unexpected 'some' {where}", place)
        if isinstance(literal, ast.Expr):
            if literal.negated:
                cursor.refuse(f"unexpected negation ('not') {where}", place)
            if isinstance(literal.term, ast.Call) and isinstance(literal.term.operator, ast.Var):
                if literal.term.operator.name == "eq":
                    cursor.refuse(f"unexpected unification ('=') {where}", place)
                if literal.term.operator.name == "assign":
                    cursor.refuse(f"unexpected assignment (':=') {where}", place)
        if cursor.kinds[cursor.i] != t.RBRACE:
            cursor.refuse("expected } to end template string expression")
        cursor.i += 1
        if isinstance(literal, ast.Expr) and not literal.with_:
            return literal.term
        return literal

    # --- references and calls --------------------------------------------------------------

    def reference(self, head: ast.Term, loose: bool = False) -> ast.Term:
        """Reads the parts after ``head`` without a space: ``.name``, ``[term]`` and ``(args)``.

        With ``loose`` a space may precede the first part, as in the head of a rule.
        """
        cursor = self.cursor
        if isinstance(head, _NO_HEAD):
            cursor.refuse(
                f"illegal ref (head cannot be {KINDS_OF_TERM[type(head)]})", head.location
            )
        if isinstance(head, ast.Var) and head.name in ROOTS and id(head) in cursor.groups:
            cursor.refuse("illegal ref (head cannot be ref)", head.location)
        kinds = cursor.kinds
        start: int = head.location.offset
        path: list[ast.Term] = []
        cursor.enter()
        while True:
            if len(path) > MAX_ELEMENTS:
                cursor.refuse(DEPTH_EXCEEDED)
            i = cursor.i
            kind = kinds[i]
            if loose and t.DOT <= kind <= t.LPAREN:
                kind += t.DOT_ATTACHED - t.DOT  # as if it were attached
            loose = False
            if kind == t.DOT_ATTACHED:
                i += 1
                if cursor.starts[i] != cursor.ends[i - 1]:
                    self._refuse_space(cursor.ends[i - 1])
                cursor.i = i
                if not cursor.is_name(i):
                    cursor.illegal("expected identifier")
                path.append(ast.String(cursor.texts[i], location=cursor.at(i)))
                cursor.i = i + 1
            elif kind == t.LBRACK_ATTACHED:
                cursor.i = i + 1
                path.append(self.expression())
                if kinds[cursor.i] != t.RBRACK:
                    cursor.illegal("expected [")
                cursor.i += 1
            elif kind == t.LPAREN_ATTACHED:
                head = self._call(head, path, start)
                path = []
                following = kinds[cursor.i]
                if following == t.LPAREN_ATTACHED or following < t.DOT_ATTACHED:
                    break
            else:
                break
        cursor.depth -= 1
        return ast.Ref(head, tuple(path), location=cursor.since(start)) if path else head

    def _refuse_space(self, at: int) -> NoReturn:
        """Refuses a space behind a dot. OPA counts a line break as column 0 of the next line."""
        cursor = self.cursor
        place = SourceLocation(cursor.source, at, at + 1)
        where = Location(place.file, place.row, place.col, at)
        if cursor.source.text[at] == "\n":
            where = Location(place.file, place.row + 1, 0, at)
        cursor.refuse(f"{WHITESPACE}: expected identifier", where)

    def _call(self, head: ast.Term, path: list[ast.Term], start: int) -> ast.Term:
        """Reads the arguments of a call; ``set()`` is the empty set."""
        cursor = self.cursor
        operator: ast.Var | ast.Ref
        if path or not isinstance(head, ast.Var):
            operator = ast.Ref(head, tuple(path), location=cursor.since(start))
        else:
            operator = head
        cursor.i += 1
        if cursor.kinds[cursor.i] == t.RPAREN:
            cursor.i += 1
            if isinstance(operator, ast.Var) and operator.name == "set":
                return ast.Set((), location=cursor.since(start))
            return ast.Call(operator, (), location=cursor.since(start))
        args = self.listed(t.RPAREN, [])
        return ast.Call(operator, args, location=cursor.since(start))

    def listed(self, end: int, terms: list[ast.Term]) -> tuple[ast.Term, ...]:
        """Reads terms separated by commas, and the token ``end`` behind them."""
        cursor = self.cursor
        kinds = cursor.kinds
        while kinds[cursor.i] != end:
            terms.append(self.expression(pairs=False))
            kind = kinds[cursor.i]
            if kind == t.COMMA:
                cursor.i += 1
            elif kind != end:
                cursor.illegal(f'expected "," or "{t.NAMES[end]}"')
        cursor.i += 1
        return tuple(terms)
