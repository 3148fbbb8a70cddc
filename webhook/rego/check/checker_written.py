"""Stage 8: how messages about references print them: as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from webhook.rego.check import ir
from webhook.rego.check.checks import each_literal, function_text
from webhook.rego.run.text import display_of_affordable, json_text
from webhook.rego.run.values import RegoObject, RegoSet
from webhook.rego.syntax.unparse import NAME
from webhook.rego.types import FunctionType, Type, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Fault = TypeVar("Fault", bound=Exception)


class Written:
    """Prints the terms of one rule or query as OPA does, in the form of the source.

    ``names`` has the source names of its declared variables by their unique names. ``body`` has the
    literals that bind variables for terms hoisted by earlier stages.
    """

    def __init__(self, names: Mapping[str, str], body: ir.Body) -> None:
        self._names = names
        self._body = body
        self._binding: dict[str, ir.Call | ir.Eq] | None = None

    def term(self, term: ir.Term) -> str:
        """Returns a term as in OPA's errors, with the terms of generated variables."""
        if isinstance(term, ir.Var):
            return self._variable(term.name)
        if isinstance(term, ir.Const):
            return display_of_affordable(term.value)
        if isinstance(term, ir.Ref):
            return self.reference([term.head, *term.path])
        if isinstance(term, ir.Array):
            return f"[{self._list(term.items)}]"
        if isinstance(term, ir.Set):
            return f"{{{self._list(term.items)}}}"
        if isinstance(term, ir.Object):
            pairs = (f"{self.term(name)}: {self.term(value)}" for name, value in term.items)
            return "{" + ", ".join(pairs) + "}"
        if isinstance(term, ir.Template):
            return f'$"{"".join(map(self._part, term.parts))}"'
        return self.term(term.held) if isinstance(term, ir.Given) else "..."

    def _part(self, part: str | ir.Term) -> str:
        """Returns the text of a template string's expression, as it was written."""
        if isinstance(part, str):
            return part
        place = part.location if isinstance(part, ir.Comprehension) else None
        return f"{{{' '.join(place.text.split()) if place is not None else self.term(part)}}}"

    def reference(self, terms: Sequence[ir.Term]) -> str:
        """A reference: ``input.a[x]["b-c"]``."""
        text = self.term(terms[0])
        for part in terms[1:]:
            if (
                isinstance(part, ir.Const)
                and isinstance(part.value, str)
                and NAME.fullmatch(part.value)
            ):
                text += f".{part.value}"
            else:
                text += f"[{self.term(part)}]"
        return text

    def _list(self, terms: Sequence[ir.Term]) -> str:
        return ", ".join(map(self.term, terms))

    def _variable(self, name: str) -> str:
        written = self._names.get(name, name)
        if written[0] == "$":
            return "_"
        if written[0] != " ":
            return written.rsplit(" ", 1)[-1]
        lit = self._bound_by(name)
        return f"__local{written[1:]}__" if lit is None else self._taken_out(lit)

    def _bound_by(self, name: str) -> ir.Call | ir.Eq | None:
        if self._binding is None:
            self._binding = _binding_literals(self._body)
        return self._binding.get(name)

    def is_scalar(self, term: ir.Term) -> bool:
        """Whether a generated variable is a scalar: ``1`` in ``some x in 1``."""
        if not isinstance(term, ir.Var) or term.name[0] != " ":
            return False
        lit = self._bound_by(term.name)
        return (
            isinstance(lit, ir.Eq)
            and isinstance(lit.b, ir.Const)
            and not isinstance(lit.b.value, list | dict | RegoSet | RegoObject)
        )

    def _taken_out(self, lit: ir.Call | ir.Eq) -> str:
        """Returns the term that a literal was made for."""
        if isinstance(lit, ir.Call):
            return f"{function_text(lit.name)}({self._list(lit.args)})"
        if isinstance(lit.b, ir.Comprehension):
            return " ".join(lit.location.text.split())
        return self.term(lit.b)


def _binding_literals(body: ir.Body) -> dict[str, ir.Call | ir.Eq]:
    """Returns the literals that were made for parts of terms, by the variables that they bind."""
    binding: dict[str, ir.Call | ir.Eq] = {}
    for lit in each_literal(body):
        if isinstance(lit, ir.Call) and lit.generated and isinstance(lit.out, ir.Var):
            binding[lit.out.name] = lit
        elif isinstance(lit, ir.Eq) and lit.generated and isinstance(lit.a, ir.Var):
            binding[lit.a.name] = lit
    return binding


def key_texts(allowed: Iterable[Any]) -> list[str]:
    """Constants as OPA prints them in a list."""
    return [json_text(name) for name in allowed]


def unsupported_text(
    terms: Sequence[ir.Term],
    position: int,
    have: Type | None,
    written: Written,
    fault: Callable[..., Fault],
) -> Fault:
    """The complaint that something without items is referred into, or a function not called."""
    text = written.reference(terms)
    carets = "^" * len(written.reference(terms[: position + 1]))
    message = f"undefined ref: {text}"
    if isinstance(have, FunctionType):
        last = terms[-1]
        shown = terms[:-1] if isinstance(last, ir.Var) and last.name[0] in " $" else terms
        name = written.reference(shown)
        message = f"function {name} used as reference, not called"
    return fault(message, text, carets, f"have: {type_text(have)}")
