"""Values as text: JSON as OPA marshals it, and the forms that ``sprintf`` and ``print`` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.rego.values import Value


def json_text(value: Value) -> str:
    """The value as OPA's JSON: keys sorted, sets as sorted arrays."""
    raise NotImplementedError
