"""Stage 8: how the type checker's messages print references and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from webhook.rego.check import ir
from webhook.rego.run.text import json_text
from webhook.rego.syntax.builtin_names import OPERAND_NAMES
from webhook.rego.syntax.unparse import NAME
from webhook.rego.types import FunctionType, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.rego.types import Type

    Fault = TypeVar("Fault", bound=Exception)


def term_text(term: ir.Term, names: dict[str, str]) -> str:
    """A term as OPA prints it, variables by the names that were written."""
    if isinstance(term, ir.Var):
        return _var_text(term.name, names)
    if isinstance(term, ir.Const):
        return json_text(term.value)
    if isinstance(term, ir.Ref):
        return reference_text([term.head, *term.path], names)
    if isinstance(term, ir.Array):
        return "[" + ", ".join(term_text(item, names) for item in term.items) + "]"
    if isinstance(term, ir.Set):
        return "{" + ", ".join(term_text(item, names) for item in term.items) + "}"
    if isinstance(term, ir.Object):
        pairs = (f"{term_text(k, names)}: {term_text(v, names)}" for k, v in term.items)
        return "{" + ", ".join(pairs) + "}"
    return term_text(term.held, names) if isinstance(term, ir.Given) else "..."


def _var_text(name: str, names: dict[str, str]) -> str:
    written = names.get(name, name)
    if written[0] == "$":
        return "_"
    return f"__local{written[1:]}__" if written[0] == " " else written.rsplit(" ", 1)[-1]


def reference_text(terms: Sequence[ir.Term], names: dict[str, str]) -> str:
    """A reference as OPA prints it: ``input.a[x]["b-c"]``."""
    text = term_text(terms[0], names)
    for part in terms[1:]:
        if (
            isinstance(part, ir.Const)
            and isinstance(part.value, str)
            and NAME.fullmatch(part.value)
        ):
            text += f".{part.value}"
        else:
            text += f"[{term_text(part, names)}]"
    return text


def wanted_texts(
    name: ir.Function, wanted: Sequence[Type | None], variadic: Type | None = None
) -> str:
    """What a function takes and gives, a built-in's operands by name."""
    names = OPERAND_NAMES.get(name, "").split() if isinstance(name, str) else []
    shown = [
        f"{label}: {type_text(type_)}" if label != "-" else type_text(type_)
        for type_, label in zip(wanted, [*names, *("-" for _ in wanted)], strict=False)
    ]
    if variadic is not None:
        shown.append(f"{type_text(variadic)}...")
    return ", ".join(shown)


def key_texts(allowed: Iterable[Any]) -> list[str]:
    """Constants as OPA prints them in a list."""
    return [json_text(name) for name in allowed]


def unsupported_text(
    terms: Sequence[ir.Term],
    position: int,
    have: Type | None,
    names: dict[str, str],
    fault: Callable[..., Fault],
) -> Fault:
    """The complaint that something without items is referred into, or a function not called."""
    text = reference_text(terms, names)
    carets = "^" * len(reference_text(terms[: position + 1], names))
    message = f"undefined ref: {text}"
    if isinstance(have, FunctionType):
        last = terms[-1]
        shown = terms[:-1] if isinstance(last, ir.Var) and last.name[0] in " $" else terms
        name = reference_text(shown, names)
        message = f"function {name} used as reference, not called"
    return fault(message, text, carets, f"have: {type_text(have)}")
