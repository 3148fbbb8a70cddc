"""The grammar of CEL, by recursive descent (cel-go, parser/gen/CEL.g4), with optional syntax.

A chain of ``&&`` or of ``||`` becomes one call with many operands.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final, NoReturn

from webhook.cel.errors import ParseError, Problem
from webhook.cel.syntax import ast, literals
from webhook.cel.syntax.identifiers import RESERVED
from webhook.cel.syntax.lexer import Token, space_before, tokens_of
from webhook.cel.syntax.macros import MacroError, expand

MAX_DEPTH: Final = 200
"""The deepest nesting of nodes; cel-go allows 250. A check takes three of Python's 1,000 call
levels for each node."""

MAX_NESTING: Final = 60
"""The deepest nesting of parentheses, brackets and operands; parsing takes nine call levels each.
"""

MAX_SOURCE: Final = 100_000
"""The longest expression, in code points, as in cel-go."""

_WORDS: Final = {"true": True, "false": False, "null": None}
_QUOTES: Final = "unsupported syntax: '`'"
_RELATIONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})
_ORDER: Final = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ","),
    *("-", "!", "?", ":", "+", "*", "/", "%", "true", "false", "null"),
    *("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"),
)
"""Tokens in the order in which cel-go's messages name the expected ones."""

_ESCAPES: Final = str.maketrans({"\n": r"\n", "\r": r"\r", "\t": r"\t"})
"""The characters of tokens that ANTLR escapes."""

_CLASSES: Final = {
    "FLOAT": "NUM_FLOAT",
    "INT": "NUM_INT",
    "UINT": "NUM_UINT",
    "STRING": "STRING",
    "BYTES": "BYTES",
    "NAME": "IDENTIFIER",
    "QUOTED": "ESC_IDENTIFIER",
    "END": "<EOF>",
}
_BEGINNINGS: Final = frozenset(
    {"[", "{", "(", ".", "-", "!", "true", "false", "null", *_ORDER[-7:-1]}
)
_FIELDS: Final = frozenset({"}", ",", "?", "IDENTIFIER", "ESC_IDENTIFIER"})
_AFTER_MEMBER: Final = frozenset(
    {"==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "-", "+", "*", "/", "%", "?"}
)
_OPERATORS: Final = _AFTER_MEMBER | {"[", "."}
"""The tokens that may follow a primary, which is the beginning of a member."""


def parse(source: str, *, extended: bool = False) -> ast.Parsed:
    """Returns the parsed expression; raises :class:`~webhook.cel.errors.ParseError`.

    ``extended`` is whether ``cel.bind`` and ``orValue`` are macros.
    """
    if len(source) > MAX_SOURCE:
        text = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SOURCE}"
        raise ParseError(source[:1], [Problem(0, 0, text)])
    tokens, problems = tokens_of(source)
    parser = _Parser(source, tokens, problems, extended=extended)
    try:
        root = parser.expression()
        parser.end()
    except (_SyntaxError, _TooDeep):
        raise ParseError(source, problems) from None
    if problems:
        raise ParseError(source, problems)
    if _depth(root) > MAX_DEPTH:
        problem = Problem(1, 0, f"expression recursion limit exceeded: {MAX_DEPTH}")
        raise ParseError(source, [problem])
    return ast.Parsed(source, root)


def _depth(root: ast.Expr) -> int:
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend([(child, depth + 1) for child in ast.children(node)])
    return deepest


class _SyntaxError(Exception):
    pass


class _TooDeep(Exception):
    """The expression is nested too deeply; parsing stops."""


def _listed(expected: AbstractSet[str]) -> str:
    """Returns the expected tokens as cel-go's messages name them."""
    shown = [token if token.isupper() else f"'{token}'" for token in _ORDER if token in expected]
    if "<EOF>" in expected:
        shown.append("<EOF>")
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"


class _Parser:
    def __init__(
        self, source: str, tokens: list[Token], problems: list[Problem], *, extended: bool
    ) -> None:
        self.source = source
        self.extended = extended
        self.tokens = tokens
        self.problems = problems
        self.place = 0
        self.depth = 0
        self.recovering = False
        self.failed_at = -1
        self.closers: list[frozenset[str]] = [frozenset({"<EOF>"})]
        """The tokens that may follow each open expression and what it is in, the innermost last."""

    # --- tokens -------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def is_next(self, text: str) -> bool:
        token = self.token
        return token.text == text and token.kind in {"OP", "NAME"}

    def take(self) -> Token:
        token = self.token
        self.place = min(self.place + 1, len(self.tokens) - 1)
        self.recovering = False
        return token

    def accept(self, text: str) -> Token | None:
        return self.take() if self.is_next(text) else None

    # --- faults, reported and recovered from as by ANTLR (its DefaultErrorStrategy) --------------

    def class_of(self, ahead: int = 0) -> str:
        """Returns the grammar's class of a token."""
        token = self.tokens[min(self.place + ahead, len(self.tokens) - 1)]
        if token.kind == "OP" or token.text in {"in", *_WORDS}:
            return token.text
        return _CLASSES[token.kind]

    def expect(self, text: str, follows: frozenset[str] | None = None) -> Token:
        """Takes a token; recovers from one extra token before it, or from its absence."""
        if self.is_next(text):
            return self.take()
        if self.class_of(1) == text and self.token.kind != "END":
            self.unexpected({text})
            return self.take()
        after = _OPERATORS | self.closers[-1] if follows is None else follows
        if self.class_of() in after:
            self.say(f"missing '{text}' at '{self.token.text}'")
            return self.token
        return self.mismatched({text})

    def sync(self, expected: AbstractSet[str]) -> None:
        """Checks that an expected token is next; skips one extra token before it."""
        if self.class_of() in expected:
            return
        if self.class_of(1) in expected and self.token.kind != "END":
            self.unexpected(expected)
            return
        self.mismatched(expected)

    def unexpected(self, expected: AbstractSet[str]) -> None:
        self.say(f"extraneous input '{self.token.text}' expecting {_listed(expected)}")
        self.place += 1

    def mismatched(self, expected: AbstractSet[str]) -> NoReturn:
        self.fail(f"mismatched input '{self.token.text}' expecting {_listed(expected)}")

    def end(self) -> None:
        if self.token.kind == "END":
            return
        if self.class_of(1) == "<EOF>":
            self.unexpected({"<EOF>"})
        else:
            self.mismatched({"<EOF>"})

    def fail(self, message: str) -> NoReturn:
        self.say(message)
        raise _SyntaxError

    def say(self, message: str) -> None:
        """Reports a syntax error, unless the parser still recovers from the last one."""
        if not self.recovering:
            line, column = ast.place_of(self.source, self.token.at)
            at = column if self.source else -1  # an empty expression
            shown = message.translate(_ESCAPES)
            self.problems.append(Problem(line, at, f"Syntax error: {shown}"))
        self.recovering = True

    def no_alternative(self, first: Token) -> str:
        """Returns the message that no alternative begins with the tokens from ``first`` on."""
        text, end = "", first.at
        for token in self.tokens[self.tokens.index(first) : self.place + 1]:
            text += space_before(self.source[end : token.at])
            text += "" if token.kind == "END" else token.text
            end = token.at + len(token.text)
        return f"no viable alternative at input '{text}'"

    def recovered(self, read: Callable[[], ast.Expr], follows: frozenset[str]) -> ast.Expr:
        """Returns a part, or a substitute after a fault; skips to a token that may follow."""
        try:
            return read()
        except _SyntaxError:
            self.skip(follows)
            return ast.Constant(self.token.at, None)

    def skip(self, follows: frozenset[str]) -> None:
        """Skips to a token that may follow a part, or what the part is in."""
        if self.failed_at == self.place and self.token.kind != "END":
            self.place += 1  # no progress since the last fault: skip a token
        self.failed_at = self.place
        known = follows.union(*self.closers)
        while self.token.kind != "END" and self.class_of() not in known:
            self.place += 1

    def within(self, closers: AbstractSet[str], read: Callable[[], ast.Expr]) -> ast.Expr:
        """Reads a part that one of these tokens must close."""
        self.closers.append(frozenset(closers))
        try:
            return read()
        finally:
            self.closers.pop()

    def report(self, at: int, message: str) -> None:
        self.problems.append(Problem(*ast.place_of(self.source, at), message))

    def forget(self, known: int) -> None:
        """Drops problems after the first ``known`` that are no syntax errors."""
        later = [
            problem
            for problem in self.problems[known:]
            if problem.message.startswith("Syntax error")
        ]
        self.problems[known:] = later

    # --- operators ----------------------------------------------------------------------------

    def expression(self) -> ast.Expr:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.report(0, f"expression recursion limit exceeded: {MAX_NESTING}")
            raise _TooDeep
        expr = self.chain("||", "_||_", self.conjunction)
        if token := self.accept("?"):
            expr = self.recovered(lambda: self.conditional(token, expr), frozenset())
        self.depth -= 1
        return expr

    def conditional(self, token: Token, condition: ast.Expr) -> ast.Expr:
        then = self.within({":"}, lambda: self.chain("||", "_||_", self.conjunction))
        self.expect(":", _BEGINNINGS)
        return ast.Call(token.at, "_?_:_", [condition, then, self.expression()])

    def conjunction(self) -> ast.Expr:
        return self.chain("&&", "_&&_", self.relation)

    def chain(self, text: str, function: str, operand: Callable[[], ast.Expr]) -> ast.Expr:
        first = operand()
        if not self.is_next(text):
            return first
        call = ast.Call(self.token.at, function, [first])
        while self.accept(text):
            call.args.append(operand())
        return call

    def relation(self) -> ast.Expr:
        expr = self.sum()
        while self.token.text in _RELATIONS and self.token.kind in {"OP", "NAME"}:
            token = self.take()
            function = "@in" if token.text == "in" else f"_{token.text}_"
            expr = ast.Call(token.at, function, [expr, self.sum()])
        return expr

    def sum(self) -> ast.Expr:
        return self.binary(("+", "-"), self.product)

    def product(self) -> ast.Expr:
        return self.binary(("*", "/", "%"), self.unary)

    def binary(self, texts: tuple[str, ...], operand: Callable[[], ast.Expr]) -> ast.Expr:
        expr = operand()
        while self.token.kind == "OP" and self.token.text in texts:
            token = self.take()
            expr = ast.Call(token.at, f"_{token.text}_", [expr, operand()])
        return expr

    def unary(self) -> ast.Expr:
        for text, function in (("!", "!_"), ("-", "-_")):
            if not self.is_next(text):
                continue
            first = self.token
            if text == "-" and self.tokens[self.place + 1].kind in {"INT", "FLOAT"}:
                return self.member()
            count = 0
            while self.accept(text):
                count += 1
            if text == "!" and self.class_of() not in _BEGINNINGS:
                self.say(f"extraneous input '{self.token.text}' expecting {_listed(_BEGINNINGS)}")
            if text == "-" and self.class_of() not in _BEGINNINGS - {"!"}:
                self.say(self.no_alternative(self.tokens[self.place - 1]))
                self.recovering = False
            operand = self.member()
            return ast.Call(first.at, function, [operand]) if count % 2 else operand
        return self.member()

    # --- members ------------------------------------------------------------------------------

    def member(self) -> ast.Expr:
        return self.recovered(self.members, _AFTER_MEMBER)

    def members(self) -> ast.Expr:
        self.sync(_BEGINNINGS)
        is_named = not self.is_next("(")
        expr = self.recovered(self.primary, _OPERATORS)
        while True:
            token = self.token
            recovering = self.recovering
            if self.accept("."):
                try:
                    expr = self.selected(expr, token, recovering=recovering)
                except _SyntaxError:
                    self.skip(_AFTER_MEMBER)
                    return expr
                is_named = is_named and self.tokens[self.place - 1].kind == "NAME"
            elif self.accept("["):
                function = "_[_]"
                self.sync(_BEGINNINGS | {"?"})
                if self.accept("?"):
                    function = "_[?_]"
                expr = ast.Call(
                    token.at, function, [expr, self.within(_AFTER_MEMBER | {"]"}, self.expression)]
                )
                self.expect("]")
            elif is_named and self.is_next("{") and ast.qualified(expr) is not None:
                expr = self.message(ast.qualified(expr) or "")
            else:
                return expr

    def selected(self, operand: ast.Expr, dot: Token, *, recovering: bool) -> ast.Expr:
        optional = self.accept("?") is not None
        if optional:
            self.sync({"IDENTIFIER", "ESC_IDENTIFIER"})
        name = self.take()
        if name.kind == "QUOTED":
            self.report(name.at, _QUOTES)
            return ast.Select(dot.at, operand, name.text, optional=optional)
        if name.kind != "NAME" or name.text in {"in", *_WORDS}:
            self.place -= name.kind != "END"
            self.recovering = recovering  # a dot that nothing follows was not read
            if name.text in _WORDS:
                self.mismatched({"IDENTIFIER"})
            fault = self.no_alternative(dot)
            if name.text != "in":
                self.say(fault)
                self.place = self.tokens.index(dot)
                raise _SyntaxError
            self.report(name.at, f"Syntax error: {fault}")  # parsing continues as usual
            return operand
        if self.is_next("(") and not optional:
            opening = self.take()
            call = ast.Call(opening.at, name.text, self.arguments(_AFTER_MEMBER), operand)
            return self.expanded(call)
        return ast.Select(dot.at, operand, name.text, optional=optional)

    def arguments(self, follows: frozenset[str]) -> list[ast.Expr]:
        args: list[ast.Expr] = []
        self.sync(_BEGINNINGS | {")"})
        if self.accept(")"):
            return args
        while True:
            args.append(self.within(follows | {")", ","}, self.expression))
            if not self.accept(","):
                break
        self.expect(")")
        return args

    def expanded(self, call: ast.Call) -> ast.Expr:
        try:
            return expand(call, extended=self.extended)
        except MacroError as error:
            self.report(error.at, error.text)
            return ast.Constant(error.at, None)  # later faults are reported at this offset

    def primary(self) -> ast.Expr:
        recovering = self.recovering
        token = self.take()
        if token.kind in {"INT", "UINT", "FLOAT", "STRING", "BYTES"} or token.text == "-":
            return self.literal(token)
        if token.kind == "NAME" and token.text in _WORDS:
            return ast.Constant(token.at, _WORDS[token.text])
        dot = token.kind == "OP" and token.text == "."
        name = self.take() if dot else token
        if dot and name.text in _WORDS:
            self.place -= 1
            self.mismatched({"IDENTIFIER"})
        if name.kind == "NAME" and name.text != "in":
            return self.named(token, name, dot="." if dot else "")
        if token.kind == "OP" and not dot:
            if token.text == "(":
                expr = self.within(_OPERATORS | {")"}, self.expression)
                self.expect(")")
                return expr
            if token.text == "[":
                return self.list_of(token)
            if token.text == "{":
                return self.map_of(token)
        self.place -= name.kind != "END"
        self.recovering = recovering  # nothing was read
        if dot:
            self.fail(self.no_alternative(token))
        return self.mismatched(_BEGINNINGS)

    def named(self, first: Token, name: Token, dot: str) -> ast.Expr:
        opening = self.accept("(")
        known = len(self.problems)
        call = (
            ast.Call(opening.at, dot + name.text, self.arguments(_OPERATORS)) if opening else None
        )
        if name.text in RESERVED and not self.is_message():
            self.forget(known)  # the operands are not used
            self.report(first.at, f"reserved identifier: {name.text}")
            return ast.Constant(first.at, None)
        return ast.Name(name.at, dot + name.text) if call is None else self.expanded(call)

    def is_message(self) -> bool:
        """Returns whether a field list follows the name."""
        at = self.place
        while self.tokens[at].text == "." and self.tokens[at + 1].kind == "NAME":
            at += 2
        return self.tokens[at].kind == "OP" and self.tokens[at].text == "{"

    # --- literals -----------------------------------------------------------------------------

    def literal(self, token: Token) -> ast.Expr:
        negative = token.text == "-" and token.kind == "OP"
        written = self.take() if negative else token
        try:
            match written.kind:
                case "INT":
                    return ast.Constant(token.at, literals.int_of(written.text, negative=negative))
                case "FLOAT":
                    return ast.Constant(
                        token.at, literals.float_of(written.text, negative=negative)
                    )
                case "UINT" if not negative:
                    return ast.Constant(token.at, literals.uint_of(written.text))
                case "STRING" if not negative:
                    return ast.Constant(token.at, literals.string_of(written.text))
                case "BYTES" if not negative:
                    return ast.Constant(token.at, literals.bytes_of(written.text))
        except literals.LiteralError as error:
            self.report(token.at, str(error))
            return ast.Constant(token.at, None)
        self.place -= 1
        return self.mismatched(_BEGINNINGS)

    def list_of(self, opening: Token) -> ast.Expr:
        items: list[ast.Expr] = []
        optional: set[int] = set()
        self.sync(_BEGINNINGS | {"]", ",", "?"})
        while not self.is_next("]") and (items or not self.accept(",")):
            if self.accept("?"):
                optional.add(len(items))
            items.append(self.within(_OPERATORS | {"]", ","}, self.expression))
            before = self.place
            self.sync({"]", ","})
            is_last = self.place > before  # behind an extra token
            if not self.accept(",") or is_last or self.class_of() not in _BEGINNINGS | {"?"}:
                break
        self.expect("]")
        return ast.ListOf(opening.at, items, frozenset(optional))

    def map_of(self, opening: Token) -> ast.Expr:
        entries: list[ast.Entry] = []
        self.sync(_BEGINNINGS | {"}", ",", "?"})
        self.listed(lambda: self.entries(entries))
        return ast.MapOf(opening.at, entries)

    def listed(self, read: Callable[[], None]) -> None:
        """Reads what is listed up to a brace; after a fault, skips to its end."""
        try:
            read()
        except _SyntaxError:
            self.skip(_OPERATORS | {"}", ","})
            self.accept(",")
        else:
            if self.tokens[self.place - 1].text != ",":
                self.sync({"}", ","})
                self.accept(",")  # behind an extra token
        self.expect("}")

    def entries(self, entries: list[ast.Entry]) -> None:
        while not self.is_next("}") and (entries or not self.accept(",")):
            optional = self.accept("?") is not None
            key = self.within(_OPERATORS | {":"}, self.expression)
            colon = self.expect(":", _BEGINNINGS)
            value = self.within(_OPERATORS | {"}", ","}, self.expression)
            entries.append(ast.Entry(colon.at, key, value, optional))
            if not self.accept(",") or self.class_of() not in _BEGINNINGS | {"?"}:
                break

    def message(self, type_name: str) -> ast.Expr:
        opening = self.take()
        fields: list[ast.FieldOf] = []
        self.sync(_FIELDS)
        self.listed(lambda: self.fields(fields))
        return ast.Message(opening.at, type_name, fields)

    def fields(self, fields: list[ast.FieldOf]) -> None:
        beginning = self.token.at
        while not self.is_next("}") and (fields or not self.accept(",")):
            optional = self.accept("?") is not None
            name = self.take()
            if name.kind == "QUOTED":
                self.report(beginning, _QUOTES)
            elif name.kind != "NAME" or name.text in {"in", *_WORDS}:
                self.place -= name.kind != "END"
                self.mismatched({"IDENTIFIER", "ESC_IDENTIFIER"})
            colon = self.expect(":", _BEGINNINGS)
            known = len(self.problems)
            value = self.within(_OPERATORS | {"}", ","}, self.expression)
            fields.append(ast.FieldOf(colon.at, name.text, value, optional))
            if name.kind == "QUOTED":
                self.forget(known)  # the value is not used
            if not self.accept(",") or self.class_of() not in _FIELDS - {"}", ","}:
                break
