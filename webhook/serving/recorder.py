"""The record of a decision: one value for all recorders."""

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
    """A request with the results of its review."""

    request: AdmissionRequest
    responses: Responses | None
    """The results; None if it was not reviewed."""
    snapshot: Snapshot | None
    """The snapshot that decided; None before the first load."""
    times: tuple[float, float]
    """The times at which the request arrived and its review began, on the monotonic clock."""


class MutationReviewed(NamedTuple):
    """A request to the mutation webhook, with the result of the mutators."""

    request: AdmissionRequest
    mutated: Mutated | None
    """The mutated object with its mutators; None if the mutators failed."""
    patch: Patch
    """The patch in the answer."""
    preview: Preview | None
    """The additional patch of mutators that are in preview."""
    times: tuple[float, float]
    """The times at which the request arrived and mutation began, on the monotonic clock."""
    answers: ProviderAnswers | None = None
    """The responses of providers."""


class MutationRecorder(Protocol):
    """Records the results of mutators, without waiting."""

    def mutated(self, reviewed: MutationReviewed, response: AdmissionResponse) -> AdmissionResponse:
        """Records a mutation or its failure; returns the answer to send."""


class Recorder(Protocol):
    """Records every decision for export, without waiting."""

    names: Iterator[str]
    """Generates decision identifiers; an answer that carries one is recorded under it."""

    def answered(
        self,
        request: AdmissionRequest,
        responses: Responses | None,
        snapshot: Snapshot | None,
        received: float,
        began: float,
        response: AdmissionResponse,
    ) -> AdmissionResponse:
        """Records a decision; returns the answer to send.

        The other arguments are fields of :class:`Reviewed`, passed one by one because building it
        takes time.
        """

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """Records that a request got no decision, and why."""


class ListenedRecorder:
    """Passes each answer to listeners, and then to the recorder if there is one."""

    __slots__ = ("_listeners", "_next", "names")

    def __init__(
        self,
        listeners: Sequence[Callable[[Reviewed, AdmissionResponse], None]],
        following: Recorder | None,
    ) -> None:
        """Listeners are called on the admission thread, and must not wait."""
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
        """Passes a decision to all listeners; returns the answer to send."""
        reviewed = Reviewed(request, responses, snapshot, (received, began))
        for listener in self._listeners:
            listener(reviewed, response)
        if self._next is None:
            return response
        return self._next.answered(request, responses, snapshot, received, began, response)

    def unanswered(self, reviewed: Reviewed, code: int, error: str) -> None:
        """Records that a request got no decision; listeners are not called."""
        if self._next is not None:
            self._next.unanswered(reviewed, code, error)
