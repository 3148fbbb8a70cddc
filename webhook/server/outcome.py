"""The outcomes of deciding a request: an answer, or what is awaited, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.values import dataclass

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from webhook.api.admission import AdmissionResponse


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that is not decided yet: what it waits for, and how it goes on then."""

    finished: asyncio.Future[None]
    resume: Callable[[], Outcome]
    api_version: str
    """Of the AdmissionReview."""


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """A request that gets no decision: failurePolicy has it."""

    code: int
    """Of HTTP."""
    reason: str
    """In one word, for metrics."""
    message: str
    retry: bool = False
    """Whether to ask again at once may help."""


def not_ready(missing: str) -> Unanswerable:
    """The refusal while ``missing`` is not there yet, with where to look."""
    message = f"not ready: {missing} are not loaded yet; the health port's /readyz?verbose says why"
    return Unanswerable(503, "not_ready", message, retry=True)


NO_ROOM: Final = "overload"
"""The reason of what finds no place, or no memory."""


def no_place() -> Unanswerable:
    """The refusal of what finds no place behind others' slow reviews."""
    message = "too many slow reviews wait: try again or try another replica"
    return Unanswerable(429, NO_ROOM, message, retry=True)


Outcome: TypeAlias = "AdmissionResponse | Pending | Unanswerable"
