"""Branches of the console's templates that were drawn: `if`, `elif`, `else`, loop, `… if …`."""

from typing import Any

from jinja2 import Environment, nodes

Branch = tuple[str, int, str]
"""A template, a line of it, and which way was taken there."""


class MarkingEnvironment(Environment):
    """Notes each branch that it reads, and each that is drawn."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.known: set[Branch] = set()
        self.drawn: set[Branch] = set()
        self.globals["mark"] = self._mark

    def _mark(self, name: str, line: int, way: str, value: object = "") -> object:
        self.drawn.add((name, line, way))
        return value

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        assert name is not None
        conditions = list(template.find_all(nodes.If))
        # An `elif` is an If of its own, whose `else` is that of the first.
        further = {id(other) for node in conditions for other in node.elif_}
        for node in conditions:
            self._begin(name, node.body, node.lineno, "if")
            if id(node) not in further:
                self._begin(name, node.else_, node.lineno, "else")
        for loop in template.find_all(nodes.For):
            self._begin(name, loop.body, loop.lineno, "each")
        for choice in template.find_all(nodes.CondExpr):
            choice.expr1 = self._call(name, choice.lineno, "if", choice.expr1)
            other = choice.expr2 or nodes.Const("", lineno=choice.lineno)
            choice.expr2 = self._call(name, choice.lineno, "else", other)
        template.set_environment(self)
        return template

    def _begin(self, name: str, body: list[nodes.Node], line: int, way: str) -> None:
        """Have a body say first that it is drawn."""
        call = self._call(name, line, way)
        body.insert(0, nodes.ExprStmt(call, lineno=line))

    def _call(self, name: str, line: int, way: str, *value: nodes.Expr) -> nodes.Call:
        # Two branches of a line are told apart by their number.
        number = sum(
            known[:2] == (name, line) and known[2].split()[0] == way for known in self.known
        )
        branch = name, line, f"{way} {number}" if number else way
        self.known.add(branch)
        texts = [nodes.Const(part, lineno=line) for part in branch]
        return nodes.Call(
            nodes.Name("mark", "load", lineno=line), [*texts, *value], [], None, None, lineno=line
        )
