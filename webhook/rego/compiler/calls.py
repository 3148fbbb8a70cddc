"""Built-ins that are written inline where the kinds of their operands allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.rego.compiler import ir

INLINE: Final[dict[str, Callable[[Any, ir.Call], bool]]] = {}
"""By name: writes the call and returns True, or False where it cannot."""
