"""Stage 1: terms: references, calls, operators, collections, comprehensions, templates.

Three levels read each other. :meth:`TermParser.expression` reads operands with operators between
them, :meth:`TermParser.term` one operand, and :meth:`TermParser.reference` the parts after an
operand without a space: ``.name``, ``[term]`` and ``(args)``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from webhook.api.names import LONE_SURROGATE
from webhook.rego.location import Location
from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.cursor import DEPTH_EXCEEDED, MAX_ELEMENTS, Cursor, Refused
from webhook.rego.syntax.lexer import SourceLocation
from webhook.rego.syntax.magnitude import fault_of_number

if TYPE_CHECKING:
    from webhook.rego.syntax.parser_bodies import BodyParser

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

    bodies: BodyParser
    """The parser of a module sets it: a term may hold a body, and a body holds terms."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    # --- statements and their modifiers ----------------------------------------------------

    def statement(self) -> ast.Term:
        """Returns a term, an assignment or a unification."""
        cursor = self.cursor
        start = cursor.starts[cursor.i]
        left = self.expression()
        i = cursor.i
        kind = cursor.kinds[i]
        if kind not in t.EQUATIONS:
            return left
        cursor.i = i + 1
        right = self.expression()
        operator = ast.Var(t.NAMES[kind], location=cursor.at(i))
        return ast.Call(operator, (left, right), infix=True, location=cursor.since(start))

    def modifiers(self) -> tuple[ast.With, ...]:
        """Reads one or more ``with target as value``."""
        cursor = self.cursor
        replaced = []
        while cursor.kinds[cursor.i] == t.WITH:
            start = cursor.i
            cursor.i += 1
            if cursor.kinds[cursor.i] != t.IDENT:
                cursor.illegal("expected ident")
            target = self.term()
            if not isinstance(target, ast.Ref | ast.Var):
                cursor.illegal("expected with target path")
            if cursor.kinds[cursor.i] != t.AS:
                cursor.illegal("expected as keyword")
            cursor.i += 1
            value = self.expression()
            replaced.append(ast.With(target, value, location=cursor.since(cursor.starts[start])))
        return tuple(replaced)

    def attach(self, literal: ast.Literal_) -> ast.Literal_:
        """Returns the literal with the modifiers that follow it."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.WITH or isinstance(literal, ast.SomeDecl):
            return literal
        return replace(literal, with_=self.modifiers())

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
            term = self.variable(i)
            cursor.i = i + 1
        elif kind in t.STRINGS:
            term = self.string(i, kind)
            cursor.i = i + 1
        elif kind in t.NUMBERS:
            term = self.number("", i)
        elif kind in t.COLLECTIONS:
            term = self.collection(i, kind)
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
            term = self.variable(i)
            cursor.i = i + 1
        else:
            cursor.illegal()
        if cursor.kinds[cursor.i] >= t.DOT_ATTACHED:
            return self.reference(term)
        return term

    def _group(self, first: int) -> ast.Term:
        """Reads a term in parentheses, of which only the place remains."""
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
            number: ast.Term = self.number("-", first)
            return self.reference(number) if cursor.kinds[cursor.i] >= t.DOT_ATTACHED else number
        cursor.i = first + 2
        operand: ast.Term = self.variable(first + 1)
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
                text = self.unescape(f'"{without_brace_escapes(text)}"', i, "template-string part")
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

    # --- names, numbers and strings ----------------------------------------------------------

    def variable(self, i: int) -> ast.Var:
        """Returns the variable for the name at ``i``; each ``_`` is a new variable."""
        cursor = self.cursor
        name = cursor.texts[i]
        if name == "_":
            name = f"${cursor.wildcards}"
            cursor.wildcards += 1
        return ast.Var(name, location=cursor.at(i))

    def number(self, prefix: str, first: int) -> ast.Number:
        """The number at the current token; ``prefix`` is the sign that stood at ``first``."""
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.NUMBER:
            cursor.i += 1
            prefix += "."
            if cursor.kinds[cursor.i] != t.NUMBER:
                cursor.illegal("expected number")
        digits = cursor.texts[cursor.i]
        if not prefix.endswith(".") and digits[0] == "0" and digits[1:2].isdigit():
            cursor.illegal("expected number without leading zero")
        if prefix.endswith(".") and "." in digits:
            cursor.illegal("expected number")
        fault = fault_of_number(prefix + digits)
        if fault == "number too big":
            cursor.refuse(fault)
        elif fault:
            cursor.illegal(fault)
        cursor.i += 1
        return ast.Number(prefix + digits, location=cursor.since(cursor.starts[first]))

    def string(self, i: int, kind: int) -> ast.String:
        """Returns the string that the token at ``i`` is."""
        cursor = self.cursor
        written = cursor.texts[i]
        if kind == t.RAW_STRING:
            return ast.String(written[1:-1], raw=True, location=cursor.at(i))
        if "\\" not in written:
            return ast.String(written[1:-1], location=cursor.at(i))
        return ast.String(self.unescape(written, i, "string literal"), location=cursor.at(i))

    def unescape(self, written: str, i: int, noun: str) -> str:
        """Returns a quoted text decoded; ``noun`` names it where it cannot be."""
        cursor = self.cursor
        try:
            decoded: str = json.loads(written)
        except ValueError:
            cursor.refuse(f"illegal {noun}: {written}", cursor.at(i))
        # Half a pair of surrogates is no character: like OPA, which decodes as Go does.
        return LONE_SURROGATE.sub("\ufffd", decoded)

    # --- collections and comprehensions, which begin alike ------------------------------------

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
        head = self.term()
        if cursor.kinds[cursor.i] == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACK)
            if body is not None:
                return ast.ArrayComprehension(head, body, location=cursor.since(start))
        return ast.Array(self._list_after(self.rest(head), t.RBRACK), location=cursor.since(start))

    def _comprehension_body(self, end: int, *, of_object: bool = False) -> ast.Body | None:
        """Parses ``| body end``; None, and nothing consumed, if the collection continues instead."""
        cursor = self.cursor
        bar, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        cursor.i = bar + 1
        try:
            body = self.bodies.body(end)
        except Refused:
            if not of_object and cursor.kinds[cursor.i] != t.COMMA:
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
        return self.listed(end, [first])

    def _braces(self, first: int) -> ast.Term:
        cursor = self.cursor
        start = cursor.starts[first]
        if cursor.kinds[first + 1] == t.RBRACE:
            cursor.i = first + 2
            return ast.Object((), location=cursor.since(start))
        may_comprehend = self._first()
        head = self.term()
        kind = cursor.kinds[cursor.i]
        if kind == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACE)
            if body is not None:
                return ast.SetComprehension(head, body, location=cursor.since(start))
        if kind != t.COLON:
            head = self.rest(head)
            kind = cursor.kinds[cursor.i]
        if kind == t.COLON:
            return self._object(head, may_comprehend, start)
        if kind not in t.BRACES_END_OR_COMMA:
            cursor.illegal("non-terminated set")
        return ast.Set(self._list_after(head, t.RBRACE), location=cursor.since(start))

    def _object(self, key: ast.Term, may_comprehend: bool, start: int) -> ast.Term:
        cursor = self.cursor
        cursor.i += 1
        value = self.term()
        if cursor.kinds[cursor.i] == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACE, of_object=True)
            if body is not None:
                return ast.ObjectComprehension(key, value, body, location=cursor.since(start))
        value = self.rest(value)
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
            key = self.expression(pairs=False)
            if kinds[cursor.i] != t.COLON:
                cursor.illegal('expected ":"')
            cursor.i += 1
            pairs.append((key, self.expression(pairs=False)))
        cursor.i += 1
        return tuple(pairs)


def without_brace_escapes(text: str) -> str:
    r"""Returns template text without the backslash of each ``\{``.

    In ``\\{`` the brace is not escaped.
    """
    return re.sub(r"\\(.)", lambda match: "{" if match[1] == "{" else match[0], text)
