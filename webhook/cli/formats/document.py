"""A JSON value as text: JSON or YAML that no terminal is misled by."""

from __future__ import annotations

import math
from typing import Any

from webhook.api.encoding import encode
from webhook.cli.terminal import is_printable, printable_json


def as_json(document: Any) -> str:
    """Indented JSON."""
    return printable_json(encode(document, indent=True).decode())


def as_yaml(document: Any) -> str:
    """The same value as YAML."""
    import yaml  # noqa: PLC0415  # 40 ms, for this alone

    # A message stays on its line, where those who search for it find it.
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=math.inf)
    if not is_printable(text):
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=False, width=math.inf)
    return text.rstrip("\n")
