"""Counts the policy engine's internal faults during evaluations, and logs each once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from webhook.metrics.admission import ENGINE_FAULTS
from webhook.metrics.registry import OTHER, Registry
from webhook.rego.errors import EngineFault

if TYPE_CHECKING:
    from webhook.log import Logger

MAX_PLACES: Final = 256
"""The most distinct places and kinds of templates; further ones are counted together."""


class EngineFaults:
    """Counts each fault and logs it once for each template and place. Thread-safe."""

    def __init__(self, registry: Registry, log: Logger) -> None:
        self._registry = registry
        self._log = log
        self._lock = threading.Lock()
        self._logged: set[tuple[str, str]] = set()
        self._kinds: set[str] = set()

    def __call__(self, kind: str, bug: Exception) -> None:
        """An evaluation of a template of this kind has ended in the fault."""
        fault = bug if isinstance(bug, EngineFault) else EngineFault(bug)
        at = (kind, fault.place)
        with self._lock:
            known = kind in self._kinds or len(self._kinds) < MAX_PLACES
            if known:
                self._kinds.add(kind)
            self._registry.count(ENGINE_FAULTS, kind if known else OTHER)
            if at in self._logged or len(self._logged) >= MAX_PLACES:
                return
            self._logged.add(at)
        self._log.fault(
            "bug: the policy engine failed; the policy is treated as one that fails",
            fault.cause,
            constraint_kind=kind,
            place=fault.place,
        )
