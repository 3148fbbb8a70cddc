"""Repeats requests to an API server that may be restarting, for a bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable

OUTAGE_SECONDS: Final = 120.0
"""The time for a restart of a single API server, or an election of etcd, in seconds. After it the
kind has failed for this sweep, and the next sweep tries again."""

FORBIDDEN_SECONDS: Final = 10.0
"""An API server that starts answers 403 until it has read its roles, for some seconds. A longer
refusal is a missing right."""

_BUSY: Final = 429
T = TypeVar("T")


def is_passing(error: ApiError) -> bool:
    """Whether the refusal is the server's trouble and not an answer."""
    return error.is_server_fault or error.status == _BUSY


async def with_retries(
    ask: Callable[[], Awaitable[T]],
    *,
    seconds: float = OUTAGE_SECONDS,
    forbidden_seconds: float = FORBIDDEN_SECONDS,
) -> T:
    """Returns the result of a repeatable request.

    Final refusals are raised at once; temporary errors are retried. Raises
    :class:`~webhook.cluster.errors.ApiError` and :class:`~webhook.cluster.errors.ApiUnreachable`
    after the time given.
    """
    backoff = Backoff(initial_seconds=0.5, max_seconds=10.0)
    begun = time.monotonic()
    refused: float | None = None  # the start of consecutive 403 answers
    while True:
        retry_after_seconds = 0.0
        try:
            return await ask()
        except ApiError as error:
            if not is_passing(error) and not error.is_forbidden:
                raise
            now = time.monotonic()
            refused = (refused or now) if error.is_forbidden else None
            retry_after_seconds = error.retry_after_seconds or 0.0
            since, limit = (begun, seconds) if refused is None else (refused, forbidden_seconds)
            if now - since + retry_after_seconds >= limit:
                raise
        except ApiUnreachable:
            refused = None
            if time.monotonic() - begun > seconds:
                raise
        await asyncio.sleep(max(backoff.next_seconds(), retry_after_seconds))
