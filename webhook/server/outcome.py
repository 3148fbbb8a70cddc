"""The outcomes of a request: an answer, a pending decision, or a reason for no decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from webhook.api.admission import AdmissionResponse


class Finished(Protocol):
    """A wait of an undecided request; a future of asyncio is one."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Has a function called when it is there, on the loop's thread."""

    def __await__(self) -> Generator[Any, None, None]:
        """Waits until it is there."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An undecided request: its wait, and the function that resumes it."""

    finished: Finished
    resume: Callable[[], Outcome]
    api_version: str
    """Of the AdmissionReview."""


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """A request without a decision: failurePolicy applies."""

    code: int
    """Of HTTP."""
    reason: str
    """In one word, for metrics."""
    message: str
    retry: bool = False
    """Whether to ask again at once may help."""


def not_ready(missing: str) -> Unanswerable:
    """Returns the refusal while ``missing`` is not there yet, with where to look."""
    message = f"not ready: {missing} are not loaded yet; the health port's /readyz?verbose says why"
    return Unanswerable(503, "not_ready", message, retry=True)


NO_ROOM: Final = "overload"
"""The reason of a refusal without a place or without memory."""


def no_place() -> Unanswerable:
    """Returns the refusal of a request without a place, behind slow reviews of others."""
    message = "too many slow reviews wait: try again or try another replica"
    return Unanswerable(429, NO_ROOM, message, retry=True)


Outcome: TypeAlias = "AdmissionResponse | Pending | Unanswerable"
