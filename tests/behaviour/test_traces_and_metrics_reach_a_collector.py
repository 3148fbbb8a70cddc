"""Traces and metrics of a replica at an OpenTelemetry collector: real server, real sockets."""

import base64
import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    review,
    thing,
    write_policies,
)
from tests.collector import Collector
from tests.decisions.process import Sidecar

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01", "tracestate": "k8s=1"}
UNSAMPLED = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-00"}


def hexadecimal(text: str) -> str:
    """An identifier: bytes are in base 64 in protobuf's JSON."""
    return base64.b64decode(text).hex()


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    return write_policies(
        tmp_path / "policies",
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        constraint("needs-team", "team", action="warn"),
    )


def test_a_request_that_the_api_server_samples_leaves_a_trace_of_all_that_was_done(policies):
    with (
        Collector() as collector,
        Server(policies, f"--otlp-endpoint={collector.grpc}", "--enable-tracing") as server,
    ):
        server.ready()
        server.post(review(pod(), uid="not-sampled"), headers=UNSAMPLED)
        server.post(review(pod(), uid="no-trace"))
        answer = server.post(review(pod()), headers=SAMPLED).verdict
        spans = collector.await_spans("POST /v1/admit", "encode")
    assert not answer["allowed"]
    assert {hexadecimal(span["traceId"]) for span in collector.spans()} == {TRACE_ID}
    root = spans["POST /v1/admit"]
    assert (hexadecimal(root["parentSpanId"]), root["traceState"]) == (PARENT_ID, "k8s=1")
    assert root["kind"] == "SPAN_KIND_SERVER"
    attributes = root["attributes"]
    assert attributes["k8s.object.kind"] == "Pod"
    assert attributes["waddle.allowed"] is False
    assert attributes["http.response.status_code"] == "200"
    assert root["resource"]["service.name"] == "waddle"
    for name in ("queue", "decode", "review", "encode"):
        assert spans[name]["parentSpanId"] == root["spanId"]
        assert int(root["startTimeUnixNano"]) <= int(spans[name]["startTimeUnixNano"])
        assert int(spans[name]["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
    evaluations = [span for span in collector.spans() if span["name"].startswith("constraint ")]
    assert {span["attributes"]["waddle.constraint"] for span in evaluations} == {
        *("needs-owner", "needs-team")
    }
    for span in evaluations:
        assert span["parentSpanId"] == spans["review"]["spanId"]
        assert span["attributes"]["waddle.violations"] == "1"
    assert [span["name"] for span in collector.spans()].count("POST /v1/admit") == 1


def test_a_share_of_requests_without_a_trace_has_one_of_its_own(policies):
    flags = ("--enable-tracing", "--trace-samples-per-million=1000000")
    with Collector() as collector:
        endpoint = f"--otlp-endpoint={collector.http}"  # as Gatekeeper's flag has it: HTTP
        with Server(policies, endpoint, *flags) as server:
            server.ready()
            server.admit(pod(owner="a", team="b"))
            spans = collector.await_spans("POST /v1/admit")
    assert not spans["POST /v1/admit"].get("parentSpanId")
    assert spans["POST /v1/admit"]["attributes"]["waddle.allowed"] is True


def test_a_large_request_and_one_that_gets_no_decision_leave_traces_too(policies):
    flags = ("--enable-tracing", "--trace-samples-per-million=1000000")
    with (
        Collector() as collector,
        Server(policies, f"--otlp-endpoint={collector.grpc}", *flags) as server,
    ):
        server.ready()
        large = thing("Pod", annotations={"a": "x" * 200_000})
        assert not server.admit(large)["allowed"]
        assert server.post(review(pod()), "/v1/admit?timeout=never").status == 400
        collector.await_that(lambda: len(roots(collector)) == 2)
        collector.await_spans("wait")
    codes = {span["attributes"]["http.response.status_code"]: span for span in roots(collector)}
    assert set(codes) == {"200", "400"}
    of_large = [s for s in collector.spans() if s["traceId"] == codes["200"]["traceId"]]
    names = {span["name"] for span in of_large}
    assert {"decode", "review", "wait", "constraint RequiredLabel", "encode"} <= names
    assert codes["400"]["status"]["code"] == "STATUS_CODE_ERROR"


def roots(collector: Collector) -> list[dict[str, Any]]:
    """The spans of requests."""
    return [span for span in collector.spans() if span["name"] == "POST /v1/admit"]


def test_metrics_are_sent_too_and_name_traces_as_exemplars(policies):
    flags = (
        *("--enable-tracing", "--metrics-backend=prometheus,opentelemetry"),
        "--otlp-metric-interval=1s",
    )
    with Collector() as collector:
        with Server(policies, f"--otlp-endpoint={collector.grpc}", *flags) as server:
            server.ready()
            server.post(review(pod()), headers=SAMPLED)

            def exemplified() -> bool:
                found = collector.metrics().get("gatekeeper_validation_request_duration_seconds")
                return found is not None and any(
                    point.get("exemplars") for point in found["histogram"]["dataPoints"]
                )

            collector.await_that(exemplified)
            exposed = _openmetrics(server)
            await_true(lambda: server.metric('waddle_traces_total{outcome="sent"}') == 1)
            counted = collector.await_metric("gatekeeper_validation_request_count")
        samples = collector.metrics()["gatekeeper_validation_request_duration_seconds"]
    (point,) = (item for item in samples["histogram"]["dataPoints"] if item.get("exemplars"))
    assert point["count"] == "1"
    assert len(point["bucketCounts"]) == len(point["explicitBounds"]) + 1
    assert hexadecimal(point["exemplars"][0]["traceId"]) == TRACE_ID
    assert counted["sum"]["isMonotonic"]
    assert counted["sum"]["dataPoints"][0]["asInt"] == "1"
    assert f'trace_id="{TRACE_ID}"' in exposed
    assert samples["unit"] == "s"


def _openmetrics(server: Server) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["metrics"])
    connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
    with connection.getresponse() as answer:
        text = answer.read().decode()
    connection.close()
    return text


def test_a_decision_s_record_is_a_span_that_ends_when_the_sidecar_has_it(policies, tmp_path):
    sink = {"name": "stdout", "type": "stdout", "settings": {}}
    with Sidecar(tmp_path / "sidecar", [sink]) as sidecar:
        config = tmp_path / "exporter.json"
        config.write_text(json.dumps({"sidecarURL": sidecar.url}))
        with (
            Collector() as collector,
            Server(
                policies,
                f"--otlp-endpoint={collector.grpc}",
                "--enable-tracing",
                f"--decision-log-config={config}",
            ) as server,
        ):
            server.ready()
            server.post(review(pod()), headers=SAMPLED)
            spans = collector.await_spans("export", "POST /v1/admit")
    assert spans["export"]["parentSpanId"] == spans["POST /v1/admit"]["spanId"]
    assert hexadecimal(spans["export"]["traceId"]) == TRACE_ID


def test_a_collector_that_is_not_there_or_refuses_costs_no_decision(policies):
    with Collector("--refusing") as collector:
        flags = (f"--otlp-endpoint={collector.grpc}", "--enable-tracing")
        with Server(policies, *flags) as server:
            server.ready()
            assert not server.post(review(pod()), headers=SAMPLED).verdict["allowed"]
            server.wait_for(
                "the collector does not accept telemetry; trying again", signal="traces"
            )
            await_true(lambda: server.metric('waddle_traces_total{outcome="failed"}') == 1)
    flags = ("--otlp-endpoint=grpc://127.0.0.1:1", "--enable-tracing")
    with Server(policies, *flags) as server:
        server.ready()
        assert not server.post(review(pod()), headers=SAMPLED).verdict["allowed"]
        server.wait_for("the collector does not accept telemetry; trying again", signal="traces")
        assert server.stop() == 0


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_collector_that_never_answers_does_not_keep_the_process_from_ending_well(
    policies, scheme
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"--otlp-endpoint={scheme}://127.0.0.1:{silent.getsockname()[1]}"
        with Server(policies, endpoint, "--enable-tracing") as server:
            server.ready()
            assert not server.post(review(pod()), headers=SAMPLED).verdict["allowed"]
            assert server.stop() == 0  # its last message is under way, and is given up
            server.wait_for(
                "the collector does not accept telemetry; trying again", signal="traces"
            )


WITHOUT = """
import sys
sys.argv = ["waddle", "serve", *sys.argv[1:]]
from webhook.app import process
ran = process.Process.run
async def run(self):
    import json
    loaded = [name for name in sys.modules if name.split(".")[0] in ("grpc", "opentelemetry", "google")
              or name.startswith("webhook.telemetry") or name == "webhook.server.traced"]
    print(json.dumps(loaded), flush=True)
    return 0
process.Process.run = run
from webhook.cli.main import main
main()
"""


def test_without_it_nothing_of_it_is_even_imported(policies):
    arguments = ["--policies", str(policies), "--port=0", "--health-addr=127.0.0.1:0"]
    ran: Any = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments, "--prometheus-port=0", "--host=127.0.0.1"],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(ran.stdout) == []
