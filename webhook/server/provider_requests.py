"""Sends the provider requests of one review, round by round."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.external_data.exchange import (
    ROUNDS_MAX,
    ReviewMoment,
    failure,
    no_provider,
    noting,
)
from webhook.server.preparation import Awaiting
from webhook.server.responsibility import acting_user, requester

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from webhook.api.admission import AdmissionRequest
    from webhook.external_data.exchange import Answering, ProviderRequest, ProviderResponse
    from webhook.external_data.flights import ProviderRound
    from webhook.server.deadline import RequestTime
    from webhook.server.preparation import ProviderRounds

LAST_WALK_SECONDS: Final = 0.05
"""Time reserved for deciding with the responses: a walk on the admission thread takes 10 ms."""

BESIDE_PART: Final = 0.25
"""The part of its time that a request keeps for a review on another thread. Otherwise a slow
provider would leave no time for slow policies.
"""

_OUT_OF_TIME: Final = "failed to send external data request: context deadline exceeded: the time of the review is over"
_OFF: Final = "external data is turned off (--enable-external-data)"


class ReviewRequests:
    """The provider requests of one review; equal requests get the same response."""

    __slots__ = (
        "_client",
        "_fresh",
        "_round",
        "acting_user",
        "answers",
        "moment",
        "requester",
        "rounds",
    )

    def __init__(
        self, client: ProviderRounds | None, request: AdmissionRequest, *, fresh: bool = False
    ) -> None:
        """With ``fresh``, responses are not taken from the cache."""
        self._client = client
        self.requester = requester(request)
        self.acting_user = acting_user(request)
        self._fresh = fresh
        self.answers: dict[ProviderRequest, ProviderResponse] = {}
        self._round: ProviderRound | None = None
        """The round that was sent and is not awaited yet."""
        self.rounds = 0
        self.moment = ReviewMoment()

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """Returns the response that this review has already had, or a cached one."""
        answer = self.answers.get(request)
        if answer is None and self._client is not None and not self._fresh:
            answer = self._client.known(request)
            if answer is not None:
                self.answers[request] = answer
        return answer

    @property
    def answering(self) -> Answering:
        """Returns :meth:`known`; after the first round only the responses of this review count."""
        return noting(self.answers, self.rounds) if self.rounds else self.known

    def begin(self, requests: Sequence[ProviderRequest]) -> None:
        """Sends requests while the rest of the review goes on."""
        if self._client is None:
            return
        if self._round is None:
            self._round = self._client.round(fresh=self._fresh, requester=self.acting_user)
        for request in requests:
            self._round.begin(request)

    def wait_for(
        self, requests: Sequence[ProviderRequest], until: float
    ) -> Generator[Awaiting, None, None]:
        """Waits for responses to concurrent requests.

        Those still missing after ``until`` have failed.

        After a failure no more requests are sent.
        """
        self.rounds += 1
        if self._client is None:
            self.answers |= {request: no_provider(request.provider, _OFF) for request in requests}
            return
        self.begin(requests)
        ending, self._round = self._round, None
        assert ending is not None
        if not ending.done():
            yield Awaiting([ending], until)
        if ending.cancel():
            self.rounds = ROUNDS_MAX
        self.answers |= dict(ending.answers)
        for request in requests:
            if request not in self.answers:
                self.answers[request] = failure(_OUT_OF_TIME)
        if time.monotonic() >= until:
            self.rounds = ROUNDS_MAX


def answers_until(span: RequestTime, *, goes_beside: bool) -> float:
    """Returns until when to wait for responses, on the monotonic clock, to have time to decide."""
    if goes_beside:
        return span.review_until - BESIDE_PART * (span.until - span.received_at)
    return span.until - LAST_WALK_SECONDS
