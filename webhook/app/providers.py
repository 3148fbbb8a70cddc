"""Calls providers of external data, on the event loop that answers admissions.

The caller gets a future and does not block here. With a separate thread the hand-over would take
longer than the request itself.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING

from webhook.backoff import Backoff
from webhook.external_data.cache import ResponseCache
from webhook.external_data.flights import Flights
from webhook.printable import quantity
from webhook.review.policy_set import NO_PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.external_data.exchange import ProviderAnswers, ProviderRequest, ProviderResponse
    from webhook.external_data.flights import ProviderRound
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Serving
    from webhook.settings.serve import ServeSettings


class ProviderRequests:
    """Calls the Providers in force; any thread may use it."""

    def __init__(
        self,
        settings: ServeSettings,
        serving: Serving,
        registry: Registry,
        log: Logger,
        pair: ClientPair | None,
    ) -> None:
        """``pair`` is shown to providers that ask for a certificate."""
        self._serving = serving
        self._log = log
        self._flights = Flights(
            self._providers,
            ResponseCache(
                value_seconds=settings.deciding.external_data_cache_seconds,
                error_seconds=settings.deciding.external_data_error_cache_seconds,
            ),
            registry,
            log,
            pair=pair,
            series_max=settings.logging.max_constraint_series,
        )

    def _providers(self) -> Mapping[str, DataProvider]:
        revision = self._serving.revision
        return NO_PROVIDERS if revision is None else revision.policies.providers

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """Returns the cached answer to a request, if any."""
        return self._flights.known(request)

    def round(self, *, fresh: bool = False, requester: str = "") -> ProviderRound:
        """Begins a round of requests; with ``fresh`` cached answers are not used."""
        return self._flights.round(fresh=fresh, requester=requester)

    async def ask_all(self, requests: tuple[ProviderRequest, ...]) -> ProviderAnswers:
        """Returns the answers to several requests, which are sent concurrently."""
        asking = self._flights.round()
        for request in requests:
            asking.begin(request)
        answered: Future[ProviderAnswers] = Future()

        def notify(whole: ProviderRound) -> None:
            if answered.set_running_or_notify_cancel():
                answered.set_result(whole.answers)

        asking.add_done_callback(notify)
        try:
            return await asyncio.wrap_future(answered)
        finally:
            asking.cancel()

    async def run(self) -> None:
        """Sends requests until cancelled; restarts after a bug."""
        backoff = Backoff(initial_seconds=0.1)
        while True:
            try:
                await self._flights.run()
            except Exception as error:  # noqa: BLE001  # the boundary of it: its end is not silent
                self._log.fault("bug: requests to providers stopped; they start again", error)
            await asyncio.sleep(backoff.next_seconds())

    def faults(self) -> tuple[str, ...]:
        """Returns suspended and slow providers, and what to do; any thread may call it."""
        suspended = self._flights.suspended()
        failing = (
            f"the provider {name} is hardly asked any more, since it failed again and again ({fault}): "
            "look at its Pods, its NetworkPolicy and its certificate"
            for name, fault in sorted(suspended.items())
        )
        for_users = self._flights.suspended_for_users()
        failing_for_users = (
            f"the provider {name} is hardly asked any more for {quantity(count, 'user')}, since it failed "
            f"for them again and again ({fault}): the log of logger providers names them; look at its "
            "Pods and at the keys that they ask for"
            for name, (count, fault) in sorted(for_users.items())
        )
        slow = (
            f"the provider {name} is slow: its answers take {seconds:.1f} s, over half of its timeout, "
            "and admissions wait for it: look at its Pods and their CPU"
            for name, seconds in sorted(self._flights.slow().items())
            if name not in suspended and name not in for_users
        )
        return (*failing, *failing_for_users, *slow)

    def refresh(self) -> None:
        """Bring the gauges up to date for a scrape."""
        self._flights.refresh()
