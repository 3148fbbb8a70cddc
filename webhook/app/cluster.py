"""The thread that follows a cluster: watches, controllers and the replica's own writes.

It has an event loop of its own, so that compiling a template or reading a list never delays an
admission. Its results are whole revisions. Its state is published as texts and numbers that are
replaced as a whole.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Final, TypeVar

from webhook.api.pod_status import Pod
from webhook.api.resource import Resource
from webhook.app.certificate_options import kept_certificate
from webhook.app.loop_thread import LoopThread
from webhook.app.priority import give_precedence, stand_behind
from webhook.backoff import Backoff
from webhook.cluster.client import ClusterClient
from webhook.cluster.clock import ClockComparison
from webhook.cluster.credentials import load_credentials
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import PODS
from webhook.controllers.follow.following import Following
from webhook.controllers.follow.unserved import log_unserved
from webhook.controllers.generate import GenerationOptions
from webhook.generation.plan import Options
from webhook.generation.scope import exempted_patterns
from webhook.metrics.cluster import CLOCK_SKEW, CLUSTER_FAULTS
from webhook.metrics.server import CERTIFICATE_FAULTS
from webhook.policy_kinds.known import GROUPS, TEMPLATE
from webhook.serving.revision import NamespaceAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from webhook.api.shapes import Json
    from webhook.audit.admission_policies import AdmissionPolicyReader
    from webhook.certificates.loader import CertificateLoader
    from webhook.constraint.client import Client
    from webhook.controllers.apply.prevalidation import Trier
    from webhook.controllers.rules_keeper import RuleOptions
    from webhook.controllers.status.rollout_keeper import RecordEvent
    from webhook.events.admissions import AdmissionEvents
    from webhook.external_data.exchange import AskAsync
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.reports.feed import AdmissionReports
    from webhook.serving.revision import Serving
    from webhook.settings.serve import ServeSettings


async def uid_of_pod(
    client: ClusterClient, name: str, namespace: str, failed: Callable[[str], None]
) -> str:
    """Returns the UID of a Pod; tries until it is known.

    ``failed`` gets the reason of each failed attempt.
    """
    backoff = Backoff()
    while True:
        try:
            pod = await client.get(PODS, name, namespace)
        except (ApiError, ApiUnreachable) as error:
            failed(str(error))
            await asyncio.sleep(backoff.next_seconds())
        else:
            uid: str = pod["metadata"]["uid"]
            return uid


AnswerT = TypeVar("AnswerT")

TEMPLATE_SECONDS: Final = 2.0
"""The time limit of reading one template: twice the Kubernetes objective for 99 of 100 requests
about one object. The caller waits as long again for this thread's turn, and no longer."""

_TEMPLATES: Final = Resource(TEMPLATE, "constrainttemplates", namespaced=False)


def generation_options(settings: ServeSettings) -> GenerationOptions:
    """Returns the options of generated policies by the flags."""
    return GenerationOptions(
        Options(
            settings.generation.default_create_vap_for_templates,
            settings.generation.default_create_vap_binding_for_constraints,
            alone=settings.generation.vap_generation_mode == "constraint",
            fails=settings.deciding.default_k8s_native_validation_failure_policy == "Fail",
        ),
        wait_seconds=settings.generation.default_wait_for_vapb_generation,
        synced=settings.generation.sync_vap_enforcement_scope,
        configuration=settings.tls.validating_webhook_configuration_name,
        exempted=exempted_patterns(
            settings.deciding.exempt_namespace,
            settings.deciding.exempt_namespace_prefix,
            settings.deciding.exempt_namespace_suffix,
        ),
    )


def rule_options(settings: ServeSettings) -> RuleOptions | None:
    """Returns the options of rules that follow policies; None for rules that stay as applied."""
    if settings.policies.webhook_rules != "policies" or not settings.serves_admission:
        return None
    # Imported here: an unused module would cost memory and start-up time.
    from webhook.controllers.rules_keeper import RuleOptions  # noqa: PLC0415

    return RuleOptions(
        settings.tls.validating_webhook_configuration_name,
        settings.tls.mutating_webhook_configuration_name if settings.mutates else "",
        sorted(GROUPS),
    )


class ClusterThread:
    """Follows a cluster from :meth:`start` to :meth:`stop`."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        settings: ServeSettings,
        make_client: Callable[[], Client],
        serving: Serving,
        registry: Registry,
        log: Logger,
        certificate: CertificateLoader | None,
        *,
        record: RecordEvent,
        trier: Trier,
        ask: AskAsync | None = None,
    ) -> None:
        """Reads the credentials; raises :class:`~webhook.cluster.credentials.CredentialsError`.

        ``make_client`` gives an empty client for each new session; ``record`` writes events to the
        decision log; ``trier`` tries new policies; ``ask`` calls providers.
        """
        self._ask_providers = ask
        self._record = record
        self._trier = trier
        self._settings = settings
        self._make_client = make_client
        self._serving = serving
        self._registry = registry
        self._log = log
        self._credentials = load_credentials(settings.policies.kubeconfig or None, log=log)
        self._certificate = kept_certificate(settings, certificate, log)
        self.reports = self._admission_reports()
        """Writes reports of admitted resources, if configured."""
        self._admission_policies = self._admission_policy_reader()
        self.events = self._admission_events()
        """Writes Events of admissions, if configured."""
        self._state = "policies are not loaded yet"
        self._faults: tuple[str, ...] = ()
        self._following: Following | None = None
        self._clock = ClockComparison()
        self._stands_behind = False
        # At start no request is answered yet, and readiness waits for policies.
        self._thread = LoopThread("cluster", self._follow_forever, give_precedence)

    def _admission_reports(self) -> AdmissionReports | None:
        settings = self._settings
        if not settings.reports.enabled or not settings.serves_admission:
            return None
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.app.priority import give_way  # noqa: PLC0415
        from webhook.audit.reviewer import AuditLimits  # noqa: PLC0415
        from webhook.reports.feed import AdmissionReports  # noqa: PLC0415

        limits = AuditLimits(
            settings.limits.review_timeout_seconds,
            settings.deciding.evaluation_budget_seconds,
            rest=give_way,
        )
        return AdmissionReports(
            settings.reports,
            self._serving,
            limits,
            self._registry,
            self._log,
            self._ask_providers,
        )

    def _admission_policy_reader(self) -> AdmissionPolicyReader | None:
        """Makes the reader of the API server's own policies, if audit or reports use them."""
        settings = self._settings
        reviews = "audit" in settings.policies.operation or settings.reports.enabled
        if settings.policies.admission_policies != "audit" or not reviews:
            return None
        # Only if they are on: it brings CEL.
        from webhook.audit.admission_policies import (  # noqa: PLC0415
            READ_SECONDS,
            AdmissionPolicyReader,
        )

        seconds = min(READ_SECONDS, max(1.0, float(settings.audit.interval_seconds)))
        return AdmissionPolicyReader(
            self._serving,
            self._registry,
            self._log,
            seconds,
            mutating=settings.reports.mutation_drift,
        )

    def _admission_events(self) -> AdmissionEvents | None:
        settings = self._settings
        if not settings.logging.emit_admission_events or not settings.serves_admission:
            return None
        # Only if they are on, as above.
        from webhook.events.admissions import AdmissionEvents  # noqa: PLC0415

        return AdmissionEvents(
            settings.pod.namespace,
            self._registry,
            self._log,
            in_involved_namespace=settings.logging.admission_events_involved_namespace,
        )

    def not_ready(self) -> str:
        """Returns why nothing can be served yet, or an empty text; any thread may call it."""
        return self._state

    def faults(self) -> tuple[str, ...]:
        """Returns the faults of policies, watches, clock and certificate; any thread may ask."""
        clock = (self._clock.fault,) if self._clock.is_wrong else ()
        return (*clock, *self._faults, *self._certificate_faults())

    def refresh(self) -> None:
        """Brings gauges up to date for a scrape; any thread may call it."""
        self._registry.set(CLOCK_SKEW, self._clock.skew_seconds)
        if self._certificate is not None:
            self._registry.set(CERTIFICATE_FAULTS, len(self._certificate_faults()))

    def _certificate_faults(self) -> tuple[str, ...]:
        return () if self._certificate is None else self._certificate.faults()

    def audited(self, results: Mapping[tuple[str, str], Json | None]) -> None:
        """Takes the results of this audit's share; any thread may call it."""
        following, loop = self._following, self._thread.loop
        if following is not None and loop is not None:
            loop.call_soon_threadsafe(following.audited, results)

    def read(self, name: str, seconds: float) -> Future[NamespaceAnswer]:
        """Reads a Namespace that the watch has not delivered yet; any thread may call it."""
        following, loop = self._following, self._thread.loop
        if following is None or loop is None:
            answer: Future[NamespaceAnswer] = Future()
            answer.set_result(NamespaceAnswer(None, "the cluster is not followed: see the log"))
            return answer
        return asyncio.run_coroutine_threadsafe(following.read_namespace(name, seconds), loop)

    def template(self, name: str) -> Mapping[str, Any] | None:
        """Returns the current template from the API server.

        None if absent, or if the request fails.

        For other threads, which wait for it.
        """
        future = self.ask(lambda client: _template(client, name))
        try:
            return future.result(2 * TEMPLATE_SECONDS)
        except (ApiError, ApiUnreachable, TimeoutError, CancelledError) as error:
            if not (isinstance(error, ApiError) and error.is_absent):
                why = str(error) or "no answer in time"
                self._log.warning(
                    "a template cannot be read from the API server", template=name, error=why
                )
            return None

    def ask(
        self, question: Callable[[ClusterClient], Coroutine[Any, Any, AnswerT]]
    ) -> Future[AnswerT]:
        """Ask the API server something; any thread may. The error is an ApiUnreachable."""
        following, loop = self._following, self._thread.loop
        if following is None or loop is None:
            answer: Future[AnswerT] = Future()
            answer.set_exception(ApiUnreachable("the cluster is not followed: see the log"))
            return answer
        return asyncio.run_coroutine_threadsafe(question(following.client), loop)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Leaves the watches, and waits a moment for the thread."""
        self._thread.stop()

    async def _follow_forever(self) -> None:
        """Follows the cluster; after a bug begins anew, while the policies in force stay."""
        backoff = Backoff(initial_seconds=1.0)
        while True:
            try:
                await self._follow()
            except Exception as error:  # noqa: BLE001  # the thread's boundary: its end is not silent
                self._registry.count(CLUSTER_FAULTS)
                self._faults = (f"internal error: {type(error).__name__}", *self._faults)
                self._log.fault("bug: watching the cluster stopped; it starts again", error)
            await asyncio.sleep(backoff.next_seconds())

    async def _follow(self) -> None:
        client = ClusterClient(
            self._credentials,
            replica=self._settings.pod.name,
            log=self._log,
            keep_history=self._settings.policies.keep_writers_history,
            clock=self._clock,
        )
        async with client, asyncio.TaskGroup() as tasks:

            def keep_up(
                part: str, run: Callable[[ClusterClient], Coroutine[Any, Any, None]]
            ) -> None:
                tasks.create_task(
                    run_whatever_happens(part, lambda: run(client), self._registry, self._log)
                )

            if self._certificate is not None:
                keep_up("certificate", self._certificate.run)
            if self.reports is not None:
                keep_up("reports", self.reports.run)
            if self._admission_policies is not None:
                keep_up("admission policies", self._admission_policies.run)
            keep_up("unserved kinds", self._log_unserved)
            if self.events is not None:
                keep_up("events", self.events.run)
            tasks.create_task(self._follow_policies(client))

    async def _log_unserved(self, client: ClusterClient) -> None:
        await log_unserved(
            client,
            self._registry,
            self._log,
            external_data=self._settings.deciding.enable_external_data,
        )

    async def _follow_policies(self, client: ClusterClient) -> None:
        following = Following(
            client,
            await self._own_pod(client),
            self._make_client(),
            self._serving,
            operations=frozenset(self._settings.policies.operation),
            wait_for_broken=self._settings.policies.readiness_retries != 0,
            kept_revisions=self._settings.policies.kept_revisions,
            key_secret=self._settings.policies.revision_key_secret_name,
            registry=self._registry,
            log=self._log,
            notify=self._notify,
            record=self._record,
            certificate_writes=None if self._certificate is None else self._certificate.writes,
            generation=generation_options(self._settings),
            exceptions_keep_seconds=self._settings.policies.exceptions_keep_seconds,
            external_data=self._settings.deciding.enable_external_data,
            kyverno=self._settings.policies.kyverno_policies,
            reports_not_asked=self._settings.policies.tell_not_asked,
            rules=rule_options(self._settings),
            trier=self._trier,
            projects=self._settings.projects_synced,
        )
        self._following = following
        try:
            await following.run()
        finally:
            self._following = None

    async def _own_pod(self, client: ClusterClient) -> Pod:
        """Returns our Pod; read once if the environment does not have its UID."""

        def failed(error: str) -> None:
            self._state = f"waiting for our own Pod, to learn its UID: {error}"
            self._log.warning("this replica's Pod cannot be read; trying again", error=error)

        name, namespace = self._settings.pod.name, self._settings.pod.namespace
        uid = self._settings.pod.uid or await uid_of_pod(client, name, namespace, failed)
        return Pod(name, namespace, uid, self._settings.operations_carried_out)

    def _notify(self, state: str, faults: tuple[str, ...]) -> None:
        self._state, self._faults = state, faults
        if self._serving.revision is not None and not self._stands_behind:
            self._stands_behind = True
            stand_behind()


async def run_whatever_happens(
    part: str,
    run: Callable[[], Coroutine[Any, Any, None]],
    registry: Registry,
    log: Logger,
    first_pause_seconds: float = 1.0,
) -> None:
    """Runs a part beside the policies: a bug restarts that part, and ends nothing else."""
    backoff = Backoff(initial_seconds=first_pause_seconds)
    while True:
        try:
            return await run()
        except Exception as error:  # noqa: BLE001  # the part's boundary: counted and logged
            registry.count(CLUSTER_FAULTS)
            log.fault(f"bug: {part} ended; it begins anew", error)
        await asyncio.sleep(backoff.next_seconds())


async def _template(client: ClusterClient, name: str) -> Mapping[str, Any]:
    async with asyncio.timeout(TEMPLATE_SECONDS):
        return client.kept(await client.get(_TEMPLATES, name))
