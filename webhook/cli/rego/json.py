"""JSON of the commands' own results: fields in OPA's order, and within them values in order of keys."""

from __future__ import annotations

from typing import Any

from webhook.rego.run.text import json_string, laid_out


class OrderedFields(dict[str, Any]):
    """An object whose fields are written in the order that they were put in."""


def indented(value: Any, prefix: str = "") -> str:
    """The value as Go's encoder indents it."""
    inner = f"{prefix}  "
    if isinstance(value, OrderedFields) and value:
        lines = [f"{json_string(name)}: {indented(one, inner)}" for name, one in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(one, OrderedFields | list) for one in value):
        lines = [indented(one, inner) for one in value]
        opening, closing = "[", "]"
    elif isinstance(value, OrderedFields):
        return "{}"
    else:
        return laid_out(value, prefix, "  ")
    line = f"\n{inner}"
    return f"{opening}{line}{f',{line}'.join(lines)}\n{prefix}{closing}"
