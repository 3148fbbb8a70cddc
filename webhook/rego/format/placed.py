"""Makes the nodes of a parsed file, with the places that OPA's parser gives them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.golang.strings import SPACES
from webhook.rego.format import nodes as n
from webhook.rego.format.names import order, text
from webhook.rego.format.nodes import Place, TermNode, synthetic_place
from webhook.rego.syntax import ast
from webhook.rego.syntax import tokens as t
from webhook.rego.syntax.parser_terms import KINDS_OF_TERM, ROOTS

if TYPE_CHECKING:
    from webhook.rego.syntax.cursor import Parenthesised
    from webhook.rego.syntax.lexer import Tokens


class TermPlacer:
    """Makes the nodes of terms; ``bodies`` makes those of comprehensions' bodies."""

    bodies: BodyPlacer

    def __init__(self, tokens: Tokens, groups: Parenthesised) -> None:
        self.tokens = tokens
        self.source = tokens.source
        self.groups = groups

    def at(self, location: Any) -> Place:
        """Returns the place of a parser's location."""
        return Place(self.source, location.offset, location.offset, location.end)

    def token(self, offset: int) -> int:
        """Returns the index of the first token at or after an offset."""
        return bisect_left(self.tokens.starts, offset)

    def token_place(self, offset: int) -> Place:
        """Returns the place of the first token at or after an offset."""
        return Place(self.source, offset, offset, self.tokens.ends[self.token(offset)])

    def start(self, term: ast.Term) -> int:
        """Returns the beginning of a term, with its parentheses or its first operand."""
        grouped = self.groups.get(id(term))
        if grouped is not None:
            return grouped[1]
        if isinstance(term, ast.Call) and term.infix:
            return self.start(term.args[0])
        return term.location.offset

    def term(self, term: ast.Term, start: int | None = None) -> TermNode:
        """Returns the node of a term; ``start`` is the beginning of an infix call's text."""
        node = self._term(term, start)
        grouped = self.groups.get(id(term))
        if grouped is not None:
            node.place = node.place.spanning(grouped[1], grouped[2])
        return node

    def terms(self, terms: Any) -> list[TermNode]:
        """Returns the nodes of terms."""
        return [self.term(term) for term in terms]

    def _term(self, term: ast.Term, start: int | None) -> TermNode:
        place = self.at(term.location)
        match term:
            case ast.Null():
                return TermNode("null", "null", place)
            case ast.Boolean():
                return TermNode("boolean", "true" if term.value else "false", place)
            case ast.Number():
                return TermNode("number", term.text, place)
            case ast.String():
                return TermNode("string", term.value, place)
            case ast.Var():
                variable = TermNode("var", term.name, place)
                return TermNode("ref", [variable], place) if term.name in ROOTS else variable
            case ast.Ref():
                return self._ref(term)
            case ast.Call():
                return self._infix(term, start) if term.infix else self._call(term)
            case ast.Array():
                return TermNode("array", self.terms(term.items), place)
            case ast.Set():
                return TermNode("set", self._set(term), place)
            case ast.Object():
                return TermNode("object", self._object(term), place)
            case ast.TemplateString():
                return TermNode("templatestring", (self._parts(term), term.raw), place)
            case ast.ObjectComprehension():
                heads = (self.term(term.key), self.term(term.value))
                return TermNode("objectcomprehension", (*heads, self.bodies.body(term.body)), place)
            case _:
                body = self.bodies.body(term.body)
                return TermNode(KINDS_OF_TERM[type(term)], (self.term(term.term), body), place)

    # --- references and calls --------------------------------------------------------------

    def _head(self, head: ast.Term) -> TermNode:
        """Returns the head of a reference: ``input`` is a variable here."""
        if isinstance(head, ast.Var):
            return TermNode("var", head.name, self.at(head.location))
        return self.term(head)

    def _reference_start(self, head: ast.Term) -> int:
        """Returns the beginning of a reference's text: the last token of its head."""
        grouped = self.groups.get(id(head))
        if grouped is not None:
            return grouped[2] - 1
        if isinstance(head, ast.Call):
            return self._reference_start(head.operator)
        if isinstance(head, ast.Ref):
            return self._reference_start(head.head)
        place = self.at(head.location)
        closed = isinstance(head, ast.Var) or place.text.startswith("set")
        return place.offset if closed else place.end - 1

    def _ref(self, ref: ast.Ref) -> TermNode:
        head = self._head(ref.head)
        start = self._reference_start(ref.head)
        place = head.place.spanning(start, self.at(ref.location).end)
        return TermNode("ref", [head, *self.terms(ref.path)], place)

    def operator(self, operator: ast.Var | ast.Ref) -> TermNode:
        """Returns the called function, always a reference."""
        if isinstance(operator, ast.Ref):
            return self._ref(operator)
        head = self._head(operator)
        return TermNode("ref", [head], head.place)

    def _call(self, call: ast.Call) -> TermNode:
        end = self.at(call.location).end
        if not isinstance(call.operator, ast.Ref) and self._is_minus(call):
            return self._minus(call)
        operator = self.operator(call.operator)
        place = operator.place.spanning(operator.place.start, end)
        return TermNode("call", [operator, *self.terms(call.args)], place)

    def _is_minus(self, call: ast.Call) -> bool:
        return self.source.text[call.location.offset] == "-"

    def _minus(self, call: ast.Call) -> TermNode:
        """Returns the node of ``-x``: zero minus x, with a generated operator."""
        zero, operand = call.args
        place = self.at(call.location)
        operator = TermNode("ref", [], synthetic_place(self.source))
        operator.value = [TermNode("var", "minus", operator.place)]
        terms = [operator, TermNode("number", "0", self.at(zero.location)), self.term(operand)]
        return TermNode("call", terms, place)

    def _infix(self, call: ast.Call, start: int | None) -> TermNode:
        begin = self.start(call) if start is None else start
        first, *rest = call.args
        left = self.term(first, None if id(first) in self.groups else begin)
        operands = [left]
        if len(rest) > 1:  # of `k, v in xs`, the second begins where the first does
            value = rest.pop(0)
            operands.append(self.term(value, None if id(value) in self.groups else begin))
        operands += self.terms(rest)
        place = left.place.spanning(begin, self.at(call.location).end)
        return TermNode("call", [self._symbol(call.operator), *operands], place)

    def _symbol(self, operator: ast.Var | ast.Ref) -> TermNode:
        place = self.at(operator.location)
        if isinstance(operator, ast.Var):
            return TermNode("ref", [TermNode("var", operator.name, place)], place)
        (name,) = operator.path
        assert isinstance(name, ast.String)
        parts = [TermNode("var", "internal", place), TermNode("string", name.value, place)]
        return TermNode("ref", parts, place)

    # --- collections -----------------------------------------------------------------------

    def _set(self, term: ast.Set) -> list[TermNode]:
        unlike: dict[str, TermNode] = {}
        for member in self.terms(term.items):
            unlike.setdefault(text(member, exact=True), member)
        return sorted(unlike.values(), key=order)

    def _object(self, term: ast.Object) -> list[tuple[TermNode, TermNode]]:
        unlike: dict[str, tuple[TermNode, TermNode]] = {}
        for key, value in term.items:
            node = self.term(key)
            first = unlike.get(text(node, exact=True), (node, node))[0]
            unlike[text(node, exact=True)] = (first, self.term(value))
        return sorted(unlike.values(), key=lambda pair: order(pair[0]))

    def _parts(self, template: ast.TemplateString) -> list[Any]:
        """Returns the parts of a template: texts with their tokens' places, and expressions."""
        parts: list[Any] = []
        index = self.token(template.location.offset)
        for part in template.parts:
            if isinstance(part, str):
                parts.append(TermNode("string", part, self._part_place(index)))
                continue
            literal = part if isinstance(part, _LITERALS) else None
            location = part.location
            first = self.token(location.offset)
            node = self.bodies.literal(literal or ast.Expr(part, location=location))  # type: ignore[arg-type]
            index = self._template_token_after(self.token(node.place.end))
            commented = any(
                self.tokens.starts[first - 1] < place.offset < self.tokens.starts[first]
                for place, _ in self.tokens.comments
            )
            scalar = isinstance(node.terms, TermNode) and node.terms.kind in _SCALARS
            parts.append(node.terms if scalar and not commented and not node.withs else node)
        return parts

    def _part_place(self, index: int) -> Place:
        return Place(self.source, *(self.tokens.starts[index],) * 2, self.tokens.ends[index])

    def _template_token_after(self, index: int) -> int:
        while self.tokens.kinds[index] not in _TEMPLATE_TOKENS:
            index += 1
        return index


_SCALARS: Final = ("string", "number", "boolean", "null")
_LITERALS: Final = (ast.Expr, ast.Not, ast.Logic)
_TEMPLATE_TOKENS: Final = range(t.TEMPLATE_PART, t.RAW_TEMPLATE_END + 1)


class BodyPlacer:
    """Makes the nodes of bodies and their literals."""

    def __init__(self, terms: TermPlacer) -> None:
        self.terms = terms
        self.source = terms.source
        self.kinds = terms.tokens.kinds

    def body(self, body: ast.Body) -> n.BodyNode:
        """Returns the nodes of literals."""
        return [self.literal(literal) for literal in body]

    def literal(self, literal: ast.Literal_) -> n.ExprNode:
        """Returns the node of a single literal; its place is its whole text."""
        node = self._expr(literal)
        grouped = self.terms.groups.get(id(literal))
        start, end = node.place.offset, node.place.end
        if grouped is not None:
            start, end = grouped[1:]
        end = max([end, *(modifier.place.end for modifier in node.withs)])
        node.place = Place(self.source, start, start, end)
        if isinstance(node.terms, n.NotNode) and not node.terms.explicit:
            for inner in node.terms.body:
                inner.place = node.place
        return node

    def _expr(self, literal: ast.Literal_) -> n.ExprNode:
        place = self.terms.at(literal.location)
        if isinstance(literal, ast.SomeDecl):
            first = self.terms.token_place(place.offset)
            return n.ExprNode(n.SomeNode(self.terms.terms(literal.names), first), place)
        withs = [self._with(modifier) for modifier in literal.with_]
        node = n.ExprNode(self._terms(literal, place), place, withs=withs)
        node.negated = getattr(literal, "negated", False)
        return node

    def _with(self, modifier: ast.With) -> n.WithNode:
        target = self.terms.term(modifier.target)
        return n.WithNode(target, self.terms.term(modifier.value), self.terms.at(modifier.location))

    def _terms(self, literal: ast.Literal_, place: Place) -> Any:
        first = self.terms.token_place(place.offset)
        match literal:
            case ast.Expr():
                node = self.terms.term(literal.term)
                return node.value if node.kind == "call" else node
            case ast.SomeIn():
                return n.SomeNode([self._membership(literal)], first)
            case ast.Every():
                key = None if literal.key is None else self.terms.term(literal.key)
                value, domain = self.terms.term(literal.value), self.terms.term(literal.domain)
                return n.EveryNode(key, value, domain, self.body(literal.body), first)
            case ast.Not():
                explicit = self.kinds[self.terms.token(place.offset) + 1] == t.LBRACE
                inner = self.body(literal.body) if explicit else self._operands(literal.body)
                return n.NotNode(inner, explicit, place)
            case ast.Logic():
                return self._logic(literal, place)
        raise AssertionError(literal)

    def _membership(self, literal: ast.SomeIn) -> TermNode:
        keys = () if literal.key is None else (literal.key,)
        terms = self.terms.terms((*keys, literal.value, literal.domain))
        place = terms[0].place
        name = "member_3" if keys else "member_2"
        operator = TermNode(
            "ref", [TermNode("var", "internal", place), TermNode("string", name, place)], place
        )
        return TermNode(
            "call", [operator, *terms], place.spanning(place.start, terms[-1].place.end)
        )

    def _operands(self, body: ast.Body) -> n.BodyNode:
        """Returns a body that is an operand without braces; it ends with its terms."""
        return [self._expr(expression) for expression in body]

    def _start(self, literal: ast.Literal_) -> int:
        grouped = self.terms.groups.get(id(literal))
        return literal.location.offset if grouped is None else grouped[1]

    def _logic(self, logic: ast.Logic, place: Place) -> n.LogicalNode:
        first = logic.left[0]
        begins = self.kinds[self.terms.token(place.offset)] == t.LBRACE
        is_nested = isinstance(first, ast.Logic) and first.location.offset == place.offset
        in_parentheses = len(logic.left) > 1 or (begins and not is_nested)
        before = self.kinds[self.terms.token(self._start(logic.right[0])) - 1]
        right = len(logic.right) > 1 or before == t.LBRACE
        return n.LogicalNode(
            logic.operator,
            self.body(logic.left) if in_parentheses else self._operands(logic.left),
            self.body(logic.right) if right else self._operands(logic.right),
            in_parentheses,
            right,
            place,
        )


class FilePlacer:
    """Makes the nodes of a file's rules and imports."""

    def __init__(self, tokens: Tokens, groups: Parenthesised) -> None:
        self.terms = TermPlacer(tokens, groups)
        self.bodies = self.terms.bodies = BodyPlacer(self.terms)
        self.tokens = tokens
        self.source = tokens.source
        self.has_if = False

    def file(self, module: ast.Module) -> n.FileNode:
        """Returns the nodes of a module."""
        package = self.terms.terms(module.package.path)
        package[0].kind = "var"
        comments = [
            n.CommentNode(at.row, at.col, self.terms.at(at).text, f"#{comment.rstrip(SPACES)}")
            for at, comment in module.comments
        ]
        return n.FileNode(
            package,
            self.terms.at(module.package.location),
            [self._import(import_) for import_ in module.imports],
            [self._rule(rule) for rule in module.rules],
            comments,
            self.source,
        )

    def _import(self, import_: ast.Import) -> n.ImportNode:
        first = self.terms.token_place(import_.location.offset)
        path = self.terms.terms(import_.path.path)
        head = import_.path.head
        assert isinstance(head, ast.Var)
        return n.ImportNode(
            [TermNode("var", head.name, self.terms.at(head.location)), *path],
            import_.alias or "",
            first,
        )

    # --- rules -----------------------------------------------------------------------------

    def _rule(self, rule: ast.Rule) -> n.RuleNode:
        place = self.terms.at(rule.location)
        bare = not rule.body and not rule.default and not rule.head.contains
        if bare and rule.head.args is not None and rule.head.value is None:
            end = self.terms.operator(_name(rule.head)).place.end
            place = Place(self.source, place.offset, place.offset, end)
        head = self._head(rule, place, bare=bare)
        if rule.default:
            place = self.terms.token_place(place.offset)
        elif rule.head.contains and not rule.body:
            place = head.place
        node = n.RuleNode(head, self._body(rule.body, place), rule.default, None, place)
        if rule.else_ is not None:
            node.else_ = self._else(rule.else_)
        return node

    def _body(self, body: ast.Body, place: Place) -> n.BodyNode:
        if body:
            return self.bodies.body(body)
        return [n.ExprNode(TermNode("boolean", n.TRUE, place), place)]

    def _head(self, rule: ast.Rule, whole: Place, *, bare: bool) -> n.HeadNode:
        head = rule.head
        chained = self.source.text[whole.offset] == "{"
        place = whole if bare or chained else self.terms.at(head.location)
        name = TermNode("var", _variable(head).name, self.terms.at(_variable(head).location))
        ref = [name, *self.terms.terms(head.ref.path)]
        args = self.terms.terms(head.args or ())
        if not chained:
            self.has_if = not bare and self.tokens.kinds[self.terms.token(place.end)] == t.IF
        key = None if head.key is None else self.terms.term(head.key)
        if key is None and len(ref) == 2 and not args and not rule.default:
            known = self.has_if and _is_ground(ref[1]) and ref[1].kind != "ref"
            key = None if known else ref[1]
        value = None if head.value is None else self.terms.term(head.value)
        if value is None and head.key is None:
            is_plain = bare or (self.has_if and len(ref) == 2 and not args)
            value = TermNode("boolean", n.TRUE, place if is_plain else synthetic_place(self.source))
        if chained:
            if key is not None and key in ref:  # a copy
                key = self.terms.term(head.ref.path[0])
            _moved([*args, *(term for term in (key, value) if term is not None)], place)
        return n.HeadNode(ref, args, key, value, head.assign, place)

    def _else(self, rule: ast.Rule) -> n.RuleNode:
        place = self.terms.at(rule.location)
        offset = place.offset
        head_place = self.terms.token_place(offset)
        value = TermNode("boolean", n.TRUE, synthetic_place(self.source))
        written = rule.head.value
        if written is not None:
            value = self.terms.term(written)
            head_place = Place(self.source, offset, offset, self._end(written, value))
        args = self.terms.terms(rule.head.args or ())
        head = n.HeadNode([], args, None, value, rule.head.assign, head_place, is_else=True)
        node = n.RuleNode(head, self._body(rule.body, place), False, None, place)
        index = self.terms.token(head_place.end)
        kinds = self.tokens.kinds
        if kinds[index] == t.IF and kinds[index + 1] != t.LBRACE:
            _moved(node.body, place)
        if rule.else_ is not None:
            node.else_ = self._else(rule.else_)
        return node

    def _end(self, written: ast.Term, value: TermNode) -> int:
        grouped = self.terms.groups.get(id(written))
        return value.place.end if grouped is None else grouped[2]


def _moved(nodes: list[Any], place: Place) -> None:
    """Moves nodes and their descendants to one place."""
    for node in nodes:
        for child in n.walk(node):
            child.place = place


def _variable(head: ast.Head) -> ast.Var:
    assert isinstance(head.ref.head, ast.Var)
    return head.ref.head


def _name(head: ast.Head) -> ast.Ref | ast.Var:
    return replace(head.ref) if head.ref.path else _variable(head)


def _is_ground(term: TermNode) -> bool:
    """Returns whether a term has no variable; the head of a reference does not count."""
    if term.kind == "var" or term.kind.endswith("comprehension"):
        return False
    if term.kind == "ref":
        return all(map(_is_ground, term.value[1:]))
    return all(_is_ground(child) for child in n.children(term) if isinstance(child, TermNode))
