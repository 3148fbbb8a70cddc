"""The Kafka sink and a broker: librdkafka's own small one, which speaks Kafka on a real socket.

What a real broker does through its restarts is in tests/behaviour.
"""

from typing import Any

import orjson
import pytest

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


def test_what_send_returns_for_is_acknowledged_and_the_next_batch_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where it takes several requests, which go one after the other."""
    monkeypatch.setattr(kafka, "_REQUEST_MESSAGES", 2)
    opened = sink()
    try:
        for start in (0, 5):
            opened.send(items(*({"process": "p", "sequence": start + n} for n in range(5))))
        opened.send(items([], "no object"))
    finally:
        opened.close()


def test_without_a_broker_nothing_counts_as_delivered() -> None:
    opened = sink({"test.mock.num.brokers": "0"}, 0.1)
    for _ in range(2):  # The next try begins anew.
        with pytest.raises(SinkUnavailable, match=r"no acknowledgement in 0\.1 s"):
            opened.send(items({"a": 1}))
    opened.close()
    opened.close()


def test_a_record_larger_than_a_message_may_be_is_refused_and_holds_up_no_other() -> None:
    """It was tried again for ever: a record may have a MiB, librdkafka takes a million bytes."""
    opened = sink({"message.max.bytes": "1000"})
    with pytest.raises(RecordsRefused, match="Message size too large"):
        opened.send(items({"a": 1}, {"a": "x" * 2000}))
    opened.send(items({"a": 1}))
    opened.close()
