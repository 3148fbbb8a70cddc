"""``waddle sidecar`` as a process: sinks that fail, queues that fill, what it costs."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.process import ROOT, Sidecar
from tests.decisions.receiver import Receiver, http_sink
from tests.decisions.sender import Sender
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(poison=frozenset({"poison"})) as running:
        yield running


def test_what_is_acknowledged_survives_a_kill_and_a_sink_that_is_down(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("refusing")
    sidecar = Sidecar(tmp_path, [http_sink(receiver)])
    with sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 101))
        sender.await_ack(100)
        receiver.wait_for_requests(2)
        sidecar.kill()
        sender.close()
    assert receiver.records == []
    request_count = len(receiver.requests)
    with sidecar:
        # One request of who was killed may be under way still: it is to be refused too.
        receiver.wait_for_requests(request_count + 2)
        receiver.set("ok")
        found = receiver.wait_for(100)
        assert [record["sequence"] for record in found] == list(range(1, 101))
        again = Sender(sidecar.socket)
        assert again.acknowledged == 100
        again.records(range(90, 103))
        again.await_ack(102)
        again.close()
        assert [record["sequence"] for record in receiver.wait_for(102)][100:] == [101, 102]
        sidecar.await_metric("duplicates_total", 11)


def test_a_poison_record_goes_to_the_dead_letters_and_blocks_nobody(
    tmp_path: Path, receiver: Receiver
) -> None:
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 8))
        sender.records(range(8, 9), id="poison")
        sender.records(range(9, 20))
        sender.await_ack(19)
        sender.close()
        found = receiver.wait_for(18)
        assert [record["sequence"] for record in found] == [*range(1, 8), *range(9, 20)]
        sidecar.await_metric('sink_dead_lettered_total{sink="http"}', 1)
        sidecar.await_metric('sink_delivered_total{sink="http"}', 18)
    letters = (sidecar.queue / "http.dead-letters").read_text().splitlines()
    assert [json.loads(letter)["record"]["sequence"] for letter in letters] == [8]
    assert json.loads(letters[0])["reason"] == "answered 400 Bad Request"


def test_one_slow_sink_delays_no_other_and_the_log_waits_for_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("refusing")
    out = tmp_path / "out.ndjson"
    sinks = [http_sink(receiver), {"name": "f", "type": "file", "settings": {"path": str(out)}}]
    with Sidecar(tmp_path, sinks) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 51))
        sender.await_ack(50)
        sidecar.await_metric('sink_lag_records{sink="f"}', 0)
        assert len(out.read_text().splitlines()) == 50
        assert sidecar.metric('sink_lag_records{sink="http"}') == 50
        receiver.wait_for_requests(2)  # it waits for each answer: the first is counted by now
        assert sidecar.metric('sink_consecutive_failures{sink="http"}') >= 1
        receiver.set("ok")
        receiver.wait_for(50)
        sender.close()


def test_a_retry_after_is_heeded(tmp_path: Path, receiver: Receiver) -> None:
    receiver.retry_after = "3600"
    receiver.set("refusing")
    with Sidecar(tmp_path, [http_sink(receiver)], shutdownGraceSeconds=0.1) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 2))
        sender.await_ack(1)
        receiver.wait_for_requests(1)
        sidecar.await_log('"retry_seconds":3600')
        assert sidecar.metric('sink_failures_total{sink="http"}') == 1
        sender.close()


def test_a_full_queue_acknowledges_nothing_until_there_is_room(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("refusing")
    queue = {
        "directory": str(tmp_path / "queue"),
        "segmentBytes": 65536,
        "maxBytes": 4 * 1024 * 1024,
        "minFreeBytes": 0,
    }
    with Sidecar(tmp_path, [http_sink(receiver)], queue=queue) as sidecar:
        sender = Sender(sidecar.socket)
        sent = range(1, 401)  # twice what the queue holds
        with ThreadPoolExecutor(1) as pool:  # Once the queue is full, sending waits for room.
            sending = pool.submit(sender.records, sent, x="y" * 20_000)
            sidecar.await_metric("queue_blocked", 1)
            assert sidecar.metric("queue_bytes") <= 4 * 1024 * 1024
            assert sidecar.metric("committed_total") < len(sent)
            receiver.set("ok")
            sender.await_ack(len(sent))
            sending.result()
        found = receiver.wait_for(len(sent))
        assert [record["sequence"] for record in found] == list(sent)
        sender.close()


def test_dropping_the_oldest_is_counted_for_the_sink_that_missed_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("refusing")
    queue = {
        "directory": str(tmp_path / "queue"),
        "segmentBytes": 65536,
        "maxBytes": 4 * 1024 * 1024,
        "minFreeBytes": 0,
        "whenFull": "dropOldest",
    }
    with Sidecar(tmp_path, [http_sink(receiver)], queue=queue) as sidecar:
        sender = Sender(sidecar.socket)
        for start in range(1, 501, 20):
            sender.records(range(start, start + 20), x="y" * 20_000)
            sender.await_ack(start + 19)
        receiver.set("ok")
        sidecar.await_metric('sink_lag_records{sink="http"}', 0)
        sender.close()
        delivered = sidecar.metric('sink_delivered_total{sink="http"}')
        dropped = sidecar.metric('sink_dropped_total{sink="http"}')
        assert dropped > 0
        assert delivered + dropped == 500
        assert sidecar.metric("committed_total") == 500


def test_sigterm_acknowledges_and_drains_what_came_before_it(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("slow")
    sink = http_sink(receiver, timeoutSeconds=PATIENCE_SECONDS)  # Else a late batch is sent again.
    with Sidecar(tmp_path, [sink], shutdownGraceSeconds=PATIENCE_SECONDS) as sidecar:
        (sender := Sender(sidecar.socket)).records(range(1, 2001))
        sender.await_ack(2000)
        assert sidecar.stop() == 0
        sender.close()
    assert len(receiver.records) == 2000


def test_headers_come_from_files_and_bodies_as_configured(
    tmp_path: Path, receiver: Receiver
) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    (tmp_path / "key").write_text("k3y\n")
    sink = http_sink(
        receiver,
        encoding="ndjson",
        gzip=True,
        headers={"X-Source": "waddle"},
        headerFiles={"X-Key": str(tmp_path / "key")},
        bearerTokenFile=str(tmp_path / "token"),
    )
    with Sidecar(tmp_path, [sink]) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 11))
        sender.await_ack(10)
        assert len(receiver.wait_for(10)) == 10
        (tmp_path / "token").write_text("rotated\n")
        sender.records(range(11, 12))
        receiver.wait_for(11)
        sender.close()
    first, last = receiver.requests[0]["headers"], receiver.requests[-1]["headers"]
    assert first["X-Source"] == "waddle"
    assert first["X-Key"] == "k3y"
    assert first["Content-Type"] == "application/x-ndjson"
    assert first["Content-Encoding"] == "gzip"
    assert first["Authorization"] == "Bearer t0ken"
    assert last["Authorization"] == "Bearer rotated"


def test_plain_ndjson_is_taken_and_never_answered(tmp_path: Path, receiver: Receiver) -> None:
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        sender = Sender(sidecar.socket, hello=False)
        sender.write({"anything": 1}, {"anything": 2})
        assert [record["anything"] for record in receiver.wait_for(2)] == [1, 2]
        sender.close()


def test_a_sender_that_breaks_the_protocol_is_reported_and_left(
    tmp_path: Path, receiver: Receiver
) -> None:
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        sender = Sender(sidecar.socket)
        sender.write({"no": "record"})
        answer = sender.read()
        assert (answer["type"], answer["code"]) == ("error", "bad_record")
        sender.close()
        sender = Sender(sidecar.socket, hello=False)
        sender.write({"type": "hello", "protocols": [7], "process": "p"})
        answer = sender.read()
        assert (answer["type"], answer["code"]) == ("error", "unsupported_protocol")
        sender.close()
        sidecar.await_metric("rejected_total", 2)


def test_a_number_sent_in_another_s_name_costs_the_owner_nothing(
    tmp_path: Path, receiver: Receiver
) -> None:
    """Whether it is far away or the next: it would count as delivered what never came."""
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        owner = Sender(sidecar.socket)
        owner.records(range(1, 11))
        owner.await_ack(10)
        for number in (10**15, 11, 500):
            stranger = Sender(sidecar.socket, hello=False)
            stranger.records(range(number, number + 1), stranger=True)
            stranger.close()
        sidecar.await_metric("rejected_total", 3)
        far = Sender(sidecar.socket)
        far.records(range(10**15, 10**15 + 1), stranger=True)
        assert far.read()["code"] == "bad_record"
        far.close()
        owner.records(range(11, 21))
        owner.await_ack(20)
        owner.close()
        found = receiver.wait_for(20)
    assert [record["sequence"] for record in found] == list(range(1, 21))
    assert not any("stranger" in record for record in found)


OTHER_USER = """
import json, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
file = peer.makefile("rwb")
hello = {"type": "hello", "protocols": [1], "podUID": "u", "process": "p", "acknowledged": 10}
file.write(json.dumps(hello).encode() + b"\\n")
file.flush()
print(json.loads(file.readline())["code"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_of_the_node_is_not_let_into_a_stream_also_after_a_restart(
    receiver: Receiver,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sidecar = Sidecar(folder, [http_sink(receiver)])
        with sidecar:
            owner = Sender(sidecar.socket)
            owner.records(range(1, 11))
            owner.await_ack(10)
            owner.close()
            for restarted in (False, True):
                if restarted:
                    sidecar.kill()
                    sidecar.start().ready()
                for path in (folder, sidecar.socket):
                    path.chmod(0o777)
                answer = subprocess.run(
                    ["/usr/bin/env", "python3", "-c", OTHER_USER, str(sidecar.socket)],
                    user=65534, group=65534, extra_groups=[], cwd="/",
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                assert answer.stdout == "not_yours\n"
            again = Sender(sidecar.socket)
            assert again.acknowledged == 10
            again.close()


def test_a_sender_s_long_names_cost_no_record_at_a_restart(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.set("refusing")
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        sender = Sender(sidecar.socket, hello=False)
        for number in range(1000):
            sender.write({"podUID": "u", "process": f"{number:x>404}", "sequence": 1, "n": number})
        sidecar.await_metric("committed_total", 1000)
        sender.close()
        greeting = Sender(sidecar.socket, hello=False)
        greeting.write({"type": "hello", "protocols": [1], "process": "x" * 404})
        assert greeting.read()["code"] == "bad_frame"
        greeting.close()
        sidecar.kill()
        sidecar.start().ready()
        receiver.set("ok")
        found = receiver.wait_for(1000)
    assert sorted(record["n"] for record in found) == list(range(1000))


def test_a_rotating_file_keeps_whole_lines_and_so_many_files(tmp_path: Path) -> None:
    out = tmp_path / "out" / "decisions.ndjson"
    settings = {"path": str(out), "maxBytes": 4096, "maxFiles": 3}
    sink = {"name": "f", "type": "file", "settings": settings, "batch": {"maxRecords": 5}}
    with Sidecar(tmp_path, [sink]) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 201), x="y" * 100)
        sender.await_ack(200)
        sidecar.await_metric('sink_lag_records{sink="f"}', 0)
        sender.close()
    files = sorted(path.name for path in out.parent.glob("[!.]*"))
    assert files == ["decisions.ndjson", "decisions.ndjson.1", "decisions.ndjson.2"]
    numbers = [
        json.loads(line)["sequence"]
        for name in reversed(files)
        for line in (out.parent / name).read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], 201))


def test_standard_output_gets_one_line_for_each_record(tmp_path: Path) -> None:
    sink = {"name": "out", "type": "stdout", "format": "decision"}
    with Sidecar(tmp_path, [sink]) as sidecar:
        sender = Sender(sidecar.socket)
        sender.records(range(1, 21))
        sender.await_ack(20)
        sidecar.await_metric('sink_lag_records{sink="out"}', 0)
        sender.close()
    lines = [json.loads(line) for line in sidecar.log.read_text().splitlines()]
    assert [line["sequence"] for line in lines if "sequence" in line] == list(range(1, 21))


@pytest.mark.usefixtures("unmeasured")
def test_memory_stays_within_40_mib_with_a_socket_and_one_http_sink(
    tmp_path: Path, receiver: Receiver
) -> None:
    with Sidecar(tmp_path, [http_sink(receiver)]) as sidecar:
        sender = Sender(sidecar.socket)
        for start in range(1, 20_001, 500):
            sender.records(range(start, start + 500), x="y" * 900)
        sender.await_ack(20_000)
        receiver.wait_for(20_000)
        sidecar.get("/metrics")
        sender.close()
        print(f"resident: {sidecar.memory_kib()} KiB, at most {sidecar.memory_kib('VmHWM')} KiB")
        assert sidecar.memory_kib() <= 40 * 1024


def test_the_sidecar_imports_only_what_its_configuration_uses(
    tmp_path: Path, receiver: Receiver
) -> None:
    """Neither Kubernetes, the policy engine nor aiohttp; gRPC, OTLP and Kafka only if named."""
    sidecar = Sidecar(tmp_path, [http_sink(receiver)])
    program = (
        "import sys, asyncio\n"
        "from webhook.cli import main\n"
        "sys.argv = ['waddle', 'sidecar', '--config', sys.argv[1], '--check']\n"
        "import webhook.cli.sidecar as s, webhook.decisions.sidecar.process\n"
        "try:\n    main.main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('\\n'.join(sorted(sys.modules)))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, str(sidecar.config)],
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT,
    ).stdout.split()
    unwanted = {
        "aiohttp",
        "kubernetes",
        "starlette",
        "uvicorn",
        "grpc",
        "google.protobuf",
        "opentelemetry",
        "confluent_kafka",
        "webhook.constraint",
        "webhook.rego",
        "webhook.server",
        "rich",
    }
    assert unwanted & set(output) == set()
    assert "webhook.decisions.sinks.http" in output


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"listen": []}, "listen: expected at least one address"),
        ({"listen": [{"url": "http://x"}]}, "expected unix:///path or grpc://host:port"),
        ({"sinks": []}, "sinks: expected at least one sink"),
        ({"sinks": [{"name": "a", "type": "pigeon"}]}, "type: expected one of stdout, file"),
        ({"sinks": [{"name": "../a", "type": "stdout"}]}, "name: expected letters"),
        ({"sinks": [{"name": "a", "type": "stdout"}] * 2}, "two sinks have the same name"),
        ({"queue": {"directory": "/q", "maxBytes": 5_000_000}}, "four times segmentBytes"),
        ({"queue": {"directory": "/q", "maxBytes": 300_000}}, "4194304 or more"),
        ({"colour": "blue"}, "unknown key colour"),
        ({"metricsAddress": "nonsense"}, "metricsAddress: expected host:port"),
        ({"metricsAddress": "127.0.0.1:99999"}, "metricsAddress: expected host:port"),
        ({"metricsAddress": "0.0.0.0:"}, "metricsAddress: expected host:port"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(
    tmp_path: Path, receiver: Receiver, change: dict[str, Any], fault: str
) -> None:
    sidecar = Sidecar(tmp_path, [http_sink(receiver)])
    sidecar.config.write_text(json.dumps({**json.loads(sidecar.config.read_text()), **change}))
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "sidecar", "--config", str(sidecar.config)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1
    assert fault in done.stderr


def test_a_sidecar_of_a_pod_waits_for_a_configuration_that_can_be_used(tmp_path: Path) -> None:
    """A sidecar that ended could keep the server beside it from starting, for a mistyped sink."""
    sidecar = Sidecar(tmp_path, [{"name": "out", "type": "stdout"}])
    good = sidecar.config.read_text()
    sidecar.config.write_text(good.replace("stdout", "pigeon"))
    try:
        sidecar.start("--wait")
        sidecar.await_log("the configuration is invalid; waiting for a valid one")
        assert "sinks[0].type: expected one of" in sidecar.log.read_text()
        sidecar.config.write_text(good)
        sidecar.ready()
        assert sidecar.stop() == 0
        sidecar.config.write_text("[")
        sidecar.start("--wait")
        sidecar.await_log("did not find expected node content")
        assert sidecar.stop() == 0
    finally:
        sidecar.kill()
