"""Gatekeeper's hook, which evaluates a template's ``violation``; it is compiled with every template.

A template whose ``violation`` can never give the hook a message is refused by the types of the two
together, with OPA's words and where they stand in Gatekeeper's hook. Here the driver asks the rule
itself, so that the hook is only checked.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from webhook.rego.syntax.parser import parse_module

if TYPE_CHECKING:
    from webhook.rego.errors import RegoErrors
    from webhook.rego.syntax import ast
    from webhook.rego.syntax.ast import RegoVersion

_FILE: Final = "hooks.hooks_builtin"

_ROWS: Final = {
    1: "package hooks",
    12: "violation[response] {",
    13: "key := input.constraints[_]",
    14: 'inp := {"review": input.review, "parameters": data.constraints[key.kind][key.name]}',
    15: "data.template.violation[r] with input as inp",
    19: 'response := {"key": key,',
    20: '"details": object.get(r, "details", {}),',
    21: '"msg": r.msg}',
    22: "}",
}
"""The hook by its lines: those that errors name are where Gatekeeper has them."""

_ADVICE: Final[dict[RegoVersion, str]] = {
    "v0": 'violation[{"msg": msg}] { msg := "what is wrong" }',
    "v1": 'violation contains {"msg": msg} if { msg := "what is wrong" }',
}


@cache
def hook() -> ast.Body:
    """The hook's body, a query about ``data.template.violation``."""
    text = "\n".join(_ROWS.get(row, "") for row in range(1, max(_ROWS) + 1))
    return parse_module(text, _FILE, "v0").rules[0].body


def advice(errors: RegoErrors, version: RegoVersion) -> str:
    """How to mend a template that the hook can get no message of; empty for all other faults."""
    if all(error.location.file != _FILE for error in errors.errors):
        return ""
    return (
        '\n"violation" must hold objects with a "msg", or nothing is ever denied; '
        f"write: {_ADVICE[version]}"
    )
