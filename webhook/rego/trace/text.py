"""Checked literals and terms as OPA writes them in explanations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.rego.check import ir
from webhook.rego.check.variables import walk, walk_body
from webhook.rego.run.text import display
from webhook.rego.run.values import Value, key, sort_key

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def constant_text(value: Value) -> str:
    """A value within a term: texts stand in quotes."""
    return display([value])[1:-1]


def written_path(path: Sequence[Value]) -> str:
    """``data.p["a b"].q`` of its steps."""
    first, *rest = path
    return str(first) + "".join(_step(constant_text(step), step) for step in rest)


def _step(text: str, value: Any) -> str:
    return f".{value}" if isinstance(value, str) and _NAME.fullmatch(value) else f"[{text}]"


def terms_within(node: Any) -> list[ir.Term]:
    """All terms of a literal, a body, or a rule's head."""
    if isinstance(node, ir.Rule):
        head = [*(node.args or ()), *node.rest, node.key, node.value]
        return [inner for part in head if part is not None for inner in walk(part)]
    terms = walk_body([node] if hasattr(node, "withs") else node)
    return [*terms, node.key, node.value] if isinstance(node, ir.Every) else terms


def documents_of(node: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The documents of rules that a node names, each with its path by keys."""
    if isinstance(node, ir.Rule):
        return
    for term in terms_within(node):
        if isinstance(term, ir.Ref) and isinstance(term.head, ir.Var) and term.head.name == "data":
            steps = []
            for part in term.path:
                if not isinstance(part, ir.Const):
                    break
                steps.append(part.value)
            yield written_path(("data", *steps)), ("data", *map(key, steps))


class TermWriter:
    """Writes the terms of one rule, with the names of variables from the source."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def variable(self, name: str) -> str:
        """A variable's name."""
        return self._names.get(name, "_" if name.startswith("$") else name)

    def term(self, term: ir.Term) -> str:
        """A term as OPA's traces write it."""
        match term:
            case ir.Const(value=value):
                return constant_text(value)
            case ir.Var(name=name):
                return self.variable(name)
            case ir.Ref():
                steps = [
                    _step(self.term(part), part.value if isinstance(part, ir.Const) else None)
                    for part in term.path
                ]
                return self.term(term.head) + "".join(steps)
            case ir.Array():
                return f"[{', '.join(map(self.term, term.items))}]"
            case ir.Object():
                return f"{{{', '.join(f'{self.term(k)}: {self.term(v)}' for k, v in term.items)}}}"
            case ir.Set():
                return f"{{{', '.join(map(self.term, _sorted(term.items)))}}}"
            case ir.Comprehension():
                return self._comprehension(term)
        return "..."

    def _comprehension(self, term: ir.Comprehension) -> str:
        begin, end = ("[", "]") if term.kind == "array" else ("{", "}")
        text = self.term(term.value)
        if term.key is not None:
            text = f"{self.term(term.key)}: {text}"
        return f"{begin}{text} | {self.body(term.body)}{end}"

    def body(self, body: Sequence[ir.Lit]) -> str:
        """Returns the literals, with semicolons between."""
        return "; ".join(map(self.literal, body))

    def literal(self, lit: ir.Lit) -> str:
        """A literal with its modifiers."""
        text = self._plain(lit)
        if lit.negated:
            text = f"not {text}"
        for modifier in lit.withs:
            function = modifier.function
            value = self.term(modifier.value) if function is None else _function_text(function)
            text += f" with {written_path(modifier.target)} as {value}"
        return text

    def _plain(self, lit: ir.Lit) -> str:
        match lit:
            case ir.Eq():
                return f"{self.term(lit.a)} = {self.term(lit.b)}"
            case ir.Call():
                operands = lit.args if lit.out is None else [*lit.args, lit.out]
                return f"{_function_text(lit.name)}({', '.join(map(self.term, operands))})"
            case ir.Test():
                return self.term(lit.term)
            case ir.Every():
                key = self.variable(lit.key.name)
                shown = "" if key.startswith("__local") else f"{key}, "
                value = self.variable(lit.value.name)
                body = self.body(lit.body)
                return f"every {shown}{value} in {self.term(lit.domain)} {{ {body} }}"
            case ir.Not():
                body = self.body(lit.body)
                return f"not {{ {body} }}" if lit.explicit else f"not {body}"
            case ir.Logic():
                left, right = self.body(lit.left), self.body(lit.right)
                left = f"{{ {left} }}" if lit.explicit_left else left
                right = f"{{ {right} }}" if lit.explicit_right else right
                return f"{left} {lit.operator} {right}"
        return "print"


def _function_text(name: ir.Function) -> str:
    return name if isinstance(name, str) else written_path(name)


def _sorted(items: Sequence[ir.Term]) -> list[ir.Term]:
    """Members as OPA orders terms: constants come before variables."""
    constants = sorted(
        (i for i in items if isinstance(i, ir.Const)), key=lambda i: sort_key(i.value)
    )
    return [*constants, *(item for item in items if not isinstance(item, ir.Const))]
