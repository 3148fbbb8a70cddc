"""Asking an API server that may be restarting: again and again, for a bounded time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PATIENCE_SECONDS: Final = 120.0
"""A single API server that is restarted, or an etcd that elects, is back within this time; after
it the kind has failed for this sweep, and the next sweep asks anew."""

FORBIDDEN_SECONDS: Final = 10.0
"""An API server that starts answers 403 until it has read its roles, for a few seconds. Whoever is
refused for longer has not got the right."""

_BUSY: Final = 429
T = TypeVar("T")


def is_passing(error: ApiError) -> bool:
    """Whether the refusal is the server's trouble and not an answer."""
    return error.is_server_fault or error.status == _BUSY


async def patiently(
    ask: Callable[[], Awaitable[T]],
    *,
    seconds: float = PATIENCE_SECONDS,
    forbidden_seconds: float = FORBIDDEN_SECONDS,
) -> T:
    """The answer to a question that may be repeated.

    What the API server refuses for good is raised at once, what passes is waited
    out: raises :class:`~webhook.cluster.errors.ApiError` and
    :class:`~webhook.cluster.errors.ApiUnreachable` after the time given.
    """
    backoff = Backoff(initial_seconds=0.5, max_seconds=10.0)
    begun = time.monotonic()
    refused: float | None = None  # since when it answers 403 and nothing else
    while True:
        asked_seconds = 0.0
        try:
            return await ask()
        except ApiError as error:
            if not is_passing(error) and not error.is_forbidden:
                raise
            now = time.monotonic()
            refused = (refused or now) if error.is_forbidden else None
            asked_seconds = error.retry_after_seconds or 0.0
            since, limit = (begun, seconds) if refused is None else (refused, forbidden_seconds)
            if now - since + asked_seconds >= limit:
                raise
        except ApiUnreachable:
            refused = None
            if time.monotonic() - begun > seconds:
                raise
        await asyncio.sleep(max(backoff.next_seconds(), asked_seconds))
