"""Asks providers the questions of a request, round by round."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from webhook.external_data.exchange import ROUNDS_MAX, ReviewMoment, failure, nobody
from webhook.server.preparation import Awaiting

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from webhook.external_data.exchange import ProviderRequest, ProviderResponse
    from webhook.server.deadline import RequestTime
    from webhook.server.preparation import AskedRound, ProviderAsker

LAST_WALK_SECONDS: Final = 0.05
"""Kept for deciding by what was answered: a walk takes 10 ms where it is not carried on elsewhere."""

BESIDE_PART: Final = 0.25
"""The part of its time that a request keeps which is reviewed beside the admission thread: or else
whoever has a provider wait would have no time left for what takes long."""

_OUT_OF_TIME: Final = "failed to send external data request: context deadline exceeded: the time of the review is over"
_OFF: Final = "external data is turned off (--enable-external-data)"


class Questions:
    """The questions of one request to providers; the same question has the same answer to its end."""

    __slots__ = ("_asker", "_fresh", "_requester", "_round", "answers", "moment", "rounds")

    def __init__(self, asker: ProviderAsker | None, requester: str, *, fresh: bool = False) -> None:
        """``fresh`` wants what providers say now, and nothing that was kept for long."""
        self._asker = asker
        self._requester = requester
        self._fresh = fresh
        self.answers: dict[ProviderRequest, ProviderResponse] = {}
        self._round: AskedRound | None = None
        """The one that was begun, and is not waited for yet."""
        self.rounds = 0
        self.moment = ReviewMoment()

    def known(self, request: ProviderRequest) -> ProviderResponse | None:
        """The answer that this request has had, or that is kept."""
        answer = self.answers.get(request)
        if answer is None and self._asker is not None and not self._fresh:
            answer = self._asker.known(request)
            if answer is not None:
                self.answers[request] = answer
        return answer

    def begin(self, requests: Sequence[ProviderRequest]) -> None:
        """Have requests sent while the rest of a review goes on, which will ask them."""
        if self._asker is None:
            return
        if self._round is None:
            self._round = self._asker.round(fresh=self._fresh, requester=self._requester)
        for request in requests:
            self._round.begin(request)

    def ask(
        self, requests: Sequence[ProviderRequest], until: float
    ) -> Generator[Awaiting, None, None]:
        """Have requests answered, beside each other; what is not by then has failed.

        After that no more is asked: what hangs on the answers has failed, too.
        """
        self.rounds += 1
        if self._asker is None:
            self.answers |= {request: nobody(request.provider, _OFF) for request in requests}
            return
        self.begin(requests)
        asked, self._round = self._round, None
        assert asked is not None
        future = asked.end()
        if not future.done():
            yield Awaiting([future], until)
        if future.cancel():
            self.rounds = ROUNDS_MAX
        self.answers |= dict(asked.answers)
        for request in requests:
            if request not in self.answers:
                self.answers[request] = failure(_OUT_OF_TIME)
        if time.monotonic() >= until:
            self.rounds = ROUNDS_MAX


def answers_until(span: RequestTime, *, goes_beside: bool) -> float:
    """How long answers are waited for, on the monotonic clock, so that there is time to decide by them."""
    if goes_beside:
        return span.review_until - BESIDE_PART * (span.until - span.received_at)
    return span.until - LAST_WALK_SECONDS
