"""Messages about fields in apimachinery's form: ``spec.x: Invalid value: "y": why``."""

from __future__ import annotations

from typing import Any

from webhook.api.encoding import encode


def shown(value: Any) -> str:
    """A value as such a message shows it: as JSON."""
    return encode(value).decode()


def invalid(path: str, value: Any, why: str) -> str:
    """A value that is not acceptable."""
    return f"{path}: Invalid value: {shown(value)}: {why}"
