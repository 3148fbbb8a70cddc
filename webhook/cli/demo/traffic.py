"""Sends the requests of a cluster's users: some are denied, some get a warning."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.cli.demo.installation import LAB, SHOP, config_map, deployment
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS
from webhook.printable import quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cluster.client import ClusterClient

PAUSE_SECONDS: Final = 0.1
"""The pause between requests, in seconds: about eight requests a second."""

TALLY_SECONDS: Final = 15.0

_OUTCOMES: Final = {403: "denied", 422: "denied", 500: "fault"}
"""By the code of an answer: ValidatingAdmissionPolicies refuse by 422, and 500 is no denial
(docs/isolation.md)."""


class Traffic:
    """Sends dry runs, so that no objects accumulate, and counts the answers."""

    def __init__(self, client: ClusterClient, notify: Callable[[str], None]) -> None:
        self._client = client
        self._notify = notify
        self.counts: Counter[str] = Counter()
        self._reported: set[str] = set()

    async def leave_some(self) -> None:
        """Creates objects that violate later policies, for the audit."""
        for document in (
            deployment("old-agent", privileged=True),
            deployment("old-shop"),
            deployment("shop", owner="shop-team"),
        ):
            await self._client.create(DEPLOYMENTS, document, SHOP)

    async def run(self) -> None:
        """For ever, a tally now and then."""
        clock = asyncio.get_running_loop()
        due = clock.time() + TALLY_SECONDS
        for number in itertools.count():
            await self._ask(number)
            if clock.time() >= due:
                due += TALLY_SECONDS
                self._notify(self.tally())
            await asyncio.sleep(PAUSE_SECONDS)

    def tally(self) -> str:
        """Counts the answers to the requests so far."""
        counts = self.counts
        line = (
            f"{quantity(counts.total(), 'request')}: {counts['allowed']} allowed, "
            f"{counts['denied']} denied, {counts['fault']} refused because the matching policy "
            "failed"
        )
        return line + (f", {counts['lost']} lost" if counts["lost"] else "")

    async def _ask(self, number: int) -> None:
        """Sends one of five requests in turn.

        The bad policy matches the fifth, once the policy exists.
        """
        resource, namespace = DEPLOYMENTS, SHOP
        document = deployment(f"web-{number}", owner="shop-team")
        match number % 5:
            case 1:
                document = deployment(f"agent-{number}", owner="node-team", privileged=True)
            case 3:
                document = deployment(f"without_providers-{number}")
            case 4:
                resource, namespace = CONFIG_MAPS, LAB
                document = config_map(f"notes-{number}", LAB)
        try:
            await self._client.request(
                "POST", resource.collection(namespace), query={"dryRun": "All"}, body=document
            )
        except ApiError as error:
            outcome = _OUTCOMES.get(error.status, "lost")
            self._report_once(outcome, error.message)
        except ApiUnreachable as error:
            outcome = "lost"
            self._report_once(outcome, str(error))
        else:
            outcome = "allowed"
        self.counts[outcome] += 1

    def _report_once(self, outcome: str, message: str) -> None:
        if outcome not in self._reported:
            self._reported.add(outcome)
            first = {
                "denied": "denied",
                "fault": "refused because of a failing policy",
                "lost": "not answered",
            }
            self._notify(f"The first request that is {first[outcome]}: {message}")
