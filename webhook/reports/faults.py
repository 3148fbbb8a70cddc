"""What nobody foresaw about one report: counted, and told once as long as it is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.metrics.cluster import OBJECT_FAULTS

if TYPE_CHECKING:
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

DIFFERENT_TOLD_MAX: Final = 100
"""Lasting troubles that are told, each once."""

RETRIES: Final = 5
"""Of one resource, or of one place of reports; then the next audit finds what differs."""

TEXT_CHARACTERS_MAX: Final = 300
"""Of an error's own text, where it is compared: some print the whole object."""


class Faults:
    """Used by tasks of one loop."""

    def __init__(self, log: Logger, registry: Registry | None = None) -> None:
        self._log = log
        self._registry = registry
        self._told: set[tuple[str, str]] = set()

    def take(self, message: str, error: Exception, **fields: Any) -> None:
        """A report raised this; ``fields`` say which."""
        if self._registry is not None:
            self._registry.count(OBJECT_FAULTS, "report")
        key = message, f"{type(error).__name__}: {error}"[:TEXT_CHARACTERS_MAX]
        if key not in self._told and len(self._told) < DIFFERENT_TOLD_MAX:
            self._told.add(key)
            self._log.fault(message, error, **fields)
