"""An audit's records beside a sidecar that takes none: a sweep waits once, and counts the rest."""

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest

from tests.webhook.audit.made import identity, items, result, snapshot, template
from webhook import log
from webhook.audit.decision_records import TOGETHER, DecisionRecords
from webhook.audit.sink import Audited, SweepEnd, SweepStart
from webhook.constraint.result import Responses
from webhook.decisions.configuration import parse
from webhook.decisions.exporter import Exporter, Origin
from webhook.decisions.settings import read_settings

QUEUE = 50
POLICIES = snapshot(template("A"))


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The exporter's loop, on a thread of its own as in a process."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.fixture
def exporter(loop: asyncio.AbstractEventLoop) -> Exporter:
    """An exporter that is never run: its queue fills and stays full."""
    text = {"sidecarURL": "unix:///nowhere", "queue": {"maxRecords": QUEUE}}
    settings = read_settings(parse(json.dumps(text).encode(), "test"))

    async def make() -> Exporter:
        logger = log.Log(lambda _: None).logger("test")
        return Exporter(settings, Origin(pod_uid="audit"), logger)

    return asyncio.run_coroutine_threadsafe(make(), loop).result()


def audited(number: int, *, violates: bool = True) -> Audited:
    """An object with a violation, or with none."""
    (item,) = items([f"p{number}"], "space")
    found = (result(),) if violates else ()
    return Audited("run", identity(f"p{number}"), item, Responses(found), POLICIES)


def test_what_finds_no_room_is_dropped_and_counted_and_the_sweep_ends(
    exporter: Exporter, loop: asyncio.AbstractEventLoop
) -> None:
    """It waits for the first that has none, and for no other of the sweep."""
    number = 3 * TOGETHER

    async def sweep() -> None:
        sink = DecisionRecords(exporter, loop, patience_seconds=0.1)
        await sink.start(SweepStart("run", POLICIES, frozenset()))
        for item in range(number):
            await sink.audited(audited(item))
            await sink.audited(audited(item, violates=False))
        await sink.end(SweepEnd("run", POLICIES, frozenset(), violations=number))

    asyncio.run(sweep())
    counters = exporter.counters
    assert counters.offered == number + 2, "a begin, an end, and each violation"
    assert counters.dropped["audit_timeout"] == 1
    assert counters.offered == exporter.queued + sum(counters.dropped.values())
    assert exporter.queued > QUEUE // 2, "after that it does not leave room for admissions"
