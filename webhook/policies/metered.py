"""The constraint framework's client for servers: compilations are counted and timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from webhook.api.gvk import name_of
from webhook.constraint.client import Client
from webhook.constraint.errors import InvalidTemplate
from webhook.constraint.template import kind_of
from webhook.metrics.admission import ENGINE_FAULTS
from webhook.metrics.policies import INGESTION_DURATION, INGESTIONS
from webhook.metrics.registry import OTHER, Registry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.constraint.driver import Driver
    from webhook.constraint.isolation import Isolation
    from webhook.constraint.limits import OnBug
    from webhook.constraint.target import Target
    from webhook.log import Logger


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
