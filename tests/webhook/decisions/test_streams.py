"""Duplicates, gaps and marks of senders' streams."""

from webhook.decisions.framing import StreamID
from webhook.decisions.sidecar.streams import STREAMS_MAX, Streams

ONE = StreamID("pod", "first-start")
OTHER = StreamID("pod", "second-start")


def test_a_record_received_again_is_a_duplicate() -> None:
    streams = Streams()
    streams.open(ONE, 0)
    assert [streams.receive(ONE, number) for number in (1, 2, 2, 1, 3)] == [
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
        streams.open(stream, 0)
        assert streams.receive(stream, 1)
    assert streams.duplicates == 0


def test_what_the_sender_dropped_is_a_gap() -> None:
    streams = Streams()
    streams.open(ONE, 0)
    for number in (1, 4, 5):
        streams.receive(ONE, number)
    streams.finish(ONE, 7)
    assert streams.gaps == 2 + 2


def test_what_another_receiver_acknowledged_is_no_gap() -> None:
    streams = Streams()
    streams.open(ONE, 40)
    streams.receive(ONE, 41)
    assert streams.gaps == 0


def test_only_commits_move_what_is_durable() -> None:
    streams = Streams()
    streams.open(ONE, 0)
    streams.receive(ONE, 1)
    assert streams.durable(ONE) == 0
    streams.commit({ONE: 1})
    assert streams.open(ONE, 0) == 1


def test_marks_of_the_log_make_what_is_sent_again_a_duplicate() -> None:
    streams = Streams()
    streams.restore({ONE: 7})
    assert streams.open(ONE, 5) == 7
    assert not streams.receive(ONE, 7)
    assert streams.receive(ONE, 8)


def test_streams_are_bounded_and_the_oldest_is_forgotten() -> None:
    streams = Streams()
    for number in range(STREAMS_MAX + 5):
        streams.open(StreamID("pod", str(number)), 0)
    assert len(streams) == STREAMS_MAX
    assert streams.durable(StreamID("pod", "0")) == 0
