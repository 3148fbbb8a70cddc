"""Asking an API server that may be restarting."""

import asyncio

import pytest

from webhook.audit.retries import with_retries
from webhook.cluster import event_loop
from webhook.cluster.errors import ApiError, ApiUnreachable


def patient_answer(*script: Exception | str, forbidden_seconds: float) -> str:
    """Returns the result of a question with these answers; the first one takes a while."""
    answers = iter(script)

    async def ask() -> str:
        await asyncio.sleep(0.05)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> str:
        return await with_retries(ask, forbidden_seconds=forbidden_seconds)

    return event_loop.run(run())


def test_a_refusal_lasts_from_its_own_beginning_and_not_from_an_outage_before_it() -> None:
    """An API server that was away answers 403 until it has read its roles."""
    refused = ApiError(403, "no right")
    assert (
        patient_answer(ApiUnreachable("away"), refused, "found", forbidden_seconds=0.02) == "found"
    )


def test_a_refusal_that_lasts_is_an_answer() -> None:
    refused = [ApiError(403, "no right")] * 3
    with pytest.raises(ApiError, match="no right"):
        patient_answer(*refused, forbidden_seconds=0.02)
