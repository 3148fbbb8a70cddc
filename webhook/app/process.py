"""``waddle serve`` as a process: its threads, signals, drain and end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from webhook import __version__, garbage, log
from webhook.app.admission_port import AdmissionPort, isolation
from webhook.app.certificate_options import certificate_options
from webhook.app.compilation import CodeProcess
from webhook.app.fault_injection import FaultRefused, RefusingDriver, refused_kind
from webhook.app.jobs_thread import JobsThread
from webhook.app.priority import BEHIND, SWITCH_INTERVAL_SECONDS, go_first
from webhook.app.providers import ProviderRequests
from webhook.app.telemetry import Telemetry, UnusableTelemetry
from webhook.app.threads import ProbeThread, ReloadThread
from webhook.certificates.loader import CertificateLoader, ShownPair
from webhook.cluster.event_loop import new_event_loop
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.external_data import NAME as EXTERNAL_DATA
from webhook.constraint.drivers.rego import NEEDS_A_DOOR, RegoDriver
from webhook.constraint.drivers.specialisation import Specialiser
from webhook.constraint.targets.known import ADMISSION_ALONE, TARGETS
from webhook.file_changes import Watched
from webhook.metrics.exposition import Exposition
from webhook.metrics.policies import (
    SPECIALISATIONS_REFUSED,
    SPECIALISED_BYTES,
    SPECIALISED_CONSTRAINTS,
)
from webhook.metrics.registry import Registry
from webhook.metrics.server import BUILD, LOG_LINES_DROPPED, READY
from webhook.policies.metered import EngineFaults, MeteredClient
from webhook.printable import reason_of
from webhook.rego import program as _  # noqa: F401  # the compiler, now and not beside admissions
from webhook.rego.code_cache import CodeCache, UnsafeDirectory
from webhook.server.http.listener import BACKLOG, bind
from webhook.server.probes import make_health_application, make_metrics_application
from webhook.server.profiling import make_profiling_application
from webhook.serving.revision import Serving
from webhook.settings.serve_checks import address
from webhook.trials.driver import TriedDriver, TriedRegoDriver
from webhook.trials.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.app.audit import AuditThread
    from webhook.app.cluster import ClusterThread
    from webhook.app.decisions import DecisionLog
    from webhook.constraint.driver import Driver
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Log, Logger
    from webhook.policies.loader import PolicyLoader
    from webhook.settings.serve import ServeSettings

GC_THRESHOLDS: Final = (1_000, 5, 4_000)
"""The number of allocations between collections of the youngest generation, and for each older
generation the number of collections of the one before.

A collection stops all threads, whichever thread caused it. So reviews wait for the garbage of large
objects and of policies that are compiled beside them. With Pods of 800 containers and 5,000
allocations a collection of the first generation took 2.5 ms and one of the second 10.6 ms. With
1,000 they take 0.6 and 1.7 ms, and all together no longer. All objects are visited after 20 million
allocations.
"""


WARM_SECONDS: Final = 0.5
"""How often it is checked whether policies are served. Then the process of trials is started: it
takes a fifth of a second of a processor, which must not delay the start."""

GREET_SECONDS: Final = 0.1
"""How often it is checked whether policies are served, for a user at a terminal."""

_HOST_FLAGS: Final = {"--port": "--host", "--prometheus-port": "--prometheus-host"}


class SpecialisingThread:
    """The thread that writes specialised code for constraints, beside reviews.

    It is started with the first request of a constraint. The specialiser limits the number of
    waiting requests.
    """

    def __init__(self, evaluations: int, registry: Registry, log: Logger) -> None:
        """``evaluations`` is the number of evaluations after which a constraint gets its own code."""
        self._jobs = JobsThread("specialise", "a constraint gets no compiled code of its own", log)
        self.specialiser = Specialiser(self._submit, evaluations=evaluations)
        self._registry = registry

    def stop(self) -> None:
        """Takes no more work; does not wait for the current work."""
        self._jobs.stop()

    def _submit(self, job: Callable[[], None]) -> None:
        self._jobs.submit(lambda: self._run(job))

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            specialiser = self.specialiser
            self._registry.set(SPECIALISED_CONSTRAINTS, specialiser.constraints)
            self._registry.set(SPECIALISED_BYTES, specialiser.bytes)
            self._registry.set(SPECIALISATIONS_REFUSED, specialiser.refused)


class PolicySource(Protocol):
    """The source of policies, as probes see it; any thread may call it."""

    def not_ready(self) -> str:
        """Returns why nothing can be served yet, or an empty text."""

    def faults(self) -> tuple[str, ...]:
        """Returns the faults of the policies."""


class CannotStart(Exception):
    """The process cannot start; the message has the remedy."""


def serve(settings: ServeSettings) -> int:
    """Serves until a signal; returns the exit code. Raises :class:`CannotStart`."""
    try:
        lines = log.open_log(
            settings.logging.file,
            level=settings.logging.level,
            level_key=settings.logging.level_key,
            encoder=settings.logging.level_encoder,
            form=settings.logging.format,
        )
    except OSError as error:
        raise CannotStart(f"--log-file={settings.logging.file}: {error.strerror}") from None
    log.adopt_standard_logging(lines)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    process = Process(settings, lines)
    garbage.running(GC_THRESHOLDS)
    go_first()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(process.run())


class Process:
    """The parts of the server, put together."""

    def __init__(self, settings: ServeSettings, lines: Log) -> None:
        self._settings = settings
        self._lines = lines
        self._log = lines.logger("setup")
        serving = settings.serving
        health_host, health_port = address(serving.health_addr, "health-addr")
        self._bound: dict[str, socket.socket] = {}
        if settings.serves_admission:
            self._bound["admission"] = _bind(serving.host, serving.port, "--port")
        health = _bind(health_host, health_port, "--health-addr")
        scrapes = _bind(serving.prometheus_host, serving.prometheus_port, "--prometheus-port")
        self._bound |= {"health": health, "metrics": scrapes}
        self._draining = False
        self._delay_seconds = serving.shutdown_delay_seconds
        self._registry = Registry(constraint_series_max=settings.logging.max_constraint_series)
        self._registry.set(BUILD, 1, __version__)
        self._certificate = (
            CertificateLoader(certificate_options(settings), self._registry, self._log)
            if settings.serves_admission
            else None
        )
        self._serving = Serving()
        self._compile_parts = CodeProcess(self._is_answering, self._log)
        self._specialising = self._specialising_thread()
        self._engine_faults = EngineFaults(self._registry, self._log)
        self._disabled = NEEDS_A_DOOR.union(settings.deciding.disable_opa_builtin)
        self._shown = self._shown_pair()
        self._providers = self._provider_requests(lines)
        self._cache = self._code_cache()
        self._trials = self._make_trials()
        self._driver = self._make_driver()
        self._refused_kind = self._injected_fault()
        self._cluster: ClusterThread | None = None
        subjects = []
        if settings.in_cluster:
            self._cluster = self._cluster_thread(lines)
            self._policies: PolicySource = self._cluster
        else:
            self._policies, watched = self._policies_of_files()
            subjects.append(watched)
        self._decisions = self._decision_log(lines)
        self._telemetry = self._make_telemetry(lines)
        self._admission = self._admission_port(lines)
        self._audit = self._audit_thread(lines)
        live, self._ready = self._probed()
        applications = [
            (health, make_health_application(live, self._ready, self._faults)),
            (scrapes, make_metrics_application(Exposition(self._registry, self._refresh))),
        ]
        if serving.enable_pprof:
            profiling = _bind("localhost", serving.pprof_port, "--pprof-port")
            self._bound["pprof"] = profiling
            applications.append((profiling, make_profiling_application()))
        self._probes = ProbeThread(applications, self._log)
        if self._shown is not None and self._shown.paths:
            subjects.insert(0, Watched(self._shown.paths, self._shown.load))
        if self._decisions is not None:
            path = Path(settings.logging.decision_log_config).absolute()
            subjects.append(Watched((path,), self._decisions.reload))
        self._reload = ReloadThread(subjects, self._log, settings.policies.poll_interval_seconds)

    def _shown_pair(self) -> CertificateLoader | ShownPair | None:
        """Returns the certificate shown to providers.

        A process without admissions may have one, too.
        """
        if self._certificate is None and (folder := self._settings.tls.cert_dir):
            return ShownPair(Path(folder), self._log)
        return self._certificate

    def _provider_requests(self, lines: Log) -> ProviderRequests | None:
        """Makes the part that calls providers; None if external data is turned off."""
        settings = self._settings
        if not settings.deciding.enable_external_data:
            self._disabled |= {EXTERNAL_DATA}
            return None
        log = lines.logger("providers")
        return ProviderRequests(settings, self._serving, self._registry, log, self._shown)

    def _make_trials(self) -> Trials:
        """Makes the trials of policies: before enforcement, and for those that wait at start."""
        is_compiled = self._cache is not None and self._cache.holds_some
        return Trials(
            self._disabled,
            notify=self._log.warning,
            registry=self._registry,
            tries_all=lambda: self._serving.revision is not None,
            cel=self._settings.deciding.enable_k8s_native_validation,
            niceness=BEHIND,
            ahead=self._settings.policies.compile_in_parallel and not is_compiled,
        )

    def _policies_of_files(self) -> tuple[PolicyLoader, Watched]:
        """Returns the loader of policy files, and the watcher that calls it on changes."""
        # Imported here: a replica in a cluster reads no files, and would load YAML for nothing.
        from webhook.policies.loader import PolicyLoader  # noqa: PLC0415

        paths = tuple(Path(path).absolute() for path in self._settings.policies.paths)
        loader = PolicyLoader(
            self._make_client(),
            paths,
            self._serving,
            registry=self._registry,
            log=self._log,
            retries=self._settings.policies.readiness_retries,
            kyverno=self._settings.policies.kyverno_policies,
            announce=self._trials.announce,
            external_data=self._settings.deciding.enable_external_data,
        )
        return loader, Watched(paths, loader.load, loader.advise_on_messages)

    def _probed(self) -> tuple[dict[str, Callable[[], str]], dict[str, Callable[[], str]]]:
        """Returns the states that the probes of liveness and of readiness show."""
        live: dict[str, Callable[[], str]] = {}
        ready = {"policies": self._policies.not_ready, "shutdown": self._shutting_down}
        if self._admission is not None:
            live["admission-thread"] = ready["admission-thread"] = self._admission.stalled
        if self._certificate is not None:
            ready["certificate"] = self._certificate.not_ready
        if self._audit is not None:
            live["audit-thread"] = self._audit.stalled
        return live, ready

    def _faults(self) -> tuple[str, ...]:
        """Returns the faults that leave the process ready; any thread may call it."""
        parts = (self._policies, self._admission, self._providers, self._decisions)
        return tuple(fault for part in parts if part is not None for fault in part.faults())

    async def run(self) -> int:
        """Serves until a signal, then drains; returns the exit code."""
        for notice in self._settings.notices:
            self._log.warning("a flag has no effect", notice=notice)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, stop, number)
        self._probes.start()
        async with asyncio.TaskGroup() as group:
            answering = []
            if self._decisions is not None:
                self._decisions.attach(loop)
                group.create_task(self._decisions.run())
            if self._admission is not None:
                answering.append(group.create_task(self._admission.listener.serve()))
                await self._admission.listener.listening.wait()
            self._log.info(
                "serving",
                version=__version__,
                **{name: _shown(bound) for name, bound in self._bound.items()},
            )
            asking = None
            if self._providers is not None:
                asking = group.create_task(self._providers.run())
            self._reload.start()
            self._telemetry.start()
            if self._cluster is not None:
                self._cluster.start()
            if self._audit is not None:
                self._audit.start()
            besides = [group.create_task(part()) for part in (self._warm_trials, self._greet)]
            await stop.wait()
            for task in besides:
                task.cancel()
            if self._audit is not None:
                await asyncio.to_thread(self._audit.stop)
            if self._admission is not None:
                await asyncio.sleep(self._delay_seconds)
                self._log.info("closing the admission port")
                self._admission.listener.stop()
                await asyncio.wait(answering)  # the last answer has its record
            if self._decisions is not None:
                await self._decisions.drain()
            if asking is not None:
                asking.cancel()
        self._stop_threads()
        await self._telemetry.stop()
        self._probes.stop()
        self._log.info("stopped")
        return 0

    def _stop_threads(self) -> None:
        """Stops the threads beside admission, after admission has ended."""
        if self._cluster is not None:
            self._cluster.stop()
        if self._admission is not None:
            self._admission.stop_compiling()
        if self._specialising is not None:
            self._specialising.stop()
        self._reload.stop()
        self._trials.stop()

    async def _warm_trials(self) -> None:
        """Starts the process for trials once policies are served: a cluster may change at any time."""
        while self._serving.revision is None:  # noqa: ASYNC110  # set by another thread, with no event
            await asyncio.sleep(WARM_SECONDS)
        if count := self._trials.started():
            self._log.info("a second process compiled policies too", templates=count)
        if self._cluster is not None:
            await asyncio.to_thread(self._trials.warm)

    async def _greet(self) -> None:
        """Prints the greeting at a terminal, and later when policies are served."""
        if not self._lines.is_words or self._admission is None:
            return
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.app import greeting  # noqa: PLC0415

        source = greeting.source(self._settings.policies.paths)
        where = {name: _shown(bound) for name, bound in self._bound.items()}
        self._lines.say(greeting.opening(source, where))
        is_logged = False
        while self._serving.revision is None:
            await asyncio.sleep(GREET_SECONDS)
            # Checked last: faults are published with the revision, and both may come during the
            # sleep.
            if not is_logged and self._policies.faults() and self._serving.revision is None:
                is_logged = True
                self._lines.say(greeting.waiting(where))
        count = len(tuple(self._serving.revision.snapshot.constraints))
        faulty = bool(self._policies.faults())
        self._lines.say(greeting.ready(count, where, Path.cwd(), faulty=faulty))

    def _make_client(self) -> MeteredClient:
        driver: Driver = self._driver
        if self._refused_kind:
            driver = RefusingDriver(driver, self._refused_kind)
        return MeteredClient(
            self._registry,
            self._log,
            targets=TARGETS,
            drivers=self._drivers(driver),
            isolation=isolation(self._settings),
            reviewed_targets=ADMISSION_ALONE,
            on_bug=self._engine_faults,
        )

    def _make_plain_client(self) -> Client:
        driver = RegoDriver(
            disabled_builtins=self._disabled,
            compile_parts=self._compile_parts,
        )
        tried = TriedRegoDriver(driver, self._trials)
        drivers, engine_faults = self._drivers(tried), self._engine_faults
        return Client(
            targets=TARGETS, drivers=drivers, reviewed_targets=ADMISSION_ALONE, on_bug=engine_faults
        )

    def _drivers(self, rego: Driver) -> list[Driver]:
        """Returns the engines; a template with code for several uses the first."""
        if not self._settings.deciding.enable_k8s_native_validation:
            return [rego]
        fails = self._settings.deciding.default_k8s_native_validation_failure_policy == "Fail"
        return [TriedDriver(CelDriver(fails=fails), self._trials), rego]

    def _specialising_thread(self) -> SpecialisingThread | None:
        after = self._settings.policies.specialise_after
        return SpecialisingThread(after, self._registry, self._log) if after else None

    def _code_cache(self) -> CodeCache | None:
        """Returns the cache of compiled policies, if configured; raises :class:`CannotStart`."""
        directory = self._settings.policies.compiled_policies_dir
        try:
            return CodeCache(Path(directory)) if directory else None
        except (OSError, UnsafeDirectory) as error:
            why = f"--compiled-policies-dir={directory}: {reason_of(error)}"
            raise CannotStart(why) from None

    def _make_driver(self) -> TriedRegoDriver:
        """Returns the driver of policies in force."""
        driver = RegoDriver(
            disabled_builtins=self._disabled,
            cache=self._cache,
            compile_parts=self._compile_parts,
            specialiser=None if self._specialising is None else self._specialising.specialiser,
        )
        return TriedRegoDriver(driver, self._trials)

    def _injected_fault(self) -> str:
        """Returns the kind that a test has this replica refuse; raises :class:`CannotStart`."""
        try:
            kind = refused_kind(self._settings, os.environ)
        except FaultRefused as error:
            raise CannotStart(str(error)) from None
        if kind:
            self._log.error("a fault is injected for a test", kind=kind)
        return kind

    def _cluster_thread(self, lines: Log) -> ClusterThread:
        """Makes the thread that follows the cluster; raises :class:`CannotStart`."""
        # Imported here: without a cluster it would cost memory and start-up time.
        from webhook.app.cluster import ClusterThread  # noqa: PLC0415
        from webhook.cluster.credentials import CredentialsError  # noqa: PLC0415
        from webhook.controllers.apply.prevalidation import Trier  # noqa: PLC0415

        try:
            return ClusterThread(
                self._settings,
                self._make_client,
                self._serving,
                self._registry,
                lines.logger("cluster"),
                self._certificate,
                record=self._record_event,
                trier=Trier(self._trials, self._settings.deciding.evaluation_budget_seconds),
                ask=self._ask_providers,
            )
        except CredentialsError as error:
            raise CannotStart(str(error)) from None

    def _record_event(self, event: str, **details: str | int) -> None:
        """Records an event in the decision log, if there is one; any thread may call it."""
        if self._decisions is not None:
            self._decisions.record_event(event, **details)

    def _decision_log(self, lines: Log) -> DecisionLog | None:
        """Returns the decision log if it is on; raises :class:`CannotStart`."""
        settings = self._settings
        if not settings.logging.decision_log_config:
            return None
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.app.decisions import DecisionLog  # noqa: PLC0415
        from webhook.decisions.configuration import InvalidConfiguration  # noqa: PLC0415

        try:
            return DecisionLog(
                Path(settings.logging.decision_log_config),
                settings.logging.decision_log_grace_seconds,
                self._registry,
                lines.logger("decisions"),
            )
        except InvalidConfiguration as error:
            raise CannotStart(f"--decision-log-config: {error}") from None

    def _admission_port(self, lines: Log) -> AdmissionPort | None:
        """Makes the port of admissions, if this process answers them."""
        if self._certificate is None:
            return None
        return AdmissionPort(
            self._settings,
            self._bound["admission"],
            self._serving,
            self._certificate,
            cluster=self._cluster,
            decisions=self._decisions,
            providers=self._providers,
            make_plain_client=self._make_plain_client,
            trials=self._trials,
            registry=self._registry,
            log=lines.logger("webhook"),
            tracing=self._telemetry.tracing,
        )

    def _make_telemetry(self, lines: Log) -> Telemetry:
        """Makes the sender of traces and metrics, if any are sent; raises :class:`CannotStart`."""
        log = lines.logger("telemetry")
        try:
            return Telemetry(
                self._settings, self._decisions, self._registry, log, refresh=self._refresh
            )
        except UnusableTelemetry as error:
            raise CannotStart(str(error)) from None

    def _audit_thread(self, lines: Log) -> AuditThread | None:
        """Makes the thread that audits the cluster, if this process does."""
        if not self._settings.audits or self._cluster is None:
            return None
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.app.audit import AuditThread  # noqa: PLC0415

        return AuditThread(
            self._settings,
            self._serving,
            self._registry,
            lines.logger("controller"),
            decisions=self._decisions,
            notify=self._cluster.audited,
            ask=self._ask_providers,
        )

    @property
    def _ask_providers(self) -> AskAsync | None:
        """Has providers answer, unless they are switched off."""
        return None if self._providers is None else self._providers.ask_all

    def _is_answering(self) -> bool:
        """Whether admissions are being answered, which compiling must not hold up."""
        return self._admission is not None and self._serving.revision is not None

    def _signalled(self, stop: asyncio.Event, number: int) -> None:
        name = signal.Signals(number).name
        if self._draining:
            self._log.warning("second signal: exiting at once", signal=name)
            # Nothing may hold this up: no destructor, no thread, no open connection.
            os._exit(1)
        self._draining = True
        if self._admission is not None:
            self._admission.listener.drain()
            # Control-C at a terminal ends the process without delay, unless connections are open.
            if number == signal.SIGINT and not self._admission.listener.hub.connections:
                self._delay_seconds = 0
        self._log.info(
            "draining: not ready from now on",
            signal=name,
            delay_seconds=self._delay_seconds,
        )
        stop.set()

    # --- checks, called by the probes' thread ----------------------------------------------------

    def _shutting_down(self) -> str:
        return "the process was asked to stop" if self._draining else ""

    def _refresh(self) -> None:
        """Bring gauges up to date for a scrape."""
        if dropped := self._lines.take_dropped():
            self._registry.count(LOG_LINES_DROPPED, by=dropped)
        if self._admission is not None:
            self._admission.refresh()
        if self._decisions is not None:
            self._decisions.refresh()
        if self._cluster is not None:
            self._cluster.refresh()
        self._telemetry.refresh()
        if self._providers is not None:
            self._providers.refresh()
        self._registry.set(
            READY,
            int(not any(check() for check in self._ready.values())),
            "audit" if self._admission is None else "admission",
        )


def _bind(host: str, port: int, flag: str) -> socket.socket:
    """Returns a bound socket, so that a taken port is reported at once.

    Raises :class:`CannotStart`.
    """
    try:
        bound = bind(host, port, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        where_ = f"{host}:{port}" if host else f":{port}"
        # Another port would not help if the address is not ours, or no name is known.
        unknown = isinstance(error, socket.gaierror) or (
            isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL
        )
        blamed = _HOST_FLAGS.get(flag, flag) if unknown else flag
        why = (isinstance(error, OSError) and error.strerror) or error
        raise CannotStart(
            f"{blamed}: cannot listen on {where_}: {why}; give {blamed} another value"
        ) from None
    bound.setblocking(False)
    return bound


def _shown(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
