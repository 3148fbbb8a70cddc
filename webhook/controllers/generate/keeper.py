"""Keeps ValidatingAdmissionPolicies and bindings in step with templates and constraints in CEL.

There is no leader. Each replica with ``--operation=generate`` makes the same plan from the policies
in force, compares it with the cluster, and writes the differences.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.admission_policies.kinds import BINDING, GROUP, POLICY
from webhook.api import timestamp
from webhook.api.gvk import GroupVersionKind
from webhook.api.resource import Resource
from webhook.api.shapes import Json, conditions_of, status_of
from webhook.backoff import Backoff
from webhook.cluster.discovery import Discovery, UnknownKind
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.cluster.kinds import WEBHOOK_CONFIGURATIONS
from webhook.cluster.reflector import FollowedObject, ObjectSelection
from webhook.constraint import constraint as constraints
from webhook.controllers.generate.objects import Rewrites, is_owned_by
from webhook.controllers.generate.statuses import LookUp, Statuses, generation_statuses
from webhook.controllers.keeper import Keeper
from webhook.controllers.object_writer import ObjectWriter
from webhook.exceptions.withdrawal import seconds_to_change, withdrawn_for
from webhook.generation.plan import Enforced, GenerationPlan, Planner
from webhook.generation.scope import PolicyScope, scope_of
from webhook.metrics.policies import VAP_BINDINGS, VAP_POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.cluster.client import ClusterClient
    from webhook.cluster.store import Store
    from webhook.controllers.generate import GenerationOptions
    from webhook.controllers.object_faults import ObjectFaults
    from webhook.exceptions.exception import PolicyException
    from webhook.log import Logger
    from webhook.metrics.registry import Registry

VERSIONS: Final = ("v1", "v1beta1")

RETRY_SECONDS_MAX: Final = 300.0
"""The longest pause before a refused write is tried again, in seconds: the API server refuses it
until the template changes."""

GRACE_SECONDS: Final = 5.0
"""How long an object must not be desired before it is deleted. Another replica may have made it for
a change that this one has not seen: watches are behind one another by milliseconds, under load by a
second or two."""

COMPARE_SECONDS: Final = 60.0
"""How often all objects are compared again, after other writers' changes were left alone."""

GATHER_SECONDS: Final = 0.01
"""How long changes are gathered into one plan."""

ABSENT_SECONDS: Final = 600.0
"""How often an API server without these kinds is looked at again: it may have been upgraded."""

_Work = Literal["plan", "compare"]
"""``plan``: make a new plan and report it. ``compare``: compare all objects with the plan."""


class GenerationKeeper:
    """Plans and writes generated policies, and reports on them; :meth:`run` in a task of its own."""

    def __init__(  # the seams, each named
        self,
        client: ClusterClient,
        options: GenerationOptions,
        crds: Callable[[], Store],
        log: Logger,
        registry: Registry,
        object_faults: ObjectFaults,
        *,
        notify: Callable[[Statuses], None],
    ) -> None:
        """``crds`` gives the constraints' CRDs; ``notify`` takes the status fields."""
        self._client = client
        self._options = options
        self._crds = crds
        self._log = log
        self._registry = registry
        self._object_faults = object_faults
        self._notify = notify
        self._planner: Planner | None = None
        self._policies: ObjectWriter | None = None
        self._bindings: ObjectWriter | None = None
        self._configuration = FollowedObject(
            client, WEBHOOK_CONFIGURATIONS, options.configuration, self._changed
        )
        self._scope = PolicyScope()
        self._scope_of: tuple[Any, ...] | None = None
        self._templates: Mapping[str, Mapping[str, Any]] | None = None
        self._constraints: Mapping[tuple[str, str], Enforced] = {}
        self._excluded: tuple[str, ...] = ()
        self._exceptions: tuple[PolicyException, ...] = ()
        self._failures: dict[tuple[str, str], str] = {}
        self._plan = GenerationPlan()
        self._waiting: set[str] = set()
        self._statuses: Statuses = {}
        self._rewrites = {POLICY: Rewrites(), BINDING: Rewrites()}
        self._keeper: Keeper[_Work] = Keeper(
            "generation", self._settle, object_faults, retry_seconds=0.8, retry_seconds_max=30.0
        )

    @property
    def writes(self) -> tuple[int, int]:
        """Writes, and how many of them failed."""
        writers = [writer for writer in (self._policies, self._bindings) if writer is not None]
        return sum(writer.writes for writer in writers), sum(writer.failures for writer in writers)

    def follow(
        self,
        templates: Mapping[str, Mapping[str, Any]],
        constraints_: Mapping[tuple[str, str], Enforced],
        excluded: tuple[str, ...],
        exceptions: tuple[PolicyException, ...] = (),
    ) -> None:
        """Takes the policies in force, and the namespaces that Config excludes from the webhook."""
        self._templates, self._constraints, self._excluded = templates, constraints_, excluded
        self._exceptions = exceptions
        self._changed()

    def _changed(self) -> None:
        self._keeper.add("plan", GATHER_SECONDS)

    # --- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keeps the objects until cancelled."""
        version = await self._version()
        self._planner = Planner(self._options.plan, version)
        self._policies = self._writer(POLICY, "validatingadmissionpolicies", version)
        self._bindings = self._writer(BINDING, "validatingadmissionpolicybindings", version)
        async with asyncio.TaskGroup() as tasks:
            if self._options.synced:
                tasks.create_task(self._configuration.reflector.run())
            tasks.create_task(self._policies.run())
            tasks.create_task(self._bindings.run())
            self._keeper.add("plan")
            self._keeper.add("compare", COMPARE_SECONDS)
            tasks.create_task(self._keeper.run())

    async def _version(self) -> str:
        """Returns the served version of the API group; waits until one is served."""
        discovery, backoff = Discovery(self._client), Backoff(max_seconds=30.0)
        while True:
            try:
                for version in VERSIONS:
                    try:
                        await discovery.resource(GroupVersionKind(GROUP, version, POLICY))
                    except UnknownKind:
                        continue
                    return version
            except (ApiError, ApiUnreachable) as error:
                self._log.warning(
                    "the API server cannot be asked for ValidatingAdmissionPolicies; trying again",
                    error=str(error),
                )
                await asyncio.sleep(backoff.next_seconds())
                continue
            self._log.info(
                "the API server does not serve ValidatingAdmissionPolicies: none is generated"
            )
            await asyncio.sleep(ABSENT_SECONDS)

    def _writer(self, kind: str, plural: str, version: str) -> ObjectWriter:
        def failed(name: str, error: str) -> None:
            if error:
                self._failures[kind, name] = error
            else:
                self._failures.pop((kind, name), None)
            self._changed()

        return ObjectWriter(
            self._client,
            Resource(GroupVersionKind(GROUP, version, kind), plural, namespaced=False),
            ObjectSelection(),
            self._rewrites[kind],
            self._log,
            listener=lambda _: self._changed(),
            object_faults=self._object_faults,
            stale=self._is_stale,
            failed=failed,
            retry_seconds_max=RETRY_SECONDS_MAX,
            grace_seconds=GRACE_SECONDS,
        )

    async def _settle(self, key: _Work) -> None:
        self._keeper.settled(key, self._made_plan() if key == "plan" else self._compared())

    def _compared(self) -> float:
        """Compares all again; returns the seconds until the next time."""
        assert self._policies is not None
        assert self._bindings is not None
        self._policies.compare_all()
        self._bindings.compare_all()
        return COMPARE_SECONDS

    # --- planning ------------------------------------------------------------------------------

    def _made_plan(self) -> float:
        """Makes, applies and reports a new plan; returns the most seconds until the next one."""
        policies, bindings, planner = self._policies, self._bindings, self._planner
        assert policies is not None
        assert bindings is not None
        assert planner is not None
        known = not self._options.synced or self._configuration.is_known
        if self._templates is None or not known or not policies.is_synced or not bindings.is_synced:
            return COMPARE_SECONDS
        now = time.time()
        waits = [seconds_to_change(self._exceptions, now) + 0.1]
        self._plan = planner.plan(
            self._templates,
            self._constraints,
            self._current_scope(),
            self._waits(waits),
            lambda document: withdrawn_for(self._exceptions, document, now),
        )
        # A binding goes after its policy, whose parameters decide the right to bind. A policy of
        # that name from another author gets no binding of ours.
        ready: dict[str, Json] = {}
        self._waiting = set(self._plan.waiting)
        for name, binding in self._plan.bindings.items():
            policy = binding["spec"]["policyName"]
            current = policies.store.get("", policy)
            if current is None:
                self._waiting.add(name)
            elif not Rewrites.foreign(self._plan.policies[policy], current):
                ready[name] = binding
        bindings.want(ready, prune=True)
        policies.want(self._plan.policies, prune=True)
        generated = generation_statuses(
            self._plan,
            self._found(POLICY),
            self._found(BINDING),
            self._statuses,
            alone=self._options.plan.alone,
        )
        self._statuses = generated.statuses
        self._registry.replace(VAP_POLICIES, generated.policies)
        self._registry.replace(VAP_BINDINGS, generated.bindings)
        self._notify(generated.statuses)
        return min([COMPARE_SECONDS, *waits])

    def _found(self, kind: str) -> LookUp:
        """Returns the state of the objects of a kind."""
        writer = self._policies if kind == POLICY else self._bindings
        assert writer is not None
        store = writer.store

        def state(name: str, desired: Json) -> tuple[str, str]:
            current = store.get("", name)
            if current is not None and self._rewrites[kind].foreign(desired, current):
                return "error", f"{kind} {name} is there, and is not ours"
            if current is not None and not self._rewrites[kind].differs(desired, current):
                return "generated", ""
            failure = self._failures.get((kind, name), "")
            if not failure and self._rewrites[kind].yields(name):
                failure = f"{kind} {name} is written by somebody else, too"
            return ("error", failure) if failure else ("", "")

        return state

    def _current_scope(self) -> PolicyScope:
        document = self._configuration.document if self._options.synced else None
        parts = (document, self._excluded, self._options.exempted)
        if self._scope_of is None or self._scope_of[0] is not document or self._scope_of != parts:
            scope = (
                scope_of(document, excluded=self._excluded, exempted=self._options.exempted)
                if self._options.synced
                else PolicyScope()
            )
            self._scope = self._scope if scope == self._scope else scope
            self._scope_of = parts
        return self._scope

    def _waits(self, seconds: list[float]) -> Callable[[str], str]:
        """Returns a function for why bindings wait: their CRD must have been served for a while."""

        def waits(template: str) -> str:
            crd = self._crds().get("", f"{template}.{constraints.GROUP}")
            at = _established_at(crd)
            if at is None:
                return "waiting for the constraint CRD to be established"
            until = at + self._options.wait_seconds
            remaining = until - time.time()
            if remaining <= 0:
                return ""
            seconds.append(max(remaining, 0.1))
            return (
                f"waiting until {timestamp.text_of(until)} before generating "
                "ValidatingAdmissionPolicyBinding to make sure api-server has cached constraint CRD"
            )

        return waits

    def _is_stale(self, document: Json) -> bool:
        """Returns whether an undesired object belongs to a template or constraint of the plan.

        An object of a newer template or constraint was made by a replica that is ahead of this one,
        so it is kept. A binding that still waits here is kept, too.
        """
        if document["metadata"]["name"] in self._waiting:
            return False
        return is_owned_by(document, self._plan.owners)


def _established_at(crd: Json | None) -> float | None:
    """Returns since when a CRD is served, in seconds since the epoch; None if it is not."""
    for condition in conditions_of(status_of(crd)):
        if condition["type"] == "Established" and condition.get("status") == "True":
            try:
                return timestamp.seconds_of(condition.get("lastTransitionTime", ""))
            except ValueError:
                return None
    return None
