"""The lines of generated code, and the names of its locals and constants."""

from __future__ import annotations

from typing import Any, Final

from webhook.rego.write import expression as source
from webhook.rego.write.expression import Binds, Expression, Kind

MAX_INDENT: Final = 60
"""Blocks within each other; CPython takes 100 indentations."""


class Unwritten(Exception):
    """An expression that only the exact form can evaluate."""


class Lines:
    """The written lines, each at a depth."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.names = 0
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        """Adds a line at the present depth."""
        if self.indent > MAX_INDENT:
            raise Unwritten
        self.lines.append("    " * self.indent + text)

    def new(self, kind: Kind = Kind.ANY) -> Expression:
        """Returns a local that is not in use yet."""
        self.names += 1
        return source.name(f"v{self.names}", kind)

    def assign(self, local: Expression, value: Expression) -> None:
        """Gives a local its value."""
        self.line(f"{local.source} = {value.within(Binds.CONDITIONAL)}")

    def constant_named(self, value: Any) -> Expression:
        """Adds a constant, and returns its name."""
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return source.name(name)

    def kept(self, value: Expression) -> Expression:
        """Returns a value that may be repeated: itself, or a new local that holds it."""
        if value.is_simple:
            return value
        local = self.new(value.kind)
        self.assign(local, value)
        return local
