"""Gatekeeper's hook rule around a template's ``violation``.

Compiled with each template for its checks.

A template whose ``violation`` can never give the hook a message has a type error, with OPA's text
and the position in Gatekeeper's hook. Our driver queries the rule directly, so the hook is only
type-checked.
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
"""The lines of the hook at Gatekeeper's line numbers, which errors name."""

_ADVICE: Final[dict[RegoVersion, str]] = {
    "v0": 'violation[{"msg": msg}] { msg := "what is wrong" }',
    "v1": 'violation contains {"msg": msg} if { msg := "what is wrong" }',
}


@cache
def hook() -> ast.Body:
    """Returns the hook's body, a query about ``data.template.violation``."""
    text = "\n".join(_ROWS.get(row, "") for row in range(1, max(_ROWS) + 1))
    return parse_module(text, _FILE, "v0").rules[0].body


def advice(errors: RegoErrors, version: RegoVersion) -> str:
    """Returns how to fix a template whose hook has a type error; empty for all other faults."""
    if all(error.location.file != _FILE for error in errors.errors):
        return ""
    return (
        '\n"violation" must hold objects with a "msg", or nothing is ever denied; '
        f"write: {_ADVICE[version]}"
    )
