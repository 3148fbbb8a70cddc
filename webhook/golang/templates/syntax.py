"""The parser of Go's text/template: text becomes a tree of nodes.

The language is that of package text/template without methods, calls of function values and options.
A fault raises :class:`TemplateError` with Go's message.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Final, TypeAlias

from webhook.golang.strings import quote
from webhook.golang.templates.tokens import KEYWORDS, TemplateError, Token, tokens
from webhook.values import dataclass

MAX_NESTING: Final = 100
"""The deepest nesting of blocks and parentheses; the parser recurses. Go stops at 10,000."""

FUNCTIONS: Final = frozenset(
    [
        "and",
        "break",
        "call",
        "continue",
        "eq",
        "ge",
        "gt",
        "html",
        "index",
        "js",
        "le",
        "len",
        "lt",
        "ne",
        "not",
        "or",
        "print",
        "printf",
        "println",
        "slice",
        "urlquery",
    ]
) - {"break", "continue"}


# --- nodes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operand:
    """A term of a command: its kind, its value, and the field names after it.

    Kinds: ``dot``, ``nil``, ``constant``, ``field`` (of the dot), ``variable``,
    ``function`` and ``pipe`` (in parentheses).
    """

    kind: str
    value: Any
    fields: tuple[str, ...]
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """A pipeline: each command gets the last result; variables take the final result."""

    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...]
    assigns: bool
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """``{{pipeline}}``."""

    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Choice:
    """``if``, ``with`` or ``range``, with its body and its ``else`` body."""

    kind: str
    pipe: Pipe
    body: Nodes
    otherwise: Nodes


@dataclass(frozen=True, slots=True)
class Jump:
    """``break`` or ``continue``."""

    kind: str


@dataclass(frozen=True, slots=True)
class Inclusion:
    """``{{template "name" pipeline}}``."""

    name: str
    pipe: Pipe | None
    line: int
    column: int


Node: TypeAlias = Text | Action | Choice | Jump | Inclusion
Nodes: TypeAlias = tuple[Node, ...]


# --- parser ----------------------------------------------------------------------------------


def parse(source: str) -> dict[str, Nodes]:
    """Returns the templates by name; the main text is ``template``."""
    return _Parser(tokens(source)).run()


@dataclass(slots=True)
class _Parser:
    tokens: list[Token]
    at: int = 0
    variables: list[str] = field(default_factory=lambda: ["$"])
    templates: dict[str, Nodes] = field(default_factory=dict)
    depth: int = 0
    ranges: int = 0

    def error(self, message: str) -> TemplateError:
        line = self.tokens[min(self.at, len(self.tokens) - 1)].line
        return TemplateError(f"template: template:{line}: {message}")

    def unexpected(self, token: Token, context: str) -> TemplateError:
        shown = {"end of file": "EOF", "close": quote("}}"), "open": quote("{{")}.get(token.kind)
        if shown is None:
            keyword = token.kind in KEYWORDS or token.kind == "dot"
            shown = f"<{token.text}>" if keyword else quote(token.text)
        return self.error(f"unexpected {shown} in {context}")

    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def skip_space(self) -> Token:
        while self.peek().kind == "space":
            self.next()
        return self.peek()

    def expect(self, kind: str, context: str) -> Token:
        token = self.skip_space()
        if token.kind != kind:
            raise self.unexpected(token, context)
        return self.next()

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error("max expression depth exceeded")

    def run(self) -> dict[str, Nodes]:
        nodes, ending = self.items(top=True)
        if ending != "end of file":
            raise self.error(f"unexpected {{{{{ending}}}}}")
        # A definition replaces the main text only if that shows nothing.
        if "template" not in self.templates or any(
            not isinstance(node, Text) or node.text.strip() for node in nodes
        ):
            self.templates["template"] = nodes
        return self.templates

    def items(self, *, top: bool = False) -> tuple[Nodes, str]:
        """Returns the nodes up to ``end`` or ``else``, and that keyword, which is consumed."""
        nodes: list[Node] = []
        while True:
            token = self.next()
            if token.kind == "end of file":
                if top:
                    return tuple(nodes), token.kind
                raise self.error("unexpected EOF")
            if token.kind == "text":
                nodes.append(Text(token.text))
                continue
            keyword = self.skip_space()
            if keyword.kind in {"end", "else"}:
                self.next()
                if keyword.kind == "end":
                    self.expect("close", "end")
                return tuple(nodes), keyword.kind
            if keyword.kind == "define":
                if not top:
                    raise self.unexpected(keyword, "command")
                self.define()
                continue
            nodes.append(self.action(keyword))

    def action(self, keyword: Token) -> Node:
        kind = keyword.kind
        if kind in {"if", "with", "range"}:
            self.next()
            return self.branch(kind)
        if kind in {"break", "continue"}:
            self.next()
            if not self.ranges:
                raise self.error(f"{{{{{kind}}}}} outside {{{{range}}}}")
            self.expect("close", f"{{{{{kind}}}}}")
            return Jump(kind)
        if kind in {"template", "block"}:
            self.next()
            return self.inclusion(kind)
        size = len(self.variables)
        action = Action(self.pipeline("command", "close"))
        assert len(self.variables) >= size, "an action declares variables for what follows"
        return action

    def branch(self, kind: str) -> Choice:
        self.enter()
        size = len(self.variables)
        pipe = self.pipeline(kind, "close")
        self.ranges += kind == "range"
        body, ending = self.items()
        self.ranges -= kind == "range"
        otherwise: Nodes = ()
        if ending == "else":
            following = self.skip_space()
            if following.kind == kind and kind in {"if", "with"}:
                self.next()
                otherwise = (self.branch(kind),)
            else:
                self.expect("close", "else")
                otherwise, ending = self.items()
                if ending != "end":
                    raise self.error("expected end; found {{else}}")
        del self.variables[size:]
        self.depth -= 1
        return Choice(kind, pipe, body, otherwise)

    def name(self, context: str) -> str:
        token = self.skip_space()
        if token.kind not in {"string", "raw"}:
            raise self.unexpected(token, context)
        self.next()
        return unquote(self, token)

    def define(self) -> None:
        self.next()
        name = self.name("define clause")
        self.expect("close", "define clause")
        outer, self.variables = self.variables, ["$"]
        ranges, self.ranges = self.ranges, 0
        nodes, ending = self.items()
        if ending != "end":
            raise self.error(f"unexpected {{{{{ending}}}}} in define clause")
        self.variables, self.ranges = outer, ranges
        self.templates[name] = nodes

    def inclusion(self, kind: str) -> Inclusion:
        context = f"{kind} clause"
        keyword = self.skip_space()
        name = self.name(context)
        if self.skip_space().kind == "close":
            if kind == "block":
                raise self.error(f"missing value for {context}")
            self.next()
            return Inclusion(name, None, keyword.line, keyword.column)
        pipe = self.pipeline(context, "close")
        if kind == "block":
            outer, self.variables = self.variables, ["$"]
            nodes, ending = self.items()
            if ending != "end":
                raise self.error(f"unexpected {{{{{ending}}}}} in {context}")
            self.variables = outer
            self.templates.setdefault(name, nodes)
        return Inclusion(name, pipe, keyword.line, keyword.column)

    def pipeline(self, context: str, closing: str) -> Pipe:
        variables, assigns = self.declarations(context)
        commands: list[tuple[Operand, ...]] = []
        start = self.at
        while True:
            token = self.skip_space()
            if token.kind == closing:
                text = "".join(t.text for t in self.tokens[start : self.at]).strip()
                self.next()
                break
            if token.kind in {"close", ")"}:
                raise self.unexpected(token, context)
            commands.append(self.command())
        if not commands:
            raise self.error(f"missing value for {context}")
        for place, command in enumerate(commands[1:], 2):
            if command[0].kind in {"constant", "dot", "nil"}:
                raise self.error(f"non executable command in pipeline stage {place}")
        return Pipe(tuple(commands), variables, assigns, text)

    def declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        """Reads ``$x :=``, ``$i, $x :=`` in a range, or ``$x =``."""
        begin = self.at
        names: list[str] = []
        while self.skip_space().kind == "variable":
            names.append(self.next().text)
            token = self.skip_space()
            if token.kind in {"declare", "="}:
                self.next()
                assigns = token.kind == "="
                for name in names:
                    if assigns and name not in self.variables:
                        raise self.error(f"undefined variable {quote(name)}")
                    if not assigns:
                        self.variables.append(name)
                return tuple(names), assigns
            if token.kind != "," or context != "range":
                break
            if len(names) == 2:
                raise self.error(f"too many declarations in {context}")
            self.next()
        self.at = begin
        return (), False

    def command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while True:
            token = self.skip_space()
            if token.kind == "|":
                self.next()
                break
            if token.kind in {"close", ")"}:
                break
            operand = self.operand()
            operands.append(operand)
            after = self.peek()
            if after.kind not in {"space", "close", ")", "|"}:
                raise self.unexpected(after, "operand")
        if not operands:
            raise self.error("empty command")
        return tuple(operands)

    def operand(self) -> Operand:
        token = self.next()
        kind, value = self.term(token)
        fields: list[str] = [token.text[1:]] if token.kind == "field" else []
        text = token.text
        if kind == "pipe":
            text = f"({value.text})"
        place = token
        while self.peek().kind == "field":
            following = self.next()
            place = following if place is token else place  # the position in Go's message
            if kind in {"constant", "dot", "nil"}:
                raise self.error(f"unexpected . after term {quote(token.text)}")
            fields.append(following.text[1:])
            text += following.text
        return Operand(kind, value, tuple(fields), text, place.line, place.column)

    def term(self, token: Token) -> tuple[str, Any]:
        kind = token.kind
        if kind in {"dot", "nil", "field"}:
            return kind, None
        if kind == "variable":
            if token.text not in self.variables:
                raise self.error(f"undefined variable {quote(token.text)}")
            return kind, token.text
        if kind in {"name", "break", "continue"}:
            if token.text not in FUNCTIONS:
                raise self.error(f"function {quote(token.text)} not defined")
            return "function", token.text
        if kind == "(":
            self.enter()
            pipe = self.pipeline("parenthesized pipeline", ")")
            self.depth -= 1
            return "pipe", pipe
        if kind in {"bool", "number", "char", "string", "raw"}:
            return "constant", self.constant(token)
        raise self.unexpected(token, "operand" if kind in {",", ")"} else "command")

    def constant(self, token: Token) -> Any:
        if token.kind == "bool":
            return token.text == "true"
        if token.kind in {"string", "raw", "char"}:
            text = unquote(self, token)
            return ord(text) if token.kind == "char" else text
        digits = token.text.replace("_", "")
        try:
            if re.fullmatch(r"[+-]?0[0-7]+", digits):
                return int(digits, 8)
            return int(digits, 0)
        except ValueError:
            return float(digits)


_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
}


def unquote(parser: _Parser, token: Token) -> str:
    """Returns the string or character of a Go literal."""
    inner = token.text[1:-1]
    if token.kind == "raw":
        return inner.replace("\r", "")

    def decode(match: re.Match[str]) -> str:
        for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
            if match[group]:
                return chr(min(int(match[group], base), 0x10FFFF))
        simple = _SIMPLE.get(match[5])
        if simple is None:
            raise parser.error("invalid syntax")
        return simple

    text = _ESCAPE.sub(decode, inner)
    if token.kind == "char" and len(text) != 1:
        raise parser.error(f"malformed character constant: {token.text}")
    return text
