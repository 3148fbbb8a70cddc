"""``rego.parse_module`` and the ``rego.metadata`` functions (OPA reference, "Rego").

The compiler replaces ``rego.metadata.chain()`` and ``.rule()`` by their values; a remaining call is
in a query, outside of any rule.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins.module_json import module_value
from webhook.rego.builtins.registry import Context, builtin
from webhook.rego.errors import BuiltinError, RegoErrors
from webhook.rego.types import ANY, ARRAY, NAMED, STRING

if TYPE_CHECKING:
    from webhook.rego.run.values import Value

# The parser reads about a character in 400 ns, at 50 ns a step.
_STEPS_A_CHARACTER: Final = 8


@builtin("rego.parse_module", STRING, STRING, result=NAMED, context=True)
def rego_parse_module(context: Context, filename: str, source: str) -> dict[str, Any]:
    """Returns the syntax tree of a module in v1 syntax, as OPA's JSON."""
    context.charge(_STEPS_A_CHARACTER * len(source))
    # The parser knows the names of built-ins: imported at the top it would close a circle.
    parser = import_module("webhook.rego.syntax.parser")
    try:
        return module_value(parser.parse_module(source, filename, "v1"))
    except RegoErrors as errors:
        raise BuiltinError(str(errors)) from None


def _outside_rule(name: str) -> Value:
    raise BuiltinError(f"the {name} function must only be called within the scope of a rule")


@builtin("rego.metadata.chain", result=ARRAY)
def rego_metadata_chain() -> Value:
    """The annotations of the rule, of its document and of its packages."""
    return _outside_rule("rego.metadata.chain")


@builtin("rego.metadata.rule", result=ANY)
def rego_metadata_rule() -> Value:
    """Returns the annotations of the rule."""
    return _outside_rule("rego.metadata.rule")
