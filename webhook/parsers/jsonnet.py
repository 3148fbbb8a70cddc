"""Jsonnet, evaluated by its own library, which the extra ``jsonnet`` brings."""

from __future__ import annotations

import os.path
import re
from typing import Any, Final

from webhook.parsers import json_text
from webhook.parsers.errors import ParseError

_PLACE: Final = re.compile(r":(\d+):\d+")
_STACK_MAX: Final = 500
"""Frames of an evaluation, as Jsonnet's own command has them."""


def parse(raw: bytes, path: str = "") -> Any:
    """What the program comes to; it imports files from where it is."""
    try:
        import _jsonnet  # noqa: PLC0415  # an extra
    except ImportError:
        raise ParseError(
            "Jsonnet is read by a library that is not installed: pip install 'waddle-admission[jsonnet]'"
        ) from None
    folder = os.path.dirname(path)  # noqa: PTH120  # the text as it is
    try:
        written = _jsonnet.evaluate_snippet(
            path or "-",
            raw.decode("utf-8", "replace"),
            jpathdir=[folder] if folder else [],
            max_stack=_STACK_MAX,
        )
    except (RuntimeError, ValueError) as error:
        message = str(error).split("\n")[0]
        match = _PLACE.search(message)
        line = int(match[1]) if match else 0
        raise ParseError(f"evaluate anonymous snippet: {message}", line) from None
    return json_text.decode(written)
