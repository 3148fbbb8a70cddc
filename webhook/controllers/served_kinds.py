"""Looks up the custom kinds that the API server serves, as webhook rules name them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.api.builtin_kinds import BUILTIN_GROUPS
from webhook.cluster.discovery import Discovery
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.wildcard import WILDCARD
from webhook.webhook_rules.kinds import RuleTarget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.cluster.client import ClusterClient
    from webhook.webhook_rules.kinds import GroupAndKind

LOOK_UP_SECONDS: Final = 2.0
"""How long a look-up waits for discovery: the server behind an aggregated API may hang."""

SERVED_SECONDS: Final = 600.0
"""How long the answer about a served kind is kept, as long as discovery keeps it."""

MISSING_SECONDS: Final = 10.0
"""How long the answer about a kind that is not served is kept: its CRD may be created."""


async def served_targets(discovery: Discovery, group: str, kind: str) -> tuple[RuleTarget, ...]:
    """Looks up a custom kind at the API server; raises the errors of requests."""
    resources = await discovery.of_kind(group, kind)
    scopes = {resource.plural: resource.namespaced for resource in resources}
    return tuple(
        RuleTarget(group, plural, (group, kind), namespaced=namespaced)
        for plural, namespaced in scopes.items()
    )


class ServedKinds:
    """The answers of discovery about custom kinds. Used on one event loop."""

    def __init__(self, client: ClusterClient) -> None:
        self._discovery = Discovery(client)
        self._answers: dict[GroupAndKind, tuple[float, tuple[RuleTarget, ...] | None]] = {}
        """The time and result of each look-up; None if it failed."""

    def targets(self, group: str, kind: str) -> tuple[RuleTarget, ...] | None:
        """Returns the targets of a custom kind; None if its name must be guessed."""
        return self._answers.get((group, kind), (0.0, None))[1]

    async def look_up(self, kinds: Iterable[GroupAndKind]) -> bool:
        """Looks up the custom kinds among these; returns whether each of them is served."""
        now, are_served = time.monotonic(), True
        for group, kind in kinds:
            if WILDCARD in (group, kind) or group in BUILTIN_GROUPS:
                continue
            at, targets = self._answers.get((group, kind), (0.0, None))
            if not at or now - at >= (SERVED_SECONDS if targets else MISSING_SECONDS):
                try:
                    async with asyncio.timeout(LOOK_UP_SECONDS):
                        targets = await served_targets(self._discovery, group, kind)
                except (ApiError, ApiUnreachable, TimeoutError):
                    targets = None  # its plural is guessed, as without an API server
                self._answers[group, kind] = now, targets
            are_served = are_served and bool(targets)
        return are_served
