"""A question to a provider, and its answer, as evaluations and whoever asks share them."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

ASKED_KEYS_MAX: Final = 1_000
"""Keys of one request: what asks for more is answered with a failure, and nobody is asked."""

REQUESTS_MAX: Final = 64
"""Requests that one evaluation notes before it ends: those go out at once, and it is tried again. A
quarter of what goes to one provider at once, so that no object takes it from all others."""

ROUNDS_MAX: Final = 4
"""How often one review may ask, where what it asks hangs on answers before: a round takes as long
as its slowest provider, and an API server waits ten seconds."""

UNKNOWN_PROVIDER: Final = 400
"""The status where there is no such provider, or it cannot be spoken to, as Gatekeeper has it."""

NOT_SENT: Final = 500
"""The status of what was not sent, as Gatekeeper has it."""

_NOBODY: Final = -1


class ProviderRequest(NamedTuple):
    """The question of one call: a provider's name, and its keys as they were given, in their order."""

    provider: str
    keys: tuple[str, ...]


class ProviderResponse(NamedTuple):
    """The answer to a call, as Gatekeeper's ``external_data`` has it.

    ``responses`` and ``errors`` are pairs of a key and what was said of it. They are None where the
    request was not sent, or its answer cannot be read. ``status_code`` is the provider's, and 0 where
    every key came from the cache.
    """

    responses: tuple[tuple[str, Any], ...] | None
    errors: tuple[tuple[str, Any], ...] | None
    status_code: int
    system_error: str = ""
    is_idempotent: bool = False
    is_cached: bool = False
    """Whether nobody was asked, since all was known."""
    milliseconds: float = 0.0
    """How long the provider took."""


ProviderAnswers: TypeAlias = "Mapping[ProviderRequest, ProviderResponse]"

Answering: TypeAlias = "Callable[[ProviderRequest], ProviderResponse | None]"
"""Gives the answer to a request; None where it has to be asked first."""

Ask: TypeAlias = "Callable[[tuple[ProviderRequest, ...]], ProviderAnswers]"
"""Has requests answered, all of them, beside each other."""

AskAsync: TypeAlias = "Callable[[tuple[ProviderRequest, ...]], Awaitable[ProviderAnswers]]"


class Unanswered(Exception):
    """A review cannot go on before these requests are answered."""

    def __init__(self, requests: Sequence[ProviderRequest]) -> None:
        super().__init__(", ".join(request.provider for request in requests))
        self.requests = tuple(requests)


def failure(message: str, status_code: int = NOT_SENT) -> ProviderResponse:
    """Returns the answer to a call that was not sent, or whose answer cannot be read."""
    return ProviderResponse(None, None, status_code, message)


def nobody(provider: str, advice: str = "") -> ProviderResponse:
    """The answer where there is nobody who could be asked: whoever asks comes to no verdict.

    ``advice`` says what to do about it.
    """
    message = f"nobody answers for the provider {provider} here"
    return ProviderResponse(None, None, _NOBODY, f"{message}: {advice}" if advice else message)


def is_nobody(response: ProviderResponse) -> bool:
    """Whether there was nobody to ask."""
    return response.status_code == _NOBODY


def nobodys(requests: Sequence[ProviderRequest], advice: str = "") -> ProviderAnswers:
    """The answers of nobody to all requests."""
    return {request: nobody(request.provider, advice) for request in requests}


TOO_MANY_ROUNDS: Final = failure(
    f"the review asked {ROUNDS_MAX} times already, and what hangs on more answers is not asked"
)


def answering(answers: ProviderAnswers, rounds: int) -> Answering:
    """Answers by what is known after so many rounds; after the last all that is missing failed."""
    if rounds < ROUNDS_MAX:
        return answers.get
    return lambda request: answers.get(request, TOO_MANY_ROUNDS)


class ReviewMoment:
    """The one time and the one chance of a review, however often it is evaluated.

    Keys may be made of them: with another time in each round none would ever be answered.
    """

    __slots__ = ("_taken", "begun")

    _taken: tuple[int, int]

    def __init__(self) -> None:
        self.begun: tuple[Any, Any] | None = None
        """The value under review and what was found of it, where only answers are missing."""

    def take(self) -> tuple[int, int]:
        """Nanoseconds since 1970, and a seed: as they were when first asked for."""
        try:
            return self._taken
        except AttributeError:
            seed = random.getrandbits(64)  # rand.intn promises no secrecy
            self._taken = time.time_ns(), seed
            return self._taken


class AnswersSoFar(NamedTuple):
    """Providers' answers of all rounds so far, for things that are reviewed at one moment."""

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
    """Where asking begins."""
    return AnswersSoFar({}, 0, ReviewMoment())
