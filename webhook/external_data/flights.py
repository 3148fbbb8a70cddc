"""Requests to providers on their way, and everybody who waits for them.

Any thread asks; requests are made on one event loop. Equal requests share a flight. It ends by the
provider's time, not by that of whoever began it, and what it brings is kept: who asks again finds it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.external_data.cache import answered_items
from webhook.external_data.exchange import (
    ASKED_KEYS_MAX,
    UNKNOWN_PROVIDER,
    ProviderResponse,
    failure,
)
from webhook.external_data.response import SENT, ProviderFault
from webhook.external_data.suspension import Suspension
from webhook.metrics.providers import (
    PROVIDER_ABANDONED,
    PROVIDER_CACHE_BYTES,
    PROVIDER_CACHE_EVICTIONS,
    PROVIDER_FLIGHTS,
    PROVIDER_KEYS,
    PROVIDER_REQUESTS,
    PROVIDER_SECONDS,
    PROVIDER_WAITS_ENDED,
    PROVIDERS_SUSPENDED,
)
from webhook.metrics.registry import OTHER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.external_data.cache import Lookup, ResponseCache
    from webhook.external_data.client import ProviderClient
    from webhook.external_data.exchange import ProviderRequest
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.external_data.response import AnsweredKey, ProviderAnswer
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

FLIGHTS_MAX: Final = 256
"""Requests under way to one provider: at 20 ms each 12,000 a second."""

UNAWAITED_MAX: Final = 64
"""Of all requests those under way for nobody any more: a page of an audit has as many."""

SWEEP_SECONDS: Final = 30.0
"""How often answers that are too old are let go, and clients of Providers that are no more."""

LAST_GOODBYE_SECONDS: Final = 0.15
"""Half as long again as the event loop waits for a peer's end of TLS."""

UNKNOWN: Final = "key is not found in provider cache"
"""Gatekeeper's word for a provider that is not known."""


class _Question(NamedTuple):
    """What somebody waits for."""

    request: ProviderRequest
    provider: DataProvider
    known: Lookup
    requester: str
    future: Future[ProviderResponse] | None
    """None for an answer that is asked for to be kept."""


class _Landed(NamedTuple):
    """What came of a request: what to tell, and what the provider said, if it did."""

    response: ProviderResponse
    answer: ProviderAnswer | None


class _Flight:
    """One request under way."""

    __slots__ = ("provider", "task", "waiters")

    def __init__(self, provider: DataProvider) -> None:
        self.provider = provider
        self.waiters: list[_Question] = []
        self.task: asyncio.Task[_Landed] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether somebody still waits for it."""
        return any(item.future is not None and not item.future.cancelled() for item in self.waiters)


class _Station:
    """All that belongs to one Provider as it is now."""

    def __init__(self, client: ProviderClient) -> None:
        self.client = client
        self.suspension = Suspension()
        self.flights: dict[tuple[str, ...], _Flight] = {}


class Flights:
    """Asks providers for whoever needs it; :meth:`run` on an event loop, the rest from any thread."""

    def __init__(
        self,
        providers: Callable[[], Mapping[str, DataProvider]],
        cache: ResponseCache,
        registry: Registry,
        log: Logger,
        *,
        pair: ClientPair | None = None,
        series_max: int = 1000,
    ) -> None:
        """``providers`` gives those in force, ``pair`` is shown to those that ask for one.

        ``series_max`` bounds the providers that are counted by name.
        """
        self._providers = providers
        self._cache = cache
        self._registry = registry
        self._log = log
        self._pair = pair
        self._series_max = series_max
        self._counted: set[str] = set()
        self._lock = threading.Lock()
        self._known: dict[str, DataProvider] = {}
        """Each Provider as it was when its answers were kept."""
        self._due: deque[_Question] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes = asyncio.Event()
        self._is_waking = False
        """Whether the loop has been told that something is due, and has not looked yet."""
        self._stations: dict[str, _Station] = {}
        self._unawaited: dict[_Flight, None] = {}
        self._evicted = 0

    # --- any thread ----------------------------------------------------------------------------

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """The answer to a request, where all of it is kept."""
        self._note_changes(request.provider)
        lookup = self._cache.look(request.provider, request.keys)
        if lookup.missing:
            return None
        return self._from_cache(request, lookup)

    def ask(
        self, request: ProviderRequest, *, fresh: bool = False, requester: str = ""
    ) -> Future[ProviderResponse]:
        """The answer to a request, when it is there: at the latest when the provider's time is over.

        With ``fresh`` it is asked for anew unless it has just been answered. Whoever waits no
        longer cancels the future; what was asked goes on. ``requester`` is for whom it is asked.
        """
        future: Future[ProviderResponse] = Future()
        provider = self._note_changes(request.provider)
        lookup = self._cache.look(request.provider, request.keys, fresh=fresh)
        if not lookup.missing:
            future.set_result(self._from_cache(request, lookup))
        elif provider is None:
            self._count("", "unknown")
            future.set_result(failure(UNKNOWN, UNKNOWN_PROVIDER))
        elif len(lookup.missing) > ASKED_KEYS_MAX:
            message = f"{SENT}: {len(lookup.missing)} keys are asked for at once, and {ASKED_KEYS_MAX} may be"
            self._count(provider.name, "too_many_keys")
            future.set_result(failure(message))
        else:
            self._count_keys(cached=len(lookup.items), asked=len(lookup.missing))
            self._begin(_Question(request, provider, lookup, requester, future))
        return future

    def _from_cache(self, request: ProviderRequest, lookup: Lookup) -> ProviderResponse:
        """What is kept; what of it ages is asked for again for the next."""
        self._count_keys(cached=len(lookup.items))
        if lookup.aging and (provider := self._providers().get(request.provider)) is not None:
            self._count_keys(refreshed=len(lookup.aging))
            aging = lookup._replace(items=(), missing=tuple(dict.fromkeys(lookup.aging)))
            self._begin(_Question(request, provider, aging, "", None))
        responses, errors = answered_items(lookup.items)
        return ProviderResponse(responses, errors, 0, "", lookup.is_idempotent, is_cached=True)

    def _count_keys(self, **counts: int) -> None:
        with self._lock:  # several threads count
            for answered, count in counts.items():
                if count:
                    self._registry.count(PROVIDER_KEYS, answered, by=count)

    def _note_changes(self, name: str) -> DataProvider | None:
        """The Provider of a name as it is now; what another said is forgotten."""
        provider = self._providers().get(name)
        if provider is not None and (before := self._known.get(name)) is not provider:
            with self._lock:
                if before is not None and before != provider:
                    self._cache.forget(name)
                self._known[name] = provider
        return provider

    def _begin(self, question: _Question) -> None:
        self._due.append(question)
        if (loop := self._loop) is not None and not self._is_waking:
            self._is_waking = True
            try:
                loop.call_soon_threadsafe(self._wakes.set)
            except RuntimeError:  # the loop has just ended
                self._refuse_due()

    # --- the event loop ------------------------------------------------------------------------

    async def run(self) -> None:
        """Make the requests until cancelled; then those who wait get an error."""
        self._wakes = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tidy())
                while True:
                    self._wakes.clear()
                    self._is_waking = False
                    while self._due:
                        self._take(self._due.popleft(), tasks)
                    await self._wakes.wait()
        finally:
            self._loop = None
            self._refuse_due()
            stations, self._stations = self._stations, {}
            for station in stations.values():
                station.client.retire()
            # A loop that is closed while TLS says goodbye ends with an error.
            await asyncio.sleep(LAST_GOODBYE_SECONDS)

    def _refuse_due(self) -> None:
        while self._due:
            _tell(self._due.popleft(), failure(f"{SENT}: the process is stopping"))

    def _take(self, question: _Question, tasks: asyncio.TaskGroup) -> None:
        """Join the flight of an equal request, or begin one; or say why there is none."""
        station = self._station(question.provider)
        keys = question.known.missing
        flight = station.flights.get(keys)
        if flight is None:
            if refusal := self._refusal(station, question):
                _tell(question, failure(refusal))
                return
            flight = station.flights[keys] = _Flight(question.provider)
            flight.task = tasks.create_task(self._fly(station, keys, question.requester))
            flight.task.add_done_callback(partial(self._landed, station, keys, flight))
        flight.waiters.append(question)
        if question.future is not None:
            self._unawaited.pop(flight, None)
            question.future.add_done_callback(partial(self._left, flight))
        elif not flight.is_awaited:
            self._note_unawaited(flight)

    def _station(self, provider: DataProvider) -> _Station:
        station = self._stations.get(provider.name)
        if station is None or station.client.provider != provider:
            if station is not None:
                station.client.retire()
            # Here and not above: until a provider is asked nothing of it is needed.
            from webhook.external_data.client import ProviderClient  # noqa: PLC0415

            station = _Station(ProviderClient(provider, self._pair))
            self._stations[provider.name] = station
        return station

    def _refusal(self, station: _Station, question: _Question) -> str:
        """Why a request is not sent; empty where it is."""
        name = question.provider.name
        if len(station.flights) >= FLIGHTS_MAX:
            self._count(name, "crowded")
            return f"{SENT}: {FLIGHTS_MAX} requests to provider {name} are under way"
        refusal = station.suspension.refusal(question.requester)
        if refusal:
            self._count(name, "suspended")
        return refusal

    def _left(self, flight: _Flight, future: Future[ProviderResponse]) -> None:
        """Somebody waits no longer, or has been told; called by any thread."""
        if not future.cancelled():
            return
        with self._lock:
            self._registry.count(PROVIDER_WAITS_ENDED)
        if (loop := self._loop) is not None:
            try:
                loop.call_soon_threadsafe(self._note_unawaited, flight)
            except RuntimeError:  # the loop has just ended
                return

    def _note_unawaited(self, flight: _Flight) -> None:
        """Nobody waits for a flight; of too many the oldest ends."""
        if flight.task is None or flight.task.done() or flight.is_awaited:
            return
        self._unawaited[flight] = None
        while len(self._unawaited) > UNAWAITED_MAX:
            oldest = next(iter(self._unawaited))
            del self._unawaited[oldest]
            if oldest.task is not None:
                oldest.task.cancel()
            self._registry.count(PROVIDER_ABANDONED)

    async def _fly(self, station: _Station, keys: tuple[str, ...], requester: str) -> _Landed:
        """Make a request; what to tell whoever waits."""
        name, began = station.client.provider.name, time.monotonic()
        answer: ProviderAnswer | None = None
        try:
            answer, status = await station.client.ask(keys)
        except ProviderFault as fault:
            outcome, response = fault.outcome, failure(str(fault))
            if outcome in ("timeout", "transport"):
                self._failed(station, requester, fault)
        except Exception as error:  # noqa: BLE001  # the flight's boundary: others fly on
            outcome, response = "bug", failure(f"{SENT}: internal error")
            self._log.fault("bug: a provider was not asked", error, provider=name)
        else:
            outcome = "system_error" if answer.system_error else "success"
            response = ProviderResponse((), (), status, answer.system_error, answer.is_idempotent)
            self._answered(station, requester)
        seconds = time.monotonic() - began
        self._count(name, outcome)
        self._registry.histogram(PROVIDER_SECONDS).observe(seconds)
        return _Landed(response._replace(milliseconds=round(seconds * 1000, 3)), answer)

    def _landed(
        self, station: _Station, keys: tuple[str, ...], flight: _Flight, task: asyncio.Task[_Landed]
    ) -> None:
        """A flight has come to its end: keep what it brought, and tell whoever waits."""
        if station.flights.get(keys) is flight:
            del station.flights[keys]
        self._unawaited.pop(flight, None)
        landed = _Landed(failure(f"{SENT}: the request was ended"), None)
        if not task.cancelled():
            landed = task.result()
        if landed.answer is not None:
            self._keep(flight, landed.answer)
        items = () if landed.answer is None else landed.answer.items
        for question in flight.waiters:
            _tell(question, landed.response, items)

    def _failed(self, station: _Station, requester: str, fault: ProviderFault) -> None:
        was_open = station.suspension.is_open
        station.suspension.failed(requester, str(fault), connected=fault.connected)
        if station.suspension.is_open and not was_open:
            name = station.client.provider.name
            self._log.warning(
                "provider suspended: it failed repeatedly", provider=name, error=str(fault)
            )

    def _answered(self, station: _Station, requester: str) -> None:
        was_open = station.suspension.is_open
        station.suspension.answered(requester)
        if was_open:
            self._log.info("provider answers again", provider=station.client.provider.name)

    def _keep(self, flight: _Flight, answer: ProviderAnswer) -> None:
        """Keep what a Provider said that is still the same, or is gone."""
        provider = flight.provider
        refreshes = all(item.future is None for item in flight.waiters)
        with self._lock:
            if self._known.get(provider.name) == provider:
                self._cache.keep(provider.name, answer, refreshes=refreshes)

    def _count(self, provider: str, outcome: str) -> None:
        """Count a request; empty is a provider that is none, whose name may be any text."""
        with self._lock:  # several threads count
            if provider and provider not in self._counted:
                if len(self._counted) < self._series_max:
                    self._counted.add(provider)
                else:
                    provider = ""
            self._registry.count(PROVIDER_REQUESTS, provider or OTHER, outcome)

    async def _tidy(self) -> None:
        """Let go of what is too old, and of clients whose Providers are no more, again and again."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._cache.sweep()
            providers, kept = self._providers(), self._cache.providers()
            for name in [name for name in self._known if name not in providers]:
                if name not in kept:
                    with self._lock:
                        self._known.pop(name, None)
            for name, station in tuple(self._stations.items()):
                if name not in providers and not station.flights:
                    del self._stations[name]
                    station.client.retire()
                else:
                    station.client.prune()

    def refresh(self) -> None:
        """Bring the gauges up to date for a scrape; called by any thread."""
        registry, stations = self._registry, dict(self._stations)
        registry.set(PROVIDER_CACHE_BYTES, self._cache.bytes)
        evicted, self._evicted = self._cache.evicted - self._evicted, self._cache.evicted
        if evicted:
            registry.count(PROVIDER_CACHE_EVICTIONS, by=evicted)
        registry.set(PROVIDER_FLIGHTS, sum(len(item.flights) for item in stations.values()))
        suspended = sorted(name for name, item in stations.items() if item.suspension.is_open)
        registry.replace(
            PROVIDERS_SUSPENDED, {(name,): 1.0 for name in suspended[: self._series_max]}
        )


def _tell(
    question: _Question, response: ProviderResponse, items: tuple[AnsweredKey, ...] = ()
) -> None:
    """Answer somebody: cached keys first, then those that were asked, as the provider ordered them."""
    future = question.future
    if future is None or not future.set_running_or_notify_cancel():
        return
    if response.responses is not None:
        responses, errors = answered_items((*question.known.items, *items))
        is_idempotent = response.is_idempotent and question.known.is_idempotent
        response = response._replace(
            responses=responses, errors=errors, is_idempotent=is_idempotent
        )
    future.set_result(response)
