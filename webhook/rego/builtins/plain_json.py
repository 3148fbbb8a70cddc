"""Values in JSON's terms, paid for by node.

Parts of a value may be shared, so that a small value stands for an enormous text:
whoever walks all of it charges for the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.run.text import json_items
from webhook.rego.run.values import RegoObject, RegoSet, ordered

if TYPE_CHECKING:
    from webhook.rego.builtins.registry import Context
    from webhook.rego.run.values import Value

_STEPS_A_NODE: Final = 4


def plain(context: Context, value: Value) -> Any:
    """The value with sets as arrays and with string keys only; a copy all through."""
    context.charge(_STEPS_A_NODE)
    if isinstance(value, list):
        return [plain(context, item) for item in value]
    if isinstance(value, dict):
        return {name: plain(context, item) for name, item in value.items()}
    if isinstance(value, RegoSet):
        return [plain(context, item) for item in ordered(value)]
    if isinstance(value, RegoObject):
        return {name: plain(context, item) for name, item in json_items(value)}
    return value
