"""A JSON patch as lines of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.api.encoding import encode
from webhook.cli.terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.mutation.patch import Operation


def patch_lines(patch: Sequence[Operation]) -> list[str]:
    """A line for each operation, indented below what is changed."""
    lines = []
    for item in patch:
        value = f" {encode(item['value']).decode()}" if "value" in item else ""
        lines.append(f"    {one_line(item['op'] + ' ' + item['path'] + value)}")
    return lines
