"""``waddle serve`` as a process: its threads, signals, drain and end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import uvloop

from webhook import __version__, certs, log, metrics
from webhook.app.certificates import CertificateLoader
from webhook.app.compilation import CodeProcess, CompileThread
from webhook.app.files import Subject
from webhook.app.isolation import isolation
from webhook.app.policies import MeteredClient, PolicyLoader
from webhook.app.threads import ProbeThread, ReloadThread
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.metrics import Exposition, Registry
from webhook.rego.code_cache import CodeCache, UnsafeDirectoryError
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.application import make_application
from webhook.server.hub import Hub
from webhook.server.limits import ConnectionLimits
from webhook.server.listener import BACKLOG, Listener
from webhook.server.namespace_label import Exemptions
from webhook.server.preparation import Preparations
from webhook.server.probes import make_health_application, make_metrics_application
from webhook.server.profiling import make_profiling_application
from webhook.server.serving import Serving
from webhook.settings.serve import address

if TYPE_CHECKING:
    from webhook.app.cluster import ClusterThread
    from webhook.app.decisions import DecisionLog
    from webhook.log import Log
    from webhook.settings.serve import ServeSettings

STALLED_SECONDS: Final = 60.0
"""Twice the longest time a review may have: an admission thread silent for longer hangs."""

SWITCH_INTERVAL_SECONDS: Final = 0.001
"""How long a thread may keep the interpreter from another. Python's 5 ms would be added to each
review while policies are compiled beside it."""

GC_THRESHOLD: Final = 20_000
"""Allocations between collections of the youngest generation: reviews leave hardly any cycles."""

NAMESPACE: Final = "waddle-system"
_ACCOUNTS: Final = ("waddle", "gatekeeper-admin")


class PolicySource(Protocol):
    """Where policies come from, as probes see it; asked by any thread."""

    def not_ready(self) -> str:
        """Why there is nothing to serve yet, or an empty text."""

    def faults(self) -> tuple[str, ...]:
        """What is wrong with the policies."""


class StartupError(Exception):
    """The process cannot start; the message says what to change."""


def serve(settings: ServeSettings) -> int:
    """Serve until told to stop; the exit code. Raises :class:`StartupError`."""
    try:
        lines = log.open_log(
            settings.log_file,
            level=settings.log_level,
            level_key=settings.log_level_key,
            encoder=settings.log_level_encoder,
        )
    except OSError as error:
        raise StartupError(f"--log-file={settings.log_file}: {error.strerror}") from None
    log.adopt_standard_logging(lines)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    process = Process(settings, lines)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(process.run())


class Process:
    """The parts of the server, put together."""

    def __init__(self, settings: ServeSettings, lines: Log) -> None:
        self._settings = settings
        self._log = lines.logger("setup")
        webhook_log = lines.logger("webhook")
        health_host, health_port = address(settings.health_addr, "health-addr")
        self._socket = _bind(settings.host, settings.port, "--port")
        health = _bind(health_host, health_port, "--health-addr")
        scrapes = _bind(settings.prometheus_host, settings.prometheus_port, "--prometheus-port")
        self._bound = {"admission": self._socket, "health": health, "metrics": scrapes}
        self._draining = False
        self._registry = Registry(constraint_series_max=settings.max_constraint_series)
        self._registry.set(metrics.BUILD, 1, __version__)
        self._certificate = CertificateLoader(settings, self._registry, self._log)
        self._serving = Serving()
        self._compile_parts = CodeProcess(lambda: self._serving.revision is not None, self._log)
        self._driver = self._make_driver()
        self._cluster: ClusterThread | None = None
        subjects = []
        if settings.in_cluster:
            self._cluster = self._cluster_thread(lines)
            self._policies: PolicySource = self._cluster
        else:
            paths = tuple(Path(path).absolute() for path in settings.policies)
            loader = PolicyLoader(
                self._make_client(),
                paths,
                self._serving,
                registry=self._registry,
                log=self._log,
                retries=settings.readiness_retries,
            )
            self._policies = loader
            subjects.append(Subject(paths, loader.load))
        self._hub = Hub(connection_limits(settings), self._registry, webhook_log)
        if settings.client_ca_name:
            self._hub.peer_check = lambda transport: certs.check_client_name(
                transport, settings.client_cn_name
            )
        self._decisions = self._decision_log(lines)
        self._compilation = (
            CompileThread(self._make_plain_client)
            if settings.validate_templates == "compile"
            else None
        )
        admission = Admission(
            self._serving,
            admission_options(settings),
            self._registry,
            webhook_log,
            None if self._decisions is None else self._decisions.recorder,
            Preparations(self._cluster, self._compilation),
        )
        exemptions = Exemptions(
            settings.exempt_namespace,
            settings.exempt_namespace_prefix,
            settings.exempt_namespace_suffix,
        )
        application = make_application(
            admission,
            exemptions,
            self._registry,
            webhook_log,
            body_max=settings.max_body_bytes,
        )
        self._listener = Listener(
            self._hub,
            application,
            self._socket,
            tls=self._certificate.context.listening,
            grace_seconds=settings.shutdown_grace_seconds,
        )
        live = {"admission-thread": self._stalled}
        ready = {
            "policies": self._policies.not_ready,
            "certificate": self._certificate.not_ready,
            "admission-thread": self._stalled,
            "shutdown": self._shutting_down,
        }
        self._ready = ready
        applications = [
            (health, make_health_application(live, ready, self._policies.faults)),
            (scrapes, make_metrics_application(Exposition(self._registry, self._refresh))),
        ]
        if settings.enable_pprof:
            profiling = _bind("localhost", settings.pprof_port, "--pprof-port")
            self._bound["pprof"] = profiling
            applications.append((profiling, make_profiling_application()))
        self._probes = ProbeThread(applications, self._log)
        if self._certificate.paths:
            subjects.insert(0, Subject(self._certificate.paths, self._certificate.load))
        if self._decisions is not None:
            path = Path(settings.decision_log_config).absolute()
            subjects.append(Subject((path,), self._decisions.reload))
        self._reload = ReloadThread(subjects, self._log, settings.poll_interval_seconds)

    async def run(self) -> int:
        """Serve until a signal says to stop, then drain; the exit code."""
        for notice in self._settings.notices:
            self._log.warning("flag without effect", notice=notice)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, stop, number)
        self._probes.start()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self._listener.serve())
            if self._decisions is not None:
                group.create_task(self._decisions.run())
            await self._listener.listening.wait()
            self._log.info(
                "serving",
                version=__version__,
                **{name: _shown(bound) for name, bound in self._bound.items()},
            )
            self._reload.start()
            if self._cluster is not None:
                self._cluster.start()
            await stop.wait()
            await asyncio.sleep(self._settings.shutdown_delay_seconds)
            self._log.info("closing the admission port")
            self._listener.stop()
            if self._decisions is not None:
                await asyncio.wait([serving])  # the last answer has its record
                await self._decisions.drain()
        if self._cluster is not None:
            self._cluster.stop()
        if self._compilation is not None:
            self._compilation.stop()
        self._reload.stop()
        self._probes.stop()
        self._log.info("stopped")
        return 0

    def _make_client(self) -> MeteredClient:
        return MeteredClient(
            self._registry,
            targets=[AdmissionTarget()],
            drivers=[self._driver],
            isolation=isolation(self._settings),
        )

    def _make_plain_client(self) -> Client:
        driver = RegoDriver(
            disabled_builtins=self._settings.disable_opa_builtin,
            compile_parts=self._compile_parts,
        )
        return Client(targets=[AdmissionTarget()], drivers=[driver])

    def _make_driver(self) -> RegoDriver:
        """The driver of policies in force; raises :class:`StartupError`."""
        settings = self._settings
        cache = None
        if settings.compiled_policies_dir:
            try:
                cache = CodeCache(Path(settings.compiled_policies_dir))
            except (OSError, UnsafeDirectoryError) as error:
                raise StartupError(f"--compiled-policies-dir: {error}") from None
        return RegoDriver(
            disabled_builtins=settings.disable_opa_builtin,
            cache=cache,
            compile_parts=self._compile_parts,
        )

    def _cluster_thread(self, lines: Log) -> ClusterThread:
        """What follows the cluster; raises :class:`StartupError`."""
        # Only with a cluster: an import that nobody asked for would cost memory and start-up.
        from webhook.app.cluster import ClusterThread  # noqa: PLC0415
        from webhook.cluster.credentials import CredentialsError  # noqa: PLC0415

        try:
            return ClusterThread(
                self._settings,
                self._make_client,
                self._serving,
                self._registry,
                lines.logger("cluster"),
                self._certificate,
            )
        except CredentialsError as error:
            raise StartupError(str(error)) from None

    def _decision_log(self, lines: Log) -> DecisionLog | None:
        """The decision log if it is on; raises :class:`StartupError`."""
        settings = self._settings
        if not settings.decision_log_config:
            return None
        # Only if it is on: an import that nobody asked for would cost memory and start-up.
        from webhook.app.decisions import DecisionLog  # noqa: PLC0415
        from webhook.decisions.configuration import ConfigurationError  # noqa: PLC0415

        try:
            return DecisionLog(
                Path(settings.decision_log_config),
                settings.decision_log_grace_seconds,
                self._registry,
                lines.logger("decisions"),
            )
        except ConfigurationError as error:
            raise StartupError(f"--decision-log-config: {error}") from None

    def _signalled(self, stop: asyncio.Event, number: int) -> None:
        name = signal.Signals(number).name
        if self._draining:
            self._log.warning("second signal: exiting at once", signal=name)
            # Nothing may hold this up: no destructor, no thread, no open connection.
            os._exit(1)
        self._draining = True
        self._listener.drain()
        self._log.info(
            "draining: not ready from now on",
            signal=name,
            delay_seconds=self._settings.shutdown_delay_seconds,
        )
        stop.set()

    # --- checks, asked by the probes' thread -----------------------------------------------------

    def _stalled(self) -> str:
        seconds = self._listener.seconds_since_tick
        if seconds < STALLED_SECONDS:
            return ""
        return f"it has not answered for {seconds:.0f} s"

    def _shutting_down(self) -> str:
        return "the process was told to stop" if self._draining else ""

    def _refresh(self) -> None:
        """Bring gauges up to date for a scrape."""
        registry, hub = self._registry, self._hub
        registry.set(metrics.IN_FLIGHT, hub.in_flight)
        registry.set(metrics.WAITING_BYTES, hub.waiting_bytes)
        registry.set(metrics.CONNECTIONS, len(hub.connections))
        if self._decisions is not None:
            self._decisions.refresh()
        registry.set(metrics.READY, int(not any(check() for check in self._ready.values())))


def connection_limits(settings: ServeSettings) -> ConnectionLimits:
    """The admission port's limits as set."""
    return ConnectionLimits(
        connections_max=settings.max_connections,
        header_bytes_max=settings.max_header_bytes,
        body_bytes_max=settings.max_body_bytes,
        waiting_bytes_max=settings.max_waiting_bytes,
        in_flight_max=settings.max_in_flight,
        handshake_timeout_seconds=settings.handshake_timeout_seconds,
        header_timeout_seconds=settings.header_timeout_seconds,
        body_timeout_seconds=settings.body_timeout_seconds,
        idle_timeout_seconds=settings.idle_timeout_seconds,
    )


def admission_options(settings: ServeSettings) -> AdmissionOptions:
    """How to decide, as set."""
    # Without a cluster nobody says which namespace is ours: both products' own.
    namespaces = (
        [settings.pod_namespace] if settings.pod_namespace else [NAMESPACE, "gatekeeper-system"]
    )
    return AdmissionOptions(
        review_timeout_seconds=settings.review_timeout_seconds,
        log_denies=settings.log_denies,
        any_action=settings.disable_enforcementaction_validation,
        own_users=frozenset(
            f"system:serviceaccount:{namespace}:{account}"
            for namespace in namespaces
            for account in _ACCOUNTS
        ),
    )


def _bind(host: str, port: int, flag: str) -> socket.socket:
    """A bound socket, so that a taken port is told at once; raises :class:`StartupError`."""
    try:
        if host:
            family, kind, protocol, _, where = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            bound = socket.socket(family, kind, protocol)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(where)
        elif socket.has_dualstack_ipv6():
            bound = socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
            )
        else:
            bound = socket.create_server(("", port), backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        where_ = f"{host}:{port}" if host else f":{port}"
        raise StartupError(f"{flag}: cannot listen on {where_}: {error}") from None
    bound.setblocking(False)
    return bound


def _shown(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
