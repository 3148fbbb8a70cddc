"""Events of an audit's violations: each is written or counted, and none ends the audit."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.audit.made import identity, result, snapshot
from tests.webhook.events.refusing import RefusingServer, forbidden
from webhook.audit.events import AuditEvents
from webhook.audit.sink import Audited
from webhook.backoff import Backoff
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.result import Responses
from webhook.log import Log

Lines = list[dict[str, Any]]


def events_and_log(
    server: RefusingServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[Counter[str], Lines, list[float]]:
    """Returns the outcomes of two objects' Events, the log lines, and the delays."""
    delays = []

    def next_seconds(backoff: Backoff) -> float:
        delays.append(backoff.initial_seconds)
        return 0.0

    monkeypatch.setattr(Backoff, "next_seconds", next_seconds)
    lines: list[bytes] = []
    log = Log(lines.append).logger("audit")

    async def run() -> Counter[str]:
        events = AuditEvents(
            server,  # type: ignore[arg-type]
            "waddle-system",
            log,
            in_violating_namespace=False,
        )
        for name in ("web-0", "web-1"):
            responses = Responses((result(),))
            await events.audited(Audited("t", identity(name), {}, responses, snapshot()))
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(events.run())
            while events.outcomes.total() < 2:  # noqa: ASYNC110  # as the metrics see it
                await asyncio.sleep(0)
            writing.cancel()
        return events.outcomes

    outcomes = asyncio.run(run())
    return outcomes, [json.loads(line) for line in lines], delays


def names(server: RefusingServer) -> list[str]:
    return [name.partition(".")[0] for _, name in server.events]


def test_events_are_written_in_the_order_in_which_violations_were_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = RefusingServer()
    assert events_and_log(server, monkeypatch) == ({"written": 2}, [], [])
    assert names(server) == ["web-0", "web-1"]


@pytest.mark.parametrize("refusal", [forbidden(), ApiUnreachable("gone")])
def test_one_that_is_refused_is_counted_and_the_next_is_written(
    refusal: ApiError | ApiUnreachable, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RefusingServer(refusal)
    outcomes, [line], delays = events_and_log(server, monkeypatch)
    assert (outcomes, delays) == ({"failed": 1, "written": 1}, [])
    assert (line["level"], line["msg"]) == ("warning", "an Event was not written")
    assert names(server) == ["web-1"]


def test_a_bug_is_reported_with_its_place_and_waited_for_and_the_next_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a bug ended the sweep, and the audit began anew."""
    server = RefusingServer(ValueError("surprise"))
    outcomes, [line], delays = events_and_log(server, monkeypatch)
    assert (outcomes, delays) == ({"failed": 1, "written": 1}, [1.0])
    assert (line["level"], line["msg"], line["error"]) == (
        "error",
        "bug: an Event of a violation could not be written",
        "ValueError: surprise",
    )
    assert "refusing.py" in line["stacktrace"]
    assert names(server) == ["web-1"]
