"""Waddle: a leaderless, horizontally scaled Kubernetes admission webhook.

``Policies`` and ``Rego`` are the interface for other programs (``docs/library.md``), which import
them from ``waddle``. Each is imported on first use, since an import here would load all packages.
``__init__.pyi`` has their types.
"""

from __future__ import annotations

from typing import Any, Final

__version__ = "0.1.0"

_DOOR: Final = frozenset(
    {
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
    }
)


def __getattr__(name: str) -> Any:
    if name not in _DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # the command line needs none of it

    return getattr(import_module(f"{__name__}.library"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOOR})
