"""The process of ``waddle provider images``: Gatekeeper's external-data protocol over TLS 1.3.

``POST /`` returns the facts about each image. ``POST /digest`` returns each reference with its
digest alone, for mutations.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette

from webhook.api.encoding import DecodeError, decode, encode
from webhook.app.threads import ProbeThread
from webhook.certificates import pairs
from webhook.cluster.credentials import CredentialsError
from webhook.external_data.exchange import REQUEST_KEYS_MAX
from webhook.images.facts_file import FactsFile, UnusableFactsFile
from webhook.images.known_facts import KnownFacts, UnansweredImage
from webhook.images.policy import InvalidVerificationPolicy
from webhook.images.policy_files import load_policies
from webhook.metrics import images as metrics_of_images
from webhook.metrics import server as metrics_of_servers
from webhook.metrics.exposition import Exposition
from webhook.metrics.images import IMAGE_POLICIES
from webhook.metrics.registry import Metric, Registry
from webhook.server.http.hub import Hub
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import Listener
from webhook.server.probes import make_health_application, make_metrics_application
from webhook.values import dataclass

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from webhook.images.collection import ImageRegistry
    from webhook.images.facts_file import WaitingChanges
    from webhook.images.policy import VerificationPolicy
    from webhook.images.policy_cluster import FollowedPolicies
    from webhook.log import Logger

API_VERSION: Final = "externaldata.gatekeeper.sh/v1beta1"
BODY_BYTES_MAX: Final = 2 << 20
"""The size of a request body at most: a thousand references of the greatest length."""
CONNECTIONS_MAX: Final = 256
_DRAINED_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 1.0
"""The interval between writes of the cache, in seconds; a crash loses at most as much."""
STUCK_SECONDS: Final = 30.0
RELOAD_SECONDS: Final = 10.0
"""The interval between reads of policies and certificates. Kubernetes takes a minute to update a
mounted ConfigMap."""

_LIMITS: Final = ConnectionLimits(
    connections_max=CONNECTIONS_MAX,
    header_bytes_max=16 * 1024,
    body_bytes_max=BODY_BYTES_MAX,
    waiting_bytes_max=32 * BODY_BYTES_MAX,
    in_flight_max=CONNECTIONS_MAX,
    handshake_timeout_seconds=5,
    header_timeout_seconds=10,
    body_timeout_seconds=10,
    idle_timeout_seconds=120,
)


@dataclass(frozen=True, slots=True)
class ImageProviderOptions:
    """The options of the provider process."""

    policies: tuple[Path, ...]
    certificates: Path
    client_ca_name: str
    deadline_seconds: float
    secrets: Path | None = None
    """The folder of mounted Secrets."""
    cache: Path | None = None
    """The file of the cache, which survives restarts."""
    follows_cluster: bool = False
    kubeconfig: str | None = None


class ImageProvider:
    """The ASGI application of the provider."""

    def __init__(self, known: KnownFacts, why_unready: Callable[[], str]) -> None:
        self._known = known
        self._why_unready = why_unready

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers one ASGI request."""
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, document = await self._answered(scope["method"], scope["path"], body)
        content = encode(document)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answered(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path not in {"/", "/digest"}:
            return 404, _response(fault=f"there is no {path}: it is / or /digest")
        if method != "POST":
            return 405, _response(fault=f"{method} is not POST")
        try:
            keys = _keys(body)
        except ValueError as error:
            return 400, _response(fault=str(error))
        if fault := self._why_unready():
            return 503, _response(fault=fault)
        distinct = list(dict.fromkeys(keys))
        async with asyncio.TaskGroup() as tasks:
            pending = [tasks.create_task(self._item(key, path == "/digest")) for key in distinct]
        return 200, _response([request.result() for request in pending])

    async def _item(self, key: str, by_digest: bool) -> dict[str, Any]:
        try:
            value = await self._known.value(key)
        except UnansweredImage as error:
            return {"key": key, "value": None, "error": str(error)}
        return {"key": key, "value": value["image"] if by_digest else value, "error": ""}


def _keys(body: bytes) -> list[str]:
    """Returns the keys of a ProviderRequest; raises ValueError."""
    try:
        keys = decode(body, max_bytes=BODY_BYTES_MAX)["request"]["keys"]
    except (DecodeError, KeyError, TypeError):
        raise ValueError("the body is not a ProviderRequest with request.keys") from None
    if type(keys) is not list or not all(type(key) is str for key in keys):
        raise ValueError("request.keys is not a list of strings")
    if len(keys) > REQUEST_KEYS_MAX:
        raise ValueError(f"{len(keys)} keys: at most {REQUEST_KEYS_MAX} are answered at once")
    return keys


def _response(items: Sequence[dict[str, Any]] = (), fault: str = "") -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "ProviderResponse",
        "response": {"idempotent": True, "items": list(items), "systemError": fault},
    }


async def serve(
    listening: socket.socket,
    registry: ImageRegistry,
    options: ImageProviderOptions,
    log: Logger,
    probed: socket.socket | None = None,
) -> None:
    """Answers requests until a signal stops it; ``probed`` is the socket of probes and metrics.

    If it cannot start, it raises :class:`~webhook.images.policy.InvalidVerificationPolicy`,
    :class:`~webhook.images.facts_file.UnusableFactsFile`,
    :class:`~webhook.cluster.credentials.CredentialsError` or
    :class:`~webhook.certificates.pairs.InvalidCertificate`.
    """
    running = _Running(registry, options, log)
    try:
        await running.serve(listening, probed)
    except* (InvalidVerificationPolicy, CredentialsError) as group:
        raise group.exceptions[0] from None


class _Running:
    """The parts of the running process."""

    def __init__(self, registry: ImageRegistry, options: ImageProviderOptions, log: Logger) -> None:
        self._registry = registry
        self._options = options
        self._log = log
        self._metrics = Registry()
        self._of_files = _policies(options)
        self._context = pairs.SwappedContext(_tls(options))
        self._of_cluster: tuple[VerificationPolicy, ...] = ()
        self._file = FactsFile(options.cache) if options.cache else None
        self._faults = {"files": 0, "cluster": 0}
        self._followed: FollowedPolicies | None = None
        self._known: KnownFacts
        self._server: Listener

    async def serve(self, listening: socket.socket, probed: socket.socket | None) -> None:
        """Answers requests until a signal stops it."""
        async with asyncio.TaskGroup() as tasks, contextlib.AsyncExitStack() as stack:
            self._known = known = KnownFacts(
                self._registry,
                (),
                tasks,
                self._options.deadline_seconds,
                self._log,
                metrics=self._metrics,
                file=self._file,
            )
            if self._file is not None:
                known.restore(self._file.rows(time.time()))
            self._install()
            hub = Hub(_LIMITS, self._metrics, self._log)
            self._server = server = Listener(
                hub,
                ImageProvider(known, self._why_unready),
                listening,
                tls=self._context.listening,
                grace_seconds=_DRAINED_SECONDS,
            )
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, server.stop)
            beside = [tasks.create_task(self._reload(), name="reload")]
            if self._options.follows_cluster:
                beside.append(tasks.create_task(await self._following(stack), name="policies"))
            if self._file is not None:
                beside.append(tasks.create_task(self._write(self._file), name="cache"))
            probes = self._probes(probed)
            self._log.info("the provider is ready", **_addresses(listening, probed))
            await server.serve()
            for task in beside:
                task.cancel()
            known.cancel()
            if probes is not None:
                probes.stop()
        if self._file is not None:
            self._write_now(self._file, self._file.take())
            self._file.close()

    async def _following(self, stack: contextlib.AsyncExitStack) -> Coroutine[Any, Any, None]:
        """Returns the coroutine that follows the policies of the cluster."""
        from webhook.cluster.client import ClusterClient  # noqa: PLC0415  # only for clusters
        from webhook.cluster.credentials import load_credentials  # noqa: PLC0415
        from webhook.images.policy_cluster import FollowedPolicies  # noqa: PLC0415

        credentials = load_credentials(self._options.kubeconfig)
        client = await stack.enter_async_context(ClusterClient(credentials))

        def take(policies: tuple[VerificationPolicy, ...], faults: int) -> None:
            self._of_cluster = policies
            self._faults["cluster"] = faults
            self._install()

        self._followed = FollowedPolicies(client, self._options.secrets, take, self._log)
        return self._followed.run()

    def _install(self) -> None:
        known, faults = self._known, self._faults
        known.policies = (*self._of_files, *self._of_cluster)
        self._metrics.set(IMAGE_POLICIES, len(known.policies) - faults["cluster"], "active")
        self._metrics.set(IMAGE_POLICIES, sum(faults.values()), "error")

    def _why_unready(self) -> str:
        follows, followed = self._options.follows_cluster, self._followed
        if follows and (followed is None or not followed.is_known):
            return "the cluster's VerificationPolicies are not known yet"
        return ""

    def _probes(self, probed: socket.socket | None) -> ProbeThread | None:
        if probed is None:
            return None
        shown = (*vars(metrics_of_images).values(), *vars(metrics_of_servers).values())
        exposition = Exposition(
            self._metrics, self._known.refresh, [item for item in shown if isinstance(item, Metric)]
        )
        health = make_health_application(
            {"answering": self._why_stuck}, {"policies": self._why_unready}
        )
        scrapes = make_metrics_application(exposition)
        application = Starlette(routes=[*health.routes, *scrapes.routes])
        thread = ProbeThread([(probed, application)], self._log)
        thread.start()
        return thread

    def _why_stuck(self) -> str:
        seconds = self._server.seconds_since_tick
        return "" if seconds < STUCK_SECONDS else f"nothing was answered for {seconds:.0f} s"

    async def _write(self, file: FactsFile) -> None:
        """Writes changes into the cache file every ``WRITE_SECONDS``."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            if changes := file.take():
                await asyncio.to_thread(self._write_now, file, changes)

    def _write_now(self, file: FactsFile, changes: WaitingChanges) -> None:
        try:
            file.write(changes, time.time())
        except UnusableFactsFile as error:
            self._log.error("what is known is not kept for a restart", error=str(error))

    async def _reload(self) -> None:
        """Reads policies and certificates again every ``RELOAD_SECONDS``.

        Unusable ones replace nothing: the last usable ones stay in force.
        """
        message = ""
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            fault = ""
            try:
                policies = await asyncio.to_thread(_policies, self._options)
                self._context.install(await asyncio.to_thread(_tls, self._options))
                self._of_files = policies
            except (InvalidVerificationPolicy, pairs.InvalidCertificate) as error:
                fault = str(error)
            self._faults["files"] = int(bool(fault))
            self._install()
            if fault and fault != message:
                self._log.error("cannot be used; the last good ones stay", error=fault)
            elif message and not fault:
                self._log.info("policies and certificates can be used again")
            message = fault


def _addresses(listening: socket.socket, probed: socket.socket | None) -> dict[str, str]:
    host, port = listening.getsockname()[:2]
    addresses = {"address": f"https://{host}:{port}/"}
    if probed is not None:
        host, port = probed.getsockname()[:2]
        addresses["metrics"] = f"http://{host}:{port}/metrics"
    return addresses


def _policies(options: ImageProviderOptions) -> tuple[VerificationPolicy, ...]:
    """Returns the policies of files, if any are given."""
    if not options.policies:
        return ()
    return tuple(load_policies(options.policies, options.secrets))


def _tls(options: ImageProviderOptions) -> Any:
    return pairs.make_context(pairs.read_pair(options.certificates, options.client_ca_name))
