"""The record of each decision: one value for all who receive it."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.api.admission import AdmissionRequest, AdmissionResponse
    from webhook.constraint.result import Responses
    from webhook.constraint.snapshot import Snapshot
    from webhook.external_data.exchange import ProviderAnswers
    from webhook.mutation.patch import Patch
    from webhook.mutation.plan import Mutated
    from webhook.mutation.previewing import Preview


class Reviewed(NamedTuple):
    """A request, and what was found of it."""

    request: AdmissionRequest
    responses: Responses | None
    """The results of its review; None where there was none."""
    snapshot: Snapshot | None
    """The policies in force; None before there were any."""
    times: tuple[float, float]
    """When the request was received and when its review began, on the monotonic clock."""


class MutationReviewed(NamedTuple):
    """A request of the mutation webhook, and what mutators did about it."""

    request: AdmissionRequest
    mutated: Mutated | None
    """The mutated object with its mutators; None where mutating came to nothing."""
    patch: Patch
    """The changes."""
    preview: Preview | None
    """The changes that mutators which are only previewed would make beyond that."""
    times: tuple[float, float]
    """When the request was received and when mutating began, on the monotonic clock."""
    answers: ProviderAnswers | None = None
    """The answers of providers, if any were asked."""


class MutationRecorder(Protocol):
    """Takes what mutators did, without waiting."""

    def mutated(self, reviewed: MutationReviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Mutators changed something, would have, or could not; the answer to give for it."""


class Recorder(Protocol):
    """Takes every decision for export, without waiting."""

    names: Iterator[str]
    """Names for decisions: an answer that has one is recorded under it."""

    def answered(
        self,
        request: AdmissionRequest,
        responses: Responses | None,
        snapshot: Snapshot | None,
        received: float,
        began: float,
        response: AdmissionResponse,
    ) -> AdmissionResponse:
        """A decision was made; the answer to give for it.

        The others are as :class:`Reviewed` has them, which takes its time to make.
        """

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """No decision was made, for this reason."""


class ListenedRecorder:
    """Tells some of each answer, and then whoever records, if anybody does."""

    __slots__ = ("_listeners", "_next", "names")

    def __init__(
        self,
        listeners: Sequence[Callable[[Reviewed, AdmissionResponse], None]],
        following: Recorder | None,
    ) -> None:
        """Listeners are called on the admission thread and must not wait."""
        self._listeners = tuple(listeners)
        self._next = following
        self.names = repeat("") if following is None else following.names

    def answered(
        self,
        request: AdmissionRequest,
        responses: Responses | None,
        snapshot: Snapshot | None,
        received: float,
        began: float,
        response: AdmissionResponse,
    ) -> AdmissionResponse:
        """A decision was made; the answer to give for it."""
        reviewed = Reviewed(request, responses, snapshot, (received, began))
        for listener in self._listeners:
            listener(reviewed, response)
        if self._next is None:
            return response
        return self._next.answered(request, responses, snapshot, received, began, response)

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """No decision was made: listeners have nothing to hear."""
        if self._next is not None:
            self._next.unanswered(reviewed, code, error)
