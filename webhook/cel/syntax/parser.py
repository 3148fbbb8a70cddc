"""The grammar of CEL, by descent (cel-go, parser/gen/CEL.g4), with Kubernetes' optional syntax.

Chains of ``&&`` and of ``||`` become one call of many operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from webhook.cel.errors import ParseError, Problem
from webhook.cel.syntax import literals
from webhook.cel.syntax.ast import (
    Call,
    Constant,
    Entry,
    FieldOf,
    ListOf,
    MapOf,
    Message,
    Name,
    Parsed,
    Select,
    children,
    place_of,
    qualified,
)
from webhook.cel.syntax.lexer import Token, tokens_of
from webhook.cel.syntax.macros import MacroError, expand

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.syntax.ast import Expr

MAX_DEPTH: Final = 200
"""Nodes below each other; cel-go has 250. A check has three of Python's 1,000 calls for each."""

MAX_NESTING: Final = 60
"""Parentheses, brackets and operands within each other: nine calls each while they are parsed."""

MAX_SOURCE: Final = 100_000
"""Code points of an expression, likewise."""

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]  # read as a sentence
)

_WORDS: Final = {"true": True, "false": False, "null": None}
_QUOTES: Final = "unsupported syntax: '`'"
_RELATIONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})
_BEGINNINGS: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
    "BYTES, IDENTIFIER}"
)


def parse(source: str) -> Parsed:
    """Parse; raises :class:`~webhook.cel.errors.ParseError`."""
    if len(source) > MAX_SOURCE:
        text = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SOURCE}"
        raise ParseError(source[:1], [Problem(0, 0, text)])
    tokens, problems = tokens_of(source)
    parser = _Parser(source, tokens, problems)
    try:
        root = parser.expression()
        parser.end()
    except _SyntaxError:
        raise ParseError(source, problems) from None
    if problems:
        raise ParseError(source, problems)
    if _depth(root) > MAX_DEPTH:
        problem = Problem(1, 0, f"expression recursion limit exceeded: {MAX_DEPTH}")
        raise ParseError(source, [problem])
    return Parsed(source, root)


def _depth(root: Expr) -> int:
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend([(child, depth + 1) for child in children(node)])
    return deepest


class _SyntaxError(Exception):
    pass


class _Parser:
    def __init__(self, source: str, tokens: list[Token], problems: list[Problem]) -> None:
        self.source = source
        self.tokens = tokens
        self.problems = problems
        self.place = 0
        self.depth = 0

    # --- tokens -------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def is_next(self, text: str) -> bool:
        token = self.token
        return token.text == text and token.kind in {"OP", "NAME"}

    def take(self) -> Token:
        token = self.token
        self.place += 1
        return token

    def accept(self, text: str) -> Token | None:
        return self.take() if self.is_next(text) else None

    def expect(self, text: str) -> Token:
        if not self.is_next(text):
            self.fail(f"mismatched input '{self.token.text}' expecting '{text}'")
        return self.take()

    def end(self) -> None:
        if self.token.kind != "END":
            self.fail(f"mismatched input '{self.token.text}' expecting <EOF>")

    def fail(self, message: str) -> NoReturn:
        line, column = place_of(self.source, self.token.at)
        at = column if self.source else -1  # the end of nothing
        self.problems.append(Problem(line, at, f"Syntax error: {message}"))
        raise _SyntaxError

    def report(self, at: int, message: str) -> None:
        self.problems.append(Problem(*place_of(self.source, at), message))

    def forget(self, known: int) -> None:
        """Of what was found since there were so many problems, tell no more than of the syntax."""
        later = [one for one in self.problems[known:] if one.message.startswith("Syntax error")]
        self.problems[known:] = later

    # --- operators ----------------------------------------------------------------------------

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.report(0, f"expression recursion limit exceeded: {MAX_NESTING}")
            raise _SyntaxError
        expr = self.chain("||", "_||_", self.conjunction)
        if token := self.accept("?"):
            then = self.chain("||", "_||_", self.conjunction)
            self.expect(":")
            expr = Call(token.at, "_?_:_", [expr, then, self.expression()])
        self.depth -= 1
        return expr

    def conjunction(self) -> Expr:
        return self.chain("&&", "_&&_", self.relation)

    def chain(self, text: str, function: str, operand: Callable[[], Expr]) -> Expr:
        first = operand()
        if not self.is_next(text):
            return first
        call = Call(self.token.at, function, [first])
        while self.accept(text):
            call.args.append(operand())
        return call

    def relation(self) -> Expr:
        expr = self.sum()
        while self.token.text in _RELATIONS and self.token.kind in {"OP", "NAME"}:
            token = self.take()
            function = "@in" if token.text == "in" else f"_{token.text}_"
            expr = Call(token.at, function, [expr, self.sum()])
        return expr

    def sum(self) -> Expr:
        return self.binary(("+", "-"), self.product)

    def product(self) -> Expr:
        return self.binary(("*", "/", "%"), self.unary)

    def binary(self, texts: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        expr = operand()
        while self.token.kind == "OP" and self.token.text in texts:
            token = self.take()
            expr = Call(token.at, f"_{token.text}_", [expr, operand()])
        return expr

    def unary(self) -> Expr:
        for text, function in (("!", "!_"), ("-", "-_")):
            if not self.is_next(text):
                continue
            first = self.token
            if text == "-" and self.tokens[self.place + 1].kind in {"INT", "FLOAT"}:
                return self.member()
            count = 0
            while self.accept(text):
                count += 1
            operand = self.member()
            return Call(first.at, function, [operand]) if count % 2 else operand
        return self.member()

    # --- members ------------------------------------------------------------------------------

    def member(self) -> Expr:
        is_named = not self.is_next("(")
        expr = self.primary()
        while True:
            token = self.token
            if self.accept("."):
                expr = self.selected(expr, token)
                is_named = is_named and self.tokens[self.place - 1].kind == "NAME"
            elif self.accept("["):
                function = "_[?_]" if self.accept("?") else "_[_]"
                expr = Call(token.at, function, [expr, self.expression()])
                self.expect("]")
            elif is_named and self.is_next("{") and qualified(expr) is not None:
                expr = self.message(qualified(expr) or "")
            else:
                return expr

    def selected(self, operand: Expr, dot: Token) -> Expr:
        optional = self.accept("?") is not None
        name = self.take()
        if name.kind == "QUOTED":
            self.report(name.at, _QUOTES)
            return Select(dot.at, operand, name.text, optional=optional)
        if name.kind != "NAME" or name.text in {"in", *_WORDS}:
            self.place -= 1
            if name.text in _WORDS:
                self.fail(f"mismatched input '{name.text}' expecting IDENTIFIER")
            fault = f"no viable alternative at input '.{name.text}'"
            if name.text != "in":
                self.fail(fault)
            self.report(name.at, f"Syntax error: {fault}")  # and what follows is read as usual
            return operand
        if self.is_next("(") and not optional:
            opening = self.take()
            call = Call(opening.at, name.text, self.arguments(), operand)
            return self.expanded(call)
        return Select(dot.at, operand, name.text, optional=optional)

    def arguments(self) -> list[Expr]:
        args: list[Expr] = []
        if self.accept(")"):
            return args
        while True:
            args.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        return args

    def expanded(self, call: Call) -> Expr:
        try:
            return expand(call)
        except MacroError as error:
            self.report(error.at, error.text)
            return Constant(error.at, None)  # whatever is asked of it is told at the fault's place

    def primary(self) -> Expr:
        token = self.take()
        if token.kind in {"INT", "UINT", "FLOAT", "STRING", "BYTES"} or token.text == "-":
            return self.literal(token)
        if token.kind == "NAME" and token.text in _WORDS:
            return Constant(token.at, _WORDS[token.text])
        dot = token.kind == "OP" and token.text == "."
        name = self.take() if dot else token
        if dot and name.text in _WORDS:
            self.place -= 1
            self.fail(f"mismatched input '{name.text}' expecting IDENTIFIER")
        if name.kind == "NAME" and name.text != "in":
            return self.named(token, name, dot="." if dot else "")
        if token.kind == "OP" and not dot:
            if token.text == "(":
                expr = self.expression()
                self.expect(")")
                return expr
            if token.text == "[":
                return self.list_of(token)
            if token.text == "{":
                return self.map_of(token)
        self.place -= 1
        return self.fail(f"mismatched input '{name.text}' expecting {_BEGINNINGS}")

    def named(self, first: Token, name: Token, dot: str) -> Expr:
        opening = self.accept("(")
        known = len(self.problems)
        made = Call(opening.at, dot + name.text, self.arguments()) if opening else None
        if name.text in RESERVED and not self.is_message():
            self.forget(known)  # nobody looks at the operands
            self.report(first.at, f"reserved identifier: {name.text}")
            return Constant(first.at, None)
        return Name(name.at, dot + name.text) if made is None else self.expanded(made)

    def is_message(self) -> bool:
        """Whether fields follow the rest of a name."""
        at = self.place
        while self.tokens[at].text == "." and self.tokens[at + 1].kind == "NAME":
            at += 2
        return self.tokens[at].kind == "OP" and self.tokens[at].text == "{"

    # --- literals -----------------------------------------------------------------------------

    def literal(self, token: Token) -> Expr:
        negative = token.text == "-" and token.kind == "OP"
        written = self.take() if negative else token
        try:
            match written.kind:
                case "INT":
                    return Constant(token.at, literals.int_of(written.text, negative=negative))
                case "FLOAT":
                    return Constant(token.at, literals.float_of(written.text, negative=negative))
                case "UINT" if not negative:
                    return Constant(token.at, literals.uint_of(written.text))
                case "STRING" if not negative:
                    return Constant(token.at, literals.string_of(written.text))
                case "BYTES" if not negative:
                    return Constant(token.at, literals.bytes_of(written.text))
        except literals.LiteralError as error:
            self.report(token.at, str(error))
            return Constant(token.at, None)
        self.place -= 1
        return self.fail(f"mismatched input '{written.text}' expecting {_BEGINNINGS}")

    def list_of(self, opening: Token) -> Expr:
        items: list[Expr] = []
        optional: set[int] = set()
        while not self.is_next("]") and (items or not self.accept(",")):
            if self.accept("?"):
                optional.add(len(items))
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]")
        return ListOf(opening.at, items, frozenset(optional))

    def map_of(self, opening: Token) -> Expr:
        entries: list[Entry] = []
        while not self.is_next("}") and (entries or not self.accept(",")):
            optional = self.accept("?") is not None
            key = self.expression()
            colon = self.expect(":")
            entries.append(Entry(colon.at, key, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}")
        return MapOf(opening.at, entries)

    def message(self, type_name: str) -> Expr:
        opening = self.take()
        beginning = self.token.at
        fields: list[FieldOf] = []
        while not self.is_next("}") and (fields or not self.accept(",")):
            optional = self.accept("?") is not None
            name = self.take()
            if name.kind == "QUOTED":
                self.report(beginning, _QUOTES)
            elif name.kind != "NAME" or name.text in {"in", *_WORDS}:
                self.place -= 1
                self.fail(f"mismatched input '{name.text}' expecting IDENTIFIER")
            colon = self.expect(":")
            known = len(self.problems)
            fields.append(FieldOf(colon.at, name.text, self.expression(), optional))
            if name.kind == "QUOTED":
                self.forget(known)  # nobody looks at the value
            if not self.accept(","):
                break
        self.expect("}")
        return Message(opening.at, type_name, fields)
