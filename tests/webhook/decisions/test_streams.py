"""Duplicates, gaps and marks of senders' streams."""

import pytest

from webhook.decisions.sidecar.streams import JUMP_MAX, STREAMS_MAX, Streams
from webhook.decisions.wire.framing import ProtocolError, StreamID

ONE = StreamID("pod", "first-start")
OTHER = StreamID("pod", "second-start")
OWNER = "uid 65532"


def test_a_record_received_again_is_a_duplicate() -> None:
    streams = Streams()
    streams.open(ONE, 0, OWNER)
    assert [streams.receive(ONE, number, OWNER) for number in (1, 2, 2, 1, 3)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert (streams.duplicates, streams.gaps) == (2, 0)


def test_a_restarted_container_s_numbers_are_new() -> None:
    streams = Streams()
    for stream in (ONE, OTHER):
        streams.open(stream, 0, OWNER)
        assert streams.receive(stream, 1, OWNER)
    assert streams.duplicates == 0


def test_what_the_sender_dropped_is_a_gap() -> None:
    streams = Streams()
    streams.open(ONE, 0, OWNER)
    for number in (1, 4, 5):
        streams.receive(ONE, number, OWNER)
    streams.finish(ONE, 7)
    assert streams.gaps == 2 + 2


def test_what_another_receiver_acknowledged_is_no_gap() -> None:
    streams = Streams()
    streams.open(ONE, 40, OWNER)
    streams.receive(ONE, 41, OWNER)
    assert streams.gaps == 0


def test_only_commits_move_what_is_durable() -> None:
    streams = Streams()
    streams.open(ONE, 0, OWNER)
    streams.receive(ONE, 1, OWNER)
    assert streams.durable(ONE) == 0
    streams.commit({ONE: 1})
    assert streams.open(ONE, 0, OWNER) == 1


def test_marks_of_the_log_make_what_is_sent_again_a_duplicate() -> None:
    streams = Streams()
    streams.restore({ONE: 7}, {ONE: OWNER})
    assert streams.open(ONE, 5, OWNER) == 7
    assert not streams.receive(ONE, 7, OWNER)
    assert streams.receive(ONE, 8, OWNER)


def test_streams_are_bounded_and_the_oldest_is_forgotten() -> None:
    streams = Streams()
    for number in range(STREAMS_MAX + 5):
        streams.open(StreamID("pod", str(number)), 0, OWNER)
    assert len(streams) == STREAMS_MAX
    assert streams.durable(StreamID("pod", "0")) == 0


def test_a_stream_belongs_to_whoever_began_it() -> None:
    streams = Streams()
    streams.open(ONE, 0, OWNER)
    with pytest.raises(ProtocolError, match="uid 65532 began this stream, you are uid 7"):
        streams.open(ONE, 0, "uid 7")
    with pytest.raises(ProtocolError):
        streams.receive(ONE, 1, "uid 7")
    assert streams.receive(ONE, 1, OWNER)


def test_a_stream_of_before_a_restart_is_still_its_owner_s() -> None:
    streams = Streams()
    streams.restore({ONE: 7, OTHER: 3}, {ONE: OWNER})
    with pytest.raises(ProtocolError):
        streams.open(ONE, 7, "uid 7")
    assert streams.open(OTHER, 3, "uid 7") == 3, "nobody knows whose it was"
    with pytest.raises(ProtocolError):
        streams.open(OTHER, 3, OWNER)


def test_a_number_that_cannot_come_next_is_refused_and_moves_nothing() -> None:
    streams = Streams()
    streams.open(ONE, 0, OWNER)
    for leap in (lambda: streams.receive(ONE, 10**15, OWNER), lambda: streams.finish(ONE, 10**15)):
        with pytest.raises(ProtocolError, match="in one step"):
            leap()
    assert streams.receive(ONE, 1, OWNER)
    assert streams.receive(ONE, JUMP_MAX, OWNER)


def test_whoever_begins_streams_without_end_drives_out_its_own() -> None:
    streams = Streams()
    streams.open(ONE, 40, OWNER)
    for number in range(2 * STREAMS_MAX):
        streams.open(StreamID("x", str(number)), 0, "uid 7")
    assert len(streams) == STREAMS_MAX
    assert streams.durable(ONE) == 40
