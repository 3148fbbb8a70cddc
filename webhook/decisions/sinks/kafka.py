"""Kafka, by librdkafka: every record acknowledged by all in-sync replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from webhook.decisions.sinks.sink import RecordsRefused, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import Item, MakeSink

_REFUSED: Final = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
)
"""Errors about the record itself: all others may be cured by another try."""


class KafkaSink:
    """Produces to one topic, keyed by the sender, so that a replica's records keep their order."""

    def __init__(
        self, topic: str, options: dict[str, str | int | float | bool], seconds: float
    ) -> None:
        self._topic = topic
        self._seconds = seconds
        self._options = options
        self._producer: Producer | None = None

    def send(self, items: Sequence[Item]) -> None:
        """Produce all and wait for each one's acknowledgement."""
        errors: list[KafkaError] = []
        delivered = expected = 0

        def report(error: KafkaError | None, _message: Any) -> None:
            nonlocal delivered
            if error is None:
                delivered += 1
            else:
                errors.append(error)

        producer = self._open()
        try:
            for item in items:
                key = _key(item.record)
                for line in item.lines:
                    expected += 1
                    producer.produce(self._topic, line, key, on_delivery=report)
                    producer.poll(0)
            producer.flush(self._seconds)
        except KafkaException as raised:
            errors.append(raised.args[0])
        except BufferError as raised:
            self._abandon()
            raise SinkUnavailable(f"kafka: {raised}") from None
        if not errors and delivered == expected:
            return
        # What librdkafka still holds must not arrive behind the next try.
        self._abandon()
        if errors and all(error.code() in _REFUSED for error in errors):
            raise RecordsRefused(f"kafka: {errors[0].str()}")
        what = errors[0].str() if errors else f"no acknowledgement in {self._seconds:g} s"
        raise SinkUnavailable(f"kafka: {what}")

    def close(self) -> None:
        """Close the producer; what is not acknowledged will be sent again."""
        self._abandon()

    def _open(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self._options)
        return self._producer

    def _abandon(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.poll(0)
            self._producer = None


def _key(line: bytes) -> bytes:
    record = orjson.loads(line)
    if type(record) is not dict:
        return b""
    return f"{record.get('podUID', '')}/{record.get('process', '')}".encode()


def configure(section: Section) -> MakeSink:
    """Settings ``brokers``, ``topic``, ``timeoutSeconds`` and librdkafka's own ``options``."""
    brokers = ",".join(section.texts("brokers"))
    if not brokers:
        raise section.error("brokers", "expected at least one host:port")
    topic = section.text("topic")
    seconds = section.number("timeoutSeconds", 10.0, least=0.1)
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": brokers,
        "client.id": "waddle",
        "enable.idempotence": True,
        # A batch that is given up must not have its later part at the broker and not its earlier.
        "max.in.flight.requests.per.connection": 1,
        "acks": "all",
        "compression.type": "lz4",
        "linger.ms": 5,
        # No end of a message's own: one that ends alone lets those behind it pass. A batch ends.
        "message.timeout.ms": 0,
        "queue.buffering.max.kbytes": 8 * 1024,  # of librdkafka's default GiB
        "log_level": 3,
        **section.text_map("options"),
    }
    section.finish()
    return lambda _origin, _logger: KafkaSink(topic, options, seconds)
