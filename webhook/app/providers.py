"""The thread that asks providers of external data, on an event loop of its own.

Whoever needs an answer waits for nothing here: it has a future. The thread begins with the first
question, so that nothing of it is there where nobody asks.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from webhook.app.loop_thread import LoopThread
from webhook.app.priority import give_precedence
from webhook.backoff import Backoff
from webhook.external_data.cache import ResponseCache
from webhook.external_data.flights import Flights
from webhook.review.policy_set import NO_PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from webhook.external_data.exchange import ProviderAnswers, ProviderRequest, ProviderResponse
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.serving.revision import Serving
    from webhook.settings.serve import ServeSettings


class ProviderThread:
    """Asks the Providers in force; any thread may have it ask."""

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
        self._thread = LoopThread("providers", self._run, give_precedence)
        self._lock = threading.Lock()
        self._is_started = False

    def _providers(self) -> Mapping[str, DataProvider]:
        revision = self._serving.revision
        return NO_PROVIDERS if revision is None else revision.policies.providers

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """The answer to a request, where it is kept."""
        return self._flights.known(request)

    def ask(
        self, request: ProviderRequest, *, fresh: bool = False, requester: str = ""
    ) -> Future[ProviderResponse]:
        """The answer to a request, when it is there; with ``fresh`` asked for anew."""
        if not self._is_started:
            with self._lock:
                if not self._is_started:
                    self._thread.start()
                    self._is_started = True
        return self._flights.ask(request, fresh=fresh, requester=requester)

    async def ask_all(self, requests: tuple[ProviderRequest, ...]) -> ProviderAnswers:
        """The answers to several requests, which are asked beside each other."""
        futures = {request: self.ask(request) for request in requests}
        return {request: await asyncio.wrap_future(future) for request, future in futures.items()}

    async def _run(self) -> None:
        """Ask for whoever wants it; after a bug begin anew."""
        backoff = Backoff(initial_seconds=0.1)
        while True:
            try:
                await self._flights.run()
            except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
                self._log.fault("bug: providers are no longer asked; beginning anew", error)
            await asyncio.sleep(backoff.next_seconds())

    def refresh(self) -> None:
        """Bring the gauges up to date for a scrape."""
        self._flights.refresh()

    def stop(self) -> None:
        """Ask nobody any more."""
        self._thread.stop()
