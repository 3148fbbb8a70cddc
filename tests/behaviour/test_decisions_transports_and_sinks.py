"""gRPC with mutual TLS, HTTPS and an OTLP receiver: each the real thing."""

import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.behaviour.serving import REQUIRED_LABELS, Server, constraint, pod, write_policies
from tests.decisions.process import ROOT, Replica, Sidecar, run_replica
from tests.decisions.receiver import Receiver
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA with a certificate for 127.0.0.1 and one for a client, and a stranger's CA."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder = tmp_path_factory.mktemp("pki")
    now = dt.datetime.now(dt.UTC)

    def issue(name: str, issuer: tuple[Any, Any] | None, *, ca: bool = False) -> tuple[Any, Any]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if issuer is None else issuer[0].subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(key if issuer is None else issuer[1], hashes.SHA256())
        )
        (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, key

    ca = issue("ca", None, ca=True)
    stranger = issue("stranger-ca", None, ca=True)
    issue("server", ca)
    issue("client", ca)
    issue("other-client", ca)
    issue("stranger", stranger)
    return folder


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def grpc_sidecar(folder: Path, receiver: Receiver, authority: Path | None) -> Sidecar:
    listen: dict[str, Any] = {"url": f"grpc://127.0.0.1:{free_port()}"}
    if authority is not None:
        listen["tls"] = {
            "certFile": str(authority / "server.crt"),
            "keyFile": str(authority / "server.key"),
            "clientCAFile": str(authority / "ca.crt"),
        }
    sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
    sidecar = Sidecar(folder / "sidecar", [sink], listen=[listen])
    sidecar.url = listen["url"]
    return sidecar


def client_tls(authority: Path, name: str) -> dict[str, str]:
    return {
        "caFile": str(authority / "ca.crt"),
        "certFile": str(authority / f"{name}.crt"),
        "keyFile": str(authority / f"{name}.key"),
    }


@pytest.mark.parametrize("secured", [False, True])
def test_decisions_travel_over_grpc(
    tmp_path: Path, receiver: Receiver, authority: Path, secured: bool
) -> None:
    with grpc_sidecar(tmp_path, receiver, authority if secured else None) as sidecar:
        tls = {"tls": client_tls(authority, "client")} if secured else {}
        counters = run_replica(
            tmp_path / "replica", lambda: receiver.wait_for(500), sidecarURL=sidecar.url, **tls
        )
        sidecar.await_metric('sink_lag_records{sink="http"}', 0)
    assert counters["acknowledged"] == counters["offered"]
    assert [record["sequence"] for record in receiver.records] == list(
        range(1, counters["offered"] + 1)
    )


def test_a_client_of_another_language_may_send_typed_records(
    tmp_path: Path, receiver: Receiver
) -> None:
    """Messages instead of ndjson, by the published service, and their acknowledgements."""
    import grpc

    from webhook.decisions.wire import decisions_pb2 as pb

    with grpc_sidecar(tmp_path, receiver, None) as sidecar:
        address = sidecar.url.removeprefix("grpc://")
        with grpc.insecure_channel(address) as channel:
            call = channel.stream_stream(
                "/waddle.decisions.v1.DecisionLog/Stream",
                request_serializer=pb.ClientFrame.SerializeToString,
                response_deserializer=pb.ServerFrame.FromString,
            )
            records = [
                pb.Record(pod_uid="u", process="go", sequence=n, verdict="deny", duration_ns=2**40)
                for n in (1, 2, 3)
            ]
            frames = [
                pb.ClientFrame(hello=pb.ClientHello(protocols=[1], pod_uid="u", process="go")),
                pb.ClientFrame(batch=pb.Batch(records=records)),
            ]
            answers = call(iter(frames), timeout=PATIENCE_SECONDS)
            assert next(iter(answers)).hello.protocol == 1
            found = receiver.wait_for(3)
            sidecar.await_metric("committed_total", 3)
    assert [(record["sequence"], record["durationNs"]) for record in found] == [
        (1, 2**40),
        (2, 2**40),
        (3, 2**40),
    ]


@pytest.mark.parametrize("name", ["stranger", None])
def test_a_client_without_a_certificate_of_the_ca_is_not_heard(
    tmp_path: Path, receiver: Receiver, authority: Path, name: str | None
) -> None:
    tls = {"caFile": str(authority / "ca.crt")} if name is None else client_tls(authority, name)
    with grpc_sidecar(tmp_path, receiver, authority) as sidecar:
        log = tmp_path / "replica" / "pod.log"

        def refused() -> None:
            until = time.monotonic() + PATIENCE_SECONDS
            while (
                not log.exists()
                or log.read_text().count(
                    "the decision log has no connection to its sidecar; it tries again"
                )
                < 2
            ):
                assert time.monotonic() < until
                time.sleep(0.02)

        folder = tmp_path / "replica"
        folder.mkdir()
        config = folder / "exporter.yaml"
        config.write_text(
            json.dumps({"sidecarURL": sidecar.url, "connectSeconds": 0.5, "tls": tls})
        )
        replica = Replica(folder, config, "pod")
        refused()
        replica.kill()
        assert sidecar.metric("received_total") == 0
    assert receiver.records == []


def test_a_server_without_its_certificate_decides_and_is_heard_once_it_has_one(
    tmp_path: Path, receiver: Receiver, authority: Path
) -> None:
    """The Secret may be created after the replicas, or be deleted before they restart."""
    policies = write_policies(tmp_path / "policies", REQUIRED_LABELS, constraint("owned", "owner"))
    later = tmp_path / "certificates"
    config = tmp_path / "decisions.yaml"
    with grpc_sidecar(tmp_path, receiver, authority) as sidecar:
        config.write_text(
            json.dumps({"sidecarURL": sidecar.url, "tls": client_tls(later, "client")})
        )
        with Server(policies, f"--decision-log-config={config}") as server:
            server.ready()
            assert not server.admit(pod())["allowed"]
            event = server.wait_for(
                "the decision log has no connection to its sidecar; it tries again"
            )
            assert str(later / "ca.crt") in event["error"]
            later.symlink_to(authority)
            with receiver.changed:
                assert receiver.changed.wait_for(
                    lambda: any(record.get("verdict") == "deny" for record in receiver.records),
                    PATIENCE_SECONDS,
                )


def conversation(
    sidecar: Sidecar, *messages: bytes, credentials: Any = None
) -> tuple[list[Any], str, str]:
    """The answers to messages as they are, and the status and details of the end."""
    import grpc

    from webhook.decisions.wire import decisions_pb2 as pb

    address = sidecar.url.removeprefix("grpc://")
    # A connection of its own, whatever became of the last one to this address.
    options = [("grpc.use_local_subchannel_pool", 1)]
    made = (
        grpc.insecure_channel(address, options)
        if credentials is None
        else grpc.secure_channel(address, credentials, options)
    )
    with made as channel:
        call = channel.stream_stream(
            "/waddle.decisions.v1.DecisionLog/Stream",
            request_serializer=lambda message: message,
            response_deserializer=pb.ServerFrame.FromString,
        )(iter(messages), timeout=PATIENCE_SECONDS)
        answers = []
        with contextlib.suppress(grpc.RpcError):
            answers += call
        return answers, call.code().name, call.details() or ""


def hello(process: str = "go") -> bytes:
    from webhook.decisions.wire import decisions_pb2 as pb

    frame = pb.ClientHello(protocols=[1], pod_uid="u", process=process)
    return pb.ClientFrame(hello=frame).SerializeToString()


def batch(ndjson: bytes) -> bytes:
    from webhook.decisions.wire import decisions_pb2 as pb

    return pb.ClientFrame(batch=pb.Batch(ndjson=ndjson)).SerializeToString()


def test_garbage_and_what_is_too_large_are_answered_and_are_no_bug(
    tmp_path: Path, receiver: Receiver
) -> None:
    with grpc_sidecar(tmp_path, receiver, None) as sidecar:
        answers, code, _ = conversation(sidecar, b"\xff\xff\xff\xff")
        assert [answer.error.code for answer in answers] == ["bad_frame"]
        assert code == "OK"
        answers, _, _ = conversation(sidecar, hello("a"), batch(b"{" * 10))
        assert [answer.error.code for answer in answers] == ["", "bad_frame"]
        long = json.dumps({"podUID": "u", "process": "b", "sequence": 1, "x": "y" * 2**20})
        answers, _, _ = conversation(sidecar, hello("b"), batch(long.encode()))
        assert [answer.error.code for answer in answers] == ["", "line_too_long"]
        _, code, details = conversation(sidecar, hello("c"), batch(b"x" * 5_000_000))
        assert code == "RESOURCE_EXHAUSTED"
        assert "larger than max" in details
        sidecar.await_metric("rejected_total", 3)
        sidecar.await_metric("connections", 0)
    events = [json.loads(line) for line in sidecar.log.read_text().splitlines()]
    assert [event for event in events if event["level"] == "error"] == []
    assert not any("stacktrace" in event for event in events)


def credentials(folder: Path, name: str, ca: str = "ca") -> Any:
    """A client's, of a pair and of the authority that it trusts."""
    import grpc

    files = (f"{ca}.crt", f"{name}.key", f"{name}.crt")
    return grpc.ssl_channel_credentials(*((folder / file).read_bytes() for file in files))


def test_a_receiver_s_pair_and_its_clients_authority_are_rotated_without_a_restart(
    tmp_path: Path, receiver: Receiver, authority: Path
) -> None:
    """The kubelet rotates an exporter's Secret like this: by a link to another folder."""
    before, after, mounted = (tmp_path / name for name in ("before", "after", "mounted"))
    for folder, pair, ca in ((before, "server", "ca"), (after, "stranger", "stranger-ca")):
        folder.mkdir()
        for file, source in (("server.crt", pair), ("server.key", pair), ("ca.crt", ca)):
            kind = file.partition(".")[2]
            (folder / file).write_bytes((authority / f"{source}.{kind}").read_bytes())
    mounted.symlink_to(before)
    old = credentials(authority, "client")
    new = credentials(authority, "stranger", "stranger-ca")
    with grpc_sidecar(tmp_path, receiver, mounted) as sidecar:
        assert conversation(sidecar, hello("a"), credentials=old)[1] == "OK"
        assert conversation(sidecar, hello("b"), credentials=new)[1] == "UNAVAILABLE"
        link = tmp_path / "link"
        link.symlink_to(after)
        link.replace(mounted)
        assert conversation(sidecar, hello("c"), credentials=new)[1] == "OK"
        assert conversation(sidecar, hello("d"), credentials=old)[1] == "UNAVAILABLE"


def test_a_stream_is_its_certificate_s(tmp_path: Path, receiver: Receiver, authority: Path) -> None:
    record = json.dumps({"podUID": "u", "process": "go", "sequence": 1}).encode()
    with grpc_sidecar(tmp_path, receiver, authority) as sidecar:
        mine = credentials(authority, "client")
        conversation(sidecar, hello(), batch(record), credentials=mine)
        answers, _, _ = conversation(
            sidecar, hello(), credentials=credentials(authority, "other-client")
        )
        assert [answer.error.code for answer in answers] == ["not_yours"]
        assert "certificate client" in answers[0].error.message
        answers, _, _ = conversation(sidecar, hello(), credentials=mine)
        assert answers[0].hello.protocol == 1


@pytest.mark.usefixtures("unmeasured")
def test_memory_stays_within_64_mib_with_grpc_and_otlp(tmp_path: Path) -> None:
    with OTLPReceiver() as otlp:
        sink = {"name": "otlp", "type": "otlp", "settings": {"url": otlp.url}}
        url = f"grpc://127.0.0.1:{free_port()}"
        with Sidecar(tmp_path / "sidecar", [sink], listen=[{"url": url}]) as sidecar:
            counters = run_replica(
                tmp_path / "replica", lambda: otlp.wait_for(10_000), sidecarURL=url
            )
            sidecar.await_metric('sink_lag_records{sink="otlp"}', 0)
            resident, highest = sidecar.memory_kib(), sidecar.memory_kib("VmHWM")
    print(f"{counters['offered']} records; resident: {resident} KiB, at most {highest} KiB")
    assert resident <= 64 * 1024


class OTLPReceiver:
    """Takes ExportLogsServiceRequest messages, built from opentelemetry-proto."""

    def __init__(self, *, rejecting: str = "") -> None:
        import gzip
        import threading
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as service

        self.logs: list[tuple[dict[str, str], Any]] = []
        self.changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/x-protobuf"
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                request = service.ExportLogsServiceRequest.FromString(body)
                answer = service.ExportLogsServiceResponse()
                found = [
                    (
                        {
                            item.key: item.value.string_value
                            for item in resource.resource.attributes
                        },
                        log,
                    )
                    for resource in request.resource_logs
                    for scope in resource.scope_logs
                    for log in scope.log_records
                ]
                if rejecting and any(
                    re.search(rejecting, log.body.string_value) for _, log in found
                ):
                    answer.partial_success.rejected_log_records = 1
                    answer.partial_success.error_message = "not this one"
                else:
                    with receiver.changed:
                        receiver.logs += found
                        receiver.changed.notify_all()
                content = answer.SerializeToString()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/logs"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.logs) >= count, PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def test_an_otlp_receiver_gets_each_decision_as_a_log_record(tmp_path: Path) -> None:
    with OTLPReceiver() as otlp:
        sink = {"name": "otlp", "type": "otlp", "settings": {"url": otlp.url}}
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
            counters = run_replica(
                tmp_path / "replica", lambda: otlp.wait_for(200), sidecarURL=sidecar.url
            )
            sidecar.await_metric('sink_lag_records{sink="otlp"}', 0)
    assert len(otlp.logs) == counters["acknowledged"]
    resource, log = otlp.logs[0]
    record = json.loads(log.body.string_value)
    attributes = {item.key: item.value.string_value for item in log.attributes}
    assert resource["service.name"] == "waddle"
    assert resource["k8s.pod.uid"] == "pod"
    assert resource["service.instance.id"] == record["process"]
    assert log.event_name == "waddle.decision"
    assert log.severity_text == "WARN"
    assert attributes["waddle.verdict"] == "deny"
    assert attributes["waddle.sequence"] == "1"
    assert time.time() - 300 < log.time_unix_nano / 1e9 < time.time() + 1


def test_a_record_that_otlp_rejects_is_found_among_its_batch(tmp_path: Path) -> None:
    with OTLPReceiver(rejecting=r'"sequence":5\b') as otlp:
        sink = {"name": "otlp", "type": "otlp", "settings": {"url": otlp.url}}
        with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
            counters = run_replica(
                tmp_path / "replica", lambda: otlp.wait_for(100), sidecarURL=sidecar.url
            )
            sidecar.await_metric('sink_lag_records{sink="otlp"}', 0)
            sidecar.await_metric('sink_dead_lettered_total{sink="otlp"}', 1)
    numbers = [json.loads(log.body.string_value)["sequence"] for _, log in otlp.logs]
    assert numbers == [n for n in range(1, counters["offered"] + 1) if n != 5]


@pytest.mark.parametrize("broken", [False, True])
def test_an_extra_that_is_not_installed_is_named(tmp_path: Path, broken: bool) -> None:
    """A sidecar without the Kafka extra, or with one that lacks its library, says which it is."""
    sink = {"name": "k", "type": "kafka", "settings": {"brokers": ["a:1"], "topic": "t"}}
    sidecar = Sidecar(tmp_path, [sink])
    (tmp_path / "confluent_kafka.py").write_text("raise ImportError('librdkafka.so.1: no such')")
    without = "sys.modules['confluent_kafka'] = None"
    if broken:
        without = f"sys.path.insert(0, {str(tmp_path)!r})"
    program = f"import sys; {without}; from webhook.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "sidecar", "--config", str(sidecar.config), "--check"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1
    assert f"type kafka needs an extra: pip install '{ROOT}[kafka]'" in done.stderr


@pytest.mark.parametrize("half", ["serve", "sidecar"])
def test_grpc_without_its_extra_is_said_at_the_start(tmp_path: Path, half: str) -> None:
    """The error is not left to a connection that never succeeds."""
    listen = [{"url": "grpc://127.0.0.1:1"}]
    sidecar = Sidecar(tmp_path, [{"name": "s", "type": "stdout"}], listen=listen)
    exporter = tmp_path / "exporter.yaml"
    exporter.write_text(json.dumps({"sidecarURL": "grpc://127.0.0.1:1"}))
    arguments = {
        "sidecar": ["--config", str(sidecar.config), "--check"],
        "serve": ["--policies", str(tmp_path), "--decision-log-config", str(exporter), "--port=0"],
    }[half]
    program = "import sys; sys.modules['grpc'] = None; from webhook.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, half, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode != 0
    assert f"grpc:// needs an extra: pip install '{ROOT}[grpc]'" in done.stderr


def test_https_sinks_verify_their_peer(tmp_path: Path, authority: Path) -> None:
    with Receiver() as receiver:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority / "server.crt", authority / "server.key")
        receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
        url = receiver.url.replace("http:", "https:")
        for name, ca in (("good", "ca"), ("bad", "stranger-ca")):
            settings = {"url": url, "tls": {"caFile": str(authority / f"{ca}.crt")}}
            sink = {"name": "h", "type": "http", "settings": settings}
            with Sidecar(tmp_path / name, [sink], shutdownGraceSeconds=0) as sidecar:
                with socket.socket(socket.AF_UNIX) as plain:
                    plain.connect(str(sidecar.socket))
                    plain.sendall(b'{"n":1}\n')
                    if name == "good":
                        receiver.wait_for(1)
                    else:
                        sidecar.await_metric("committed_total", 1)
                        while sidecar.metric('sink_failures_total{sink="h"}') < 1:
                            time.sleep(0.02)
                if name == "bad":
                    sidecar.await_log("CERTIFICATE_VERIFY_FAILED")
    assert len(receiver.records) == 1
