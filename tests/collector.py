"""An OpenTelemetry collector as a process: OTLP by gRPC and by HTTP on loopback.

``python -m tests.collector`` prints the ports of both and then each message that it gets as a
line of JSON; :class:`Collector` runs it. With ``--refusing`` traces are refused, with ``--silent``
nothing more is printed.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS


class Collector:
    """The process, and what it has got so far."""

    def __init__(self, *options: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.collector", *options], stdout=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        ports = json.loads(self._process.stdout.readline())
        self.grpc, self.http = f"grpc://127.0.0.1:{ports['grpc']}", f"127.0.0.1:{ports['http']}"
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.messages.append(json.loads(line))
                self._changed.notify_all()

    def spans(self) -> list[dict[str, Any]]:
        """All spans, each with the attributes of its resource as ``resource``."""
        return [
            span | {"attributes": plain(span), "resource": plain(part["resource"])}
            for message in tuple(self.messages)
            for part in message.get("resourceSpans", ())
            for scoped in part["scopeSpans"]
            for span in scoped["spans"]
        ]

    def metrics(self) -> dict[str, dict[str, Any]]:
        """The newest of each metric by its name."""
        return {
            metric["name"]: metric
            for message in tuple(self.messages)
            for part in message.get("resourceMetrics", ())
            for scoped in part["scopeMetrics"]
            for metric in scoped["metrics"]
        }

    def await_spans(self, *names: str) -> dict[str, dict[str, Any]]:
        """Spans by name, once there is one of each of these."""
        self.await_that(lambda: set(names) <= {span["name"] for span in self.spans()})
        return {span["name"]: span for span in self.spans()}

    def await_metric(self, name: str) -> dict[str, Any]:
        """A metric, once there is one."""
        self.await_that(lambda: name in self.metrics())
        return self.metrics()[name]

    def await_that(self, condition: Callable[[], bool]) -> None:
        """Wait until what has come is such."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_SECONDS), self.messages


def plain(owner: dict[str, Any]) -> dict[str, Any]:
    """Attributes as a mapping; integers are texts in protobuf's JSON."""
    return {item["key"]: next(iter(item["value"].values())) for item in owner.get("attributes", ())}


def main(options: list[str]) -> None:
    """Serve both until the process is ended."""
    import grpc
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.metrics.v1 import (
        metrics_service_pb2,
        metrics_service_pb2_grpc,
    )
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

    refusing = "--refusing" in options
    lock = threading.Lock()

    def notify(message: Any) -> None:
        if "--silent" in options:
            return
        with lock:
            print(json.dumps(MessageToDict(message)), flush=True)

    class Traces(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's name
            if refusing:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not today")
            notify(request)
            return trace_service_pb2.ExportTraceServiceResponse()

    class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's name
            notify(request)
            return metrics_service_pb2.ExportMetricsServiceResponse()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kinds: dict[str, Any] = {
                "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
                "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
            }
            assert self.headers["Content-Type"] == "application/x-protobuf"
            notify(kinds[self.path].FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Logs nothing: standard error is the test's."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(json.dumps({"grpc": port, "http": web.server_address[1]}), flush=True)
    web.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
