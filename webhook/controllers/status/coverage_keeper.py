"""Computes whether the API server sends a policy's objects to the webhook: the reason ``NotAsked``.

It watches the inputs: webhook configurations, the operations that templates name,
ExpansionTemplates, Config, and the labels of Namespaces that policies name.
:mod:`webhook.webhook_rules` decides.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from webhook.api.config import (
    CONFIG,
    CONFIG_NAME,
    MUTATION_PROCESS,
    WEBHOOK_PROCESS,
    excluded_namespaces,
)
from webhook.api.gvk import labels_of
from webhook.cluster.kinds import MUTATING_CONFIGURATIONS, NAMESPACE, WEBHOOK_CONFIGURATIONS
from webhook.controllers.served_kinds import ServedKinds
from webhook.policy_kinds.known import TEMPLATE
from webhook.policy_kinds.table import EXPANSION_TEMPLATES
from webhook.webhook_rules.coverage import WebhookContext, coverage_of, generators_of, operations_of
from webhook.webhook_rules.entries import MUTATING_PATH, VALIDATING_PATH, entries_of
from webhook.webhook_rules.needs import need_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.cluster.client import ClusterClient
    from webhook.watch.manager import Manager
    from webhook.watch.queue import Event
    from webhook.webhook_rules.coverage import CoverageState
    from webhook.webhook_rules.entries import WebhookEntry
    from webhook.webhook_rules.kinds import GroupAndKind

CONFIGURATIONS: Final = {
    WEBHOOK_CONFIGURATIONS.gvk: (WEBHOOK_PROCESS, VALIDATING_PATH),
    MUTATING_CONFIGURATIONS.gvk: (MUTATION_PROCESS, MUTATING_PATH),
}
WATCHED: Final = (*CONFIGURATIONS, NAMESPACE, EXPANSION_TEMPLATES.gvk)
"""The kinds that are watched for this."""

ALONE: Final = frozenset(WATCHED) - {EXPANSION_TEMPLATES.gvk}
"""The watched kinds whose objects have no status of a replica."""

SETTLE_SECONDS: Final = 10.0
"""How long a starting replica holds conditions back until it has the configurations. Lists take a
second or two; without them the replica would write Active over NotAsked."""

LOOK_SECONDS: Final = 0.1
"""Between two looks at whether the configurations are known."""


class CoverageKeeper:
    """Knows which requests the API server sends. The aggregation passes it the events of its watches."""

    def __init__(
        self, client: ClusterClient, manager: Manager, namespace: str, changed: Callable[[], None]
    ) -> None:
        """``namespace`` is Waddle's own.

        ``changed`` is called if results of :meth:`state_of` may change.
        """
        self._served = ServedKinds(client)
        self._manager = manager
        self._namespace = namespace
        self._changed = changed
        self._configurations: dict[GroupVersionKind, dict[str, Mapping[str, Any]]] = {
            gvk: {} for gvk in CONFIGURATIONS
        }
        self._known: set[GroupVersionKind] = set()
        self._entries: dict[str, tuple[WebhookEntry, ...]] = {}
        self._operations: dict[str, frozenset[str]] = {}
        self._expansions: dict[str, Mapping[str, Any]] = {}
        self._generators: dict[GroupAndKind, frozenset[GroupAndKind]] = {}
        self._excluded: dict[str, tuple[str, ...]] = {}
        self._places: set[str] = set()

    # --- watched objects -----------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Takes an event of any kind; events of other kinds are ignored."""
        if event.gvk in CONFIGURATIONS:
            self._take_configuration(event)
        elif event.key is None:
            return
        elif event.gvk == NAMESPACE:
            if event.key.name in self._places:
                self._changed()
        elif event.gvk == TEMPLATE:
            now = operations_of(event.object)
            if now != self._operations.get(event.key.name, frozenset()):
                self._operations[event.key.name] = now
                self._changed()
        elif event.gvk == EXPANSION_TEMPLATES.gvk:
            self._take_expansion(event.key.name, event.object)
        elif event.gvk == CONFIG and event.key == (self._namespace, CONFIG_NAME):
            self._take_config(event.object or {})

    def _take_configuration(self, event: Event) -> None:
        known = self._configurations[event.gvk]
        if event.key is None:
            self._known.add(event.gvk)
        elif event.object is None or event.kind == "delete":
            known.pop(event.key.name, None)
        else:
            known[event.key.name] = event.object
        if event.gvk not in self._known:
            return
        process, path = CONFIGURATIONS[event.gvk]
        ordered = [known[name] for name in sorted(known)]
        entries = entries_of(ordered, path, self._namespace)
        if process not in self._entries or entries != self._entries[process]:
            self._entries[process] = entries
            self._changed()

    def _take_expansion(self, name: str, document: Mapping[str, Any] | None) -> None:
        self._expansions.pop(name, None)
        if document is not None:
            self._expansions[name] = document
        generators = generators_of(self._expansions.values())
        if generators != self._generators:
            self._generators = generators
            self._changed()

    def _take_config(self, document: Mapping[str, Any]) -> None:
        excluded = {
            process: excluded_namespaces(document, process)
            for process in (WEBHOOK_PROCESS, MUTATION_PROCESS)
        }
        if excluded != self._excluded:
            self._excluded = excluded
            self._changed()

    async def wait_settled(self) -> None:
        """Waits until the configurations are read or unreadable; at most SETTLE_SECONDS."""
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            statistics = self._manager.statistics()
            waiting = [
                gvk
                for gvk in CONFIGURATIONS
                if gvk not in self._known
                and (watch := statistics.get(gvk)) is not None
                and not (watch.absent or watch.last_error)
            ]
            if not waiting:
                return
            await asyncio.sleep(LOOK_SECONDS)

    # --- results -------------------------------------------------------------------------------

    async def state_of(self, document: Mapping[str, Any]) -> CoverageState | None:
        """Returns the share of a policy's requests that arrive.

        None if unknown, or if it needs none.
        """
        need = need_of(document, lambda name: self._operations.get(name, frozenset()))
        if need is None or need.process not in self._entries:
            return None
        self._places.update(need.places)
        await self._served.look_up(need.kinds)
        return coverage_of(
            need,
            WebhookContext(
                self._entries,
                self._generators,
                self._excluded,
                self._labels,
                self._served.targets,
            ),
        )

    def _labels(self, namespace: str) -> Mapping[str, str] | None:
        known = self._manager.get(NAMESPACE, "", namespace)
        return None if known is None else labels_of(known)
