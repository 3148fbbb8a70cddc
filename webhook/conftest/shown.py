"""Configurations as JSON, the way Go's ``json.MarshalIndent`` writes them."""

from __future__ import annotations

from typing import Any

from webhook.parsers import numbers
from webhook.rego.run.text import laid_out


def as_json(value: Any, indent: str) -> str:
    """The value in lines; numbers as Go's JSON writes a ``float64``."""
    return laid_out(numbers.plain(value), "", indent)
