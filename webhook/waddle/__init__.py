"""Waddle as a library: ``import waddle``, the name in the wheel (``docs/library.md``).

The wheel maps this package to ``waddle``; the code is that of ``webhook``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import webhook
from webhook import __version__
from webhook.library import (
    Answer,
    Excuse,
    InvalidInputError,
    InvalidPoliciesError,
    NoVerdictError,
    Policies,
    PolicyWarning,
    Rego,
    UnknownPathError,
    Violation,
    Violations,
    WaddleError,
)

__all__ = [
    "POLICIES",
    "Answer",
    "Excuse",
    "InvalidInputError",
    "InvalidPoliciesError",
    "NoVerdictError",
    "Policies",
    "PolicyWarning",
    "Rego",
    "UnknownPathError",
    "Violation",
    "Violations",
    "WaddleError",
    "__version__",
]

_SHIPPED: Final = Path(__file__).parent / "policies"

POLICIES: Final = (
    _SHIPPED
    if __name__ == "waddle" and _SHIPPED.is_dir()
    else Path(webhook.__file__).parents[1] / "policies"
)
"""The library of policies that comes with the package, as files."""
