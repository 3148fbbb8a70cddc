"""Stage 8: how messages about calls print what a function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rego.syntax.builtin_names import OPERAND_NAMES
from webhook.rego.types import type_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.rego.check import ir
    from webhook.rego.types import Type


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
