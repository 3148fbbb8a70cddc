"""Receivers that misbehave, over a socket: told of, left, and nothing is lost by them."""

import asyncio
from pathlib import Path

import orjson
import pytest

from tests.patience import PATIENCE_SECONDS, turns_until
from tests.webhook.decisions.exporting import Peer, balanced, converse, make, obliging
from webhook import log
from webhook.decisions.exporter import exporter as exporters

HELLO = {"type": "hello", "protocol": 1, "acknowledged": 0}

MISBEHAVIOURS: dict[str, tuple[list[bytes], str]] = {
    "an answer that is no hello": ([b'{"type":"ack","sequence":0}'], "first frame is not a hello"),
    "a second hello": ([orjson.dumps(HELLO)] * 2, "a second hello"),
    "an acknowledgement of what was never sent": (
        [orjson.dumps(HELLO), b'{"type":"ack","sequence":99}'],
        "acknowledged 99 of 1",
    ),
    "a refusal": (
        [orjson.dumps(HELLO), b'{"type":"error","code":"busy","message":"later"}'],
        "later",
    ),
    "a refusal at once": ([b'{"type":"error","code":"busy","message":"later"}'], "later"),
    "a frame of no kind": ([b'{"type":"greeting"}'], "no frame of type"),
    "a line without an end": ([b"x" * 70_000], "the receiver's line is too long"),
    "silence": ([orjson.dumps(HELLO)], "no acknowledgement for"),
}


@pytest.mark.parametrize(("replies", "message"), MISBEHAVIOURS.values(), ids=MISBEHAVIOURS.keys())
def test_a_receiver_that_misbehaves_is_reported_and_nothing_is_lost(
    tmp_path: Path, replies: list[bytes], message: str
) -> None:
    """Its connection is made anew, and all that it has not acknowledged sent again."""

    async def misbehaving(peer: Peer) -> None:
        await peer.read()
        peer.writer.write(b"\n".join(replies) + b"\n")
        await peer.over.wait()

    lines: list[bytes] = []

    async def run() -> None:
        exporter = make(
            tmp_path, logger=log.Log(lines.append).logger("test"), acknowledgeSeconds=0.05
        )
        async with Peer(tmp_path, misbehaving, obliging) as peer:
            await converse(exporter, {"id": "one"})
            assert peer.connections >= 2
        assert exporter.counters.acknowledged == 1
        assert balanced(exporter)

    asyncio.run(run())
    assert any(message.encode() in line for line in lines), lines


def test_a_receiver_that_does_not_take_the_goodbye_holds_up_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More waits than its socket holds, and it reads none of it."""
    monkeypatch.setattr(exporters, "GOODBYE_SECONDS", 0.05)

    async def deaf(peer: Peer) -> None:
        await peer.read()
        peer.say(**HELLO)
        await peer.over.wait()

    async def run() -> None:
        exporter = make(tmp_path)
        async with (
            Peer(tmp_path, deaf) as peer,
            asyncio.timeout(PATIENCE_SECONDS),
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(exporter.run())
            await turns_until(lambda: exporter.connected)
            for _ in range(20):
                assert exporter.offer({"id": "x" * 100_000})
            await exporter.drain(0.05)
            peer.over.set()
        assert exporter.counters.dropped["shutdown"] == 20
        assert balanced(exporter)

    asyncio.run(run())
