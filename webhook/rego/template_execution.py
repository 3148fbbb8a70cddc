"""Go's text/template, executed over JSON: ``strings.render_template``.

Numbers of the data are Go's ``json.Number``, which is a kind of string there:
they print as written, have a length, and compare with strings only.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote_from_bytes

from webhook.rego.numbers import float_text
from webhook.rego.sprintf import sprintf
from webhook.rego.template_syntax import (
    Action,
    Branch,
    Inclusion,
    Jump,
    Nodes,
    Operand,
    Pipe,
    Text,
)
from webhook.rego.template_tokens import TemplateError
from webhook.rego.text import MAX_CHARACTERS, from_utf8, quote, text_too_large, utf8

if TYPE_CHECKING:
    from collections.abc import Callable


MAX_DEPTH: Final = 50
"""Templates that include one another: the execution recurses. Go stops at 100,000."""


class Budget(Protocol):
    """What pays for the work."""

    def charge(self, steps: int) -> None:
        """Pay; raises when the budget is spent."""


class JsonNumber(str):
    """A number of the data, as its text."""

    __slots__ = ()
    go_type = "json.Number"


class _Nothing:
    """A value that is not there: a missing key, or what nil becomes."""

    __slots__ = ()


NOTHING: Final = _Nothing()


class _Jump(Exception):  # noqa: N818  # control flow
    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def go_type(value: Any) -> str:
    """The name of the value's type in Go."""
    if value is None or value is NOTHING:
        return "<nil>"
    if isinstance(value, JsonNumber):
        return "json.Number"
    names = {bool: "bool", int: "int", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def show(value: Any) -> str:
    """What Go's ``%v`` prints."""
    if value is None:
        return "<nil>"
    if value is NOTHING:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{' '.join(map(show, value))}]"
    return f"map[{' '.join(f'{name}:{show(value[name])}' for name in sorted(value))}]"


def _true(value: Any) -> bool:
    if value is None or value is NOTHING:
        return False
    return len(value) > 0 if isinstance(value, str | list | dict) else bool(value)


def render(context: Budget, templates: dict[str, Nodes], data: Any) -> str:
    """The text that the template makes of the data; raises :class:`TemplateError`."""
    return _Execution(context, templates).run(data)


@dataclass(slots=True)
class _Execution:
    """One rendering: what it writes, and the variables in scope, innermost last."""

    context: Budget
    templates: dict[str, Nodes]
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
        if self.size > MAX_CHARACTERS:
            raise text_too_large()
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
            elif isinstance(node, Branch):
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

    def branch(self, dot: Any, node: Branch) -> None:
        mark = len(self.variables)
        if node.kind == "range":
            self.range(dot, node)
        else:
            value = self.pipeline(dot, node.pipe)
            if _true(value):
                self.walk(value if node.kind == "with" else dot, node.body)
            else:
                self.walk(dot, node.otherwise)
        del self.variables[mark:]

    def range(self, dot: Any, node: Branch) -> None:
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
        """What Go calls the type: values within the data are known as interfaces."""
        return "interface {}" if value is not self.variables[0][1] else go_type(value)

    def call(
        self, dot: Any, operand: Operand, operands: tuple[Operand, ...], final: tuple[Any, ...]
    ) -> Any:
        name = operand.value
        if name in {"and", "or"}:
            return self.shortcut(dot, name, operands, final)
        arguments = [self.operand(dot, item) for item in operands] + list(final)
        self.place = (operand.line, operand.column, operand.text)
        least, most, function = _FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"at least {least}" if most is None else str(least)
            raise self.error(f"wrong number of args for {name}: want {wanted} got {len(arguments)}")
        shown = " ".join(item.text for item in (operand, *operands))
        self.place = (operand.line, operand.column, shown)
        try:
            return function(*arguments)
        except _CallError as error:
            raise self.error(f"error calling {name}: {error}") from None

    def shortcut(
        self, dot: Any, name: str, operands: tuple[Operand, ...], final: tuple[Any, ...]
    ) -> Any:
        if not operands and not final:
            raise self.error(f"wrong number of args for {name}: want at least 1 got 0")
        value: Any = NOTHING
        for operand in operands:
            value = self.operand(dot, operand)
            if _true(value) == (name == "or"):
                return value
        return final[0] if final else value


# --- functions -------------------------------------------------------------------------------


class _CallError(Exception):
    """A function's own complaint."""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return {int: "int", float: "float"}.get(type(value), "")


def _incompatible(a: Any, b: Any) -> _CallError:
    return _CallError(f"incompatible types for comparison: {go_type(a)} and {go_type(b)}")


def _equal(a: Any, *others: Any) -> bool:
    if not others:
        raise _CallError("missing argument for comparison")
    for b in others:
        nil = [x is None or x is NOTHING for x in (a, b)]
        if _kind(a) != _kind(b):
            if not any(nil):
                raise _incompatible(a, b)
        elif any(nil):
            if all(nil):
                return True
        elif not _kind(a):
            raise _CallError(f"non-comparable type {show(a)}: {go_type(a)}")
        elif a == b:
            return True
    return False


def _less(a: Any, b: Any) -> bool:
    if not _kind(a) or not _kind(b):
        raise _CallError("invalid type for comparison")
    if _kind(a) != _kind(b):
        raise _incompatible(a, b)
    if _kind(a) == "bool":
        raise _CallError("invalid type for comparison")
    return bool(a < b)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(utf8(value))
    if isinstance(value, list | dict):
        return len(value)
    if value is None or value is NOTHING:
        raise _CallError("len of nil pointer")
    raise _CallError(f"len of type {go_type(value)}")


def _position(index: Any, size: int) -> int:
    if index is None or index is NOTHING:
        raise _CallError("cannot index slice/array with nil")
    if _kind(index) != "int":
        raise _CallError(f"cannot index slice/array with type {go_type(index)}")
    if not 0 <= index <= size:
        raise _CallError(f"index out of range: {index}")
    return int(index)


def _index(value: Any, *indexes: Any) -> Any:
    if value is None or value is NOTHING:
        raise _CallError("index of untyped nil")
    for index in indexes:
        if isinstance(value, list | str):
            items = utf8(value) if isinstance(value, str) else value
            at = _position(index, len(items))
            if at == len(items):
                raise _CallError(f"index out of range: {index}")
            value = items[at]
        elif isinstance(value, dict):
            if not isinstance(index, str) or isinstance(index, JsonNumber):
                raise _CallError(f"value has type {go_type(index)}; should be string")
            value = value.get(index)
        elif value is None:
            raise _CallError("index of nil pointer")
        else:
            raise _CallError(f"can't index item of type {go_type(value)}")
    return value


def _slice(value: Any, *indexes: Any) -> Any:
    if value is None or value is NOTHING:
        raise _CallError("slice of untyped nil")
    if not isinstance(value, list | str):
        raise _CallError(f"can't slice item of type {go_type(value)}")
    if len(indexes) > 3:
        raise _CallError(f"too many slice indexes: {len(indexes)}")
    if isinstance(value, str) and len(indexes) == 3:
        raise _CallError("cannot 3-index slice a string")
    items = utf8(value) if isinstance(value, str) else value
    places = [_position(index, len(items)) for index in indexes]
    start, stop = [*places, *(0, len(items))[len(places) :]][:2]
    if start > stop:
        raise _CallError(f"invalid slice index: {start} > {stop}")
    part = items[start:stop]
    return from_utf8(part) if isinstance(part, bytes) else part


def _joined(*values: Any) -> str:
    """Go's ``Sprint``: a space between two values when neither is a string."""
    shown = ""
    for at, value in enumerate(values):
        both = at and type(value) is not str and type(values[at - 1]) is not str
        shown += (" " if both else "") + show(value)
    return shown


def _printf(template: str, *values: Any) -> str:
    if not isinstance(template, str):
        raise _CallError(f"wrong type for value; expected string; got {go_type(template)}")
    plain = [x if isinstance(x, str | int | float) else show(x) for x in values]
    return sprintf(template, plain)


def _escape_html(*values: Any) -> str:
    text = html.escape(_joined(*values), quote=False)
    return text.replace('"', "&#34;").replace("'", "&#39;").replace("\0", "\ufffd")


_JS: Final = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}


def _escape_js(*values: Any) -> str:
    shown = []
    for character in _joined(*values):
        if character in _JS:
            shown.append(_JS[character])
        elif character.isprintable():
            shown.append(character)
        else:
            shown.append(f"\\u{ord(character):04X}")
    return "".join(shown)


def _escape_query(*values: Any) -> str:
    return quote_from_bytes(utf8(_joined(*values)), safe=" ").replace(" ", "+")


def _call(function: Any, *_: Any) -> Any:
    raise _CallError(
        "call of nil"
        if function is None
        else f"non-function {show(function)} of type {go_type(function)}"
    )


_FUNCTIONS: Final[dict[str, tuple[int, int | None, Callable[..., Any]]]] = {
    "not": (1, 1, lambda x: not _true(x)),
    "len": (1, 1, _length),
    "index": (1, None, _index),
    "slice": (1, None, _slice),
    "print": (0, None, _joined),
    "println": (0, None, lambda *values: " ".join(map(show, values)) + "\n"),
    "printf": (1, None, _printf),
    "html": (0, None, _escape_html),
    "js": (0, None, _escape_js),
    "urlquery": (0, None, _escape_query),
    "eq": (1, None, _equal),
    "ne": (2, 2, lambda a, b: not _equal(a, b)),
    "lt": (2, 2, _less),
    "le": (2, 2, lambda a, b: _less(a, b) or _equal(a, b)),
    "gt": (2, 2, lambda a, b: not (_less(a, b) or _equal(a, b))),
    "ge": (2, 2, lambda a, b: not _less(a, b)),
    "call": (1, None, _call),
}
