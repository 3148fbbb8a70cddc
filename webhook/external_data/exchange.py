"""Requests to providers and their answers, as shared by evaluations and callers."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

REQUEST_KEYS_MAX: Final = 1_000
"""The most keys of one request: a larger one fails without a call."""

REQUESTS_MAX: Final = 64
"""The number of requests that one evaluation notes before it ends. They are sent at once, and then
the evaluation is repeated. It is a quarter of FLIGHTS_MAX, so that one object cannot use up a
provider's limit."""

ROUNDS_MAX: Final = 4
"""The number of rounds of one review whose requests depend on earlier answers. A round takes as
long as its slowest provider, and an API server waits ten seconds."""

UNKNOWN_PROVIDER: Final = 400
"""The status for an unknown or unusable provider, as in Gatekeeper."""

NOT_SENT: Final = 500
"""The status of a request that was not sent, as in Gatekeeper."""

_NO_PROVIDER: Final = -1


class ProviderRequest(NamedTuple):
    """The request of one call: a provider's name, and its keys in the given order."""

    provider: str
    keys: tuple[str, ...]


class ProviderResponse(NamedTuple):
    """The answer to a call, in the form of Gatekeeper's ``external_data``.

    ``responses`` and ``errors`` are pairs of a key and its value or error. They are None if the
    request was not sent, or its answer cannot be read. ``status_code`` is the provider's HTTP
    status, and 0 if every key came from the cache.
    """

    responses: tuple[tuple[str, Any], ...] | None
    errors: tuple[tuple[str, Any], ...] | None
    status_code: int
    system_error: str = ""
    is_idempotent: bool = False
    is_cached: bool = False
    """Whether the cache had all keys, so that the provider was not called."""
    milliseconds: float = 0.0
    """The duration of the provider's answer."""
    corrected: frozenset[str] = frozenset()
    """The keys with an error and, later in the answer, a value. For mutators the last one counts."""


ProviderAnswers: TypeAlias = "Mapping[ProviderRequest, ProviderResponse]"

Answering: TypeAlias = "Callable[[ProviderRequest], ProviderResponse | None]"
"""Returns the answer to a request; None if it is unknown yet."""

Ask: TypeAlias = "Callable[[tuple[ProviderRequest, ...]], ProviderAnswers]"
"""Answers all requests concurrently."""

AskAsync: TypeAlias = "Callable[[tuple[ProviderRequest, ...]], Awaitable[ProviderAnswers]]"


class Unanswered(Exception):
    """A review needs the answers to these requests to go on."""

    def __init__(self, requests: Sequence[ProviderRequest]) -> None:
        self.requests = tuple(requests)

    def __str__(self) -> str:
        return ", ".join(request.provider for request in self.requests)


def failure(message: str, status_code: int = NOT_SENT) -> ProviderResponse:
    """Returns the answer to a call that was not sent, or that has no readable answer."""
    return ProviderResponse(None, None, status_code, message)


def no_provider(provider: str, advice: str = "") -> ProviderResponse:
    """Returns the failure without any available provider: the review has no verdict.

    ``advice`` is the remedy.
    """
    message = f"no provider {provider} answers here"
    return ProviderResponse(None, None, _NO_PROVIDER, f"{message}: {advice}" if advice else message)


def has_no_provider(response: ProviderResponse) -> bool:
    """Returns whether no provider was available."""
    return response.status_code == _NO_PROVIDER


def is_failure(response: ProviderResponse) -> bool:
    """Returns whether the call was not sent, or has no readable answer."""
    return response.responses is None


def without_providers(requests: Sequence[ProviderRequest], advice: str = "") -> ProviderAnswers:
    """Returns failures for all requests, without any available provider."""
    return {request: no_provider(request.provider, advice) for request in requests}


TOO_MANY_ROUNDS: Final = failure(
    f"the review has already asked {ROUNDS_MAX} times, and may not ask again"
)


def noting(answers: dict[ProviderRequest, ProviderResponse], rounds: int) -> Answering:
    """Answers like :func:`answering`; what fails after the last round becomes one of the answers."""
    if rounds < ROUNDS_MAX:
        return answers.get
    return lambda request: answers.setdefault(request, TOO_MANY_ROUNDS)


def answering(answers: ProviderAnswers, rounds: int) -> Answering:
    """Answers from the known answers; after the last round all missing ones fail."""
    if rounds < ROUNDS_MAX:
        return answers.get
    return lambda request: answers.get(request, TOO_MANY_ROUNDS)


class ReviewMoment:
    """The fixed time and random seed of a review, however often it is evaluated.

    Keys may contain them: with a new time in each round, no request would ever be answered.
    """

    __slots__ = ("_taken", "begun", "failed")

    _taken: tuple[int, int]

    def __init__(self) -> None:
        self.begun: tuple[Any, Any] | None = None
        """The value under review and its results, if only answers are missing."""
        self.failed: tuple[Any, frozenset[ProviderRequest]] | None = None
        """The value, and its failed requests before it is reviewed in another form."""

    def take(self) -> tuple[int, int]:
        """Returns nanoseconds since 1970 and a seed, both fixed at the first call."""
        try:
            return self._taken
        except AttributeError:
            seed = random.getrandbits(64)  # rand.intn promises no secrecy
            self._taken = time.time_ns(), seed
            return self._taken


def of_another_form(known: Answering, failed: Collection[ProviderRequest]) -> Answering:
    """Returns the answers for a review of the value in another form: without parts, or as it was.

    A policy may take a failure for good news, and two failures read alike. So a failure decides
    nothing there, unless the same request failed for the value itself: ``failed``.
    """

    def answer(request: ProviderRequest) -> ProviderResponse | None:
        response = known(request)
        if response is None or not is_failure(response) or request in failed:
            return response
        return no_provider(request.provider)

    return answer


class AnswersOfOne(Mapping[ProviderRequest, ProviderResponse]):
    """The answers for one of the objects that are reviewed at once: only those that it uses."""

    __slots__ = ("_all", "_used")

    def __init__(self, answers: ProviderAnswers) -> None:
        """``answers`` are those of all objects."""
        self._all = answers
        self._used: dict[ProviderRequest, ProviderResponse] = {}

    def __getitem__(self, request: ProviderRequest) -> ProviderResponse:
        response = self._used[request] = self._all[request]
        return response

    def __iter__(self) -> Iterator[ProviderRequest]:
        return iter(self._used)

    def __len__(self) -> int:
        return len(self._used)


class AnswersSoFar(NamedTuple):
    """Providers' answers of all rounds so far, for objects that are reviewed at one moment."""

    answers: ProviderAnswers
    rounds: int
    moment: ReviewMoment

    @property
    def known(self) -> Answering:
        """Returns a lookup in the answers so far."""
        return answering(self.answers, self.rounds)

    def more(self, answers: ProviderAnswers) -> AnswersSoFar:
        """Adds the answers of one more round."""
        return self._replace(answers={**self.answers, **answers}, rounds=self.rounds + 1)


def no_answers() -> AnswersSoFar:
    """Returns the state before the first round."""
    return AnswersSoFar({}, 0, ReviewMoment())
