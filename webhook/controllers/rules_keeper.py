"""Keeps the rules of our webhook configurations in step with policies (``--webhook-rules``).

There is no leader. Each replica derives the same rules from the policies that it enforces, and
writes the differences by compare-and-swap. Only the rules of entries that call this webhook are
written.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api.config import MUTATION_PROCESS, WEBHOOK_PROCESS
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import MUTATING_CONFIGURATIONS, WEBHOOK_CONFIGURATIONS
from webhook.cluster.reflector import FollowedObject
from webhook.controllers.keeper import Keeper
from webhook.controllers.served_kinds import MISSING_SECONDS, ServedKinds
from webhook.metrics.policies import WEBHOOK_RULES_WRITES
from webhook.values import dataclass
from webhook.webhook_rules.coverage import operations_of
from webhook.webhook_rules.entries import MUTATING_PATH, VALIDATING_PATH, entries_of
from webhook.webhook_rules.needs import Need, need_of
from webhook.webhook_rules.upkeep import (
    EntryUpkeep,
    delay_of,
    is_kept,
    lock_outs,
    needed_parts,
    replaced,
    rules_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.api.resource import Resource
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Revision
    from webhook.webhook_rules.kinds import GroupAndKind
    from webhook.webhook_rules.rules import RulePart

GATHER_SECONDS: Final = 0.05
"""How long changes are gathered into one write."""

LOOK_SECONDS: Final = 20.0
"""How often a replica looks again while rules are to be removed."""


class RuleOptions(NamedTuple):
    """The webhook configurations whose rules are kept, by name, and the groups of policies.

    ``mutating`` is empty without mutation.
    """

    validating: str
    mutating: str
    own_groups: Collection[str]


class _Configuration(FollowedObject):
    """One of our webhook configurations, with its watch."""

    def __init__(
        self, client: ClusterClient, resource: Resource, name: str, notify: Callable[[], None]
    ) -> None:
        super().__init__(client, resource, name, notify)
        self.upkeep: dict[str, EntryUpkeep] = {}


@dataclass(slots=True)
class _Plan:
    """The planned configuration, None without a difference; and the time of the next look."""

    document: Json | None = None
    again_seconds: float | None = None
    is_wider: bool = False
    refused: tuple[str, ...] = ()
    changes: dict[str, tuple[frozenset[RulePart], frozenset[RulePart]]] = field(
        default_factory=dict
    )
    """The rules of each entry that changes, before and after."""


class RulesKeeper:
    """Plans and writes the rules; :meth:`run` in a task of its own."""

    def __init__(
        self,
        client: ClusterClient,
        namespace: str,
        options: RuleOptions,
        log: Logger,
        registry: Registry,
        object_faults: ObjectFaults,
        *,
        is_behind: Callable[[], bool],
    ) -> None:
        """``namespace`` is Waddle's own. While this replica ``is_behind`` it removes no rules."""
        self._is_behind = is_behind
        self._client = client
        self._namespace = namespace
        self._own_groups = options.own_groups
        self._log = log
        self._registry = registry
        self._served = ServedKinds(client)
        self._needs: tuple[Need, ...] | None = None
        self._generators: Mapping[GroupAndKind, frozenset[GroupAndKind]] = {}
        self._refused: tuple[str, ...] = ()
        named = [(WEBHOOK_PROCESS, WEBHOOK_CONFIGURATIONS, options.validating)]
        if options.mutating:
            named.append((MUTATION_PROCESS, MUTATING_CONFIGURATIONS, options.mutating))
        self._configurations = {
            process: _Configuration(client, resource, name, partial(self._add, process))
            for process, resource, name in named
        }
        self._keeper: Keeper[str] = Keeper(
            "rules", self._settle, object_faults, retry_seconds=0.5, retry_seconds_max=30.0
        )

    def _add(self, process: str) -> None:
        self._keeper.add(process, GATHER_SECONDS)

    def follow(self, revision: Revision) -> None:
        """Takes the policies in force."""
        snapshot = revision.snapshot
        every = {entry.kind.lower(): entry.document for entry in snapshot.templates}
        operations = {name: operations_of(document) for name, document in every.items()}
        broken = (constraint for constraint, _ in snapshot.broken)
        documents = [
            *(constraint.document for constraint in (*snapshot.constraints, *broken)),
            *(mutator.document for mutator in revision.mutations.mutators),
            *(mutator.document for mutator in revision.mutations.previewed),
            *revision.policies.foreign.enforced,
        ]
        needs = (
            need_of(document, lambda name: operations.get(name, frozenset()))
            for document in documents
        )
        self._needs = tuple(need for need in needs if need is not None)
        kinds: dict[GroupAndKind, frozenset[GroupAndKind]] = {}
        for template in revision.expansion.templates:
            key = template.generates.group_kind
            kinds[key] = kinds.get(key, frozenset()) | {
                target.group_kind for target in template.applies_to
            }
        self._generators = kinds
        for process in self._configurations:
            self._add(process)

    async def run(self) -> None:
        """Keeps the objects until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for configuration in self._configurations.values():
                tasks.create_task(configuration.reflector.run())
            tasks.create_task(self._keeper.run())

    async def _settle(self, process: str) -> None:
        configuration = self._configurations[process]
        document = configuration.document
        if self._needs is None or document is None:
            self._keeper.settled(process)
            return
        kinds = [kind for need in self._needs for kind in need.kinds]
        kinds += [source for sources in self._generators.values() for source in sources]
        is_whole = await self._served.look_up(dict.fromkeys(kinds))
        plan = self._planned(process, document)
        self._report_refused(plan.refused)
        if plan.document is not None and not await self._write(process, configuration):
            return
        waits = [
            seconds
            for seconds in (plan.again_seconds, None if is_whole else MISSING_SECONDS)
            if seconds
        ]
        self._keeper.settled(process, min(waits) if waits else None)

    def _planned(self, process: str, document: Mapping[str, Any]) -> _Plan:
        """Plans a configuration by the policies in force here."""
        path = VALIDATING_PATH if process == WEBHOOK_PROCESS else MUTATING_PATH
        upkeep = self._configurations[process].upkeep
        needs = [need for need in self._needs or () if need.process == process]
        now, is_behind = time.monotonic(), self._is_behind()
        delay = math.inf if is_behind else delay_of(document)
        plan, refused, waits = _Plan(), [], []
        for entry in entries_of([document], path, self._namespace):
            if not is_kept(entry):
                continue
            name = str(entry.document.get("name"))
            live = rules_of(entry)
            needed = needed_parts(
                entry,
                needs,
                self._generators,
                self._served.targets,
                self._own_groups,
                validates=process == WEBHOOK_PROCESS,
            )
            known = upkeep.setdefault(name, EntryUpkeep())
            if is_behind:
                known.unneeded.clear()
            change = known.change(live, needed, now, delay)
            if change.again_seconds is not None:
                waits.append(change.again_seconds)
            if change.parts is None:
                continue
            if why := next(lock_outs(entry, change.parts), ""):
                refused.append(why)
                continue
            plan.changes[name] = live, change.parts
            plan.is_wider |= change.is_wider
        plan.again_seconds = min(*waits, LOOK_SECONDS) if waits else None
        plan.refused = tuple(refused)
        if plan.changes:
            plan.document = replaced(document, {name: to for name, (_, to) in plan.changes.items()})
        return plan

    async def _write(self, process: str, configuration: _Configuration) -> bool:
        """Writes the planned rules over the current configuration; False if it must be tried again."""
        plan = _Plan()

        def planned(document: Json) -> Json | None:
            nonlocal plan
            plan = self._planned(process, document)
            return plan.document

        try:
            written = await configuration.update(planned)
        except (ApiError, ApiUnreachable) as error:
            self._registry.count(WEBHOOK_RULES_WRITES, "failed")
            self._log.warning(
                "the rules of a webhook configuration cannot be written; trying again",
                configuration=configuration.name,
                error=str(error),
            )
            self._keeper.failed(process)
            return False
        if written is None:
            return True  # another replica was faster
        self._keeper.writes += 1
        for name, (before, after) in plan.changes.items():
            configuration.upkeep[name].written(before, after)
        change = "widened" if plan.is_wider else "narrowed"
        self._registry.count(WEBHOOK_RULES_WRITES, change)
        self._log.info(
            "rules of a webhook configuration written",
            configuration=configuration.name,
            change=change,
        )
        return True

    def _report_refused(self, refused: tuple[str, ...]) -> None:
        if refused != self._refused:
            self._refused = refused
            for why in refused:
                self._log.warning("rules that policies need are not written", error=why)
