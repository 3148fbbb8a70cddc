"""The real server as a process on loopback, for tests of what its users see.

Ports are the system's choice, read from the server's own log; whatever a test
waits for is an event of that log or an answer, never an amount of time.
"""

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS, running

SHOWN_LINES, SHOWN_CHARACTERS = 15, 400
"""The end of a log that a failed test shows, and of each line the beginning."""

REQUIRED_LABELS = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: requiredlabel}
spec:
  crd:
    spec:
      names: {kind: RequiredLabel}
      validation:
        openAPIV3Schema:
          type: object
          properties:
            label: {type: string}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package requiredlabel
        violation[{"msg": msg}] {
          not input.review.object.metadata.labels[input.parameters.label]
          msg := sprintf("label <%v> is missing", [input.parameters.label])
        }
"""

SLOW = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: slow}
spec:
  crd: {spec: {names: {kind: Slow}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package slow
        violation[{"msg": "slow"}] {
          numbers := numbers.range(1, 1000)
          some i, j, k
          numbers[i] + numbers[j] + numbers[k] == -1
        }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Slow
metadata: {name: slow}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [ConfigMap]}]}
"""
"""A billion steps for every ConfigMap: only a deadline ends it."""

FAILING = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: failing}
spec:
  crd: {spec: {names: {kind: Failing}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package failing
        word = "one" { input.review.object.kind == "Secret" }
        word = "two" { input.review.object.kind == "Secret" }
        violation[{"msg": msg}] { msg := word }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Failing
metadata: {name: failing}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Secret]}]}
"""


def constraint(name: str, label: str, *, action: str = "deny", extra: str = "") -> str:
    """A constraint of the template above."""
    return f"""
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: RequiredLabel
metadata: {{name: {name}}}
spec:
  enforcementAction: {action}
  {extra}
  match: {{kinds: [{{apiGroups: [""], kinds: [Pod, Namespace]}}]}}
  parameters: {{label: {label}}}
"""


def review(
    obj: Mapping[str, Any] | None = None,
    *,
    version: str = "v1",
    operation: str = "CREATE",
    **request: Any,
) -> dict[str, Any]:
    """An AdmissionReview of an object, as the API server would send it."""
    if obj is None:
        obj = pod()
    group, _, api_version = str(obj["apiVersion"]).rpartition("/")
    gvk = {"group": group, "version": api_version, "kind": obj["kind"]}
    metadata = obj.get("metadata", {})
    old = operation == "DELETE"
    return {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": gvk,
            "resource": {"group": group, "version": api_version, "resource": "things"},
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "operation": operation,
            "userInfo": {"username": "alice"},
            "object": None if old else dict(obj),
            "oldObject": dict(obj) if old else None,
            "options": None,
            **request,
        },
    }


def thing(kind: str, name: str = "x", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    """An object of a kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **fields}}


def pod(**labels: str) -> dict[str, Any]:
    """A Pod with labels, in the namespace default."""
    return thing("Pod", "web", namespace="default", labels=labels)


class Answer:
    """A response: status, headers and the whole body."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def verdict(self) -> dict[str, Any]:
        """The AdmissionReview's response; fails where there is none."""
        assert self.status == 200, (self.status, self.body)
        found: dict[str, Any] = self.json()["response"]
        return found


def unverified() -> ssl.SSLContext:
    """A client's context that trusts anyone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Server:
    """``waddle serve`` with policies, on ports of the system's choice."""

    def __init__(self, policies: Path, *flags: str, environment: Mapping[str, str] | None = None):
        self.policies = policies
        command = [sys.executable, "-m", "webhook", "serve", f"--policies={policies}"]
        command += ["--host=127.0.0.1", "--port=0", "--health-addr=127.0.0.1:0"]
        command += ["--prometheus-host=127.0.0.1", "--prometheus-port=0", "--shutdown-delay=0"]
        self.process = subprocess.Popen(
            [*command, *flags], stderr=subprocess.PIPE, env=environment, close_fds=True
        )
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ports: dict[str, int] = {}
        running.add(self)

    @property
    def title(self) -> str:
        """The name by which a failed test shows its log."""
        return str(self.policies)

    def last_lines(self) -> str:
        """Returns its name, whether it runs, and the end of its log."""
        state = "runs" if (code := self.process.poll()) is None else f"ended with {code}"
        shown = [str(event)[:SHOWN_CHARACTERS] for event in self.events[-SHOWN_LINES:]]
        return "\n  ".join([f"{self.title} {state}; its log ends with:", *shown])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event = json.loads(line)  # a line that is no event is a defect
            with self._changed:
                self.events.append(event)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, message: str, *, number: int = 1, **fields: Any) -> dict[str, Any]:
        """The ``number``-th event with this message and these fields, waiting for it."""

        def found() -> list[dict[str, Any]]:
            return [
                event
                for event in self.events
                if event["msg"] == message and fields.items() <= event.items()
            ]

        with self._changed:
            self._changed.wait_for(
                lambda: len(found()) >= number or self._ended, timeout=PATIENCE_SECONDS
            )
            matching = found()
        assert len(matching) >= number, f"no event {message!r} {fields}; there are {self.events}"
        return matching[number - 1]

    def __enter__(self) -> Self:
        event = self.wait_for("serving")
        for name in ("admission", "health", "metrics", "pprof"):
            if name in event:
                self.ports[name] = int(event[name].rpartition(":")[2])
        return self

    def ready(self) -> Self:
        """Wait until policies are in force."""
        self.wait_for("policies in force")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        bugs = [event for event in self.events if "stacktrace" in event]
        assert bugs == [], bugs

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_SECONDS)

    # --- requests --------------------------------------------------------------------------------

    def connect(self, context: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        """A keep-alive connection to the admission port, connected."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1",
            self.ports["admission"],
            context=context or unverified(),
            timeout=PATIENCE_SECONDS,
        )
        try:
            connection.connect()
        except OSError:
            connection.close()
            raise
        return connection

    def post(
        self,
        body: bytes | Mapping[str, Any],
        path: str = "/v1/admit?timeout=30s",
        *,
        connection: http.client.HTTPSConnection | None = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read its answer, on a connection of its own unless one is given."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        with_type = {"Content-Type": "application/json", **(headers or {})}
        own = connection is None
        connection = connection or self.connect()
        try:
            connection.request(method, path, raw, with_type)
            return Answer(connection.getresponse())
        finally:
            if own:
                connection.close()

    def admit(self, obj: Mapping[str, Any] | None = None, **request: Any) -> dict[str, Any]:
        """The verdict on an object."""
        return self.post(review(obj, **request)).verdict

    def raw(self) -> ssl.SSLSocket:
        """A TLS connection to the admission port, for bytes of one's own."""
        plain = socket.create_connection(("127.0.0.1", self.ports["admission"]), PATIENCE_SECONDS)
        try:
            return unverified().wrap_socket(plain)
        except OSError:
            plain.close()
            raise

    def get(self, port: str, path: str) -> Answer:
        """An answer of the health or the metrics port."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[port], PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def metric(self, series: str) -> float | None:
        """The value of a series as ``/metrics`` has it, None where it has none."""
        for line in self.get("metrics", "/metrics").body.decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return None


def await_true(condition: Callable[[], bool]) -> None:
    """Ask again and again until it is so; each question goes to the server, and takes its time."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never became so"


def read_all(connection: socket.socket) -> bytes:
    """Returns all bytes until the other side closes."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except (ConnectionResetError, ssl.SSLError):
        pass
    return found


def write_policies(folder: Path, *documents: str) -> Path:
    """A directory of policies, one file for each text."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, document in enumerate(documents):
        replace(folder / f"{number}.yaml", document)
    return folder


def replace(path: Path, text: str) -> None:
    """Write a file as editors do: beside it, then renamed into its place, so that none is seen half."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


def lines_of(texts: Sequence[str]) -> str:
    """Texts as the message of a denial."""
    return "\n".join(texts)
