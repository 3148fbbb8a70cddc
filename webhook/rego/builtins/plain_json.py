"""Values in JSON's terms, paid for by node.

Parts of a value may be shared, so that a small value stands for an enormous text:
whoever walks all of it charges for the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.rego.run.text import json_items
from webhook.rego.run.values import RegoObject, RegoSet, ordered_affordable
from webhook.rego.run.weight import afford_text

if TYPE_CHECKING:
    from webhook.rego.builtins.registry import Context
    from webhook.rego.run.values import Value

_STEPS_A_NODE: Final = 4


def plain(context: Context, value: Value) -> Any:
    """The value with sets as arrays and with string keys only; a copy all through."""
    afford_text(value)
    return _plain(context, value)


def _plain(context: Context, value: Value) -> Any:
    context.charge(_STEPS_A_NODE)
    if isinstance(value, list):
        return [_plain(context, item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(context, item) for name, item in value.items()}
    if isinstance(value, RegoSet):
        return [_plain(context, item) for item in ordered_affordable(value)]
    if isinstance(value, RegoObject):
        return {name: _plain(context, item) for name, item in json_items(value)}
    return value
