"""Kafka, by librdkafka: every record acknowledged by all in-sync replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from webhook.decisions.declaration import setting
from webhook.decisions.sinks.sink import (
    ANSWER_SECONDS,
    ANSWER_SECONDS_MIN,
    RecordsRefused,
    SinkUnavailable,
)
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.decisions.configuration import Section
    from webhook.decisions.sinks.sink import Item, MakeSink

_REFUSED: Final = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
)
"""Errors about the record itself; batches with any other error are tried again."""


_REQUEST_BYTES: Final = 512 * 1024
"""The most bytes of a request's keys and lines: half of the default limit of librdkafka and
brokers."""

_REQUEST_MESSAGES: Final = 4096
"""Below librdkafka's ``batch.num.messages`` of 10,000."""

_OWN_OPTIONS: Final = ("batch.num.messages", "batch.size", "linger.ms")
"""The options of librdkafka about how messages share a request: :class:`KafkaSink` sets them."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The brokers, the topic and further options of librdkafka; ``brokers`` in its format."""

    brokers: str
    topic: str = setting()
    timeout_seconds: float = setting(ANSWER_SECONDS, least=ANSWER_SECONDS_MIN)
    options: Mapping[str, str] = setting(dict)


class KafkaSink:
    """Produces to one topic, keyed by the sender, so that a replica's records keep their order.

    Each partition has one request at a time, and the next one after its acknowledgement. A broker
    takes or refuses a request as a whole. Requests behind a refused one would be stored before it.
    """

    def __init__(
        self, topic: str, options: dict[str, str | int | float | bool], seconds: float
    ) -> None:
        self._topic = topic
        self._seconds = seconds
        self._options = options
        self._producer: Producer | None = None

    def send(self, items: Sequence[Item]) -> None:
        """Produces all messages and waits for their acknowledgements."""
        for request in _requests(items):
            self._send(request)

    def _send(self, messages: Sequence[tuple[bytes, bytes]]) -> None:
        reports: list[KafkaError | None] = []
        producer = self._open()
        try:
            for key, line in messages:
                producer.produce(
                    self._topic, line, key, on_delivery=lambda error, _: reports.append(error)
                )
            producer.flush(self._seconds)
        except (KafkaException, BufferError) as raised:
            self._abandon()
            if isinstance(raised, KafkaException) and raised.args[0].code() in _REFUSED:
                raise RecordsRefused(f"kafka: {_text(raised)}") from None
            raise SinkUnavailable(f"kafka: {_text(raised)}") from None
        errors = [error for error in reports if error is not None]
        if len(reports) < len(messages):
            # Messages still held by librdkafka must not arrive after the next try.
            self._abandon()
            reason = errors[0].str() if errors else f"no acknowledgement in {self._seconds:g} s"
            raise SinkUnavailable(f"kafka: {reason}")
        if errors and all(error.code() in _REFUSED for error in errors):
            raise RecordsRefused(f"kafka: {errors[0].str()}")
        if errors:
            raise SinkUnavailable(f"kafka: {errors[0].str()}")

    def close(self) -> None:
        """Closes the producer; unacknowledged records will be sent again."""
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


def _requests(items: Sequence[Item]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Keys and lines, in order, as many together as fit a request."""
    request: list[tuple[bytes, bytes]] = []
    held = 0
    for item in items:
        key = _key(item.record)
        for line in item.lines:
            size = len(key) + len(line)
            if request and (held + size > _REQUEST_BYTES or len(request) == _REQUEST_MESSAGES):
                yield request
                request, held = [], 0
            request.append((key, line))
            held += size
    if request:
        yield request


def _text(raised: KafkaException | BufferError) -> str:
    return raised.args[0].str() if isinstance(raised, KafkaException) else str(raised)


def _key(line: bytes) -> bytes:
    record = orjson.loads(line)
    if type(record) is not dict:
        return b""
    return f"{record.get('podUID', '')}/{record.get('process', '')}".encode()


def configure(section: Section) -> MakeSink:
    """Reads ``brokers``, ``topic``, ``timeoutSeconds`` and librdkafka's own ``options``."""
    brokers = ",".join(section.texts("brokers"))
    if not brokers:
        raise section.error("brokers", "expected at least one host:port")
    settings = section.read(KafkaSettings, brokers=brokers)
    for name in _OWN_OPTIONS:
        if name in settings.options:
            raise section.error("options", f"{name} is set by the sink itself")
    section.finish()
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": settings.brokers,
        "client.id": "waddle",
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        # Longer than it takes to hand over a request; a flush sends without waiting for it.
        "linger.ms": 1000,
        # No timeout for single messages: a message that expires lets later ones pass. The batch has
        # a timeout.
        "message.timeout.ms": 0,
        "queue.buffering.max.kbytes": 8 * 1024,  # instead of librdkafka's default GiB
        # Not every refused connection, 20 a second: the sidecar logs the error.
        "log_level": 2,
        **settings.options,
    }
    return lambda _origin, _logger: KafkaSink(settings.topic, options, settings.timeout_seconds)
