"""The framework's client for servers: compilations and faults of the policy engine are counted."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import name_of
from webhook.constraint.client import Client
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import kind_of
from webhook.metrics.admission import ENGINE_FAULTS
from webhook.metrics.policies import INGESTION_DURATION, INGESTIONS
from webhook.metrics.registry import OTHER, Registry
from webhook.rego.errors import EngineFault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.constraint.driver import Driver
    from webhook.constraint.isolation import Isolation
    from webhook.constraint.limits import OnBug
    from webhook.constraint.target import Target
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


class MeteredClient(Client):
    """A client that counts its templates' compilations and times them."""

    def __init__(
        self,
        registry: Registry,
        log: Logger,
        *,
        targets: Sequence[Target],
        drivers: Sequence[Driver],
        isolation: Isolation,
        reviewed_targets: Collection[str] | None = None,
        on_bug: OnBug | None = None,
    ) -> None:
        super().__init__(
            targets=targets,
            drivers=drivers,
            isolation=isolation,
            reviewed_targets=reviewed_targets,
            on_bug=on_bug,
        )
        self._registry = registry
        self._log = log

    def add_template(self, document: Mapping[str, Any]) -> bool:
        """Adds or replaces a template, as :meth:`Client.add_template` does."""
        began = time.monotonic()
        try:
            changed = super().add_template(document)
        except InvalidTemplate as error:
            self._count("error", began)
            if error.bug is not None:
                name = name_of(document)
                self._registry.count(ENGINE_FAULTS, kind_of(document) or OTHER)
                self._log.fault("bug: a template cannot be compiled", error.bug, template=name)
            raise
        if changed:
            self._count("active", began)
        return changed

    def _count(self, status: str, began: float) -> None:
        self._registry.count(INGESTIONS, status)
        seconds = self._registry.histogram(INGESTION_DURATION, status)
        seconds.observe(time.monotonic() - began)
