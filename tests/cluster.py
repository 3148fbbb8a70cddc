"""A real Kubernetes API server for tests: a process of `tests/testcluster`, and a small client.

`Cluster.start` runs one and waits until it serves. Started again on the same folder it keeps its
data, certificates and ports: clients see a restart of the server that they knew.
"""

import base64
import http.client
import json
import os
import select
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from tests.patience import PATIENCE_SECONDS
from webhook.api.encoding import decode, encode

RETRIES_MAX = 10  # client-go's

RUNNING: list["Cluster"] = []
"""The control planes of this process."""


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, body: str, retry_after: str | None = None) -> None:
        """Keep the status code, the body, which says why, and the header Retry-After."""
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.retry_after_seconds = None if retry_after is None else int(retry_after)


def obeying(request: Callable[[], Any]) -> Any:
    """Returns the result of a request; repeats it after 503 with Retry-After, as client-go does.

    The API server says so to a request that arrives while it serves a changed CRD anew.
    """
    for _ in range(RETRIES_MAX):
        try:
            return request()
        except ApiError as error:
            if error.status != 503 or error.retry_after_seconds is None:
                raise
            time.sleep(error.retry_after_seconds)
    return request()


def serves(api: "Api", crd: Mapping[str, Any]) -> bool:
    """Whether every version of a kind is served by now, whose CRD was applied a moment ago."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    try:
        for version in crd["spec"]["versions"]:
            if version["served"]:
                api.request("GET", f"/apis/{group}/{version['name']}/{plural}?limit=1")
    except ApiError as error:
        if error.status not in (404, 429):  # 429: its storage is being made
            raise
        return False
    return True


def write_kubeconfig(path: Path, server: str) -> Path:
    """Write, and give back, the path of credentials of nobody for a server that asks for none."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "nobody"}}],
        "current-context": "context",
    }
    path.write_text(yaml.safe_dump(config))
    return path


def authority_of(config: Any) -> str:
    """The authority's certificate, as PEM, of a kubeconfig that holds it."""
    cluster = config["clusters"][0]["cluster"]
    return base64.b64decode(cluster["certificate-authority-data"]).decode()


class _Kept:
    """A connection that is used again, and closed with whoever had it."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        weakref.finalize(self, connection.close)

    def is_over(self) -> bool:
        """Whether the server has closed it, or said what nobody asked for, since its last answer."""
        if self.connection.sock is None:
            return True
        poll = select.poll()
        poll.register(self.connection.sock, select.POLLIN)
        return bool(poll.poll(0))


@dataclass(frozen=True, slots=True)
class Api:
    """Plain requests to an API server, as the kubeconfig's current user. Bodies are JSON.

    Each thread keeps its connection: a handshake costs more than what most requests are for.
    """

    server: str
    context: ssl.SSLContext
    _kept: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @classmethod
    def of(cls, kubeconfig: Path) -> Self:
        """A client for a kubeconfig with inline certificates."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        authority = authority_of(config)
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:  # OpenSSL reads a key from files only
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        return cls(cluster["server"], context)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        user: str = "",
    ) -> Any:
        """The decoded answer, as ``user`` where one is given.

        Raises ApiError for an answer that is not a success.
        """
        data = None if body is None else encode(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        if user:
            headers["Impersonate-User"] = user
        return obeying(lambda: self._once(method, path, data, headers))

    def _once(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
        """Sends a request once. Raises OSError if the server is unreachable, or goes away."""
        connection = self._connection()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()  # later bytes would be taken for the next answer
            raise
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiError(answer.status, content.decode(), answer.getheader("Retry-After"))
        try:
            return decode(content)
        except ValueError:
            return content.decode()

    def _connection(self) -> http.client.HTTPConnection:
        kept: _Kept | None = getattr(self._kept, "mine", None)
        if kept is None or kept.is_over():
            scheme, _, address = self.server.partition("://")
            kept = self._kept.mine = _Kept(
                http.client.HTTPSConnection(address, context=self.context, timeout=PATIENCE_SECONDS)
                if scheme == "https"
                else http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
            )
        return kept.connection

    def apply(self, path: str, manifest: Any, *, manager: str = "waddle-tests") -> Any:
        """Server-side apply of one object at its path."""
        query = f"?fieldManager={manager}&force=true"
        return self.request(
            "PATCH", path + query, manifest, content_type="application/apply-patch+yaml"
        )


@dataclass(slots=True)
class Cluster:
    """A running API server with etcd and the controllers that its clients rely on."""

    program: Path
    folder: Path
    arguments: Sequence[str] = ()
    process: subprocess.Popen[str] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    _api: "Api | None" = None

    @classmethod
    def start(cls, program: Path, folder: Path, *arguments: str) -> Self:
        """Run the program on that folder until it serves; arguments are testcluster's flags."""
        cluster = cls(program, folder, arguments)
        cluster.run()
        return cluster

    @property
    def kubeconfig(self) -> Path:
        """Credentials of an administrator."""
        return Path(self.facts["kubeconfig"])

    @property
    def authority(self) -> str:
        """The API server's authority, as PEM."""
        return authority_of(yaml.safe_load(self.kubeconfig.read_text()))

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.facts["server"])

    @property
    def etcd(self) -> str:
        """The URL of its etcd, without TLS."""
        return str(self.facts["etcd"])

    @property
    def pid(self) -> int:
        """The process's id, for faults and for measuring."""
        return int(self.facts["pid"])

    @property
    def api(self) -> Api:
        """A client with an administrator's rights; of one cluster it is the same."""
        if self._api is None:
            self._api = Api.of(self.kubeconfig)
        return self._api

    @property
    def log(self) -> Path:
        """Returns the log of etcd, the API server and the controllers."""
        return self.folder / "testcluster.log"

    def compact(self) -> None:
        """Have etcd forget every revision but the last."""

        def ask(path: str, **body: Any) -> Any:
            request = urllib.request.Request(f"{self.etcd}/v3/kv/{path}", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)

        revision = ask("range", key="Zm9v")["header"]["revision"]
        ask("compaction", revision=revision, physical=True)

    def run(self) -> None:
        """Start the process, also again after `stop` or `kill`, and wait until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.program, "-dir", self.folder, "-exit-with-stdin", *self.arguments],
                # Memory for time: of an API server's a fifth goes to collecting garbage. More than
                # this takes memory alone, and several run beside each other.
                env={**os.environ, "GOGC": "200"},
                stdin=subprocess.PIPE,  # closes with this process, and then the cluster ends too
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()  # it gives up by itself after two minutes
        if not line:
            self.process.wait(PATIENCE_SECONDS)
            tail = "\n".join(self.log.read_text().splitlines()[-15:])
            raise RuntimeError(f"testcluster did not start:\n{tail}")
        self.facts = json.loads(line)
        RUNNING.append(self)

    def stop(self) -> None:
        """End it as an administrator would, and wait."""
        self._end(kill=False)

    def kill(self) -> None:
        """End it as a power cut would, and wait."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop it and start it again on what it kept."""
        self.stop()
        self.run()

    def _end(self, *, kill: bool) -> None:
        if self.process is None:
            return
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_SECONDS)
            raise
        finally:
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()
            self.process = None
            RUNNING[:] = [one for one in RUNNING if one is not self]
