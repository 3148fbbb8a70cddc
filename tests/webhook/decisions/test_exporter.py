"""The exporter client against real sockets: bounds, acknowledgements, reconnects, counters."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.decisions.exporting import Peer, balanced, converse, make, obliging
from webhook.decisions.configuration import InvalidConfiguration, parse
from webhook.decisions.exporter import transport
from webhook.decisions.exporter.settings import read_settings
from webhook.decisions.wire.framing import Ack, Bye, ClientHello, ServerHello


def test_records_are_numbered_in_order_and_acknowledged(tmp_path: Path) -> None:
    async def run() -> None:
        exporter = make(tmp_path, labels={"cluster": "c"})
        async with Peer(tmp_path, obliging) as peer:
            await converse(exporter, *({"id": exporter.decision_id()} for _ in range(50)))
        hello, *records, bye = peer.lines
        assert hello == {
            "type": "hello",
            "protocols": [1, 3],
            "podUID": "uid",
            "pod": "pod",
            "process": exporter.origin.process,
            "acknowledged": 0,
        }
        assert [record["sequence"] for record in records] == list(range(1, 51))
        assert records[0]["id"] == f"{exporter.origin.process}-1"
        assert records[0]["labels"] == {"cluster": "c"}
        assert bye == {"type": "bye", "lastSequence": 50}
        assert exporter.counters.acknowledged == 50
        assert balanced(exporter)

    asyncio.run(run())


def test_what_was_not_acknowledged_is_sent_again_in_order(tmp_path: Path) -> None:
    async def breaking(peer: Peer) -> None:
        await peer.read()
        peer.say(type="hello", protocol=1, acknowledged=0)
        for _ in range(10):
            await peer.read()
        peer.say(type="ack", sequence=4)
        await peer.writer.drain()

    async def run() -> None:
        exporter = make(tmp_path)
        async with Peer(tmp_path, breaking, obliging) as peer:
            await converse(exporter, *({"n": n} for n in range(1, 11)))
        hellos = [line for line in peer.lines if line.get("type") == "hello"]
        assert [hello["acknowledged"] for hello in hellos] == [0, 4]
        numbers = [line["sequence"] for line in peer.lines if "sequence" in line]
        assert numbers == [*range(1, 11), *range(5, 11)]
        assert exporter.counters.retried == 6
        assert exporter.counters.acknowledged == 10
        assert balanced(exporter)

    asyncio.run(run())


def test_a_queue_that_is_full_of_what_a_lost_connection_took_is_sent_again(
    tmp_path: Path,
) -> None:
    """No offer can wake the sender: a full queue accepts none."""

    async def run() -> None:
        sent_again = asyncio.Event()

        async def breaking(peer: Peer) -> None:
            await peer.read()
            peer.say(type="hello", protocol=1, acknowledged=0)
            for _ in range(3):
                await peer.read()

        async def taking(peer: Peer) -> None:
            await peer.read()
            peer.say(type="hello", protocol=1, acknowledged=0)
            for _ in range(3):
                await peer.read()
            peer.say(type="ack", sequence=3)
            sent_again.set()
            await peer.over.wait()

        exporter = make(tmp_path, queue={"maxRecords": 3})
        async with (
            Peer(tmp_path, breaking, taking) as peer,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            for _ in range(3):
                assert exporter.offer({"id": exporter.decision_id()})
            tasks.create_task(exporter.run())
            await sent_again.wait()
            peer.over.set()
            await exporter.drain(PATIENCE_SECONDS)
        assert exporter.counters.acknowledged == 3
        assert balanced(exporter)

    asyncio.run(run())


def test_a_receiver_that_holds_more_than_it_could_acknowledge_gets_only_the_rest(
    tmp_path: Path,
) -> None:
    async def silent(peer: Peer) -> None:
        await peer.read()
        peer.say(type="hello", protocol=1, acknowledged=0)
        for _ in range(10):
            await peer.read()

    async def remembering(peer: Peer) -> None:
        await peer.read()
        peer.say(type="hello", protocol=1, acknowledged=8)
        try:
            while True:
                frame = await peer.read()
                if "sequence" in frame:
                    peer.say(type="ack", sequence=frame["sequence"])
        except ConnectionResetError:
            return

    async def run() -> None:
        exporter = make(tmp_path)
        async with Peer(tmp_path, silent, remembering) as peer:
            await converse(exporter, *({"n": n} for n in range(1, 11)))
        numbers = [line["sequence"] for line in peer.lines if "sequence" in line]
        assert numbers == [*range(1, 11), 9, 10]

    asyncio.run(run())


def test_offer_refuses_at_once_when_the_queue_is_full(tmp_path: Path) -> None:
    exporter = make(tmp_path, queue={"maxRecords": 3})
    assert [exporter.offer({"n": n}) for n in range(5)] == [True, True, True, False, False]
    exporter = make(tmp_path, queue={"maxBytes": 1024})
    assert exporter.offer({"x": "y" * 600})
    assert not exporter.offer({"x": "y" * 600})
    assert exporter.counters.dropped == {"queue_full": 1}
    assert exporter.queued_bytes <= 1024
    assert balanced(exporter)


def test_what_was_dropped_leaves_a_gap_in_the_numbers(tmp_path: Path) -> None:
    async def run() -> None:
        exporter = make(tmp_path, queue={"maxRecords": 2})
        for n in range(4):
            exporter.offer({"n": n})
        async with Peer(tmp_path, obliging) as peer:
            await converse(exporter)
        assert [line["sequence"] for line in peer.lines if "sequence" in line] == [1, 2]
        assert peer.lines[-1] == {"type": "bye", "lastSequence": 4}

    asyncio.run(run())


def test_a_hung_receiver_costs_offers_nothing_but_room(tmp_path: Path) -> None:
    async def hung(peer: Peer) -> None:
        await peer.read()
        peer.say(type="hello", protocol=1, acknowledged=0)
        await peer.over.wait()

    async def run() -> None:
        exporter = make(tmp_path, queue={"maxRecords": 100}, acknowledgeSeconds=0.05)
        async with Peer(tmp_path, hung, obliging) as peer, asyncio.TaskGroup() as tasks:
            tasks.create_task(exporter.run())
            for n in range(150):
                exporter.offer({"n": n, "x": "y" * 4000})
            assert exporter.counters.dropped == {"queue_full": 50}
            # No acknowledgement in time: another connection, and all is well.
            await exporter.drain(PATIENCE_SECONDS)
        assert peer.connections >= 2, "a busy machine may be late once more"
        assert exporter.counters.acknowledged == 100
        assert balanced(exporter)

    asyncio.run(run())


def test_records_that_had_no_room_are_a_fault_while_the_connection_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sidecar whose queue is full takes some: the connection has no error, and records are lost."""
    exporter = make(tmp_path, queue={"maxRecords": 2, "maxBytes": 1_000_000})
    exporter.offer({"n": 0})
    assert not exporter.fault
    for n in range(1, 5):
        exporter.offer({"n": n})
    assert exporter.fault.endswith(
        "takes records of the decision log too slowly, 3 were dropped since the start: it does not "
        "run, its disk is full, or its queue is full since a sink takes nothing; kubectl logs POD -c "
        "decisions says which"
    )
    monkeypatch.setattr("webhook.decisions.exporter.exporter.DROPPED_NEWS_SECONDS", 0)
    assert not exporter.fault


def test_what_is_left_at_the_end_of_the_grace_period_is_counted(tmp_path: Path) -> None:
    async def run() -> None:
        exporter = make(tmp_path)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(exporter.run())
            for n in range(7):
                exporter.offer({"n": n})
            await exporter.drain(0.05)
        assert not exporter.offer({"late": True})
        assert exporter.counters.dropped == {"shutdown": 8}
        assert balanced(exporter)

    asyncio.run(run())


def test_without_acknowledgements_the_stream_is_plain_ndjson(tmp_path: Path) -> None:
    async def listening(peer: Peer) -> None:
        try:
            while True:
                await peer.read()
        except ConnectionResetError:
            return

    async def run() -> None:
        exporter = make(tmp_path, sidecarURL=f"unix://{tmp_path}/s?ack=none")
        async with Peer(tmp_path, listening) as peer:
            await converse(exporter, *({"n": n} for n in range(30)))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(peer.lines) < 30:  # noqa: ASYNC110  # the peer's own task fills it
                    await asyncio.sleep(0)
        assert [line.get("n") for line in peer.lines] == list(range(30))
        assert exporter.counters.sent == 30
        assert exporter.counters.acknowledged == 0
        assert balanced(exporter)

    asyncio.run(run())


def test_rules_and_sizes_are_counted_and_large_records_shortened(tmp_path: Path) -> None:
    exporter = make(
        tmp_path,
        maxRecordBytes=2000,
        includeObjects=True,
        rules=[{"verdicts": ["allow"]}],
    )
    assert not exporter.offer({"verdict": "allow"})
    results = [{"message": "m", "details": {"d": "x" * 3000}}]
    record = {"verdict": "deny", "object": {"kind": "Pod", "x": "y" * 3000}, "results": results}
    assert exporter.offer(record)
    assert record["truncated"] == ["object", "results.details"]
    assert results[0]["details"] == {"d": "x" * 3000}, "the results are the review's own"
    assert not exporter.offer({"verdict": "deny", "resourceName": "x" * 3000})
    assert exporter.counters.dropped == {"rule": 1, "too_large": 1}
    assert balanced(exporter)


def test_details_that_orjson_cannot_write_are_exported_all_the_same(tmp_path: Path) -> None:
    exporter = make(tmp_path)
    assert exporter.offer({"results": [{"details": {"big": 2**70}, "message": "\ud800"}]})


def test_a_secret_in_the_queue_is_masked_already(tmp_path: Path) -> None:
    exporter = make(tmp_path, includeObjects=True)
    exporter.offer({"object": {"kind": "Secret", "data": {"a": "hunter2"}}})
    assert b"hunter2" not in bytes(exporter.outbox.take(10**6))


class LoopbackConnection:
    """Keeps what it is given, and acknowledges it."""

    def __init__(self, taken: list[bytes]) -> None:
        self._taken = taken
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    async def hello(self, hello: ClientHello) -> None:
        await self._answers.put(ServerHello(hello.acknowledged))

    async def send(self, lines: bytes) -> None:
        self._taken += lines.splitlines()
        await self._answers.put(Ack(len(self._taken)))

    async def bye(self, bye: Bye) -> None:
        del bye

    async def receive(self) -> Any:
        return await self._answers.get()

    async def close(self) -> None:
        return


class LoopbackTransport:
    """A third transport: a list of this process."""

    taken: list[bytes] = []  # noqa: RUF012  # one list for the one test

    def __init__(self, address: transport.Address) -> None:
        assert address.path == "/anywhere"

    async def connect(self) -> LoopbackConnection:
        return LoopbackConnection(self.taken)


def test_a_third_transport_needs_a_class_and_a_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registered by scheme, and nothing else of the exporter is touched."""
    monkeypatch.setattr(transport, "_REGISTERED", dict(transport._REGISTERED))
    monkeypatch.setitem(__import__("sys").modules, "loopback", __import__("types").ModuleType("x"))
    __import__("sys").modules["loopback"].Transport = LoopbackTransport
    with pytest.raises(
        InvalidConfiguration, match="unknown scheme 'loop', known are grpc://, unix"
    ):
        make(tmp_path, sidecarURL="loop:///anywhere")
    transport.register("loop", "loopback:Transport")
    exporter = make(tmp_path, sidecarURL="loop:///anywhere")
    asyncio.run(converse(exporter, {"n": 1}, {"n": 2}))
    assert [orjson.loads(line)["n"] for line in LoopbackTransport.taken] == [1, 2]
    assert exporter.counters.acknowledged == 2


def test_another_address_is_taken_up_without_a_loss(tmp_path: Path) -> None:
    async def run() -> None:
        one, two = tmp_path / "1", tmp_path / "2"
        one.mkdir()
        two.mkdir()
        exporter = make(one)
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            Peer(one, obliging) as first,
            Peer(two, obliging) as second,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(exporter.run())
            exporter.offer({"n": 1})
            while exporter.counters.acknowledged < 1:  # noqa: ASYNC110  # another task counts
                await asyncio.sleep(0)
            exporter.configure(make(two).settings)
            exporter.offer({"n": 2})
            await exporter.drain(PATIENCE_SECONDS)
        assert first.lines[1]["n"] == 1
        assert [line["n"] for line in second.lines if "n" in line] == [2]
        assert second.lines[0]["acknowledged"] == 1
        assert balanced(exporter)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({}, "sidecarURL: expected a string"),
        ({"sidecarURL": "unix:///s?ack=maybe"}, "ack=durable or ack=none"),
        ({"sidecarURL": "unix:///s", "maxrecords": 1}, "unknown key maxrecords"),
        (
            {"sidecarURL": "unix:///s", "queue": {"maxRecords": 0}},
            "queue.maxRecords: expected a whole",
        ),
        ({"sidecarURL": "unix:///s", "mask": ["a["]}, "mask: not a path"),
        (
            {"sidecarURL": "unix:///s", "rules": [{"verdicts": ["no"]}]},
            r"rules\[0\].verdicts: unknown",
        ),
        ({"sidecarURL": "unix:///s", "rules": [{"keep": 2}]}, "from 0 to 1"),
        (
            {"sidecarURL": "unix:///$(WADDLE_NOT_SET)"},
            "the environment variable WADDLE_NOT_SET is not set",
        ),
        ({"sidecarURL": f"unix:///{'d' * 120}/s"}, "a socket's path has at most"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(
    settings: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=fault):
        read_settings(parse(orjson.dumps(settings), "file.yaml"))


def test_who_asked_can_be_left_out_and_rules_know_it_still(tmp_path: Path) -> None:
    async def run() -> None:
        exporter = make(
            tmp_path, includeUserInfo=False, rules=[{"users": ["system:*"], "verdicts": ["allow"]}]
        )
        user = {
            "requestUsername": "ann",
            "requestUserUID": "7",
            "requestUserGroups": ["g"],
            "userInfo": {"username": "ann"},
        }
        async with Peer(tmp_path, obliging) as peer:
            assert not exporter.offer({"verdict": "allow", "requestUsername": "system:node"})
            await converse(exporter, {"verdict": "deny", **user})
            (line,) = (line for line in peer.lines if "sequence" in line)
            assert not user.keys() & line.keys()

    asyncio.run(run())
