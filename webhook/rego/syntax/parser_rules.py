"""Stage 1: rules: heads, default values, bodies, chained bodies and else branches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.cursor import Cursor, Refused
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM, ROOTS, WHITESPACE, TermParser
from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.rego.location import Location
    from webhook.rego.syntax.parser_bodies import BodyParser


def is_ground(term: ast.Term) -> bool:
    """Whether the term contains no variable (the head of a reference counts as none).

    OPA holds a call and a template string to be ground when their parts are;
    a comprehension never is.
    """
    if isinstance(term, ast.Var):
        return False
    if isinstance(term, ast.Ref):
        return (isinstance(term.head, ast.Var) or is_ground(term.head)) and all(
            map(is_ground, term.path)
        )
    if isinstance(term, ast.Array | ast.Set):
        return all(map(is_ground, term.items))
    if isinstance(term, ast.Object):
        return all(is_ground(key) and is_ground(value) for key, value in term.items)
    if isinstance(term, ast.Call):
        return all(map(is_ground, term.args))
    return not isinstance(term, ast.TemplateString)


@dataclass(slots=True)
class WrittenRule:
    """A rule and the keywords of its declaration, for the checks of v1."""

    rule: ast.Rule
    if_: bool = False
    body: bool = True
    value: bool = True


class RuleParser:
    """Reads rules with a body, and default rules."""

    def __init__(self, cursor: Cursor, terms: TermParser, bodies: BodyParser) -> None:
        self.cursor = cursor
        self.terms = terms
        self.bodies = bodies

    def rules(self) -> list[WrittenRule] | None:
        """The rules that begin here; None, nothing consumed but the place, for another statement."""
        cursor = self.cursor
        start = cursor.i
        self._name_ahead()
        default = cursor.kinds[start] == t.DEFAULT
        if default:
            cursor.i += 1
            self._name_ahead()
        if cursor.kinds[cursor.i] != t.IDENT:
            return None
        head = self._head(default)
        if head is None:
            return None
        if default:
            return [self._default(head, start)]
        has_if = cursor.kinds[cursor.i] == t.IF
        bare = head.value is None and head.args is None and not head.contains
        if bare and not has_if and len(head.ref.path) == 1:
            head = replace(head, ref=replace(head.ref, path=()), key=head.ref.path[0])
        if has_if:
            cursor.i += 1
            body = self._body_after_if()
        elif cursor.kinds[cursor.i] == t.LBRACE:
            body = self._braced()
        elif head.contains:
            rule = ast.Rule(head, (), location=head.location)
            return [WrittenRule(rule, body=False)]
        else:
            return None
        return self._finish(head, body, has_if, start)

    def _name_ahead(self) -> None:
        """Takes a keyword that begins a reference for a name."""
        cursor = self.cursor
        if cursor.keyword_begins_reference():
            cursor.kinds[cursor.i] = t.IDENT

    def _finish(
        self, head: ast.Head, body: ast.Body, has_if: bool, start: int
    ) -> list[WrittenRule]:
        """Returns the rule with its else branches, and the rules of bodies chained to it."""
        cursor = self.cursor
        branches: list[WrittenRule] = []
        if cursor.kinds[cursor.i] == t.ELSE and not cursor.keyword_begins_reference():
            if head.ref.path and not all(map(is_ground, head.ref.path)):
                cursor.refuse("else keyword cannot be used on rules with variables in head")
            single = head.args is None and len(head.ref.path) == 1
            keyed = single and (not has_if or isinstance(head.ref.path[0], ast.Ref))
            if head.key is not None or keyed:
                cursor.refuse("else keyword cannot be used on multi-value rules")
            branches = self._else(head)
        place = cursor.since(cursor.starts[start])
        else_ = branches[0].rule if branches else None
        rule = ast.Rule(head, body, else_=else_, location=place)
        rules = [WrittenRule(rule, if_=has_if), *branches]
        while cursor.kinds[cursor.i] == t.LBRACE:
            if branches:
                cursor.refuse("expected else keyword")
            opening = cursor.i
            chained = self._braced()
            place = cursor.since(cursor.starts[opening])
            rule = ast.Rule(self._same_head(head, place), chained, location=place)
            rules.append(WrittenRule(rule, if_=has_if))
        return rules

    def _same_head(self, head: ast.Head, place: Location) -> ast.Head:
        """Returns the head for a chained body, with new variables for wildcard arguments."""
        args = head.args
        if args is not None:
            args = tuple(self._fresh(arg) for arg in args)
        return replace(head, args=args, location=place)

    def _fresh(self, arg: ast.Term) -> ast.Term:
        cursor = self.cursor
        if not isinstance(arg, ast.Var) or not arg.is_wildcard:
            return arg
        cursor.wildcards += 1
        return ast.Var(f"${cursor.wildcards - 1}", location=arg.location)

    # --- heads -----------------------------------------------------------------------------

    def _head(self, default: bool) -> ast.Head | None:
        cursor = self.cursor
        first = cursor.i
        start = cursor.starts[first]
        term: ast.Term = self.terms.variable(first)
        cursor.i = first + 1
        kind = cursor.kinds[cursor.i]
        if t.ADD <= kind <= t.LTE and cursor.starts[cursor.i] == cursor.ends[first]:
            cursor.illegal()
        if t.DOT <= kind <= t.LPAREN_ATTACHED:
            try:
                term = self.terms.reference(term, loose=True)
            except Refused as refusal:
                self._also(refusal, "expected rule head name")
        args: tuple[ast.Term, ...] | None = None
        if isinstance(term, ast.Call):
            args, term = term.args, term.operator
        if isinstance(term, ast.Var):
            term = ast.Ref(term, (), location=term.location)
        if not isinstance(term, ast.Ref) or not isinstance(term.head, ast.Var):
            return None
        return self._head_value(term, args, start, default)

    def _head_value(
        self, ref: ast.Ref, args: tuple[ast.Term, ...] | None, start: int, default: bool
    ) -> ast.Head:
        cursor = self.cursor
        name = ref.location.text
        kind = cursor.kinds[cursor.i]
        key = value = None
        if kind == t.CONTAINS:
            if args is not None:
                cursor.illegal(
                    "the contains keyword can only be used with multi-value rule definitions "
                    f"(e.g., {name} contains <VALUE> {{ ... }})"
                )
            cursor.i += 1
            key = self._described(
                f"expected rule key term (e.g., {name} contains <VALUE> {{ ... }})"
            )
        elif kind == t.UNIFY:
            cursor.i += 1
            value = self._described(
                f"expected rule value term (e.g., {name}[<nil>] = <VALUE> {{ ... }})"
            )
        elif kind == t.ASSIGN:
            cursor.i += 1
            if args:
                note = f"expected function value term (e.g., {name}(...) := <VALUE> {{ ... }})"
            elif default:
                note = f"expected default rule value term (e.g., default {name} := <VALUE>)"
            else:
                note = f"expected rule value term (e.g., {name} := <VALUE> {{ ... }})"
            value = self._described(note)
        return ast.Head(
            ref,
            args,
            key,
            value,
            assign=kind == t.ASSIGN,
            contains=kind == t.CONTAINS,
            location=cursor.since(start),
        )

    def _described(self, note: str) -> ast.Term:
        """Reads a term; otherwise the errors also name the expected syntax."""
        try:
            return self.terms.expression()
        except Refused as refusal:
            self._also(refusal, note)

    def _also(self, refusal: Refused, note: str) -> NoReturn:
        """Raises the errors with one more, which names the expected syntax."""
        cursor = self.cursor
        last = refusal.errors[-1]
        if last.message.startswith(WHITESPACE):
            message = f"{WHITESPACE}: {note}"
            again = RegoLoadError("rego_parse_error", message, last.location, details=last.details)
            raise Refused([*refusal.errors, again]) from None
        if cursor.kinds[cursor.i] == t.ILLEGAL:
            raise Refused([*refusal.errors, cursor.error("illegal token")]) from None
        try:
            cursor.illegal(note)
        except Refused as described:
            raise Refused(refusal.errors + described.errors) from None

    # --- default rules ---------------------------------------------------------------------

    def _default(self, head: ast.Head, start: int) -> WrittenRule:
        cursor = self.cursor
        place = cursor.since(cursor.starts[start])
        if head.value is None:
            if len(head.ref.path) == 1 and not head.args:
                cursor.refuse("illegal default rule (must have a value)", place)
            head = replace(head, value=ast.Boolean(value=True, location=place))
            assert head.value is not None
        for kind in _not_constant(head.value):
            cursor.refuse(f"illegal default rule (value cannot contain {kind})", place)
        seen: set[str] = set()
        for arg in head.args or ():
            if not isinstance(arg, ast.Var) or arg.name in ROOTS:
                kind = _kind(arg)
                cursor.refuse(f"illegal default rule (arguments cannot contain {kind})", place)
            if arg.name in seen:
                cursor.refuse(
                    f"illegal default rule (arguments cannot be repeated {arg.name})", place
                )
            seen.add(arg.name)
        return WrittenRule(ast.Rule(head, (), default=True, location=place))

    # --- bodies and else -------------------------------------------------------------------

    def _braced(self) -> ast.Body:
        cursor = self.cursor
        cursor.i += 1
        body = self.bodies.body(t.RBRACE)
        cursor.i += 1
        return body

    def _body_after_if(self) -> ast.Body:
        """One literal, or a body in braces.

        ``{x}`` is a body and not a set, but ``{x | y}`` and ``{}`` are values: OPA
        tries the literal first, and takes braces for a body only where that fails
        or gives a set.
        """
        cursor = self.cursor
        if cursor.kinds[cursor.i] != t.LBRACE:
            return (self.bodies.literal(),)
        start, wildcards, depth = cursor.i, cursor.wildcards, cursor.depth
        if not cursor.logical and cursor.kinds[start + 1] != t.RBRACE:
            body = self._plain_body()
            if body is not None:
                return body
            cursor.i, cursor.wildcards, cursor.depth = start, wildcards, depth
        try:
            literal = self.bodies.literal()
        except Refused:
            pass
        else:
            if not isinstance(literal, ast.Expr) or not isinstance(literal.term, ast.Set):
                return (literal,)
        cursor.i, cursor.wildcards, cursor.depth = start, wildcards, depth
        return self._braced()

    def _plain_body(self) -> ast.Body | None:
        """The body in braces, where its first literal shows that these can be nothing else."""
        cursor = self.cursor
        cursor.i += 1
        try:
            first = self.bodies.literal()
        except Refused:
            return None
        kind = cursor.kinds[cursor.i]
        if kind in t.SET_CONTINUES:
            return None
        if isinstance(first, ast.Expr) and _begins_with_union(first.term):
            return None
        body = self.bodies.body_after(first, t.RBRACE)
        cursor.i += 1
        return body

    def _else(self, head: ast.Head) -> list[WrittenRule]:
        """Returns the chain of else branches from here, the first of them linked to the rest."""
        cursor = self.cursor
        cursor.enter()
        start = cursor.i
        inherited = self._same_head(head, cursor.at(start))
        cursor.i += 1
        kind = cursor.kinds[cursor.i]
        value: ast.Term | None = None
        if kind in t.EQUATIONS:
            cursor.i += 1
            value = self.terms.expression()
        elif kind not in t.BODY_OPENERS:
            cursor.illegal("expected else value term or rule body")
        inherited = replace(
            inherited,
            location=cursor.since(cursor.starts[start]),
            value=value,
            assign=kind == t.ASSIGN or (head.assign and value is None),
        )
        kind = cursor.kinds[cursor.i]
        body: ast.Body = ()
        written = kind in t.BODY_OPENERS
        has_if = kind == t.IF
        if has_if:
            cursor.i += 1
        if cursor.kinds[cursor.i] == t.LBRACE and written:
            body = self._braced()
        elif has_if:
            if cursor.kinds[cursor.i] == t.EOF:
                cursor.illegal("rule body expected")
            body = (self.bodies.literal(),)
        branches: list[WrittenRule] = []
        if written and cursor.kinds[cursor.i] == t.ELSE:
            branches = self._else(head)
        cursor.depth -= 1
        rule = ast.Rule(
            inherited,
            body,
            else_=branches[0].rule if branches else None,
            location=cursor.since(cursor.starts[start]),
        )
        return [WrittenRule(rule, if_=has_if, body=written, value=value is not None), *branches]


def _begins_with_union(term: ast.Term) -> bool:
    """Whether this is the first operand of ``|``: in braces, it may be a comprehension."""
    while isinstance(term, ast.Call) and term.infix:
        if term.operator == ast.Var("or"):
            return True
        term = term.args[0]
    return False


def _kind(term: ast.Term) -> str:
    """OPA's name of the kind of a term, in which ``input`` alone is a reference."""
    if isinstance(term, ast.Var) and term.name in ROOTS:
        return "ref"
    return KINDS_OF_TERM[type(term)]


def _not_constant(term: ast.Term) -> list[str]:
    """Returns the kinds of terms that a default value may not contain, except in comprehensions."""
    kinds: list[str] = []
    todo: list[ast.Term | ast.Literal_] = [term]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Var | ast.Ref | ast.Call):
            kinds.append(_kind(part))
        elif isinstance(part, ast.TemplateString):
            todo.extend(piece for piece in part.parts if not isinstance(piece, str))
        elif not isinstance(part, ast.COMPREHENSIONS):
            todo.extend(_children(part))
    return kinds


def _children(term: ast.Term | ast.Literal_) -> list[ast.Term]:

    if isinstance(term, ast.Array | ast.Set):
        return list(term.items)
    if isinstance(term, ast.Object):
        return [term_ for pair in term.items for term_ in pair]
    return []
