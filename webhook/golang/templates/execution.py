"""Go's text/template, executed over JSON."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final, Protocol

from webhook.golang.format import TooLong
from webhook.golang.strings import quote
from webhook.golang.templates.functions import FUNCTIONS, NOTHING, CallError, go_type, show, true
from webhook.golang.templates.syntax import (
    Action,
    Choice,
    Inclusion,
    Jump,
    Nodes,
    Operand,
    Pipe,
    Text,
)
from webhook.golang.templates.tokens import TemplateError
from webhook.values import dataclass

MAX_DEPTH: Final = 50
"""The deepest recursion of templates; Go stops at 100,000."""


class Budget(Protocol):
    """Charges work."""

    def charge(self, steps: int) -> None:
        """Charges steps; raises if the budget is spent."""


class _Jump(Exception):
    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def render(context: Budget, templates: dict[str, Nodes], data: Any, characters_max: int) -> str:
    """Returns the text of a template with its data.

    Raises :class:`TemplateError`, and :class:`~webhook.golang.format.TooLong` beyond the limit of
    characters.
    """
    return _Execution(context, templates, characters_max).run(data)


@dataclass(slots=True)
class _Execution:
    """One rendering: its output, and the variables in scope, innermost last."""

    context: Budget
    templates: dict[str, Nodes]
    characters_max: int
    parts: list[str] = field(default_factory=list)
    size: int = 0
    variables: list[tuple[str, Any]] = field(default_factory=list)
    depth: int = 0
    place: tuple[int, int, str] = (1, 0, "")
    name: str = "template"

    def run(self, data: Any) -> str:
        self.variables = [("$", data)]
        self.walk(data, self.templates["template"])
        return "".join(self.parts)

    def error(self, message: str) -> TemplateError:
        line, column, text = self.place
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        return TemplateError(
            f"template: template:{line}:{column}: executing {quote(self.name)} "
            f"at <{shown}>: {message}"
        )

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > self.characters_max:
            raise TooLong
        self.context.charge(1 + len(text) // 4)
        self.parts.append(text)

    def walk(self, dot: Any, nodes: Nodes) -> None:
        for node in nodes:
            self.context.charge(10)
            if isinstance(node, Text):
                self.write(node.text)
            elif isinstance(node, Action):
                value = self.pipeline(dot, node.pipe)
                if not node.pipe.variables:
                    self.write(show(value))
            elif isinstance(node, Choice):
                self.branch(dot, node)
            elif isinstance(node, Jump):
                raise _Jump(node.kind)
            else:
                self.include(dot, node)

    def include(self, dot: Any, node: Inclusion) -> None:
        self.place = (node.line, node.column, f"{{{{template {quote(node.name)}}}}}")
        nodes = self.templates.get(node.name)
        if nodes is None:
            raise self.error(f"template {quote(node.name)} not defined")
        if self.depth == MAX_DEPTH:
            raise self.error(f"exceeded maximum template depth ({MAX_DEPTH})")
        inner = NOTHING if node.pipe is None else self.pipeline(dot, node.pipe)
        outer, name = self.variables, self.name
        self.variables, self.name = [("$", inner)], node.name
        self.depth += 1
        self.walk(inner, nodes)
        self.depth -= 1
        self.variables, self.name = outer, name

    def branch(self, dot: Any, node: Choice) -> None:
        mark = len(self.variables)
        if node.kind == "range":
            self.range(dot, node)
        else:
            value = self.pipeline(dot, node.pipe)
            if true(value):
                self.walk(value if node.kind == "with" else dot, node.body)
            else:
                self.walk(dot, node.otherwise)
        del self.variables[mark:]

    def range(self, dot: Any, node: Choice) -> None:
        value = self.pipeline(dot, node.pipe)
        pairs: Any
        if isinstance(value, list):
            pairs = enumerate(value)
        elif isinstance(value, dict):
            pairs = ((name, value[name]) for name in sorted(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            if len(node.pipe.variables) > 1:
                raise self.error(f"can't use {value} to iterate over more than one variable")
            pairs = ((NOTHING, at) for at in range(value))
        elif value is None or value is NOTHING:
            pairs = ()
        else:
            raise self.error(f"range can't iterate over {show(value)}")
        mark, ran = len(self.variables), False
        for index, element in pairs:
            ran = True
            self.context.charge(20)  # also where the body has nothing to walk
            self.bind(node.pipe, index, element)
            try:
                self.walk(element, node.body)
            except _Jump as jump:
                if jump.kind == "break":
                    break
            finally:
                del self.variables[mark:]
        if not ran:
            self.walk(dot, node.otherwise)

    def bind(self, pipe: Pipe, index: Any, element: Any) -> None:
        values = (index, element) if len(pipe.variables) > 1 else (element,)
        for name, value in zip(pipe.variables, values, strict=False):
            if pipe.assigns:
                self.assign(name, value)
            else:
                self.variables.append((name, value))

    def assign(self, name: str, value: Any) -> None:
        for at in range(len(self.variables) - 1, -1, -1):
            if self.variables[at][0] == name:
                self.variables[at] = (name, value)
                return

    def pipeline(self, dot: Any, pipe: Pipe) -> Any:
        self.context.charge(5)
        final: tuple[Any, ...] = ()
        value: Any = NOTHING
        for command in pipe.commands:
            value = self.command(dot, command, final)
            if value is None:
                value = NOTHING
            final = (value,)
        for name in pipe.variables:
            if pipe.assigns:
                self.assign(name, value)
            else:
                self.variables.append((name, value))
        return value

    def command(self, dot: Any, command: tuple[Operand, ...], final: tuple[Any, ...]) -> Any:
        first, rest = command[0], command[1:]
        self.place = (first.line, first.column, first.text)
        if first.kind == "function":
            return self.call(dot, first, rest, final)
        if first.kind == "nil":
            raise self.error("nil is not a command")
        if first.kind == "field" or first.fields:
            return self.operand(dot, first, extra=bool(rest or final))
        if rest or final:
            raise self.error(f"can't give argument to non-function {first.text}")
        return self.operand(dot, first)

    def operand(self, dot: Any, operand: Operand, *, extra: bool = False) -> Any:
        self.place = (operand.line, operand.column, operand.text)
        match operand.kind:
            case "dot" | "field":
                value = dot
            case "nil":
                return None
            case "constant":
                return operand.value
            case "variable":
                value = next(v for name, v in reversed(self.variables) if name == operand.value)
            case "pipe":
                value = self.pipeline(dot, operand.value)
            case _:
                value = self.call(dot, operand, (), ())
        for at, name in enumerate(operand.fields):
            self.place = (operand.line, operand.column, operand.text)
            value = self.field(value, name, extra=extra and at == len(operand.fields) - 1)
        return value

    def field(self, value: Any, name: str, *, extra: bool) -> Any:
        if value is NOTHING:
            return NOTHING
        if value is None:
            raise self.error(f"nil pointer evaluating interface {{}}.{name}")
        if isinstance(value, dict):
            if extra:
                raise self.error(f"{name} is not a method but has arguments")
            return value.get(name, NOTHING)
        raise self.error(f"can't evaluate field {name} in type {self.static_type(value)}")

    def static_type(self, value: Any) -> str:
        """Returns Go's name of the type: values within the data are known as interfaces."""
        return "interface {}" if value is not self.variables[0][1] else go_type(value)

    def call(
        self, dot: Any, operand: Operand, operands: tuple[Operand, ...], final: tuple[Any, ...]
    ) -> Any:
        name = operand.value
        if name in {"and", "or"}:
            return self.shortcut(dot, name, operands, final)
        arguments = [self.operand(dot, item) for item in operands] + list(final)
        self.place = (operand.line, operand.column, operand.text)
        least, most, function = FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            expected = f"at least {least}" if most is None else str(least)
            raise self.error(
                f"wrong number of args for {name}: want {expected} got {len(arguments)}"
            )
        shown = " ".join(item.text for item in (operand, *operands))
        self.place = (operand.line, operand.column, shown)
        try:
            return function(*arguments)
        except CallError as error:
            raise self.error(f"error calling {name}: {error}") from None

    def shortcut(
        self, dot: Any, name: str, operands: tuple[Operand, ...], final: tuple[Any, ...]
    ) -> Any:
        if not operands and not final:
            raise self.error(f"wrong number of args for {name}: want at least 1 got 0")
        value: Any = NOTHING
        for operand in operands:
            value = self.operand(dot, operand)
            if true(value) == (name == "or"):
                return value
        return final[0] if final else value
