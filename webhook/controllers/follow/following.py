"""One session at a cluster: watched policies are put in force and reported in statuses.

All parts run on one event loop. Each part decides by itself; this module connects them and gives
each its turn.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import CRDS, NAMESPACE, NAMESPACES
from webhook.cluster.reflector import Settings
from webhook.constraint import constraint
from webhook.controllers.apply.constraint_crds import SELECTION, SchemaSharing, overlay_crd
from webhook.controllers.apply.expression_keeper import ExpressionKeeper
from webhook.controllers.apply.prevalidation import Prevalidation, Trier
from webhook.controllers.apply.publication import ClusterPolicies
from webhook.controllers.follow.crd_waits import CrdWaits, why_not_established
from webhook.controllers.follow.discovery import ClusterDiscovery
from webhook.controllers.follow.watch_metrics import WatchMetrics
from webhook.controllers.generate.keeper import GenerationKeeper
from webhook.controllers.object_faults import ObjectFaults, PolicyKey
from webhook.controllers.object_writer import ObjectWriter
from webhook.controllers.revisions.keeper import REVISIONS, RevisionKeeper
from webhook.controllers.revisions.keys import RevisionKeys
from webhook.controllers.revisions.outcome_records import OutcomeRecords
from webhook.controllers.revisions.rollout_copy_keeper import RolloutCopyKeeper
from webhook.controllers.revisions.rollout_records import RolloutRecords
from webhook.controllers.status.aggregation import Aggregation
from webhook.controllers.status.exception_keeper import ExceptionKeeper
from webhook.controllers.status.status_writers import StatusWriters
from webhook.controllers.status_kinds import subject_named
from webhook.metrics.policies import (
    POLICIES_NOT_NEWEST,
    POLICY_REVISIONS,
    POLICY_REVISIONS_IGNORED,
    POLICY_STATES,
)
from webhook.mutation import mutator
from webhook.policy_kinds.known import OPTIONAL_GROUPS, TEMPLATE, constraint_gvk
from webhook.policy_kinds.table import TEMPLATES
from webhook.replicas.pods import AUDIT_OPERATION, STATUS_OPERATION
from webhook.serving.revision import NamespaceAnswer, Serving
from webhook.watch.manager import Manager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Change, Key
    from webhook.constraint.client import Client
    from webhook.controllers.generate import GenerationOptions
    from webhook.controllers.generate.statuses import Statuses
    from webhook.controllers.rules_keeper import RuleOptions, RulesKeeper
    from webhook.controllers.status.rollout_keeper import RecordEvent
    from webhook.log import Logger
    from webhook.metrics.registry import Registry
    from webhook.watch.queue import Event
    from webhook.watch.registrar import Registrar

POLICY_SECONDS: Final = 0.003
"""How long a burst of policy changes is gathered into one revision."""

DATA_SECONDS: Final = 0.05
"""How long changes of referential data are gathered, in seconds: they are frequent, less urgent."""

BURST_SECONDS: Final = 0.05
"""A change after a longer pause than this does not belong to a burst, and is taken at once."""

TURN_SECONDS: Final = 0.1
"""How long changes are applied before the event loop continues: its watches must be read."""

TICK_SECONDS: Final = 0.5
"""How often the probes' text and the metrics are updated."""

ABSENT_SECONDS: Final = 10.0
"""How long a kind that the API server does not serve is awaited: the API server may be starting."""

OPTIONAL_ABSENT_SECONDS: Final = 1.0
"""The time, in seconds, that a kind is awaited of which many a cluster has no CRD: mutators and
ExpansionTemplates."""

NO_TEMPLATES: Final = (
    "the API server serves no ConstraintTemplate, so no template is enforced: apply manifests/crds, then "
    "the policies"
)

WAKE_SECONDS: Final = (0.03, 0.1, 0.25, 0.5)
"""After a CRD's change its watch is tried again: the API server announces a CRD as established,
then makes its storage (which it answers with 404, or 429 and a second's wait), within 0.1 s."""

KINDS_SHOWN: Final = 5
"""The most kinds that readiness names."""

GIVE_RIGHTS: Final = "give this account the right, as the manifests do"
ASK_API_SERVER: Final = "ask the API server what it lacks: kubectl get --raw '/readyz?verbose'"

WATCHES: Final = Settings(missing_seconds=1.0)
"""A constraint kind's watch begins when its CRD is established. Its storage follows within a
moment, so a missing kind is tried again within a second."""


class Following:
    """One session at the cluster: all parts that run on the thread's loop."""

    _announced: frozenset[Key] = frozenset()
    _aggregation: Aggregation | None = None
    _exceptions: ExceptionKeeper | None = None
    _records: OutcomeRecords | None = None
    _prevalidation: Prevalidation | None = None
    _generation: GenerationKeeper | None = None
    _expressions: ExpressionKeeper | None = None
    _rules: RulesKeeper | None = None
    _crds_moved = True
    """Whether constraint CRDs, current or desired, may have changed since the last look."""

    def __init__(  # noqa: PLR0913  # the seams of the thread, each named
        self,
        client: ClusterClient,
        pod: Pod,
        policy_client: Client,
        serving: Serving,
        *,
        operations: frozenset[str],
        wait_for_broken: bool,
        kept_revisions: int,
        key_secret: str,
        registry: Registry,
        log: Logger,
        notify: Callable[[str, tuple[str, ...]], None],
        record: RecordEvent,
        certificate_writes: Callable[[], tuple[int, int]] | None,
        generation: GenerationOptions,
        exceptions_keep_seconds: float = 0.0,
        external_data: bool = True,
        kyverno: str = "off",
        reports_not_asked: bool = True,
        rules: RuleOptions | None = None,
        trier: Trier | None = None,
        tick_seconds: float = TICK_SECONDS,
        projects: bool = False,
    ) -> None:
        """``notify`` takes the reason why the replica is not ready, and the faults.

        ``key_secret`` names the Secret with the keys that sign kept revisions. ``rules`` names the
        webhook configurations whose rules follow policies. ``certificate_writes`` counts the writes
        of certificates to Secret and configuration. ``trier`` tries new policies before they are
        enforced. With ``projects`` only the fields of synced objects that templates read are kept.
        """
        self._notify, self._tick_seconds, self._is_gone = notify, tick_seconds, False
        self._certificate_writes = certificate_writes
        self._registry, self._log, self.client, self._serving = registry, log, client, serving
        self._external_data, self._kyverno = external_data, kyverno
        self._projects, self._trier = projects, trier
        self._generates = "generate" in operations
        self._object_faults = ObjectFaults(log, registry)
        self._crds = self._crd_writer()
        writes = STATUS_OPERATION in operations
        self._keys = RevisionKeys(client, pod.namespace, key_secret, log, writes=writes)
        self._rollouts = RolloutRecords(self._keys, log, registry)
        self._manager = Manager(client, ClusterDiscovery(client, self._crds), settings=WATCHES)
        self._policy_watches, self._data_watches = map(self._manager.registrar, ("policy", "sync"))
        if writes:
            self._aggregation = self._make_aggregation(pod, record, has_webhooks=reports_not_asked)
        self._copies = self._make_copies(pod) if self._aggregation is not None else None
        self._revisions = self._make_revisions(pod, kept_revisions) if kept_revisions else None
        self._policies = self._make_policies(policy_client, serving, pod, waits=wait_for_broken)
        if operations & {STATUS_OPERATION, AUDIT_OPERATION}:
            self._keep_exceptions(pod, serving, exceptions_keep_seconds)
        self._try_before(policy_client, pod)
        self._generate(generation, pod, rules)
        self._writers = StatusWriters(client, pod, log, self._object_faults, self._keys.sign)
        self._keys.listeners.append(self._writers.sign_anew)
        self._waits, self._is_released = CrdWaits(time.monotonic), asyncio.Event()
        self._metrics = WatchMetrics(registry, client, self._manager)
        self._absent_since: dict[GroupVersionKind, float] = {}

    def _make_aggregation(
        self, pod: Pod, record: RecordEvent, *, has_webhooks: bool
    ) -> Aggregation:
        """Makes the writer of statuses that sum up all replicas.

        ``has_webhooks`` is whether any webhook configuration has the API server call Waddle.
        """
        aggregation = Aggregation(
            self.client,
            self._manager,
            pod,
            self._log,
            record=record,
            rollouts=self._rollouts,
            object_faults=self._object_faults,
            has_crd=self._has_crd,
        )
        if has_webhooks:
            aggregation.follow_configurations()
            if self._kyverno == "enforce":
                aggregation.judge_foreign(self._foreign_in_force, self._report_not_asked)
        self._keys.listeners.append(aggregation.touch_all)
        return aggregation

    def _foreign_in_force(self) -> Sequence[Mapping[str, Any]]:
        """Kyverno's policies by which admissions are decided."""
        revision = self._serving.revision
        return () if revision is None else revision.policies.foreign.enforced

    def _report_not_asked(self, reasons: Mapping[str, str]) -> None:
        """Reports the Kyverno policies for which the API server sends no requests."""
        self._policies.take_not_asked(reasons)

    def _make_copies(self, pod: Pod) -> RolloutCopyKeeper:
        """Makes the keeper of roll-out records in a Secret, out of reach of rights on statuses."""
        assert self._aggregation is not None
        writers = self._aggregation.writers
        faults = self._object_faults
        return RolloutCopyKeeper(self._keys, self._rollouts, pod, writers, self._log, faults)

    def _make_revisions(self, pod: Pod, limit: int) -> RevisionKeeper:
        """Makes the keeper of up to ``limit`` revisions of each object."""
        return RevisionKeeper(
            self.client,
            pod,
            self._keys,
            self._log,
            limit=limit,
            notify=self._revised,
            writers=None if self._aggregation is None else self._aggregation.writers,
            rollouts=self._rollouts,
            object_faults=self._object_faults,
        )

    def _make_policies(
        self, client: Client, serving: Serving, pod: Pod, *, waits: bool
    ) -> ClusterPolicies:
        """Makes the taker of policy events; with ``waits`` readiness waits for broken objects, too."""
        return ClusterPolicies(
            client,
            serving,
            pod,
            (self._policy_watches, self._data_watches),
            registry=self._registry,
            log=self._log,
            wait_for_broken=waits,
            revisions=None if self._revisions is None else self._revisions.known,
            object_faults=self._object_faults,
            external_data=self._external_data,
            kyverno=self._kyverno,
            projects=self._projects,
        )

    def _keep_exceptions(self, pod: Pod, serving: Serving, seconds: float) -> None:
        """Looks after exceptions; a standalone audit does so for the exceptions that it uses."""
        alone = frozenset({pod.uid})
        self._exceptions = ExceptionKeeper(
            self.client,
            self._manager,
            pod,
            self._log,
            self._registry,
            self._object_faults,
            facts=self._policies.exception_facts,
            uses=serving.uses,
            faults=lambda: self._policies.condition_faults,
            writers=self._aggregation.writers if self._aggregation else lambda: alone,
            keep_seconds=seconds,
        )

    def _crd_writer(self) -> ObjectWriter:
        """Makes the writer of the CRDs of constraints, which follows them, too."""
        return ObjectWriter(
            self.client,
            CRDS,
            SELECTION,
            overlay_crd,
            self._log,
            listener=self._crds_changed,
            object_faults=self._object_faults,
            transform=SchemaSharing(),
        )

    def _generate(self, options: GenerationOptions, pod: Pod, rules: RuleOptions | None) -> None:
        """Starts the keepers that follow policies in force.

        These are webhook rules, policies of the API server, and warnings about expressions.
        """
        self._keep_rules(pod, rules)
        if not self._generates:
            return
        self._generation = GenerationKeeper(
            self.client,
            options,
            lambda: self._crds.store,
            self._log,
            self._registry,
            self._object_faults,
            notify=self._generated,
        )
        self._expressions = ExpressionKeeper(
            self.client, self._log, notify=self._warned, object_faults=self._object_faults
        )

    def _keep_rules(self, pod: Pod, options: RuleOptions | None) -> None:
        """Keeps the rules of our webhook configurations in step with policies, if configured."""
        if options is None:
            return
        # Imported here: an unused module would cost memory and start-up time.
        from webhook.controllers.rules_keeper import RulesKeeper  # noqa: PLC0415

        self._rules = RulesKeeper(
            self.client,
            pod.namespace,
            options,
            self._log,
            self._registry,
            self._object_faults,
            is_behind=self._is_behind,
        )

    def _is_behind(self) -> bool:
        """Returns whether a watch is not up to date: policies may be missing."""
        statistics = self._manager.statistics().values()
        return any(kind.outdated or (kind.last_error and not kind.absent) for kind in statistics)

    def _try_before(self, policy_client: Client, pod: Pod) -> None:
        """Has new policies tried before they are enforced, if revisions and statuses are written."""
        if self._trier is None or self._revisions is None or self._aggregation is None:
            return
        self._records = OutcomeRecords(self.client, self._revisions, self._log)
        self._prevalidation = Prevalidation(
            policy_client,
            self._policies,
            pod,
            self._trier,
            revisions=self._revisions,
            records=self._records,
            writers=self._aggregation.writers,
            working=self._aggregation.working,
            release=self._released,
            object_faults=self._object_faults,
        )

    def audited(self, results: Mapping[tuple[str, str], Json | None]) -> None:
        """Publishes audit results in our statuses."""
        self._policies.policy.audited(results)
        self._publish()

    def _generated(self, statuses: Statuses) -> None:
        """Publishes the state of generated policies and bindings in our statuses."""
        self._policies.policy.take_generated(statuses)
        self._publish()

    def _warned(self, statuses: Statuses) -> None:
        """Publishes warnings about expressions in our statuses."""
        self._policies.policy.take_warnings(statuses)
        self._publish()

    async def read_namespace(self, name: str, seconds: float) -> NamespaceAnswer:
        """Returns a Namespace, known by now or read from the API server."""
        if (known := self._manager.get(NAMESPACE, "", name)) is not None:
            return NamespaceAnswer(known)
        try:
            async with asyncio.timeout(seconds):
                return NamespaceAnswer(self.client.kept(await self.client.get(NAMESPACES, name)))
        except ApiError as error:
            return NamespaceAnswer(None, "" if error.is_absent else str(error))
        except (ApiUnreachable, TimeoutError) as error:
            return NamespaceAnswer(None, str(error) or "no answer in time")

    async def run(self) -> None:
        """Follows until cancelled."""
        reconciler = self._policies.reconciler
        reconciler.begin()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._crds.run())
            tasks.create_task(self._manager.run())
            tasks.create_task(self._writers.run())
            if self._aggregation is not None:
                tasks.create_task(self._aggregation.run())
            if self._copies is not None:
                tasks.create_task(self._copies.run())
            if self._generation is not None:
                tasks.create_task(self._generation.run())
            if self._exceptions is not None:
                tasks.create_task(self._exceptions.run())
            if self._expressions is not None:
                tasks.create_task(self._expressions.run())
            if self._rules is not None:
                tasks.create_task(self._rules.run())
            tasks.create_task(self._tick_forever())
            if self._revisions is not None:
                tasks.create_task(self._revisions.run())
                await self._load_revisions(self._revisions)
            else:
                tasks.create_task(self._keys.run())
                await self._keys.load(_nobody)
            if self._prevalidation is not None:
                tasks.create_task(self._prevalidation.run())
                tasks.create_task(self._publish_released())
            tasks.create_task(self._take(self._policy_watches, self._take_policy, POLICY_SECONDS))
            tasks.create_task(self._take(self._data_watches, reconciler.take_data, DATA_SECONDS))

    async def _load_revisions(self, revisions: RevisionKeeper) -> None:
        """Loads kept revisions before any policy is applied, for policies that are broken now."""
        tracker, kind = self._policies.tracker, REVISIONS.gvk.kind
        tracker.track(kind)
        await revisions.wait_loaded(lambda error: tracker.fail(kind, "", error))
        tracker.expect(kind, ())

    def _revised(self, subjects: Iterable[PolicyKey]) -> None:
        """Applies objects again whose kept revisions changed, if they need one."""
        self._policies.revised(subjects)
        self._publish()

    async def _take(
        self, registrar: Registrar, take: Callable[[Event], None], seconds: float
    ) -> None:
        """Applies a registrar's events in batches, each published whole."""
        taken = -math.inf
        while True:
            await registrar.queue.wait()
            if not self._policies.is_serving:
                self._announce()
            if time.monotonic() - taken < BURST_SECONDS:
                await asyncio.sleep(seconds)
            until = time.monotonic() + TURN_SECONDS
            # One by one: an event may end a kind's watch, and with it drop queued events.
            while len(registrar.queue) and time.monotonic() < until:
                take(await registrar.next())
            self._publish()
            taken = time.monotonic()

    def _announce(self) -> None:
        """Announces waiting templates, so that another process compiles the last of them meanwhile."""
        if self._trier is None:
            return
        waiting = self._policy_watches.queue.waiting(TEMPLATE)
        new = {key: wait for key, wait in waiting.items() if key not in self._announced}
        self._announced |= new.keys()
        self._trier.trials.announce(new.values())

    def _take_policy(self, event: Event) -> None:
        """Applies a policy change, or holds it until it has been tried.

        The roll-out record that counts replaces the record in the object's status.
        """
        event = self._verified(event)
        if self._prevalidation is None or not self._prevalidation.holds(event):
            self._policies.reconciler.take_policy(event)

    def _verified(self, event: Event) -> Event:
        document = event.object
        is_staged = constraint.is_constraint(event.gvk) or event.gvk.group == mutator.GROUP
        if not is_staged or event.key is None:
            return event
        if document is None:
            self._rollouts.forget(event.gvk.kind, event.key.name)
            return event
        outcome = self._object_faults.attempt(
            "rollout", (event.gvk.kind, event.key.name), lambda: self._rollouts.verified(document)
        )
        if isinstance(outcome, Exception):
            outcome = {**document, "status": {}}
        return replace(event, object=dict(outcome))

    def _released(self, event: Event) -> None:
        """Applies a change whose outcome is known."""
        self._policies.reconciler.take_policy(self._verified(event))
        self._is_released.set()

    async def _publish_released(self) -> None:
        """Publishes released changes; a burst of them in batches, like other changes."""
        published = -math.inf
        while True:
            await self._is_released.wait()
            if time.monotonic() - published < BURST_SECONDS:
                await asyncio.sleep(POLICY_SECONDS)
            self._is_released.clear()
            self._publish()
            published = time.monotonic()

    def _publish(self) -> None:
        """Publishes the changes taken so far; only then writes statuses that report them."""
        if self._policies.publish():
            self._published()
        self._policies.log_in_force()

    def _published(self) -> None:
        policies = self._policies
        self._crds_moved = True
        self._writers.want(policies.statuses(), prune=policies.is_serving)
        self._registry.replace(POLICIES_NOT_NEWEST, policies.policy.not_newest)
        if self._generates:
            self._crds.want(policies.policy.crds, prune=False)
        if policies.is_serving:
            if self._generation is not None:
                self._generation.follow(
                    *policies.policy.enforced(), policies.data.excluded, policies.exceptions
                )
            if self._expressions is not None:
                self._expressions.follow(*policies.policy.enforced())
            if self._rules is not None and (revision := self._serving.revision) is not None:
                self._rules.follow(revision)
            if self._exceptions is not None:
                self._exceptions.follow(policies.constraints, policies.exceptions)
            if self._aggregation is not None:
                self._aggregation.touch_foreign()
        faults = policies.policy.take_generation_faults()
        if self._prevalidation is not None:
            self._prevalidation.report_faults(faults)
        if self._revisions is not None and policies.is_serving:
            self._revisions.keep(policies.take_good())
        if self._aggregation is not None:
            self._aggregation.follow(policies.policy.kinds)
        if policies.is_serving:
            self._notify(self._outdated(), self._faults())

    def _has_crd(self, template: str) -> bool:
        """Whether the API server has established the CRD of a template's constraints."""
        crd = self._crds.store.get("", f"{template}.{constraint.GROUP}")
        return not why_not_established(crd)

    def _crds_changed(self, changes: Iterable[Change]) -> None:
        """Begins or ends the watch of a constraint kind at once, after a change of its CRD."""
        self._crds_moved = True
        loop = asyncio.get_running_loop()
        for change in changes:
            gvk = constraint_gvk(change.object["spec"]["names"]["kind"])
            if self._aggregation is not None:
                subject = subject_named(TEMPLATE, gvk.kind.lower())
                self._aggregation.touch(subject)
            if change.kind == "delete":
                self._manager.restart(gvk)
            else:
                self._manager.wake(gvk)
                for seconds in WAKE_SECONDS:
                    loop.call_later(seconds, self._manager.wake, gvk)

    async def _tick_forever(self) -> None:
        while True:
            await asyncio.sleep(self._tick_seconds)
            self._settle_absent()
            policies = self._policies
            policies.take_violations()
            policies.take_breakers()
            policies.take_lost()
            if self._exceptions is not None:
                self._exceptions.take_uses()
            policies.take_fights()
            policies.retry()
            if self._crds.is_synced and (self._crds_moved or self._waits.is_waiting):
                self._crds_moved = False
                policies.policy.take_unestablished(
                    self._waits.look(policies.policy.crds, self._crds.store)
                )
            self._publish()
            policies.look_for_faults()
            self._notify(policies.awaited() or self._outdated(), self._faults())
            self._metrics.refresh(
                synced=policies.data.counts,
                kept=policies.data.kept,
                data_digest=policies.data.digest,
                writes=self._writes(),
                pruned=self._writers.pruned,
            )
            self._count_policies()
            policies.log_changes()

    def _faults(self) -> tuple[str, ...]:
        """Returns the faults of policies, and whether their kind is gone, which is logged once."""
        templates = self._manager.statistics().get(TEMPLATES.resource.gvk)
        was_gone, self._is_gone = self._is_gone, templates is not None and templates.absent
        if self._is_gone and not was_gone:
            self._log.error(NO_TEMPLATES)
        gone = (NO_TEMPLATES,) if self._is_gone else ()
        return (*self._unfollowed(), *self._policies.faults, *gone)

    def _unfollowed(self) -> tuple[str, ...]:
        """Returns which kinds cannot be followed at present, why, and what to do; empty for none."""
        failing = {
            str(gvk): item.last_error
            for gvk, item in self._manager.statistics().items()
            if item.last_error and not item.absent
        }
        if not failing:
            return ()
        kinds = sorted(failing)
        error = failing[kinds[0]]
        cure = GIVE_RIGHTS if error.startswith("403") else ASK_API_SERVER
        known = "and decides by what it last knew"
        return (f"this replica cannot follow {_shown(kinds)}, {known} ({error}): {cure}",)

    def _outdated(self) -> str:
        """Returns a text about kinds for which the API server has an older state than known.

        Empty for none.

        After a restore of etcd the policies in force belong to a history that no longer exists,
        until each kind has been listed anew.
        """
        statistics = self._manager.statistics()
        kinds = sorted(str(gvk) for gvk, item in statistics.items() if item.outdated)
        if not kinds:
            return ""
        return f"the API server is at an older version than before; listing anew: {_shown(kinds)}"

    def _count_policies(self) -> None:
        """Counts the policies by the state of all replicas, and the kept revisions."""
        registry = self._registry
        if self._aggregation is not None:
            registry.replace(POLICY_STATES, self._aggregation.conditions.counts)
        if self._revisions is not None:
            registry.set(POLICY_REVISIONS, self._revisions.count)
            registry.replace(POLICY_REVISIONS_IGNORED, self._revisions.known.ignored)

    def _writes(self) -> dict[str, tuple[int, int]]:
        """Returns the counts of writes and of failed writes, by kind of object written."""
        counts = {
            "status": (self._writers.writes, self._writers.failures),
            "crd": (self._crds.writes, self._crds.failures),
        }
        if self._aggregation is not None:
            counts["by_pod"] = (self._aggregation.writes, self._aggregation.failures)
            events = self._aggregation.conditions.events
            counts["event"] = (events.writes, events.failures)
        if self._generation is not None:
            counts["vap"] = self._generation.writes
        if self._exceptions is not None:
            keeper = self._exceptions.keeper
            counts["exception"] = keeper.writes, keeper.failures
        if self._revisions is not None:
            counts["revision"] = (self._revisions.keeper.writes, self._revisions.keeper.failures)
        if self._records is not None:
            writes, failures = counts["revision"]
            counts["revision"] = writes + self._records.writes, failures + self._records.failures
        counts["revision_key"] = self._keys.writes, self._keys.failures
        if self._copies is not None:
            copies = self._copies.keeper
            writes, failures = counts["revision_key"]
            counts["revision_key"] = writes + copies.writes, failures + copies.failures
        if self._certificate_writes is not None:
            counts["certificate"] = self._certificate_writes()
        return counts

    def _settle_absent(self) -> None:
        """Does not wait for lists of kinds that are not there.

        A constraint kind without a CRD has no constraints, for certain. Any
        other may be served in a moment, by an API server that is starting.
        """
        if self._policies.is_serving:
            return
        now = time.monotonic()
        reconciler = self._policies.reconciler
        if self._crds.is_synced:
            known = {crd["metadata"]["name"] for crd in self._crds.store}
            for gvk in reconciler.awaited_kinds:
                if f"{gvk.kind.lower()}.{gvk.group}" not in known:
                    reconciler.absent(gvk)
        for gvk, statistics in self._manager.statistics().items():
            if statistics.last_error:
                reconciler.trouble(gvk, statistics.last_error)
            if not statistics.absent or gvk.group == constraint.GROUP:
                self._absent_since.pop(gvk, None)
            elif now - self._absent_since.setdefault(gvk, now) > (
                OPTIONAL_ABSENT_SECONDS if gvk.group in OPTIONAL_GROUPS else ABSENT_SECONDS
            ):
                reconciler.absent(gvk)
        self._publish()


def _nobody(_: str) -> None:
    """Does nothing: the log has the message already."""


def _shown(kinds: Sequence[str]) -> str:
    """Returns the first kinds and the number of the others."""
    more = len(kinds) - KINDS_SHOWN
    return ", ".join(kinds[:KINDS_SHOWN]) + (f" and {more} more" if more > 0 else "")
