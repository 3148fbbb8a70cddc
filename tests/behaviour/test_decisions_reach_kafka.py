"""A Kafka broker, the real one, that is restarted while decisions go to it."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.process import Sidecar, run_replica
from tests.patience import PATIENCE_SECONDS, until
from tests.ports import free_port
from tests.programs import Programs
from webhook import log
from webhook.decisions.configuration import Section
from webhook.decisions.sinks.sink import Item, RecordsRefused, configure

OF_A_SHORT_LIFE = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Most of what Java does in half a minute is to compile for the hours after."""

QUIET = log.Log(lambda _: None).logger("test")


@pytest.fixture(scope="module")
def kafka_jars(program: Programs) -> Path:
    """Kafka's jars."""
    return program("kafka")


class Broker:
    """A Kafka broker and controller in one process, in KRaft mode."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self.port, controller = free_port(), free_port()
        self._folder = folder
        self._jars = jars
        self._properties = folder / "server.properties"
        self._properties.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={folder}/logs\n"
            "num.partitions=1\n"
            "offsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
            "message.max.bytes=20000\n"
        )
        self._log = (folder / "broker.log").open("ab")
        self._java("kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c").wait()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Broker":
        self.process = self._java("kafka.Kafka")
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, (self._folder / "broker.log").read_text()[
                    -2000:
                ]
                assert time.monotonic() < until
                time.sleep(0.1)
            else:
                return self

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    def close(self) -> None:
        self.stop()
        self._log.close()

    def _java(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = ["java", *OF_A_SHORT_LIFE, "-cp", f"{self._jars}/*", *arguments]
        command.append(str(self._properties))
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, cwd=self._folder)


def consume(port: int, topic: str, count: int) -> list[dict[str, Any]]:
    """Returns so many messages from a topic's beginning, without repeated ones."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "test",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[dict[str, Any]] = []
    until = time.monotonic() + PATIENCE_SECONDS
    while len({one["sequence"] for one in found}) < count and time.monotonic() < until:
        found += [
            {"key": message.key().decode(), **json.loads(message.value() or b"")}
            for message in consumer.consume(500, 0.5)
            if message.error() is None
        ]
    consumer.close()
    return found


def plain_socket(sidecar: Sidecar) -> socket.socket:
    """A connection that sends records as lines."""
    plain = socket.socket(socket.AF_UNIX)
    plain.connect(str(sidecar.socket))
    return plain


@pytest.mark.slow(25)
def test_a_kafka_broker_gets_each_decision_through_its_own_restart(
    kafka_jars: Path, tmp_path: Path
) -> None:
    """Acknowledged by the broker or sent again; what is too large for it is a dead letter."""
    pytest.importorskip("confluent_kafka")
    broker = Broker(kafka_jars, tmp_path).start()
    try:
        sink = {
            "name": "kafka",
            "type": "kafka",
            "settings": {
                "brokers": [f"127.0.0.1:{broker.port}"],
                "topic": "decisions",
                "timeoutSeconds": 3,
            },
            "batch": {"backoffInitialSeconds": 0.1, "backoffMaxSeconds": 0.5},
        }
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:

            def enough() -> None:
                delivered, failed = (
                    f'sink_{name}_total{{sink="kafka"}}' for name in ("delivered", "failures")
                )
                until(lambda: sidecar.metric(delivered) >= 300, "some are delivered")
                broker.stop()
                until(lambda: sidecar.metric(failed) >= 1, "the sink misses the broker")
                broker.start()

            counters = run_replica(tmp_path / "replica", enough, sidecarURL=sidecar.url)
            with plain_socket(sidecar) as plain:
                large = {
                    "podUID": "u",
                    "process": "large",
                    "sequence": 1,
                    "x": os.urandom(20000).hex(),
                }
                plain.sendall(json.dumps(large).encode() + b"\n")
                sidecar.await_metric('sink_dead_lettered_total{sink="kafka"}', 1)
            sidecar.await_metric('sink_lag_records{sink="kafka"}', 0)
        found = consume(broker.port, "decisions", counters["acknowledged"])
    finally:
        broker.close()
    first: dict[int, None] = {record["sequence"]: None for record in found}
    assert list(first) == sorted(first)
    dropped = sum(counters["dropped"].values())
    assert len(first) == counters["acknowledged"] == counters["offered"] - dropped
    assert {record["key"] for record in found} == {f"pod/{counters['process']}"}


@pytest.mark.slow(25)
def test_nothing_behind_what_a_broker_refused_as_too_large_is_there_before_it(
    kafka_jars: Path, tmp_path: Path
) -> None:
    """A batch of three requests by librdkafka's own limit: two too large for the broker, one not.

    Where it may fill a request (1,000,000 bytes) 984 messages of 1,006 bytes are in it.
    """
    pytest.importorskip("confluent_kafka")
    broker = Broker(kafka_jars, tmp_path).start()
    large, small = 2 * 984, 12
    batch = []
    for sequence in range(large + small):
        line = json.dumps({"podUID": "u", "process": "p", "sequence": sequence}).encode()
        if sequence < large:
            line = line[:-1] + b', "x": "' + os.urandom(500).hex().encode()
            line = line[: 1003 - len(b'"}')] + b'"}'
        batch.append(Item(line, (line,)))
    settings = {"brokers": [f"127.0.0.1:{broker.port}"], "topic": "decisions"}
    sink = configure("kafka", Section(settings, "settings"))("kafka", QUIET)
    try:
        with pytest.raises(RecordsRefused):
            sink.send(batch)
        for start in range(0, len(batch), small):
            sink.send(batch[start : start + 12])
        found = consume(broker.port, "decisions", len(batch))
    finally:
        sink.close()
        broker.close()
    first = list({record["sequence"]: None for record in found})
    assert first == list(range(len(batch)))
