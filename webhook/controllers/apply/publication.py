"""Puts policies of a cluster into service: applies batches, publishes each whole, then reports readiness."""

from __future__ import annotations

import time
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from webhook.api import timestamp
from webhook.constraint.driver import lost_violations
from webhook.controllers.apply.extensions import ExtensionController
from webhook.controllers.apply.policies import PolicyController
from webhook.controllers.apply.projection import SyncProjection
from webhook.controllers.apply.reconciler import Reconciler
from webhook.controllers.apply.sync import SyncController, data_kind
from webhook.exceptions.state import ExceptionFacts
from webhook.metrics.mutation import EXPANSION_TEMPLATES, MUTATORS
from webhook.metrics.policies import KYVERNO, SNAPSHOT_REVISION, TEMPLATES
from webhook.metrics.providers import KNOWN_PROVIDERS
from webhook.metrics.registry import OTHER, Registry
from webhook.policy_kinds.known import kyverno_parts
from webhook.policy_kinds.table import (
    EXCEPTIONS,
    EXPANSIONS,
    KYVERNO_POLICIES,
    MUTATIONS,
    PROVIDERS,
)
from webhook.readiness import Tracker
from webhook.serving.in_force import gauge, gauge_extensions, settle
from webhook.serving.revision import ExceptionKey, Revision, Serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.client import Client
    from webhook.constraint.constraint import Constraint
    from webhook.constraint.snapshot import Snapshot
    from webhook.controllers.object_faults import ObjectFaults, PolicyKey
    from webhook.controllers.revisions.revisions import InForce, Revisions
    from webhook.exceptions.exception import PolicyException
    from webhook.exceptions.stage import Excusing
    from webhook.log import Logger
    from webhook.reads.read_set import ReadSet
    from webhook.watch.registrar import Registrar

SHOWN: Final = 20
"""Awaited objects that a probe or a log line shows."""

LOG_SECONDS: Final = 10.0
"""How often a replica that is not ready logs the reason."""

_COUNTED: Final = (
    (MUTATORS, MUTATIONS),
    (EXPANSION_TEMPLATES, EXPANSIONS),
    (KNOWN_PROVIDERS, PROVIDERS),
    (KYVERNO, KYVERNO_POLICIES),
)
"""The gauges that count the objects of each part."""


class ClusterPolicies:
    """The policies that the controllers put into service. Used by one thread.

    Nothing is served until the snapshot holds all objects that existed at start. From then on each
    batch of changes is served at once.
    """

    faults: tuple[str, ...] = ()
    """The faults of policies, as of the last look."""
    is_serving = False
    _may_have_faults = True
    """Whether a change since the last look for faults may have changed them."""
    _kept: Mapping[GroupVersionKind, ReadSet] = MappingProxyType({})
    """The fields kept of each synced kind, as of the last look."""
    _constraints: tuple[Snapshot, dict[tuple[str, str], Constraint]] | None = None
    _counted: Mapping[tuple[str, str], int] = MappingProxyType({})
    _breaker_changes = 0
    _lost: Mapping[str, str] = MappingProxyType({})

    _not_asked: Mapping[str, str] | None = None
    """Kyverno policies for which the API server sends no requests, with the reason; None while
    unknown."""

    def __init__(  # noqa: PLR0913  # the parts it joins, each named
        self,
        client: Client,
        serving: Serving,
        pod: Pod,
        watches: tuple[Registrar, Registrar],
        *,
        registry: Registry,
        log: Logger,
        wait_for_broken: bool,
        revisions: Revisions | None = None,
        object_faults: ObjectFaults | None = None,
        external_data: bool = True,
        kyverno: str = "off",
        projects: bool = False,
    ) -> None:
        """``watches`` are for policies and for data; ``kyverno`` is the mode for Kyverno's policies.

        With ``projects`` synced objects keep only the fields for templates, their only readers.
        """
        self._client, self._serving = client, serving
        self._registry, self._log = registry, log
        self.tracker = Tracker(time.monotonic)
        self._projection = SyncProjection(client, watches[1]) if projects else None
        self.policy = PolicyController(
            client,
            self.tracker,
            pod,
            timestamp.now,
            wait_for_broken=wait_for_broken,
            revisions=revisions,
            object_faults=object_faults,
            projection=self._projection,
        )
        self.data = SyncController(client, self.tracker, pod, self._projection)
        self._extension = ExtensionController(
            self.tracker,
            pod,
            wait_for_broken=wait_for_broken,
            object_faults=object_faults,
            registry=registry,
            revisions=revisions,
            external_data=external_data,
            foreign=kyverno_parts(kyverno),
        )
        self.reconciler = Reconciler(
            client,
            self.tracker,
            self.policy,
            self.data,
            self._extension,
            namespace=pod.namespace,
            policy_watches=watches[0],
            data_watches=watches[1],
            object_faults=object_faults,
        )
        self._began = self._logged_at = time.monotonic()
        self._new_faults: list[tuple[str, bool]] = []
        self._changes: list[tuple[str, Mapping[str, Any]]] = []
        """Log lines about policies in force that are not written yet; statuses come first."""

    def is_new(self, group: str, name: str, document: Mapping[str, Any], digest: str) -> bool:
        """Whether this version of a template or constraint differs from the one in force."""
        return self.policy.is_new(group, name, document, digest)

    def publish(self) -> bool:
        """Puts the changes taken so far into service; returns whether statuses may have changed."""
        if self.is_serving:
            self._swap()
            changed = self.reconciler.published()
        else:
            # Once served, the revision has all that is reported here.
            changed = self.reconciler.published()
            if self.tracker.satisfied:
                settle()
                self._swap()
                self.is_serving = changed = True
        if changed and self.is_serving:
            self._gauge_extensions()
        self._may_have_faults = self._may_have_faults or changed
        return changed

    def _swap(self) -> None:
        """Puts the client's snapshot into service, if it has changed."""
        snapshot, before = self._client.snapshot, self._serving.revision
        policies = self._extension.policy_set(snapshot, self.data.exclusions)
        synced = self.data.kinds & self.data.synced
        unsynced = self.data.kinds - synced
        if (
            before is not None
            and before.policies.is_same(policies)
            and before.unsynced == unsynced
            and before.synced == synced
        ):
            return
        now = self._serving.revision = Revision(
            policies, self._client, synced=synced, unsynced=unsynced
        )
        extensions = gauge_extensions(self._registry, self._serving.fights, before, now)
        if extensions is not None:
            self._changes.append(("mutators in force", extensions))
        if before is None or before.snapshot.digest != snapshot.digest:
            active, errors = self.policy.counts
            self._registry.replace(TEMPLATES, {("active",): active, ("error",): errors})
            gauge(self._registry, snapshot)
            fields = {
                "revision": snapshot.revision,
                "digest": snapshot.digest,
                "templates": active,
                "constraints": len(snapshot.constraints),
            }
            self._changes.append(("policies in force", fields))
        else:
            self._registry.set(SNAPSHOT_REVISION, snapshot.revision)

    def _gauge_extensions(self) -> None:
        """Sets the gauges of usable and faulty objects of each part."""
        for metric, part in _COUNTED:
            active, errors = self._extension.counts(part)
            states: dict[tuple[str, ...], float] = {("active",): active, ("error",): errors}
            if part is KYVERNO_POLICIES and self._not_asked is not None:
                silent = min(active, len(self._not_asked))
                states |= {("active",): active - silent, ("notasked",): silent}
            self._registry.replace(metric, states)

    def take_not_asked(self, reasons: Mapping[str, str]) -> None:
        """Logs the Kyverno policies without requests, each with the missing webhook rule."""
        for title in sorted(reasons.keys() - (self._not_asked or {}).keys()):
            reason = reasons[title]
            self._log.warning("no requests are sent for a policy", policy=title, reason=reason)
        self._not_asked = reasons
        self._gauge_extensions()

    def take_violations(self) -> None:
        """Reports the constraints of roll-outs that were violated since the last call.

        The counts come from the metrics, so reviews do no extra work. Constraints beyond the limit
        of series share one: any of them may have been violated when it grows.
        """
        staged = self.policy.staged
        if not staged:
            self._counted = {}
            return
        counts: Counter[tuple[str, str]] = Counter()
        for (kind, name, _), count in self._registry.violations.series.copy().items():
            counts[kind, name] += count
        others, now = counts["", OTHER], time.time()
        counted = {key: counts[key] + others for key in staged}
        for key, count in counted.items():
            if count > self._counted.get(key, 0):
                self.policy.violated(*key, now)
        self._counted = counted

    def take_fights(self) -> None:
        """Reports the mutators whose change is undone again and again."""
        self._extension.take_fights(self._serving.fights.going_on(time.monotonic()))

    def take_breakers(self) -> None:
        """Reports the constraints that took too long, if that has changed."""
        guard = self._serving.guard
        if guard.changes != self._breaker_changes:
            self._breaker_changes = guard.changes
            self.policy.take_breakers(guard.views())
        if guard.breakers and self._serving.revision is not None:
            guard.keep(item.key for item in self._serving.revision.snapshot.constraints)

    def take_lost(self) -> None:
        """Reports the templates that found something without a message, which denies nothing."""
        revision = self._serving.revision
        entries = () if revision is None else revision.snapshot.entries
        lost = {
            entry.template.name: text
            for entry in entries
            if (text := lost_violations(entry.evaluator))
        }
        for name in lost.keys() - self._lost.keys():
            self._log.warning("violations deny nothing", template=name, reason=lost[name])
        self._lost = lost
        self.policy.take_lost(lost)

    def statuses(self) -> Mapping[str, Json]:
        """Returns the status objects to write.

        Before serving these are only the statuses with an error and nothing in force.
        """
        statuses = self.reconciler.statuses()
        if self.is_serving:
            return statuses
        return {
            name: document
            for name, document in statuses.items()
            if document["status"].get("errors") and not document["status"].get("activeGeneration")
        }

    # --- objects that depend on the policies, for their keepers --------------------------------

    @property
    def exceptions(self) -> tuple[PolicyException, ...]:
        """The exceptions that can be used, whenever they hold."""
        return () if self._excusing is None else self._excusing.exceptions

    @property
    def _excusing(self) -> Excusing | None:
        excusing: Excusing | None = self._extension.value(EXCEPTIONS)
        return excusing

    @property
    def condition_faults(self) -> Mapping[ExceptionKey, str]:
        """The last fault in the conditions of each exception, in reviews of this process."""
        excusing = self._excusing
        if excusing is None or not excusing.condition_faults:
            return {}
        return {
            (excuse.kind, excuse.namespace, excuse.name): fault
            for title, fault in tuple(excusing.condition_faults.items())
            for excuse in (excusing.by_title[title].excuse,)
        }

    def exception_facts(self, key: ExceptionKey, used_at: float) -> ExceptionFacts:
        """Returns the facts about an exception, which this process used last at a time."""
        kind, namespace, name = key
        title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        excusing = self._excusing
        item = None if excusing is None else excusing.by_title.get(title)
        named = f"{namespace}/{name}" if namespace else name
        error = self._extension.error_of((kind, named))
        fault = "" if excusing is None else excusing.condition_faults.get(title, "")
        return ExceptionFacts(item, self.constraints, error, used_at, fault)

    @property
    def constraints(self) -> Mapping[tuple[str, str], Constraint]:
        """Returns all constraints, including broken ones."""
        snapshot = self._client.snapshot
        if self._constraints is None or self._constraints[0] is not snapshot:
            broken = (constraint for constraint, _ in snapshot.broken)
            known = {constraint.key: constraint for constraint in (*snapshot.constraints, *broken)}
            self._constraints = snapshot, known
        return self._constraints[1]

    def take_good(self) -> dict[PolicyKey, InForce | None]:
        """Returns the objects that came into force since the last call.

        None for a withdrawn one.
        """
        return {**self.policy.take_good(), **self._extension.take_good()}

    # --- results from other parts --------------------------------------------------------------

    def revised(self, subjects: Iterable[PolicyKey]) -> None:
        """Applies the objects of these changed revisions again, if they need one."""
        known = list(subjects)
        self.policy.revised(known)
        self._extension.revised(known)

    def retry(self) -> None:
        """Compiles templates again whose retry is due, and looks at synced data."""
        self.policy.retry()
        self.reconciler.look_at_data()
        if self._projection is not None:
            self._log_kept(self._projection)

    def _log_kept(self, projection: SyncProjection) -> None:
        """Logs the kept paths of synced kinds, if they have changed since the last look."""
        now = projection.paths
        for gvk, reads in now.items():
            if self._kept.get(gvk) is not reads:
                paths = reads.texts
                fields = {
                    "kind": data_kind(gvk),
                    "paths": paths[:SHOWN],
                    "more": len(paths[SHOWN:]),
                }
                self._changes.append(("paths of synced objects are kept", fields))
        self._kept = now

    # --- readiness -----------------------------------------------------------------------------

    def awaited(self) -> str:
        """Returns the objects that readiness waits for, as a text; empty if ready."""
        if self.is_serving:
            return ""
        missing = self.tracker.awaited()
        shown = "; ".join(str(item) for item in missing[:SHOWN])
        more = len(missing) - SHOWN
        return f"waiting for {shown}" + (f"; and {more} more" if more > 0 else "")

    def look_for_faults(self) -> None:
        """Collects the current faults; new ones are logged by :meth:`log_changes`."""
        if not self._may_have_faults:
            return
        self._may_have_faults = False
        faults = {**self.policy.faults(), **self._extension.faults()}
        before, self.faults = self.faults, tuple(faults)
        self._new_faults += [
            (fault, faults[fault]) for fault in sorted(faults.keys() - set(before))
        ]

    def log_in_force(self) -> None:
        """Logs the policies that have come into force since the last call."""
        messages, self._changes = self._changes, []
        for message, fields in messages:
            self._log.info(message, **fields)

    def log_changes(self) -> None:
        """Logs the objects that readiness waits for, and new faults."""
        now = time.monotonic()
        if not self.is_serving and now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            self._log.warning("not ready", awaited=self.awaited(), seconds=round(now - self._began))
        faults, self._new_faults = self._new_faults, []
        for fault, has_last_good in faults:
            stays = "; the earlier version stays in force" if has_last_good else ""
            self._log.error(f"policy cannot be used{stays}", fault=fault)
