"""Stage 1: bodies and their literals: negation, some, every, with, ``and`` and ``or``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.ast import (
    Call,
    Every,
    Expr,
    Logic,
    Not,
    Object,
    Ref,
    SomeDecl,
    SomeIn,
    String,
    Var,
    With,
)
from webhook.rego.syntax.parser_state import Refused
from webhook.rego.syntax.parser_terms import ROOTS, TermParser

if TYPE_CHECKING:
    from webhook.rego.syntax.ast import Body, Literal_, Term
    from webhook.rego.syntax.lexer import SourceLocation

_EVERY: Final = Var("every")
_INFIX_EXAMPLES: Final = {"in": "x in xs", "and": "x and y", "or": "x or y"}


def membership(term: Term) -> tuple[Term | None, Term, Term] | None:
    """Key, value and domain if this is ``value in domain`` or ``key, value in domain``."""
    if not isinstance(term, Call) or not isinstance(term.operator, Ref):
        return None
    operator = term.operator
    if operator.head != Var("internal") or len(operator.path) != 1:
        return None
    if operator.path[0] == String("member_2") and len(term.args) == 2:
        return None, term.args[0], term.args[1]
    if operator.path[0] == String("member_3") and len(term.args) == 3:
        return term.args[0], term.args[1], term.args[2]
    return None


class BodyParser(TermParser):
    """The part of the parser that reads bodies."""

    def body(self, end: int) -> Body:
        """Literals up to the token ``end``, which stays."""
        if self.kinds[self.i] == end:
            self.refuse("found empty body")
        self.enter()
        found = self.body_after(self.literal(), end)
        self.depth -= 1
        return found

    def body_after(self, first: Literal_, end: int) -> Body:
        """The rest of a body whose first literal has been read."""
        literals = [first]
        kinds = self.kinds
        while True:
            kind = kinds[self.i]
            if kind == t.SEMICOLON:
                self.i += 1
            elif kind == end:
                break
            elif kind == t.ILLEGAL and self.texts[self.i]:
                raise Refused(self.scan_errors())
            elif self.i not in self.newlines:
                self._hint_at_missing_import()
                self.illegal(f"expected \\n or ; or {t.NAMES[end]}")
            literals.append(self.literal())
        return tuple(literals)

    def _hint_at_missing_import(self) -> None:
        if self.hints:
            return
        kind, name = self.kinds[self.i], self.texts[self.i]
        if kind == t.COMMA and self.reads_with(t.FUTURE_V0, self.i + 1, self._is_membership):
            name, kind = "in", t.IDENT
        if kind == t.IDENT and name in _INFIX_EXAMPLES:
            example = _INFIX_EXAMPLES[name]
            self.hint(f"`import future.keywords.{name}` for `{example}` expressions")

    # --- literals --------------------------------------------------------------------------

    def literal(self) -> Literal_:
        """One literal of a body."""
        start = self.i
        kind = self.kinds[start]
        if self.logical:
            grouped = self._logical_start(kind)
            if grouped is not None:
                return grouped
        if kind < t.PACKAGE or kind > t.LOGICAL_OR:
            return self._expression_literal(start)
        if self.keyword_begins_reference():
            self.kinds[start] = t.IDENT
            return self._expression_literal(start)
        negated = kind == t.NOT
        if negated:
            self.i = start + 1
            kind = self.kinds[self.i]
            if kind == t.LBRACE and self.not_bodies:
                return self._fold((self._not_body(start),), start)
        if kind in t.ITERATIONS:
            if negated:
                self.illegal(f"illegal negation of '{t.NAMES[kind]}'")
            return self._some() if kind == t.SOME else self._every()
        return self._expression_literal(start, negated)

    def _expression_literal(self, start: int, negated: bool = False) -> Literal_:
        if negated and self.not_bodies and self.kinds[self.i] in t.PARENTHESES:
            group = self._group_of_logic(operand=True, prefix="not ")
            if group is not None:
                return self._fold((Not(group, location=self.since(self.starts[start])),), start)
        term = self.statement()
        kind = self.kinds[self.i]
        if (
            kind == t.IDENT
            and term == _EVERY
            and self.reads_with(t.FUTURE_V0, start, self._is_every)
        ):
            self.hint("`import future.keywords.every` for `every x in xs { ... }` expressions")
        with_: tuple[With, ...] = ()
        modifiers = self.i
        if kind == t.WITH:
            with_ = self._with()
            kind = self.kinds[self.i]
        place = self.since(self.starts[start])
        literal: Literal_
        if negated and self.not_bodies:
            literal = Not((Expr(term, location=place),), with_, location=place)
        else:
            literal = Expr(term, negated, with_, location=place)
        if kind in t.LOGICAL:
            operator = t.NAMES[kind]
            if with_:
                self._refuse_with(modifiers, operator)
            if not negated and self.kinds[start] == t.LBRACE:
                if isinstance(term, Object) and not term.items:
                    self.refuse("found empty body", place)
                self._refuse_braces(place, place.text, operator)
            return self._attach(self._or_chain((literal,), start))
        return literal

    def statement(self) -> Term:
        """A term, an assignment or a unification."""
        start = self.starts[self.i]
        left = self.expression()
        i = self.i
        kind = self.kinds[i]
        if kind not in t.EQUATIONS:
            return left
        self.i = i + 1
        right = self.expression()
        operator = Var(t.NAMES[kind], location=self.at(i))
        return Call(operator, (left, right), infix=True, location=self.since(start))

    def _with(self) -> tuple[With, ...]:
        """One ``with target as value`` or more."""
        found = []
        while self.kinds[self.i] == t.WITH:
            start = self.i
            self.i += 1
            if self.kinds[self.i] != t.IDENT:
                self.illegal("expected ident")
            target = self.term()
            if not isinstance(target, Ref | Var):
                self.illegal("expected with target path")
            if self.kinds[self.i] != t.AS:
                self.illegal("expected as keyword")
            self.i += 1
            value = self.expression()
            found.append(With(target, value, location=self.since(self.starts[start])))
        return tuple(found)

    def _attach(self, literal: Literal_) -> Literal_:
        """The literal with the modifiers that follow it."""
        if self.kinds[self.i] != t.WITH or isinstance(literal, SomeDecl):
            return literal
        return replace(literal, with_=self._with())

    def _some(self) -> Literal_:
        start, wildcards, depth = self.i, self.wildcards, self.depth
        self.i = start + 1
        try:
            term = self.expression()
        except Refused:
            term = None
        if isinstance(term, Call):
            parts = membership(term)
            if parts is None:
                self.illegal("expected `x in xs` or `x, y in xs` expression")
            with_ = self._with() if self.kinds[self.i] == t.WITH else ()
            return SomeIn(*parts, with_, location=self.since(self.starts[start]))
        self.i, self.wildcards, self.depth = start, wildcards, depth
        self._hint_at_some_in(start)
        names = []
        while True:
            self.i += 1
            if self.kinds[self.i] != t.IDENT:
                self.illegal("expected var")
            names.append(self.variable(self.i))
            self.i += 1
            if self.kinds[self.i] != t.COMMA:
                break
        return SomeDecl(tuple(names), location=self.since(self.starts[start]))

    def _is_membership(self) -> bool:
        return membership(self.expression()) is not None

    def _is_every(self) -> bool:
        return isinstance(self._every(), Every)

    def _hint_at_some_in(self, start: int) -> None:
        """Advise the import where ``in`` stands behind ``some`` as a plain word."""
        i = start + 1
        while i not in self.newlines and self.kinds[i] != t.EOF:
            if self.kinds[i] == t.IDENT and self.texts[i] == "in":
                if self.reads_with(t.FUTURE_V0, start + 1, self._is_membership):
                    self.hint("`import future.keywords.in` for `some x in xs` expressions")
                return
            i += 1

    def _every(self) -> Literal_:
        start = self.i
        self.i += 1
        parts = membership(self.expression())
        if parts is None:
            self.illegal("expected `x[, y] in xs { ... }` expression")
        key, value, domain = parts
        if key is not None and (not isinstance(key, Var) or key.name in ROOTS):
            self.illegal("expected key to be a variable")
        if not isinstance(value, Var) or value.name in ROOTS:
            self.illegal("expected value to be a variable")
        if self.kinds[self.i] != t.LBRACE:
            self.illegal("missing body")
        self.i += 1
        body = self.body(t.RBRACE)
        self.i += 1
        place = self.since(self.starts[start])
        return self._attach(Every(key, value, domain, body, location=place))

    # --- not, and, or ----------------------------------------------------------------------

    def _not_body(self, start: int) -> Not:
        """``{ body }`` after ``not``."""
        opening = self.i
        body = self._operand_body("not ", "not ")
        self._refuse_ambiguous(body, opening, "not ")
        return Not(body, location=self.since(self.starts[start]))

    def _operand_body(self, operator: str, prefix: str = "") -> Body:
        """The body in braces of an operand; ``operator`` is empty while only trying."""
        opening, wildcards, depth = self.i, self.wildcards, self.depth
        self.i = opening + 1
        empty = self.kinds[self.i] == t.RBRACE
        try:
            body = self.body(t.RBRACE)
        except Refused:
            if empty or not operator:
                raise
            # The braces may hold a value instead, which has to stand in parentheses.
            self.i, self.wildcards, self.depth = opening, wildcards, depth
            failure = None
            try:
                term = self.expression()
            except Refused as refusal:
                failure = refusal
            if failure is not None:
                raise
            written = self.since(self.starts[opening]).text
            if prefix:
                self._refuse_value(opening, written, term, prefix)
            self._refuse_braces(self.at(opening), written, operator)
        self.i += 1
        return body

    def _logical_start(self, kind: int) -> Literal_ | None:
        """A literal that begins with a braced or grouped operand; None if this one does not."""
        start, wildcards, depth = self.i, self.wildcards, self.depth
        if kind == t.LBRACE:
            try:
                body = self._operand_body("")
            except Refused:
                body = ()
            if body and self.kinds[self.i] in t.LOGICAL:
                self._refuse_ambiguous(body, start, "")
                return self._attach(self._or_chain(body, start))
            self.i, self.wildcards, self.depth = start, wildcards, depth
        elif kind in t.PARENTHESES:
            group = self._group_of_logic(operand=False, prefix="")
            if group is not None:
                return self._fold(group, start)
        return None

    def _fold(self, body: Body, start: int) -> Literal_:
        """The operand, or the chain of ``and`` and ``or`` it begins."""
        if self.kinds[self.i] in t.LOGICAL:
            return self._attach(self._or_chain(body, start))
        return self._attach(body[0])

    def _or_chain(self, left: Body, start: int) -> Literal_:
        height = 0
        if self.kinds[self.i] == t.LOGICAL_AND:
            left = (self._and_chain(left, start),)
        while self.kinds[self.i] == t.LOGICAL_OR:
            self.enter()
            height += 1
            self.i += 1
            operand = self.i
            right = self._operand("or")
            if self.kinds[self.i] == t.LOGICAL_AND:
                right = (self._and_chain(right, operand),)
            left = (self._logic("or", left, right, start),)
        self.depth -= height
        return left[0]

    def _and_chain(self, left: Body, start: int) -> Literal_:
        height = 0
        while self.kinds[self.i] == t.LOGICAL_AND:
            self.enter()
            height += 1
            self.i += 1
            left = (self._logic("and", left, self._operand("and"), start),)
        self.depth -= height
        return left[0]

    def _logic(self, operator: Literal["and", "or"], left: Body, right: Body, start: int) -> Logic:
        for body in (left, right):
            self._refuse_void(body, operator)
        return Logic(operator, left, right, location=self.since(self.starts[start]))

    def _operand(self, operator: str) -> Body:
        """One operand of ``and`` or ``or``; ``operator`` is empty while only trying."""
        start = self.i
        kind = self.kinds[start]
        if kind == t.LBRACE:
            body = self._operand_body(operator)
            self._refuse_ambiguous(body, start, "")
            return body
        negated = kind == t.NOT and not self.keyword_begins_reference()
        if negated:
            self.i += 1
            kind = self.kinds[self.i]
            if kind == t.LBRACE and self.not_bodies:
                return (self._not_body(start),)
        if kind in t.PARENTHESES and self.logical and (self.not_bodies or not negated):
            group = self._group_of_logic(operand=True, prefix="not " if negated else "")
            if group is not None:
                if negated:
                    return (Not(group, location=self.since(self.starts[start])),)
                return group
        term = self.statement()
        place = self.since(self.starts[start])
        if negated and self.not_bodies:
            return (Not((Expr(term, location=place),), location=place),)
        return (Expr(term, negated, location=place),)

    def _group_of_logic(self, *, operand: bool, prefix: str) -> Body | None:
        """A group ``( … )`` of literals; None, nothing consumed, where it is a plain term."""
        start, wildcards, depth = self.i, self.wildcards, self.depth
        self.enter()
        self.i += 1
        if self.kinds[self.i] == t.RPAREN:
            if operand:
                self.refuse("empty parenthesized group", self.at(start))
            self.i, self.depth = start, depth
            return None
        explicit = self.kinds[self.i] == t.LBRACE
        try:
            left = self._operand("")
        except Refused:
            left = ()
        kind = self.kinds[self.i]
        found: Body | None = None
        if not left:
            pass
        elif kind in t.LOGICAL:
            found = (self._attach(self._or_chain(left, start + 1)),)
            self._close_group()
        elif kind == t.WITH and not explicit and len(left) == 1:
            found = self._group_with(left, operand)
        elif explicit:
            self._refuse_body_in_parentheses(start, prefix)
        elif len(left) == 1 and _is_logical(left[0]):
            self._close_group()
            found = left
        self.depth = depth
        if found is None:
            self.i, self.wildcards = start, wildcards
        return found

    def _group_with(self, left: Body, operand: bool) -> Body | None:
        modifiers = self.i
        left = (self._attach(left[0]),)
        if self.kinds[self.i] in t.LOGICAL:
            self._refuse_with(modifiers, t.NAMES[self.kinds[self.i]])
        self._close_group()
        if operand or self.kinds[self.i] in t.LOGICAL:
            return left
        return None

    def _close_group(self) -> None:
        if self.kinds[self.i] != t.RPAREN:
            self.refuse("expected ) to close parenthesized group")
        self.i += 1

    # --- refusals of what would be misread ---------------------------------------------------

    def _refuse_with(self, modifiers: int, operator: str) -> None:
        self.hint(
            "Wrap the operand in `(...)` or `{...}` to scope, or move `with` after the "
            f"`{operator}` expression to apply it to the whole expression"
        )
        self.refuse(
            f"`with` modifier is not allowed on operand of `{operator}`", self.at(modifiers)
        )

    def _refuse_braces(self, place: SourceLocation, written: str, operator: str) -> None:
        self.hint(f"wrap the operand to keep the value: `({written}) {operator} ...`")
        self.refuse(
            f"operand of `{operator}` cannot begin with `{{` unless the braces hold a body", place
        )

    def _refuse_value(self, opening: int, written: str, term: Term, prefix: str) -> None:
        from webhook.rego.syntax.parser_terms import KINDS_OF_TERM  # noqa: PLC0415

        while isinstance(term, Call) and term.infix:
            term = term.args[0]
        self.hint(
            f"write `{prefix}({written})` to negate the value, or `{prefix}{{{written}}}` "
            "for a body holding it"
        )
        self.refuse(
            "`{...}` in an operand position must contain expression(s), got: "
            + KINDS_OF_TERM[type(term)],
            self.at(opening),
        )

    def _refuse_body_in_parentheses(self, start: int, prefix: str) -> None:
        """Refuse ``({ body })`` unless the braces also read as a value."""
        end = self.i
        self.i = start + 1
        try:
            self.term()
        except Refused:
            written = self.source.text[self.starts[start + 1] : self.ends[end - 1]]
            self.hint(f"drop the parens to keep the body: `{prefix}{written}`")
            self.refuse("`(...)` in an operand position cannot contain a body", self.at(start))

    def _refuse_ambiguous(self, body: Body, opening: int, prefix: str) -> None:
        """Refuse ``{a | b}`` as a body: it reads as a comprehension too."""
        first = body[0]
        if not isinstance(first, Expr) or not isinstance(first.term, Call):
            return
        term = first.term
        if not term.infix or term.operator != Var("or") or first.location.text.startswith("("):
            return
        braces = self.since(self.starts[opening])
        inside = first.location.offset - braces.offset
        text = first.location.text
        union = f"{braces.text[:inside]}({text}){braces.text[inside + len(text) :]}"
        self.hint(
            f"write `{prefix}({braces.text})` for the comprehension, or `{prefix}{union}` "
            "for the set union"
        )
        self.refuse(
            "ambiguous `{ ... | ... }` operand: read as a body holding a set-union expression, "
            "not as a comprehension",
            self.at(opening),
        )

    def _refuse_void(self, body: Body, operator: str) -> None:
        """Refuse an operand of nothing but ``print``: it can never fail."""
        for literal in body:
            if not isinstance(literal, Expr) or literal.negated:
                return
            term = literal.term
            if not isinstance(term, Call) or term.operator != Var("print"):
                return
        self.hint(
            "`print` produces no value and always succeeds, so the operand can never fail; move "
            "it out of the operand, or add an expression that can fail"
        )
        self.refuse(
            f"operand of `{operator}` cannot consist only of calls to `print`", body[0].location
        )


def _is_logical(literal: Literal_) -> bool:
    return isinstance(literal, Logic | Not) or (isinstance(literal, Expr) and literal.negated)
