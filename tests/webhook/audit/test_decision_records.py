"""An audit's records beside a sidecar that takes none: a sweep waits once, and counts the rest."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from tests.webhook.audit.made import identity, items, result, snapshot, template
from webhook import log
from webhook.audit.decision_records import TOGETHER, DecisionRecords
from webhook.audit.sink import Audited, SweepEnd, SweepStart
from webhook.constraint.result import Responses
from webhook.decisions.configuration import parse
from webhook.decisions.exporter.encoding import Origin
from webhook.decisions.exporter.exporter import Exporter
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.sidecar.gatekeeper import violation_events
from webhook.external_data.exchange import ProviderRequest, ProviderResponse

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
    return make(loop, sidecarURL="unix:///nowhere", queue={"maxRecords": QUEUE})


def make(loop: asyncio.AbstractEventLoop, **text: Any) -> Exporter:
    """An exporter on a loop."""
    settings = read_settings(parse(json.dumps(text).encode(), "test"))

    async def there() -> Exporter:
        logger = log.Log(lambda _: None).logger("test")
        return Exporter(settings, Origin(pod_uid="audit"), logger)

    return asyncio.run_coroutine_threadsafe(there(), loop).result()


class Received:
    """The bytes of one sender of plain lines, until it hangs up."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._read)
        self.records: list[dict[str, Any]] = []

    def _read(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as lines:
            self.records += map(json.loads, lines)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listener.close()


def audited(number: int, *, violates: bool = True, audit_id: str = "run") -> Audited:
    """An object with a violation, or with none."""
    (item,) = items([f"p{number}"], "space")
    found = (result(),) if violates else ()
    return Audited(audit_id, identity(f"p{number}"), item, Responses(found), POLICIES)


def test_what_finds_no_room_is_dropped_and_counted_and_the_sweep_ends(
    exporter: Exporter, loop: asyncio.AbstractEventLoop
) -> None:
    """The sweep waits for the first record without room, and for no other of the sweep."""
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


def test_an_audit_records_what_it_allows_where_that_is_asked_for(
    loop: asyncio.AbstractEventLoop,
) -> None:
    for records_allowed in (False, True):
        exporter = make(loop, sidecarURL="unix:///nowhere", auditAllows=records_allowed)

        async def sweep(exporter: Exporter = exporter) -> None:
            sink = DecisionRecords(exporter, loop)
            await sink.start(SweepStart("run", POLICIES, frozenset()))
            await sink.audited(audited(1, violates=False))
            await sink.end(SweepEnd("run", POLICIES, frozenset()))

        asyncio.run(sweep())
        assert exporter.queued == 2 + records_allowed


def test_an_object_of_an_excluded_namespace_is_on_no_record(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Whether what is allowed is recorded or not: the audit said nothing of it."""
    for allows in (False, True):
        exporter = make(loop, sidecarURL="unix:///nowhere", auditAllows=allows)

        async def sweep(exporter: Exporter = exporter) -> None:
            sink = DecisionRecords(exporter, loop)
            await sink.start(SweepStart("run", POLICIES, frozenset()))
            await sink.audited(audited(1))
            await sink.audited(replace(audited(2, violates=False), excluded=True))
            await sink.end(SweepEnd("run", POLICIES, frozenset(), reviewed=1, violations=1))

        asyncio.run(sweep())
        assert exporter.counters.offered == 3, "a begin, an end, and the one violation"


def test_two_sweeps_of_one_second_have_an_id_each_and_changes_between_them_have_none(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    """The directory's file for each run relies on it."""

    async def sweeps(exporter: Exporter) -> None:
        sink = DecisionRecords(exporter, loop)
        for _ in range(2):
            await sink.start(SweepStart("run", POLICIES, frozenset()))
            await sink.audited(audited(1))
            await sink.end(SweepEnd("run", POLICIES, frozenset(), violations=1))
        await sink.audited(audited(2, audit_id=""))

    path = tmp_path / "s"
    with Received(path) as received:
        exporter = make(loop, sidecarURL=f"unix://{path}?ack=none")
        asyncio.run(sweeps(exporter))
        running = asyncio.run_coroutine_threadsafe(exporter.run(), loop)
        asyncio.run_coroutine_threadsafe(exporter.drain(60), loop).result()
        running.result()
    found = [record.get("auditID") for record in received.records]
    one, other = found[0], found[3]
    assert found == [one] * 3 + [other] * 3 + [None]
    assert one != other
    assert one.startswith("run-")
    (event,) = violation_events(received.records[-1])
    assert event["eventType"] == "violation_audited"
    assert event["id"], "a reader groups by it"


def test_what_is_masked_in_an_audited_object_is_no_key_of_a_provider(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    requests = [ProviderRequest("p", (key,)) for key in ("confidential", "other")]
    answers = {request: ProviderResponse((), (), 200) for request in requests}
    (item,) = items(["web"], "space")
    item["spec"] = {"token": "confidential"}
    found = Responses((result(),), answers=answers)

    async def sweep(exporter: Exporter) -> None:
        sink = DecisionRecords(exporter, loop)
        await sink.start(SweepStart("run", POLICIES, frozenset()))
        await sink.audited(Audited("run", identity("web"), item, found, POLICIES))
        await sink.end(SweepEnd("run", POLICIES, frozenset(), violations=1))

    path = tmp_path / "s"
    with Received(path) as received:
        exporter = make(loop, sidecarURL=f"unix://{path}?ack=none", mask=["object.spec.token"])
        asyncio.run(sweep(exporter))
        running = asyncio.run_coroutine_threadsafe(exporter.run(), loop)
        asyncio.run_coroutine_threadsafe(exporter.drain(60), loop).result()
        running.result()
    (record,) = (record for record in received.records if record["eventType"] == "decision")
    assert [call["keys"] for call in record["externalData"]] == [["**masked**"], ["other"]]
