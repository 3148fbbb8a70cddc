"""Fetches, on other threads, the data that some admissions need before a decision.

A decision occupies the admission thread to its end, so nothing slow may happen in it. Other threads
read unknown Namespaces from the API server, compile templates and evaluate slow policies. Other
admissions go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from webhook.server.decoding import LARGE_BYTES
from webhook.server.outcome import Pending, Unanswerable
from webhook.server.responsibility import NOTHING_KNOWN
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.api.shapes import Json
    from webhook.constraint.limits import Budget
    from webhook.external_data.exchange import ProviderRequest, ProviderResponse
    from webhook.external_data.flights import ProviderRound
    from webhook.server.deadline import RequestTime
    from webhook.server.outcome import Outcome
    from webhook.server.responsibility import Delay
    from webhook.server.submission import TriedSubmission
    from webhook.serving.revision import NamespaceAnswer


T = TypeVar("T")

WAITED_SECONDS: Final = 0.005
"""The longest wait of a request before its review that does not show that others wait, too."""

CROWDED_BYTES: Final = 32 * 1024
"""A request of more is not begun on the admission thread where others wait. Of a flood of 60 KB by
seven users each user's first took 5 ms there, before its others stood behind it."""


class NamespaceReader(Protocol):
    """Reads Namespaces that the watch has not delivered."""

    def read(self, name: str, seconds: float) -> Future[NamespaceAnswer]:
        """Returns the current Namespace, read within the given time; called by any thread."""


class AccessAnswer(NamedTuple):
    """The index of the first missing right; None if none is missing. Or a fault of the check."""

    lacks: int | None = None
    fault: str = ""


class AccessReader(Protocol):
    """Checks users' rights with the API server's authorizer."""

    def lacking(
        self, user: Mapping[str, Any], rights: Sequence[Json], seconds: float
    ) -> Future[AccessAnswer]:
        """Returns those of the rights that a user lacks; called by any thread."""


class ProviderRounds(Protocol):
    """Sends requests to providers on behalf of reviews; called by any thread."""

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """Returns the answer to a request, where it is kept."""

    def round(self, *, fresh: bool = False, requester: str = "") -> ProviderRound:
        """Begins a round of requests; with ``fresh`` cached responses are not used."""


class TemplateCompiler(Protocol):
    """Compiles and tries templates and constraints that are being admitted."""

    def compile(self, document: Mapping[str, Any]) -> Future[TriedSubmission]:
        """Finds the fault of a policy, if there is one; called by any thread."""


class SlowReview(Generic[T]):
    """A review, or a mutation, on another thread than the admission thread."""

    __slots__ = ("answer_at", "before", "crowded_out", "future", "worked_seconds")

    def __init__(self) -> None:
        self.future: Future[T] = Future()
        self.answer_at = math.inf
        """How long it is waited for at most, on the monotonic clock."""
        self.before = NOTHING_KNOWN
        """The requests before it, and its own requester's share of them."""
        self.worked_seconds = 0.0
        """Processor time that it took so far."""
        self.crowded_out: Delay | None = None
        """If the review gave up its place: the places and processor time of its requester."""

    def delay(self, since: Delay) -> Delay:
        """Returns the delay of the review, with its processor time if it began."""
        if self.worked_seconds:
            return since._replace(worked_seconds=since.worked_seconds + self.worked_seconds)
        if since.places_taken > self.before.places_taken:
            return since
        return since.with_places(self.before)


class SlowReviewer(Protocol):
    """Carries on with what takes too long for the admission thread."""

    def is_behind(self, request: AdmissionRequest) -> bool:
        """Whether one no larger, of the same user in the same namespace, is being carried on."""

    def begin(
        self, work: Callable[[Budget], T], request: AdmissionRequest, span: RequestTime
    ) -> SlowReview[T] | Delay:
        """Runs work for a request within its time; returns a Delay if there is no room.

        ``work`` gets the budget of its evaluations.
        """


@dataclass(frozen=True, slots=True)
class Preparations:
    """The services that fetch data for admissions; None disables a service."""

    namespaces: NamespaceReader | None = None
    templates: TemplateCompiler | None = None
    reviewer: SlowReviewer | None = None
    providers: ProviderRounds | None = None
    rights: AccessReader | None = None


NOTHING = Preparations()


class Awaiting(NamedTuple):
    """The futures that a decision waits for, until a moment on the monotonic clock."""

    futures: Sequence[Future[Any] | ProviderRound]
    until: float


Decision: TypeAlias = "Generator[Awaiting, None, AdmissionResponse | Unanswerable]"
"""A decision as a generator: it yields what it waits for, and resumes when that is there."""


def carry_on(decision: Decision, api_version: str) -> Outcome:
    """Decides as far as that needs nothing from elsewhere."""
    try:
        awaited = next(decision)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    seconds = awaited.until - time.monotonic()
    return Pending(
        Wait(awaited.futures, seconds), lambda: carry_on(decision, api_version), api_version
    )


def goes_beside(
    reviewer: SlowReviewer | None, request: AdmissionRequest, waited_seconds: float = 0.0
) -> bool:
    """Whether work for a request starts on another thread, after this wait.

    Large objects do: each of many policies would take time of the admission thread. Other large
    objects of a user do as well while the first is still reviewed.
    """
    if reviewer is None:
        return False
    bytes_max = CROWDED_BYTES if waited_seconds > WAITED_SECONDS else LARGE_BYTES
    return request.size > bytes_max or reviewer.is_behind(request)


def read_namespace(
    preparations: Preparations, name: str, until: float
) -> Generator[Awaiting, None, dict[str, Any] | Unanswerable | None]:
    """Yields a Namespace that a decision needs; None where there is none of that name."""
    reader = preparations.namespaces
    assert reader is not None  # The caller needs no Namespace without a reader.
    future = reader.read(name, until - time.monotonic())
    yield Awaiting([future], until)
    if not future.done():
        return Unanswerable(504, "deadline", f"Namespace {name} was not read in time")
    answer = future.result()
    if answer.fault:
        return Unanswerable(500, "namespace", f"Namespace not read: {answer.fault}")
    return answer.document or None


class Wait:
    """Done, on the loop of the thread that made it, when all its futures are or the time has passed.

    It calls back at once; a future of asyncio would do so in the next turn of the loop, after all
    else that has just become due.
    """

    __slots__ = ("_callback", "_is_done", "_timer")

    def __init__(self, futures: Sequence[Future[Any] | ProviderRound], seconds: float) -> None:
        loop, thread_id = asyncio.get_running_loop(), threading.get_ident()
        self._callback: Callable[[Any], object] | None = None
        self._is_done = False
        self._timer = loop.call_later(max(seconds, 0), self._end)
        last, done = len(futures), count(1)

        def wake(_: Any) -> None:
            # Whoever takes the last number wakes: each wake takes as long as a small answer.
            if next(done) < last:
                return
            if threading.get_ident() == thread_id:
                self._end()
                return
            # If the loop has ended, nothing waits on it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end)

        for future in futures:
            future.add_done_callback(wake)

    def _end(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        self._timer.cancel()
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(self)

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Sets the one function to call when it is done; at once if it is."""
        if self._is_done:
            callback(self)
        else:
            self._callback = callback

    def __await__(self) -> Generator[Any, None, None]:
        """Waits in a coroutine."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        return future.__await__()
