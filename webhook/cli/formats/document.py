"""A JSON value as text: JSON or YAML without control characters of terminals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from webhook.api.encoding import encode
from webhook.printable import is_printable, one_line, printable_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.mutation.patch import Operation


def patch_lines(patch: Sequence[Operation]) -> list[str]:
    """Returns a line for each operation, indented below the object."""
    lines = []
    for item in patch:
        value = f" {encode(item['value']).decode()}" if "value" in item else ""
        lines.append(f"    {one_line(item['op'] + ' ' + item['path'] + value)}")
    return lines


def as_json(document: Any) -> str:
    """Indented JSON."""
    return printable_json(encode(document, indent=True).decode())


def as_stream(documents: Iterable[Any], missing: Sequence[str] = ()) -> str:
    """Returns YAML documents; comments before them name what is ``missing``.

    Standard error names it, too, but a file of this output must not look complete.
    """
    comments = [f"# Incomplete: {one_line(line)}\n" for line in missing]
    return "".join(comments) + "\n---\n".join(map(as_yaml, documents))


def as_yaml(document: Any) -> str:
    """Returns the value as YAML; if nested too deeply for the writer, as JSON."""
    import yaml  # noqa: PLC0415  # 40 ms, for this alone

    try:
        return _as_yaml(document, yaml)
    except RecursionError:
        return as_json(document)


def _as_yaml(document: Any, yaml: Any) -> str:
    # A message stays on its line, so that a search finds it.
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=math.inf)
    if not is_printable(text):
        text = yaml.safe_dump(
            document, sort_keys=False, allow_unicode=False, width=math.inf, default_style='"'
        )
    return str(text).rstrip("\n")
