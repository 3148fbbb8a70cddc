"""Records the evaluation of rules event by event, for ``--trace`` and reports.

Modules are changed before they are compiled: each body records its entry, each of its expressions,
and its exit. Notes of `trace()` are recorded too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from webhook.rego.builtins.registry import Context, make_builtin
from webhook.rego.location import Location
from webhook.rego.syntax.ast import Body, Call, Expr, Literal_, Module, Ref, Rule, String, Var
from webhook.rego.syntax.unparse import unparse
from webhook.rego.types import BOOLEAN, STRING

SERVICE: Final = "conftest.trace"
"""The service with the list of lines; without it no events are kept."""

_NAME: Final = "conftest.event"
EVENTS_MAX: Final = 200_000
"""The most lines kept of one query, as a loop may make any number."""


def _event(context: Context, line: str) -> bool:
    lines = context.services.get(SERVICE)
    if lines is not None and len(lines) < EVENTS_MAX:
        lines.append(line)
    return True


def _note(context: Context, text: str) -> bool:
    return _event(context, f'| Note "{text}"')


TABLE: Final = {
    _NAME: make_builtin(_NAME, [STRING], None, _event, context=True, deterministic=False),
    "trace": make_builtin("trace", [STRING], BOOLEAN, _note, context=True, deterministic=False),
}
"""The built-ins of traced modules."""


def traced(module: Module) -> Module:
    """Returns the module with recording calls."""
    package = unparse(module.package)
    lines = module.source.split("\n")
    return replace(module, rules=tuple(_traced(rule, package, lines) for rule in module.rules))


def _traced(rule: Rule, package: str, lines: Sequence[str]) -> Rule:
    if rule.default:
        return rule
    title = f"{package}.{unparse(rule.head.ref) if rule.head.ref.path else _head(rule)}"
    else_ = None if rule.else_ is None else _traced(rule.else_, package, lines)
    body = tuple(_events(rule.body, title, rule.location, lines))
    return replace(rule, body=body, else_=else_)


def _head(rule: Rule) -> str:
    return str(getattr(rule.head.ref.head, "name", ""))


def _events(body: Body, title: str, place: Location, lines: Sequence[str]) -> Iterator[Literal_]:
    yield _as_literal(f"Enter {title}", place)
    for literal in body:
        yield _as_literal(f"| Eval {_text(literal.location, lines)}", literal.location)
        yield literal
    yield _as_literal(f"| Exit {title}", place)


def _text(place: Location, lines: Sequence[str]) -> str:
    """Returns the rest of the line from the literal's beginning."""
    line = lines[place.row - 1] if 0 < place.row <= len(lines) else ""
    return line[max(place.col - 1, 0) :].strip()


def _as_literal(line: str, place: Location) -> Literal_:
    head, step = _NAME.split(".")
    operator = Ref(Var(head), (String(step),), location=place)
    return Expr(Call(operator, (String(line, location=place),), location=place), location=place)
