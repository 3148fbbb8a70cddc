"""The Kafka sink and a broker: librdkafka's own small one, which speaks Kafka on a real socket.

What a real broker does through its restarts is in tests/behaviour.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.patience import PATIENCE_SECONDS
from webhook import log
from webhook.decisions.configuration import Section
from webhook.decisions.sinks import kafka
from webhook.decisions.sinks.sink import Item, RecordsRefused, Sink, SinkUnavailable, configure

QUIET = log.Log(lambda _: None).logger("test")


def sink(options: dict[str, str] | None = None, seconds: float = 60.0) -> Sink:
    """A sink to a broker of its own, or where the options say otherwise."""
    settings = {
        "brokers": ["127.0.0.1:1"],
        "topic": "decisions",
        "timeoutSeconds": seconds,
        "options": {"test.mock.num.brokers": "1", **(options or {})},
    }
    return configure("kafka", Section(settings, "test"))("test", QUIET)


def items(*values: Any) -> list[Item]:
    """A batch of these records."""
    lines = [orjson.dumps(value) for value in values]
    return [Item(line, (line,)) for line in lines]


class Broker:
    """The broker's records of a sink's topic."""

    def __init__(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._consumer = consumer
        self._partitions = partitions
        consumer.assign(partitions)

    def count(self) -> int:
        """Returns the number of messages that the broker reports now."""
        ends = (
            self._consumer.get_watermark_offsets(part, timeout=PATIENCE_SECONDS)
            for part in self._partitions
        )
        return sum(end for _, end in ends)

    def read(self, count: int) -> list[tuple[bytes, Any]]:
        """Returns so many messages, with their keys, in the order of each partition."""
        read = []
        for message in self._consumer.consume(count, timeout=PATIENCE_SECONDS):
            value = message.value()
            assert message.error() is None
            assert value is not None
            read.append((message.key() or b"", orjson.loads(value)))
        return read


@contextmanager
def broker_of(opened: Sink) -> Iterator[Broker]:
    """The broker that a sink has made for itself, with the topic, which a producer's asking makes."""
    assert isinstance(opened, kafka.KafkaSink)
    found = opened._open().list_topics("decisions", timeout=PATIENCE_SECONDS)
    (address,) = found.brokers.values()
    partitions = [
        TopicPartition("decisions", number, 0) for number in found.topics["decisions"].partitions
    ]
    consumer = Consumer(
        {"bootstrap.servers": f"{address.host}:{address.port}", "group.id": "test", "log_level": 2}
    )
    try:
        yield Broker(consumer, partitions)
    finally:
        consumer.close()


def test_what_send_returns_for_is_acknowledged_and_the_next_batch_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where it takes several requests, which go one after the other."""
    monkeypatch.setattr(kafka, "_REQUEST_MESSAGES", 2)
    records = [{"process": "p", "sequence": number} for number in range(10)]
    opened = sink()
    try:
        with broker_of(opened) as broker:
            opened.send(items(*records[:5]))
            assert broker.count() == 5
            opened.send(items(*records[5:]))
            assert broker.count() == 10
            opened.send(items([], "no object"))
            assert broker.count() == 12
            read = broker.read(12)
    finally:
        opened.close()
    assert [value for key, value in read if key == b"/p"] == records
    assert sorted(orjson.dumps(value) for key, value in read if not key) == [b'"no object"', b"[]"]


def test_without_a_broker_nothing_counts_as_delivered() -> None:
    opened = sink({"test.mock.num.brokers": "0"}, 0.1)
    for _ in range(2):  # The next try begins anew.
        with pytest.raises(SinkUnavailable, match=r"no acknowledgement in 0\.1 s"):
            opened.send(items({"a": 1}))
    opened.close()
    opened.close()


def test_a_record_larger_than_a_message_may_be_is_refused_and_holds_up_no_other() -> None:
    """The record was repeated for ever: it may have a MiB, and librdkafka takes a million bytes."""
    opened = sink({"message.max.bytes": "1000"})
    with pytest.raises(RecordsRefused, match="Message size too large"):
        opened.send(items({"a": 1}, {"a": "x" * 2000}))
    opened.send(items({"a": 1}))
    opened.close()
