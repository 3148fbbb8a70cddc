"""The admission port: all parts that answer reviews, from the socket to the policies in force."""

from __future__ import annotations

import asyncio
import os
import queue
import time
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from webhook import heap
from webhook.app.bounded_thread import BoundedThread
from webhook.app.compilation import CompileThread
from webhook.app.fault_injection import blames_nobody
from webhook.app.priority import compute_beside
from webhook.app.review_memory import ReviewMemory
from webhook.app.slow_reviews import FAST_SECONDS, SlowReviews
from webhook.certificates import pairs
from webhook.cluster import authorization
from webhook.cluster.discovery import UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import NAMESPACE
from webhook.constraint.failure_policy import FAILURE_POLICIES
from webhook.constraint.inventory import kinds_of
from webhook.constraint.isolation import Isolation
from webhook.constraint.limits import Budget
from webhook.metrics.admission import BREAKERS
from webhook.metrics.mutation import MUTATORS_FIGHTING
from webhook.metrics.server import CONNECTIONS, HANDSHAKES, IN_FLIGHT, WAITING_BYTES
from webhook.server.admission import Admission, AdmissionOptions
from webhook.server.admission_observer import ReviewLogOptions
from webhook.server.application import make_application
from webhook.server.decoding import Decoding, Memory
from webhook.server.http.crowding import places_of
from webhook.server.http.hub import Hub
from webhook.server.http.limits import ConnectionLimits
from webhook.server.http.listener import LATE_SECONDS, Listener
from webhook.server.mutation import Mutation, MutationOptions
from webhook.server.namespace_label import Exemptions
from webhook.server.preparation import AccessAnswer, Preparations
from webhook.server.responsibility import ProcessorTime
from webhook.server.validation import (
    ANSWER_SECONDS,
    PATH,
    WAITING_MAX,
    Access,
    PoliciesRefused,
    ValidationEndpoint,
    read_policies,
)
from webhook.serving.recorder import ListenedRecorder

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.shapes import Json
    from webhook.app.cluster import ClusterThread
    from webhook.app.decisions import DecisionLog
    from webhook.app.memo import AdmissionMemo
    from webhook.app.providers import ProviderRequests
    from webhook.certificates.loader import CertificateLoader
    from webhook.cluster.client import ClusterClient
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.causes import OnError, OnUndecidable
    from webhook.constraint.client import Client
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.review.policy_set import PolicySet
    from webhook.server.application import AdmissionApplication
    from webhook.server.validation import Callers
    from webhook.serving.recorder import Recorder
    from webhook.serving.revision import Serving
    from webhook.serving.trace import Tracing
    from webhook.settings.serve import ServeSettings
    from webhook.trials.trials import Trials


LATE_TIMERS: Final = 30
"""How many late timers of the last minute, of 600, are a fault."""

STALLED_SECONDS: Final = 60.0
"""An admission thread silent for longer than this hangs: twice the longest time of a review."""

_CHANGES: Final = {
    "open": "a constraint is suspended: it took too long repeatedly",
    "half-open": "a suspended constraint is tried again",
    "closed": "a constraint is evaluated again",
}

_ACCOUNTS: Final = ("waddle", "gatekeeper-admin")


ASK_SECONDS: Final = 5.0
"""For all requests to the API server about the rights of one caller."""


class ValidationThread:
    """Validates policies on top of the policies in force."""

    def __init__(
        self,
        make_in_force: Callable[[], Client],
        trials: Trials,
        evaluation_seconds: float,
        around: Callable[[], PolicySet | None],
    ) -> None:
        """``make_in_force`` gives a client with the policies in force, for one call only.

        ``around`` gives the whole set of policies in force, beyond templates and constraints.
        """
        self._around = around
        self._make_in_force = make_in_force
        self._trials = trials
        self._seconds = evaluation_seconds
        self._thread = BoundedThread("validate", waiting_max=WAITING_MAX)

    def validate(self, body: bytes, *, with_effect: bool) -> Future[Json]:
        """Validate policies, and count the violations of synced objects that they change."""
        # Imported here: few replicas validate for pipelines.
        from webhook.trials.validated import validated  # noqa: PLC0415

        try:
            return self._thread.submit(
                lambda: validated(
                    self._make_in_force,
                    read_policies(body),
                    self._seconds,
                    self._trials,
                    around=self._around(),
                    with_effect=with_effect,
                ),
                ANSWER_SECONDS,
            )
        except queue.Full:
            raise PoliciesRefused(429, "other policies are being validated: try later") from None

    def stop(self) -> None:
        """Validate nothing more."""
        self._thread.stop()


class CertifiedCallers:
    """Trusts every caller of a port that demands client certificates."""

    def ask(self, token: str) -> Future[Access]:
        """Grants access to any caller."""
        del token
        access: Future[Access] = Future()
        access.set_result(Access(200, reads=True))
        return access


class ClusterRights:
    """Checks the rights of users at the API server."""

    def __init__(self, cluster: ClusterThread) -> None:
        self._cluster = cluster

    def lacking(
        self, user: Mapping[str, Any], rights: Sequence[Json], seconds: float
    ) -> Future[AccessAnswer]:
        """Returns the rights that a user lacks; any thread may call it."""
        future = self._cluster.ask(lambda client: self._lacking(client, user, rights, seconds))
        if future.done() and (error := future.exception()) is not None:
            future = Future()
            future.set_result(AccessAnswer(fault=str(error)))
        return future

    async def _lacking(
        self, client: ClusterClient, user: Mapping[str, Any], rights: Sequence[Json], seconds: float
    ) -> AccessAnswer:
        try:
            async with asyncio.timeout(seconds):
                for number, right in enumerate(rights):
                    if not await authorization.may(client, user, right):
                        return AccessAnswer(number)
        except (ApiError, ApiUnreachable, TimeoutError) as error:
            return AccessAnswer(fault=str(error) or "no answer in time")
        return AccessAnswer()


class ClusterCallers:
    """Access by the cluster's rules: the API server reviews tokens and rights."""

    def __init__(self, cluster: ClusterThread, serving: Serving) -> None:
        self._cluster = cluster
        self._serving = serving

    def ask(self, token: str) -> Future[Access]:
        """Returns the access of a caller with this token; called by any thread."""
        return self._cluster.ask(lambda client: self._ask(client, token))

    async def _ask(self, client: ClusterClient, token: str) -> Access:
        if not token:
            return Access(401, "a bearer token is needed")
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self._access(client, token)
        except (ApiError, ApiUnreachable, TimeoutError, UnknownKind) as error:
            why = str(error) or "no answer in time"
            return Access(
                503, f"the API server did not say who you are and which rights you have: {why}"
            )

    async def _access(self, client: ClusterClient, token: str) -> Access:
        user = await authorization.user_of(client, token)
        if user is None:
            return Access(401, "the bearer token is not valid")
        path = {"nonResourceAttributes": {"path": PATH, "verb": "post"}}
        if not await authorization.may(client, user, path):
            name = user["username"]
            return Access(
                403,
                f"{name} has no right to post to the path {PATH}: grant it by nonResourceURLs of RBAC",
            )
        return Access(200, reads=await authorization.may_list_all(client, user, self._kinds()))

    def _kinds(self) -> list[GroupVersionKind]:
        """Returns each kind that policies can read."""
        revision = self._serving.revision
        synced = () if revision is None else kinds_of(revision.snapshot.inventory)
        # Policies also see the Namespace of the reviewed object.
        return sorted({NAMESPACE, *synced})


def _hub(settings: ServeSettings, registry: Registry, log: Logger) -> Hub:
    """Makes the hub of connections, with its check of clients and of the API server's certificate."""
    hub = Hub(connection_limits(settings), registry, log)
    if settings.tls.client_ca_name:
        hub.peer_check = lambda transport: pairs.check_client_name(
            transport, settings.tls.client_cn_name
        )
    if settings.tls.api_server_ca_file:
        hub.is_known = lambda transport: (
            pairs.check_client_name(transport, settings.tls.client_cn_name) is None
        )
    return hub


class AdmissionPort:
    """The port with everything behind it; its listener runs on the process's own event loop."""

    def __init__(  # noqa: PLR0913  # the parts that it joins, each named
        self,
        settings: ServeSettings,
        bound: socket.socket,
        serving: Serving,
        certificate: CertificateLoader,
        *,
        cluster: ClusterThread | None,
        decisions: DecisionLog | None,
        providers: ProviderRequests | None = None,
        make_plain_client: Callable[[], Client],
        trials: Trials,
        registry: Registry,
        log: Logger,
        tracing: Tracing | None = None,
    ) -> None:
        self._registry = registry
        self._hub = _hub(settings, registry, log)
        self._serving = serving
        self._make_plain_client = make_plain_client
        self._providers = providers
        self._trials = trials
        self._validation: ValidationThread | None = None
        self._compilation = self._compile_thread(settings, cluster)
        seconds = settings.deciding.evaluation_budget_seconds
        self._log = log
        self._series_max = settings.logging.max_constraint_series
        guard = serving.guard
        guard.notify = self._notify
        times, memory = ProcessorTime(), Memory()
        times.places_of = partial(places_of, hub=self._hub)
        self._hub.queue.take_beside = times.take_beside
        self._memo = _memo(settings, registry, log)
        self._kept = None if self._memo is None else self._memo.memo
        self._slow_reviews = SlowReviews(seconds, guard, times, ReviewMemory(lambda: memory.taken))
        self._application = self._make_application(
            settings, cluster, decisions, tracing, times, memory
        )
        self.listener = Listener(
            self._hub,
            self._application,
            bound,
            tls=certificate.context.listening,
            grace_seconds=settings.serving.shutdown_grace_seconds,
            measures_lag=True,
        )

    def _make_application(  # the parts that it joins, each named
        self,
        settings: ServeSettings,
        cluster: ClusterThread | None,
        decisions: DecisionLog | None,
        tracing: Tracing | None,
        times: ProcessorTime,
        memory: Memory,
    ) -> AdmissionApplication:
        """Makes the application that answers requests: admission, mutation if on, and validation."""
        registry, log, serving = self._registry, self._log, self._serving
        seconds = min(settings.deciding.evaluation_budget_seconds, FAST_SECONDS)
        budget = Budget.of(seconds, guard=serving.guard, deferrable=True)
        blames = not blames_nobody(settings, os.environ)
        preparations = self._preparations(cluster)
        recorder = None if decisions is None else decisions.recorder
        admission = Admission(
            serving,
            replace(admission_options(settings), budget=budget, blames=blames, memo=self._kept),
            registry,
            log,
            recorder_of(cluster, decisions),
            preparations,
            current=None if tracing is None else tracing.current,
            times=times,
        )
        mutation = None
        if settings.mutates:
            serving.fights.limit = settings.deciding.mutation_fights_per_hour
            options = replace(mutation_options(settings), budget=budget, blames=blames)
            mutation = Mutation(
                serving, options, registry, log, preparations, recorder, times=times
            )
        return make_application(
            admission,
            Exemptions(
                settings.deciding.exempt_namespace,
                settings.deciding.exempt_namespace_prefix,
                settings.deciding.exempt_namespace_suffix,
            ),
            registry,
            log,
            decoding=Decoding(
                body_max=settings.limits.max_body_bytes,
                memory=memory,
                begin=compute_beside,
                give_back=heap.give_back,
                times=times,
                rests_of=self._slow_reviews.rests_of,
            ),
            parts={f"/v1/admit/{policy}": admission.part(policy) for policy in FAILURE_POLICIES},
            mutate=mutation,
            answer_unmutated=None if mutation is None else mutation.answer_unread,
            validation=self._validation_endpoint(settings, cluster),
            recorder=recorder,
            answer_unread=admission.answer_unread,
            tracing=tracing,
        )

    def _preparations(self, cluster: ClusterThread | None) -> Preparations:
        """Returns the parts that a review may wait for."""
        rights = None if cluster is None else ClusterRights(cluster)
        return Preparations(cluster, self._compilation, self._slow_reviews, self._providers, rights)

    def _compile_thread(
        self, settings: ServeSettings, cluster: ClusterThread | None
    ) -> CompileThread | None:
        """Makes the thread that compiles templates under admission, if configured."""
        if settings.deciding.validate_templates != "compile":
            return None
        return CompileThread(
            self._in_force,
            self._trials,
            settings.deciding.evaluation_budget_seconds,
            *([] if cluster is None else [cluster.template]),
        )

    def _in_force(self) -> Client:
        """Returns a client with the policies in force, to try further policies on."""
        client, revision = self._make_plain_client(), self._serving.revision
        if revision is not None:
            client.adopt(revision.snapshot)
        return client

    def _policies_in_force(self) -> PolicySet | None:
        revision = self._serving.revision
        return None if revision is None else revision.policies

    def _validation_endpoint(
        self, settings: ServeSettings, cluster: ClusterThread | None
    ) -> ValidationEndpoint | None:
        """Makes the endpoint that validates policies for pipelines, if configured."""
        if not settings.deciding.enable_validate_policy:
            return None
        # Imported here: an unused module would cost memory and start-up time.

        callers: Callers = CertifiedCallers()
        if not settings.tls.client_ca_name:
            assert cluster is not None  # The settings were checked.
            callers = ClusterCallers(cluster, self._serving)
        seconds = settings.deciding.evaluation_budget_seconds
        self._validation = ValidationThread(
            self._in_force, self._trials, seconds, self._policies_in_force
        )
        return ValidationEndpoint(self._validation, callers, self._registry, self._log)

    def stop_compiling(self) -> None:
        """Stops the threads beside admission's: for templates being admitted, and for slow reviews."""
        if self._validation is not None:
            self._validation.stop()
        self._application.stop()
        self._slow_reviews.stop()
        if self._memo is not None:
            self._memo.stop()
        if self._compilation is not None:
            self._compilation.stop()

    def stalled(self) -> str:
        """Why the admission thread is taken for hanging, or an empty text; any thread may ask."""
        seconds = self.listener.seconds_since_tick
        if seconds < STALLED_SECONDS:
            return ""
        return f"no answer for {seconds:.0f} s"

    def faults(self) -> tuple[str, ...]:
        """Returns that requests wait for the admission thread, and why; any thread may ask."""
        late = self.listener.late_timers
        if late < LATE_TIMERS:
            return ()
        fault = (
            f"the admission thread was held up for over {LATE_SECONDS:g} s {late} times within a "
            "minute, and every request waited as long: too little CPU (remove the container's CPU "
            "limit, or add replicas), or slow policies (waddle_slow_reviews_total)"
        )
        return (fault,)

    def refresh(self) -> None:
        """Bring the port's gauges up to date for a scrape."""
        registry, hub = self._registry, self._hub
        registry.set(IN_FLIGHT, hub.in_flight)
        registry.set(WAITING_BYTES, hub.waiting_bytes)
        registry.set(CONNECTIONS, len(hub.connections))
        registry.set(HANDSHAKES, len(hub.handshakes))
        if self._memo is not None:
            self._memo.refresh()
        guard, revision = self._serving.guard, self._serving.revision
        if revision is not None and guard.breakers:
            guard.keep(constraint.key for constraint in revision.snapshot.constraints)
        suspended = [key for key, view in guard.views().items() if view.state != "closed"]
        fighting = sorted(self._serving.fights.going_on(time.monotonic()))
        registry.replace(
            MUTATORS_FIGHTING, {tuple(item): 1.0 for item in fighting[: self._series_max]}
        )
        registry.replace(BREAKERS, dict.fromkeys(sorted(suspended)[: self._series_max], 1.0))

    def _notify(self, breaker: BreakerView) -> None:
        """Logs a change of a breaker."""
        self._log.warning(
            _CHANGES[breaker.state],
            constraint_kind=breaker.kind,
            constraint_name=breaker.name,
            breaker=breaker.state,
            **({"username": breaker.requester} if breaker.requester else {}),
            overruns=breaker.overruns,
            error=breaker.message,
        )


def recorder_of(cluster: ClusterThread | None, decisions: DecisionLog | None) -> Recorder | None:
    """Returns the recorder of decisions, for reports, Events and the decision log.

    None without any.
    """
    recorder: Recorder | None = None if decisions is None else decisions.recorder
    parts = () if cluster is None else (cluster.events, cluster.reports)
    listeners = [part.note for part in parts if part is not None]
    return ListenedRecorder(listeners, recorder) if listeners else recorder


def _memo(settings: ServeSettings, registry: Registry, log: Logger) -> AdmissionMemo | None:
    """Makes the memo, if configured."""
    if not settings.policies.memo_bytes:
        return None
    # Imported here: without the memo it would cost memory and start-up time.
    from webhook.app.memo import AdmissionMemo  # noqa: PLC0415

    return AdmissionMemo(settings.policies.memo_bytes, registry, log)


def connection_limits(settings: ServeSettings) -> ConnectionLimits:
    """Returns the admission port's limits as set."""
    return ConnectionLimits(
        connections_max=settings.limits.max_connections,
        header_bytes_max=settings.limits.max_header_bytes,
        body_bytes_max=settings.limits.max_body_bytes,
        waiting_bytes_max=settings.limits.max_waiting_bytes,
        in_flight_max=settings.limits.max_in_flight,
        handshake_timeout_seconds=settings.limits.handshake_timeout_seconds,
        header_timeout_seconds=settings.limits.header_timeout_seconds,
        body_timeout_seconds=settings.limits.body_timeout_seconds,
        idle_timeout_seconds=settings.limits.idle_timeout_seconds,
    )


def _own_users(settings: ServeSettings) -> frozenset[str]:
    """Returns the users that are this webhook."""
    # Without a cluster our namespace is unknown, so both products' default namespaces are used.
    namespaces = [settings.pod.namespace] if settings.pod.namespace else list(OWN_NAMESPACES)
    return frozenset(
        f"system:serviceaccount:{namespace}:{account}"
        for namespace in namespaces
        for account in {*_ACCOUNTS, settings.pod.service_account} - {""}
    )


def mutation_options(settings: ServeSettings) -> MutationOptions:
    """Returns the configured options of mutation."""
    return MutationOptions(
        review_timeout_seconds=settings.limits.review_timeout_seconds,
        on_error="reject" if settings.deciding.mutation_on_error == "reject" else "skip",
        annotations=settings.deciding.mutation_annotations,
        log_mutations=settings.logging.log_mutations,
        own_users=_own_users(settings),
    )


def admission_options(settings: ServeSettings) -> AdmissionOptions:
    """Returns the configured options of admission."""
    return AdmissionOptions(
        review_timeout_seconds=settings.limits.review_timeout_seconds,
        logged=ReviewLogOptions(log_denies=settings.logging.log_denies),
        any_action=settings.deciding.disable_enforcementaction_validation,
        expands=settings.deciding.enable_generator_resource_expansion,
        exceptions_longest_seconds=settings.policies.exceptions_longest_seconds,
        mutation_on_error=mutation_options(settings).on_error,
        own_users=_own_users(settings),
    )


OWN_NAMESPACES: Final = ("waddle-system", "gatekeeper-system")
"""The default namespaces of both products, used if the namespace is unknown without a cluster."""

SYSTEM: Final = "kube-system"
"""The namespace of a cluster's own components, which the cluster needs."""


def isolation(settings: ServeSettings) -> Isolation:
    """Returns the choices as set."""
    own_namespaces = (settings.pod.namespace,) if settings.pod.namespace else OWN_NAMESPACES
    return Isolation(
        on_error=cast("OnError", settings.deciding.on_error),
        on_undecidable=cast("OnUndecidable", settings.deciding.on_undecidable),
        error_is_violation=settings.deciding.evaluation_errors == "violation",
        spared_namespaces=frozenset((*own_namespaces, SYSTEM)),
    )
