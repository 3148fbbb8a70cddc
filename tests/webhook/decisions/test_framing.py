"""The protocol without I/O: frames both ways, versions, and lines cut out of a stream."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.decisions.wire import framing
from webhook.decisions.wire import rows as rows_wire
from webhook.decisions.wire.framing import (
    Ack,
    Bye,
    ClientHello,
    LineSplitter,
    ProtocolError,
    Record,
    Refusal,
    ServerHello,
    StreamID,
)

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "decisions"


@pytest.mark.parametrize(
    "frame",
    [ClientHello(StreamID("uid", "process"), "pod", 7), Bye(9)],
)
def test_a_client_s_frame_is_read_as_it_was_written(frame: ClientHello | Bye) -> None:
    assert framing.decode_client_line(framing.encode(frame).rstrip(b"\n")) == frame


@pytest.mark.parametrize("frame", [ServerHello(7), Ack(8), Refusal("busy", "later")])
def test_a_receiver_s_frame_is_read_as_it_was_written(
    frame: ServerHello | Ack | Refusal,
) -> None:
    assert framing.decode_server_line(framing.encode(frame).rstrip(b"\n")) == frame


def test_the_golden_conversation_is_what_this_version_says() -> None:
    """Changing a byte of it breaks receivers that others have written."""
    client = (GOLDEN / "client.ndjson").read_bytes().splitlines(keepends=True)
    server = (GOLDEN / "receiver.ndjson").read_bytes().splitlines(keepends=True)
    hello, *records, bye = client
    stream = StreamID("6c1b", "5f0c9d2e")
    assert framing.encode(ClientHello(stream, "waddle-0", 0, (1,))) == hello
    assert framing.encode(Bye(2)) == bye
    for number, line in enumerate(records, 1):
        record = framing.decode_client_line(line.rstrip(b"\n"))
        assert record == Record(line.rstrip(b"\n"), stream, number)
    answers = [framing.encode(frame) for frame in (ServerHello(0), Ack(1), Ack(2))]
    assert answers == server


def test_the_golden_conversation_in_rows_says_the_same_records() -> None:
    """The first two of version 1, as version 3 says them."""
    hello, rows, bye = (GOLDEN / "client-3.ndjson").read_bytes().splitlines(keepends=True)
    stream = StreamID("6c1b", "5f0c9d2e")
    assert framing.encode(ClientHello(stream, "waddle-0", 0)) == hello
    assert framing.encode(Bye(2)) == bye
    frame = framing.decode_client_line(rows.rstrip(b"\n"))
    assert isinstance(frame, framing.Rows)
    _, *records, _ = (GOLDEN / "client.ndjson").read_bytes().splitlines()
    received = rows_wire.received(frame.value, stream)
    assert [one.sequence for one in received] == [1, 2]
    assert [orjson.loads(one.line) for one in received] == [orjson.loads(one) for one in records]


def test_a_newer_peer_s_unknown_fields_are_ignored() -> None:
    hello = {"type": "hello", "protocols": [2, 1], "process": "p", "colour": "blue"}
    assert framing.decode_client_line(json.dumps(hello).encode()) == ClientHello(
        StreamID("", "p"), "", 0, (2, 1)
    )
    assert framing.decode_server_line(b'{"type":"ack","sequence":3,"x":1}') == Ack(3)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not JSON", "bad_frame"),
        (b"[1]", "bad_frame"),
        (b'{"type":"dance"}', "bad_frame"),
        (b'{"type":"hello","protocols":[99],"process":"p"}', "unsupported_protocol"),
        (b'{"type":"hello","protocols":1,"process":"p"}', "unsupported_protocol"),
        (b'{"type":"hello","protocols":[1]}', "bad_frame"),
        (b'{"type":"hello","protocols":[1],"process":5}', "bad_frame"),
        (b'{"type":"bye","lastSequence":-1}', "bad_frame"),
    ],
)
def test_a_client_that_breaks_the_protocol_is_reported_how(line: bytes, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        framing.decode_client_line(line)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "line", [b'{"type":"hello","protocol":4}', b'{"type":"ack","sequence":true}', b"{}"]
)
def test_a_receiver_that_breaks_the_protocol_is_not_believed(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        framing.decode_server_line(line)


def test_a_record_without_a_number_is_a_plain_line() -> None:
    for body in ({}, {"process": "p"}, {"process": "p", "sequence": 0}, {"sequence": 4}):
        line = orjson.dumps(body)
        assert framing.decode_client_line(line) == Record(line, None, 0)


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))), st.data())
def test_lines_come_out_whole_however_the_stream_is_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == [line for line in lines if line]


def test_a_line_beyond_the_limit_is_refused_before_it_ends() -> None:
    splitter = LineSplitter(10)
    with pytest.raises(ProtocolError) as caught:
        splitter.feed(b"01234567890")
    assert caught.value.code == "line_too_long"
