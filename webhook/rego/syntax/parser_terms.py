"""Stage 1: terms: references, calls, operators, collections, comprehensions, templates."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, NoReturn

from webhook.rego.location import Location
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import (
    Array,
    ArrayComprehension,
    Boolean,
    Call,
    Every,
    Expr,
    Null,
    Number,
    Object,
    ObjectComprehension,
    Ref,
    Set,
    SetComprehension,
    SomeDecl,
    SomeIn,
    String,
    TemplateString,
    Var,
)
from webhook.rego.syntax.lexer import SourceLocation
from webhook.rego.syntax.parser_scalars import Scalars, without_brace_escapes
from webhook.rego.syntax.parser_state import DEPTH_EXCEEDED, MAX_ELEMENTS, Refused

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import Body, Literal_, Term

_NO_REFERENCE: Final = (Null, Boolean, Number, String, Ref, TemplateString)

ROOTS: Final = ("input", "data")
"""Names that OPA takes for references, even alone."""

WHITESPACE: Final = "unexpected whitespace token"

KINDS_OF_TERM: Final[dict[type, str]] = {
    Null: "null",
    Boolean: "boolean",
    Number: "number",
    String: "string",
    Var: "var",
    Ref: "ref",
    Array: "array",
    Object: "object",
    Set: "set",
    ArrayComprehension: "arraycomprehension",
    SetComprehension: "setcomprehension",
    ObjectComprehension: "objectcomprehension",
    Call: "call",
    TemplateString: "templatestring",
}
"""OPA's name of each kind of term, as its messages give it."""


class TermParser(Scalars):
    """The part of the parser that reads terms."""

    @abstractmethod
    def body(self, end: int) -> Body:
        """Literals up to the token ``end``, which stays."""

    @abstractmethod
    def literal(self) -> Literal_:
        """One literal of a body."""

    # --- operators -------------------------------------------------------------------------

    def expression(self, pairs: bool = True) -> Term:
        """A term with operators; ``pairs`` where ``k, v in xs`` may stand."""
        start = self.starts[self.i]
        return self._membership(self._operators(self.term(), 1), start, pairs)

    def _membership(self, left: Term, start: int, pairs: bool) -> Term:
        kinds = self.kinds
        while True:
            i = self.i
            kind = kinds[i]
            if kind == t.COMMA and pairs:
                call = self._pair_membership(left, start)
                if call is None:
                    return left
                left = call
            elif t.PACKAGE <= kind <= t.LOGICAL_OR:
                if self.keyword_begins_reference():
                    kinds[i] = t.IDENT  # the next literal's: `with.x` is no modifier
                    return left
                if kind != t.IN:
                    return left
                self.i = i + 1
                right = self._operators(self.term(), 1)
                left = self._member("member_2", i, (left, right), start)
            else:
                return left

    def _pair_membership(self, left: Term, start: int) -> Call | None:
        """``, v in xs`` after ``k``; None, nothing consumed, if that is not what follows."""
        comma, wildcards, depth = self.i, self.wildcards, self.depth
        try:
            self.i = comma + 1
            value = self._operators(self.term(), 1)
            operator = self.i
            if self.kinds[operator] == t.IN:
                self.i = operator + 1
                domain = self._operators(self.term(), 1)
                return self._member("member_3", operator, (left, value, domain), start)
        except Refused:
            pass
        self.i, self.wildcards, self.depth = comma, wildcards, depth
        return None

    def _member(self, name: str, operator: int, args: tuple[Term, ...], start: int) -> Call:
        place = self.at(operator)
        reference = Ref(
            Var("internal", location=place), (String(name, location=place),), location=place
        )
        return Call(reference, args, infix=True, location=self.since(start))

    def _operators(self, left: Term, floor: int) -> Term:
        """Binary operators that bind at least as tightly as ``floor``, after ``left``."""
        kinds = self.kinds
        precedences = t.PRECEDENCE
        precedence = precedences[kinds[self.i]]
        if precedence < floor:
            return left
        start: int = left.location.offset
        height = 0
        while precedence >= floor:
            i = self.i
            self.i = i + 1
            height += 1
            self.enter()
            right = self.term()
            if precedences[kinds[self.i]] > precedence:
                right = self._operators(right, precedence + 1)
            operator = Var(t.NAMES[kinds[i]], location=self.at(i))
            left = Call(operator, (left, right), infix=True, location=self.since(start))
            precedence = precedences[kinds[self.i]]
        self.depth -= height
        return left

    # --- a single term ---------------------------------------------------------------------

    def term(self) -> Term:
        """One operand: a scalar, reference, call, collection, comprehension or group."""
        i = self.i
        kind = self.kinds[i]
        found: Term
        if kind in t.VARIABLES:
            found = self.variable(i)
            self.i = i + 1
        elif kind in t.STRINGS:
            found = self.string(i, kind)
            self.i = i + 1
        elif kind in t.NUMBERS:
            found = self.number("", i)
        elif kind in t.COLLECTIONS:
            found = self._collection(i, kind)
        elif kind in t.BOOLEANS:
            found = Boolean(kind == t.TRUE, location=self.here())
            self.i = i + 1
        elif kind == t.NULL:
            found = Null(location=self.here())
            self.i = i + 1
        elif kind in t.PARENTHESES:
            found = self._group(i)
        elif kind == t.SUB:
            return self._minus(i)
        elif t.TEMPLATE_PART <= kind <= t.RAW_TEMPLATE_END:
            found = self._template(i)
        elif kind in t.LOGICAL and self.kinds[i + 1] == t.LPAREN_ATTACHED:
            found = self.variable(i)
            self.i = i + 1
        else:
            self.illegal()
        if self.kinds[self.i] >= t.DOT_ATTACHED:
            return self.reference(found)
        return found

    def _group(self, first: int) -> Term:
        self.i = first + 1
        self.enter()
        found = self.expression()
        if self.kinds[self.i] != t.RPAREN:
            self.refuse("non-terminated expression")
        self.i += 1
        self.depth -= 1
        return found

    def _minus(self, first: int) -> Term:
        kind = self.kinds[first + 1]
        if kind not in t.VARIABLES:
            self.i = first + 1
            if kind not in t.NUMBERS:
                self.illegal("expected number")
            number: Term = self.number("-", first)
            return self.reference(number) if self.kinds[self.i] >= t.DOT_ATTACHED else number
        self.i = first + 2
        operand: Term = self.variable(first + 1)
        if self.kinds[self.i] >= t.DOT_ATTACHED:
            operand = self.reference(operand)
        place = self.at(first)
        zero = Number("0", location=place)
        return Call(
            Var("minus", location=place), (zero, operand), location=self.since(self.starts[first])
        )

    # --- templates -------------------------------------------------------------------------

    def _template(self, first: int) -> TemplateString:
        raw = self.kinds[first] >= t.RAW_TEMPLATE_PART
        if self.version == "v0":
            self.refuse("template strings are not supported by current capabilities")
        parts: list[str | Term | Literal_] = []
        self.enter()
        while True:
            i = self.i
            text = self.texts[i]
            if raw:
                text = text.replace("\\{", "{")
            elif "\\" in text:
                text = self.unescape(f'"{without_brace_escapes(text)}"', i, "template-string part")
            if text:
                parts.append(text)
            self.i = i + 1
            if self.kinds[i] in t.TEMPLATE_ENDS:
                break
            parts.append(self._template_expression())
        self.depth -= 1
        return TemplateString(tuple(parts), raw=raw, location=self.since(self.starts[first]))

    def _template_expression(self) -> Term | Literal_:
        place = self.here()
        try:
            literal = self.literal()
        except Refused as refusal:
            refusal.errors.append(self.error("invalid template-string expression"))
            raise
        where = "in template-string expression"
        if isinstance(literal, Every):
            self.refuse(f"unexpected 'every' {where}", place)
        if isinstance(literal, SomeDecl | SomeIn):
            self.refuse(f"unexpected 'some' {where}", place)
        if isinstance(literal, Expr):
            if literal.negated:
                self.refuse(f"unexpected negation ('not') {where}", place)
            if isinstance(literal.term, Call) and isinstance(literal.term.operator, Var):
                if literal.term.operator.name == "eq":
                    self.refuse(f"unexpected unification ('=') {where}", place)
                if literal.term.operator.name == "assign":
                    self.refuse(f"unexpected assignment (':=') {where}", place)
        if self.kinds[self.i] != t.RBRACE:
            self.refuse("expected } to end template string expression")
        self.i += 1
        if isinstance(literal, Expr) and not literal.with_:
            return literal.term
        return literal

    # --- references and calls --------------------------------------------------------------

    def reference(self, head: Term, loose: bool = False) -> Term:
        """What follows ``head`` directly: ``.name``, ``[term]``, ``(args)``.

        With ``loose``, as in the head of a rule, the first may stand apart.
        """
        if isinstance(head, _NO_REFERENCE):
            self.refuse(f"illegal ref (head cannot be {KINDS_OF_TERM[type(head)]})", head.location)
        kinds = self.kinds
        start: int = head.location.offset
        path: list[Term] = []
        self.enter()
        while True:
            if len(path) > MAX_ELEMENTS:
                self.refuse(DEPTH_EXCEEDED)
            i = self.i
            kind = kinds[i]
            if loose and t.DOT <= kind <= t.LPAREN:
                kind += 3
            loose = False
            if kind == t.DOT_ATTACHED:
                i += 1
                if self.starts[i] != self.ends[i - 1]:
                    self._refuse_space(self.ends[i - 1])
                self.i = i
                if not self.is_name(i):
                    self.illegal("expected identifier")
                path.append(String(self.texts[i], location=self.at(i)))
                self.i = i + 1
            elif kind == t.LBRACK_ATTACHED:
                self.i = i + 1
                path.append(self.expression())
                if kinds[self.i] != t.RBRACK:
                    self.illegal("expected [")
                self.i += 1
            elif kind == t.LPAREN_ATTACHED:
                head = self._call(head, path, start)
                path = []
                following = kinds[self.i]
                if following == t.LPAREN_ATTACHED or following < t.DOT_ATTACHED:
                    break
            else:
                break
        self.depth -= 1
        return Ref(head, tuple(path), location=self.since(start)) if path else head

    def _refuse_space(self, at: int) -> NoReturn:
        """Refuse a space behind a dot, at its place as OPA counts: a new line is the next's."""
        place = SourceLocation(self.source, at, at + 1)
        where = Location(place.file, place.row, place.col, at)
        if self.source.text[at] == "\n":
            where = Location(place.file, place.row + 1, 0, at)
        self.refuse(f"{WHITESPACE}: expected identifier", where)

    def _call(self, head: Term, path: list[Term], start: int) -> Term:
        operator: Var | Ref
        if path or not isinstance(head, Var):
            operator = Ref(head, tuple(path), location=self.since(start))
        else:
            operator = head
        self.i += 1
        if self.kinds[self.i] == t.RPAREN:
            self.i += 1
            if isinstance(operator, Var) and operator.name == "set":
                return Set((), location=self.since(start))
            return Call(operator, (), location=self.since(start))
        args = self._list(t.RPAREN, [])
        return Call(operator, args, location=self.since(start))

    def _list(self, end: int, terms: list[Term]) -> tuple[Term, ...]:
        """Terms with commas between up to the token ``end``, which is consumed."""
        kinds = self.kinds
        while kinds[self.i] != end:
            terms.append(self.expression(pairs=False))
            kind = kinds[self.i]
            if kind == t.COMMA:
                self.i += 1
            elif kind != end:
                self.illegal(f'expected "," or "{t.NAMES[end]}"')
        self.i += 1
        return tuple(terms)

    # --- collections and comprehensions ----------------------------------------------------

    def _collection(self, first: int, kind: int) -> Term:
        """A literal or comprehension, remembered by place: callers may come twice."""
        known = self.remembered.get(first)
        if known is not None:
            term, self.i, self.wildcards, errors = known
            if term is None:
                raise Refused(list(errors))
            return term
        self.enter()
        depth = self.depth
        try:
            found = self._braces(first) if kind == t.LBRACE else self._brackets(first)
        except Refused as refusal:
            self.depth = depth - 1
            self.remembered[first] = (None, self.i, self.wildcards, refusal.errors)
            raise
        self.depth = depth - 1
        self.remembered[first] = (found, self.i, self.wildcards, [])
        return found

    def _first(self) -> bool:
        """Step over the opening token and a leading comma; whether there was none."""
        self.i += 1
        if self.kinds[self.i] == t.COMMA:
            self.i += 1
            return False
        return True

    def _rest(self, left: Term) -> Term:
        """The operators after a first operand: an element of a list."""
        start = left.location.offset
        return self._membership(self._operators(left, 1), start, pairs=False)

    def _brackets(self, first: int) -> Term:
        start = self.starts[first]
        if self.kinds[first + 1] == t.RBRACK:
            self.i = first + 2
            return Array((), location=self.since(start))
        may_comprehend = self._first()
        head = self.term()
        if self.kinds[self.i] == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACK)
            if body is not None:
                return ArrayComprehension(head, body, location=self.since(start))
        return Array(self._list_after(self._rest(head), t.RBRACK), location=self.since(start))

    def _comprehension_body(self, end: int) -> Body | None:
        """``| body end``; None, nothing consumed, where a list goes on instead."""
        bar, wildcards, depth = self.i, self.wildcards, self.depth
        self.i = bar + 1
        try:
            body = self.body(end)
        except Refused:
            if self.kinds[self.i] != t.COMMA:
                raise
            self.i, self.wildcards, self.depth = bar, wildcards, depth
            return None
        self.i += 1
        return body

    def _list_after(self, first: Term, end: int) -> tuple[Term, ...]:
        kind = self.kinds[self.i]
        if kind == end:
            self.i += 1
            return (first,)
        if kind != t.COMMA:
            self.illegal(f'expected "," or "{t.NAMES[end]}"')
        self.i += 1
        return self._list(end, [first])

    def _braces(self, first: int) -> Term:
        start = self.starts[first]
        if self.kinds[first + 1] == t.RBRACE:
            self.i = first + 2
            return Object((), location=self.since(start))
        may_comprehend = self._first()
        head = self.term()
        kind = self.kinds[self.i]
        if kind == t.OR and may_comprehend:
            body = self._comprehension_body(t.RBRACE)
            if body is not None:
                return SetComprehension(head, body, location=self.since(start))
        if kind != t.COLON:
            head = self._rest(head)
            kind = self.kinds[self.i]
        if kind == t.COLON:
            return self._object(head, may_comprehend, start)
        if kind not in t.BRACES_END_OR_COMMA:
            self.illegal("non-terminated set")
        return Set(self._list_after(head, t.RBRACE), location=self.since(start))

    def _object(self, key: Term, may_comprehend: bool, start: int) -> Term:
        self.i += 1
        value = self.term()
        if self.kinds[self.i] == t.OR and may_comprehend:
            bar, wildcards, depth = self.i, self.wildcards, self.depth
            self.i = bar + 1
            try:
                body = self.body(t.RBRACE)
            except Refused:
                self.i, self.wildcards, self.depth = bar, wildcards, depth
            else:
                self.i += 1
                return ObjectComprehension(key, value, body, location=self.since(start))
        value = self._rest(value)
        kind = self.kinds[self.i]
        if kind not in t.BRACES_END_OR_COMMA:
            self.illegal("non-terminated object")
        return Object(self._pairs([(key, value)]), location=self.since(start))

    def _pairs(self, pairs: list[tuple[Term, Term]]) -> tuple[tuple[Term, Term], ...]:
        kinds = self.kinds
        while kinds[self.i] != t.RBRACE:
            if kinds[self.i] != t.COMMA:
                self.illegal('expected "," or "}"')
            self.i += 1
            if kinds[self.i] == t.RBRACE:
                break
            key = self.expression(pairs=False)
            if kinds[self.i] != t.COLON:
                self.illegal('expected ":"')
            self.i += 1
            pairs.append((key, self.expression(pairs=False)))
        self.i += 1
        return tuple(pairs)
