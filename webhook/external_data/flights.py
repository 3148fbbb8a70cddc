"""The running requests to providers (flights), and the callers that wait for them.

Any thread may ask; one event loop sends the requests. Equal requests share a flight. A flight ends
by the provider's timeout, not by the deadline of its first caller. Its answer is cached for later
callers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.external_data.cache import answered_items, corrected_keys
from webhook.external_data.exchange import (
    REQUEST_KEYS_MAX,
    UNKNOWN_PROVIDER,
    ProviderResponse,
    failure,
)
from webhook.external_data.response import SENT, ProviderAnswer, ProviderFault
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
    from webhook.external_data.client import ProviderCall, ProviderClient
    from webhook.external_data.exchange import ProviderRequest
    from webhook.external_data.provider import ClientPair, DataProvider
    from webhook.external_data.response import AnsweredKey
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

FLIGHTS_MAX: Final = 256
"""The number of running requests to one provider at most: 12,000 a second at 20 ms each, half of
them of one requester."""

UNAWAITED_MAX: Final = 64
"""The number of running requests that no caller waits for at most; a page of an audit has as many.
"""

LANDINGS_MAX: Final = 8
"""The number of answers that are noted at once while others are under way: those of a review or two.
To note eight of three keys each takes 0.15 ms."""

AVERAGED: Final = 8
"""The number of requests that a provider's mean time is about."""

SLOW_NEWS_SECONDS: Final = 60.0
"""A provider is reported as slow for so long after its last request."""

SWEEP_SECONDS: Final = 30.0
"""The interval at which expired answers, and clients of deleted Providers, are removed."""

TAKEN_AT_ONCE: Final = 8
"""The number of an audit's questions that one turn of the loop takes: half a millisecond of work.
"""

UNKNOWN: Final = "key is not found in provider cache"
"""Gatekeeper's message for an unknown provider."""

_NO_KEYS: Final[frozenset[str]] = frozenset()


class _Question(NamedTuple):
    """A caller that waits for keys."""

    request: ProviderRequest
    provider: DataProvider
    known: Lookup
    requester: str
    round: ProviderRound | None
    """The round that waits for the answer; None for a prefetch into the cache."""


class _Flight:
    """One running request."""

    __slots__ = (
        "began",
        "call",
        "keys",
        "provider",
        "refreshes",
        "requester",
        "station",
        "waiters",
    )

    def __init__(self, station: _Station, keys: tuple[str, ...], requester: str) -> None:
        self.station = station
        self.provider = station.client.provider
        self.keys = keys
        self.requester = requester
        self.began = time.monotonic()
        self.waiters: list[_Question] = []
        self.refreshes = True
        """Whether it only renews cached answers: no caller has waited for it."""
        self.call: ProviderCall | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether a caller still waits for it."""
        return any(item.round is not None and not item.round.is_given_up for item in self.waiters)


class _Landed(NamedTuple):
    """An answer that is not noted yet."""

    flight: _Flight
    answer: ProviderAnswer
    received: float
    """When it arrived, on the cache's clock."""
    seconds: float
    """How long it took."""


class ProviderRound:
    """The concurrent requests of one caller; any thread may begin them, and wait for the answers.

    It does not keep a :class:`~concurrent.futures.Future`, which takes as long as reading an answer.
    """

    __slots__ = (
        "_begin",
        "_callback",
        "_lock",
        "_missing",
        "_on_given_up",
        "answers",
        "flights",
        "is_fresh",
        "is_given_up",
        "requester",
    )

    def __init__(
        self,
        begin: Callable[[ProviderRequest, ProviderRound], None],
        on_given_up: Callable[[ProviderRound], None],
        requester: str,
        *,
        is_fresh: bool = False,
    ) -> None:
        self.answers: dict[ProviderRequest, ProviderResponse] = {}
        self.requester = requester
        self.is_fresh = is_fresh
        """Whether keys are requested anew unless they have just been answered."""
        self.flights: list[_Flight] = []
        """The flights that the round waits for."""
        self._begin = begin
        self._on_given_up = on_given_up
        self._lock = threading.Lock()
        self._missing: set[ProviderRequest] = set()
        self._callback: Callable[[ProviderRound], object] | None = None
        self.is_given_up = False
        """Whether the caller has stopped waiting."""

    def begin(self, request: ProviderRequest) -> None:
        """Begins a request, once; none after :meth:`add_done_callback`."""
        if request not in self.answers and request not in self._missing:
            self._missing.add(request)
            self._begin(request, self)

    def done(self) -> bool:
        """Returns whether all answers are there: at the latest at the providers' timeout."""
        return not self._missing

    def add_done_callback(self, callback: Callable[[ProviderRound], object], /) -> None:
        """Sets the one function to call when all answers are there, on any thread."""
        with self._lock:
            if self._missing:
                self._callback = callback
                return
        callback(self)

    def cancel(self) -> bool:
        """Stops waiting, and returns whether answers are missing; their requests go on."""
        with self._lock:
            if not self._missing:
                return False
            self.is_given_up, self._callback = True, None
        self._on_given_up(self)
        # They refer back to this object and would keep it until a full garbage collection.
        self.flights = []
        return True

    def answered(self, request: ProviderRequest, response: ProviderResponse) -> None:
        """Receives the answer to a request; called by any thread."""
        with self._lock:
            self.answers[request] = response
            self._missing.discard(request)
            if self._missing:
                return
            callback, self._callback = self._callback, None
            self.flights = []
        if callback is not None:
            callback(self)


class _Station:
    """The client, suspension and flights of one version of a Provider."""

    def __init__(self, client: ProviderClient) -> None:
        self.client = client
        self.suspension = Suspension()
        self.flights: dict[tuple[str, ...], _Flight] = {}
        self.seconds = 0.0
        """How long requests took, on average over some eight of them."""
        self.noted = 0.0
        """When the last one ended, on the monotonic clock."""

    def note_time(self, seconds: float, now: float) -> None:
        """Notes how long a request took that ended now."""
        before = self.seconds if self.noted else seconds
        self.seconds = before + (seconds - before) / AVERAGED
        self.noted = now

    @property
    def may_refuse(self) -> bool:
        """Whether some requester may have no more flights: half of the places are taken, or it failed."""
        return 2 * len(self.flights) >= FLIGHTS_MAX or self.suspension.has_faults

    def is_crowded(self, requester: str) -> bool:
        """Whether a requester may have no more flights: it has as many as there are places left.

        So one requester has half of the places at most, and leaves room for others.
        """
        flights, left = self.flights.values(), FLIGHTS_MAX - len(self.flights)
        return left <= len(flights) and left <= sum(item.requester == requester for item in flights)


class Flights:
    """Sends requests to providers; :meth:`run` on an event loop, the rest from any thread.

    On the thread of that loop, :meth:`ProviderRound.begin` sends a request before it returns.
    """

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
        """``providers`` returns those in force; ``pair`` is the client certificate.

        ``series_max`` bounds the providers that are counted by name.
        """
        self._providers = providers
        self._cache = cache
        self._registry = registry
        self._log = log
        self._pair = pair
        self._series_max = series_max
        self._counted: set[str] = set()
        self._lock = threading.RLock()
        self._known: dict[str, DataProvider] = {}
        """Each Provider as it was when its answers were cached."""
        self._due: deque[_Question] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._is_over = False
        self._is_waking = False
        """Whether a wake-up of the loop is pending."""
        self._stations: dict[str, _Station] = {}
        self._earlier: set[_Station] = set()
        """The stations of earlier versions of Providers that still have flights."""
        self._unawaited: dict[_Flight, None] = {}
        self._evicted = 0
        self._landings: deque[_Landed] = deque()
        """The answers that have arrived and are neither cached nor counted yet."""

    # --- any thread ----------------------------------------------------------------------------

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """Returns the answer to a request if all of its keys are cached."""
        self._note_changes(request.provider)
        lookup = self._cache.look(request.provider, request.keys)
        if lookup.missing:
            return None
        return self._from_cache(request, lookup)

    def round(self, *, fresh: bool = False, requester: str = "") -> ProviderRound:
        """Begins a round of requests on behalf of a requester.

        With ``fresh``, keys are requested anew unless they have just been answered.
        """
        return ProviderRound(self._ask, self._abandon, requester, is_fresh=fresh)

    def _ask(self, request: ProviderRequest, asker: ProviderRound) -> None:
        provider = self._note_changes(request.provider)
        lookup = self._cache.look(request.provider, request.keys, fresh=asker.is_fresh)
        if not lookup.missing:
            asker.answered(request, self._from_cache(request, lookup))
        elif provider is None:
            self._count("", "unknown")
            asker.answered(request, failure(UNKNOWN, UNKNOWN_PROVIDER))
        elif len(lookup.missing) > REQUEST_KEYS_MAX:
            message = f"{SENT}: {len(lookup.missing)} keys are asked for at once, and {REQUEST_KEYS_MAX} may be"
            self._count(provider.name, "too_many_keys")
            asker.answered(request, failure(message))
        else:
            self._begin(_Question(request, provider, lookup, asker.requester, asker))
            if lookup.items:
                self._count_keys("cached", len(lookup.items))
            self._count_keys("asked", len(lookup.missing))

    def _from_cache(self, request: ProviderRequest, lookup: Lookup) -> ProviderResponse:
        """Answers from the cache; a key that ages is requested again for the next call."""
        self._count_keys("cached", len(lookup.items))
        if lookup.aging and (provider := self._providers().get(request.provider)) is not None:
            self._count_keys("refreshed", len(lookup.aging))
            aging = lookup._replace(items=(), missing=tuple(dict.fromkeys(lookup.aging)))
            self._begin(_Question(request, provider, aging, "", None))
        responses, errors = answered_items(lookup.items)
        return ProviderResponse(responses, errors, 0, "", lookup.is_idempotent, is_cached=True)

    def _count_keys(self, answered: str, count: int) -> None:
        with self._lock:  # several threads count
            self._registry.count(PROVIDER_KEYS, answered, by=count)

    def _note_changes(self, name: str) -> DataProvider | None:
        """Returns the current Provider of a name, when the cache has all that arrived.

        Drops the cached answers of an earlier version.
        """
        if self._landings:
            self._note_landings()
        provider = self._providers().get(name)
        if provider is not None and (before := self._known.get(name)) is not provider:
            with self._lock:
                if before is not None and before != provider:
                    self._cache.forget(name)
                self._known[name] = provider
        return provider

    def _begin(self, question: _Question) -> None:
        """Takes a question at once on the loop's thread, else queues it for the loop."""
        if self._loop is not None and threading.get_ident() == self._loop_thread:
            self._take(question)
            return
        self._due.append(question)
        if self._is_over:
            self._refuse_due()
        elif (loop := self._loop) is not None and not self._is_waking:
            self._is_waking = True
            try:
                loop.call_soon_threadsafe(self._take_due)
            except RuntimeError:  # the loop has just ended
                self._refuse_due()

    # --- the event loop ------------------------------------------------------------------------

    async def run(self) -> None:
        """Sends the requests until cancelled; then all waiting callers get an error."""
        self._loop_thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        try:
            self._take_due()
            await self._tidy()
        except asyncio.CancelledError:
            self._is_over = True
            raise
        finally:
            self._loop = None
            self._note_landings()
            self._refuse_due()
            stations = (*self._stations.values(), *self._earlier)
            self._stations = {}
            for station in stations:
                for flight in tuple(station.flights.values()):
                    self._end(flight)
                station.client.retire()

    def _refuse_due(self) -> None:
        while self._due:
            _notify(self._due.popleft(), failure(f"{SENT}: the process is stopping"))

    def _take_due(self) -> None:
        """Takes some queued questions, and the rest a turn later: admissions go on meanwhile."""
        self._is_waking = False
        for _ in range(TAKEN_AT_ONCE):
            if not self._due:
                return
            self._take(self._due.popleft())
        if (loop := self._loop) is not None:
            self._is_waking = True
            loop.call_soon(self._take_due)

    def _take(self, question: _Question) -> None:
        """Joins the flight of an equal request, or begins one.

        Answers with a failure if refused.
        """
        station = self._stations.get(question.provider.name)
        if station is None or station.client.provider is not question.provider:
            station = self._station(question.provider)
        keys = question.known.missing
        flight = station.flights.get(keys)
        if flight is None:
            if station.may_refuse and (refusal := self._refusal(station, question)):
                _notify(question, failure(refusal))
                return
            flight = station.flights[keys] = _Flight(station, keys, question.requester)
            flight.waiters.append(question)
            flight.call = station.client.ask(keys, partial(self._landed, flight))
        else:
            flight.waiters.append(question)
        if question.round is not None:
            flight.refreshes = False
            self._unawaited.pop(flight, None)
            question.round.flights.append(flight)
        elif not flight.is_awaited:
            self._note_unawaited(flight)

    def _station(self, provider: DataProvider) -> _Station:
        station = self._stations.get(provider.name)
        known = None if station is None else station.client.provider
        if known is not provider and known != provider:
            if station is not None:
                station.client.retire()
                if station.flights:
                    self._earlier.add(station)
            # Imported here: it is not needed until the first request.
            from webhook.external_data.client import ProviderClient  # noqa: PLC0415

            station = _Station(ProviderClient(provider, self._pair))
            self._stations[provider.name] = station
        assert station is not None
        return station

    def _refusal(self, station: _Station, question: _Question) -> str:
        """Returns the reason why a request is not sent; empty if it may be."""
        name = question.provider.name
        if station.is_crowded(question.requester):
            self._count(name, "crowded")
            return f"{SENT}: too many requests to provider {name} are under way"
        refusal = station.suspension.refusal(question.requester)
        if refusal:
            self._count(name, "suspended")
        return refusal

    def _abandon(self, asker: ProviderRound) -> None:
        """Notes that a caller has stopped waiting; called by any thread."""
        flights = asker.flights
        with self._lock:
            self._registry.count(PROVIDER_WAITS_ENDED, by=len(flights))
        if (loop := self._loop) is not None:
            for flight in flights:
                try:
                    loop.call_soon_threadsafe(self._note_unawaited, flight)
                except RuntimeError:  # the loop has just ended
                    return

    def _note_unawaited(self, flight: _Flight) -> None:
        """Notes that no caller waits for a flight; ends the oldest if there are too many."""
        if flight.call is None or flight.call.is_over or flight.is_awaited:
            return
        self._unawaited[flight] = None
        while len(self._unawaited) > UNAWAITED_MAX:
            self._end(next(iter(self._unawaited)))
            self._registry.count(PROVIDER_ABANDONED)

    def _end(self, flight: _Flight) -> None:
        """Ends a flight before its answer."""
        if flight.call is not None:
            flight.call.cancel()
        self._resolve(flight, failure(f"{SENT}: the request was ended"))

    def _landed(self, flight: _Flight, answer: ProviderAnswer | Exception, status: int) -> None:
        """Ends a flight with its answer: informs all callers, then caches and counts the answer."""
        now = time.monotonic()
        seconds = now - flight.began
        milliseconds = int(seconds * 1_000_000) / 1000  # round() takes several times as long
        station, landings = flight.station, self._landings
        station.note_time(seconds, now)
        items: tuple[AnsweredKey, ...] = ()
        if type(answer) is ProviderAnswer:
            if station.suspension.has_faults:
                self._answered(station, flight.requester)
            # First: a caller on another thread that asks again finds the answer.
            landings.append(_Landed(flight, answer, self._cache.now(), seconds))
            items, fault, is_idempotent = answer
            responses, errors = answered_items(items)
            corrected = corrected_keys(items) if errors and responses else _NO_KEYS
            response = ProviderResponse(
                responses, errors, status, fault, is_idempotent, False, milliseconds, corrected
            )
        else:
            response = self._fault(flight, answer, seconds)._replace(milliseconds=milliseconds)
        self._resolve(flight, response, items)
        # The review goes on before its answers are noted, which can wait until somebody asks.
        if landings and (len(landings) >= LANDINGS_MAX or not station.flights):
            self._note_landings()

    def _fault(
        self, flight: _Flight, answer: ProviderAnswer | Exception, seconds: float
    ) -> ProviderResponse:
        """Counts a flight without a readable answer, and returns the failure for its callers."""
        name, station = flight.provider.name, flight.station
        outcome, response = "bug", failure(f"{SENT}: internal error")
        if isinstance(answer, ProviderFault):
            outcome, response = answer.outcome, failure(str(answer))
            if outcome in ("timeout", "transport"):
                self._failed(station, flight.requester, answer)
            elif outcome != "certificate" and station.suspension.has_faults:
                self._answered(station, flight.requester)  # It answers, if only with a mistake.
        elif isinstance(answer, Exception):
            self._log.fault("bug: a provider was not asked", answer, provider=name)
        self._count(name, outcome, seconds)
        return response

    def _note_landings(self) -> None:
        """Caches and counts the answers that have arrived; called by any thread."""
        landings = self._landings
        with self._lock:
            while landings:
                landed = landings[0]
                self._keep(landed)
                outcome = "system_error" if landed.answer.system_error else "success"
                self._count(landed.flight.provider.name, outcome, landed.seconds)
                landings.popleft()  # Last: whoever finds none finds all answers in the cache.

    def _resolve(
        self, flight: _Flight, response: ProviderResponse, items: tuple[AnsweredKey, ...] = ()
    ) -> None:
        flights = flight.station.flights
        if flights.get(flight.keys) is flight:
            del flights[flight.keys]
            if not flights:
                self._earlier.discard(flight.station)
        self._unawaited.pop(flight, None)
        # Futures refer back to the flight and would keep it until a full garbage collection.
        waiters, flight.waiters = flight.waiters, []
        for question in waiters:
            _notify(question, response, items)

    def _failed(self, station: _Station, requester: str, fault: ProviderFault) -> None:
        suspension, name = station.suspension, station.client.provider.name
        was_open, was_open_for = suspension.is_open, suspension.is_open_for(requester)
        suspension.failed(requester, str(fault), connected=fault.connected)
        if suspension.is_open and not was_open:
            self._log.warning(
                "provider suspended: it failed repeatedly", provider=name, error=str(fault)
            )
        elif suspension.is_open_for(requester) and not was_open_for:
            self._log.warning(
                "provider suspended for a user: it failed repeatedly",
                provider=name,
                username=requester,
                error=str(fault),
            )

    def _answered(self, station: _Station, requester: str) -> None:
        was_open = station.suspension.is_open
        station.suspension.answered(requester)
        if was_open:
            self._log.info("provider answers again", provider=station.client.provider.name)

    def _keep(self, landed: _Landed) -> None:
        """Caches an answer, unless the Provider was changed or deleted meanwhile."""
        provider = landed.flight.provider
        with self._lock:
            known = self._known.get(provider.name)
            if known is provider or known == provider:
                self._cache.keep(
                    provider.name,
                    landed.answer,
                    landed.received,
                    refreshes=landed.flight.refreshes,
                )

    def _count(self, provider: str, outcome: str, seconds: float | None = None) -> None:
        """Counts a request, and how long it took where it was sent.

        ``provider`` is empty if unknown, since its name may be any text.
        """
        with self._lock:  # several threads count
            if provider and provider not in self._counted:
                if len(self._counted) < self._series_max:
                    self._counted.add(provider)
                else:
                    provider = ""
            self._registry.count(PROVIDER_REQUESTS, provider or OTHER, outcome)
            if seconds is not None:
                self._registry.histogram(PROVIDER_SECONDS).observe(seconds)

    async def _tidy(self) -> None:
        """Removes expired answers and clients of deleted Providers, every ``SWEEP_SECONDS``."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._note_landings()
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

    def suspended(self) -> dict[str, str]:
        """Returns the last fault of each suspended provider by its name; any thread may call it."""
        stations = dict(self._stations)
        return {name: fault for name, item in stations.items() if (fault := item.suspension.fault)}

    def suspended_for_users(self) -> dict[str, tuple[int, str]]:
        """Returns how many users a provider is suspended for, and their last fault, by its name.

        Those that are suspended for all are left out; any thread may call it.
        """
        stations = dict(self._stations)
        return {
            name: users for name, item in stations.items() if (users := item.suspension.users)[0]
        }

    def slow(self) -> dict[str, float]:
        """Returns the mean time in seconds of each provider that uses over half of its timeout.

        Any thread may call it. Providers that were not asked for a while are left out.
        """
        providers, now = self._providers(), time.monotonic()
        return {
            name: item.seconds
            for name, item in dict(self._stations).items()
            if name in providers
            and now - item.noted < SLOW_NEWS_SECONDS
            and item.seconds > providers[name].timeout_seconds / 2
        }

    def refresh(self) -> None:
        """Updates the gauges for a scrape; called by any thread."""
        self._note_landings()
        registry, stations = self._registry, dict(self._stations)
        registry.set(PROVIDER_CACHE_BYTES, self._cache.bytes)
        evicted, self._evicted = self._cache.evicted - self._evicted, self._cache.evicted
        if evicted:
            registry.count(PROVIDER_CACHE_EVICTIONS, by=evicted)
        flying = (*stations.values(), *tuple(self._earlier))
        registry.set(PROVIDER_FLIGHTS, sum(len(item.flights) for item in flying))
        suspended = sorted(self.suspended())
        registry.replace(
            PROVIDERS_SUSPENDED, {(name,): 1.0 for name in suspended[: self._series_max]}
        )


def _notify(
    question: _Question, response: ProviderResponse, items: tuple[AnsweredKey, ...] = ()
) -> None:
    """Answers a caller: cached keys first, then requested keys in the provider's order.

    ``response`` is to the requested keys alone, which are ``items``.
    """
    if question.round is None:
        return
    known = question.known
    if known.items and response.responses is not None:
        responses, errors = answered_items((*known.items, *items))
        is_idempotent = response.is_idempotent and known.is_idempotent
        response = response._replace(
            responses=responses,
            errors=errors,
            is_idempotent=is_idempotent,
            corrected=corrected_keys((*known.items, *items)),
        )
    question.round.answered(question.request, response)
