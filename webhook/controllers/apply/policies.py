"""Puts the cluster's ConstraintTemplates and constraints into a client.

A broken object affects only itself. If a template or constraint is refused, its last good revision
stays in force, and its status reports the error. After a restart that is a kept revision
(:mod:`webhook.controllers.revisions.revisions`). A template whose required data is not synced is
withheld with its constraints.

One task uses this. It applies a batch of changes, publishes the client's snapshot, and only then
calls :meth:`PolicyController.published`. So neither a status nor readiness ever reports a policy
that does not answer admissions yet.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from webhook.api.names import CONSTRAINT_GROUP
from webhook.constraint.errors import ConstraintFrameworkError, PassingFault
from webhook.constraint.group import templates_of
from webhook.controllers.apply.observations import Observations
from webhook.controllers.apply.strategies import (
    ConstraintStrategy,
    TemplateStrategy,
    applied,
    faulted,
)
from webhook.controllers.object_faults import TEMPLATES, ObjectFaults, PolicyKey, constraint_kind
from webhook.controllers.requirements import missing
from webhook.controllers.retries import Retries
from webhook.controllers.revisions.policy_state import (
    AppliedFault,
    InForceNow,
    State,
    count_not_newest,
    enforced,
    generation_fault,
    is_broken,
    same_policy,
)
from webhook.controllers.revisions.revisions import InForce, NoRevisions, Revisions, rollback_of
from webhook.controllers.status.context import StatusContext
from webhook.controllers.status.policy_statuses import StatusInputs, policy_status
from webhook.controllers.status.published import PublishedPolicies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.client import Client
    from webhook.controllers.apply.projection import SyncProjection
    from webhook.controllers.generate.statuses import Statuses
    from webhook.readiness import Tracker


class PolicyController:
    """Applies templates and constraints, and makes their statuses."""

    def __init__(  # noqa: PLR0913  # the parts it joins
        self,
        client: Client,
        tracker: Tracker,
        pod: Pod,
        now: Callable[[], str],
        *,
        wait_for_broken: bool = False,
        revisions: Revisions | None = None,
        object_faults: ObjectFaults | None = None,
        retries: Retries | None = None,
        projection: SyncProjection | None = None,
    ) -> None:
        """``now`` gives the time for statuses, in RFC 3339; ``revisions`` are the kept ones.

        ``object_faults`` takes unforeseen errors. ``retries`` has the templates that could not be
        compiled for lack of machine resources, and when to try them again. With ``wait_for_broken``
        a broken object holds readiness back; otherwise readiness stops waiting for it, as in
        Gatekeeper by default. ``projection`` selects the fields of synced objects that are kept.
        """
        self._client = client
        self._tracker = tracker
        self._pod = pod
        self._now = now
        self._wait_for_broken = wait_for_broken
        self._revisions = revisions or NoRevisions()
        self._object_faults = object_faults or ObjectFaults()
        self._retries = retries or Retries()
        self._of_templates = TemplateStrategy(client, projection)
        self._of_constraints = ConstraintStrategy(client)
        self._templates: dict[str, State] = {}
        self._constraints: dict[str, dict[str, State]] = {}
        self._observations = Observations()
        self._around = StatusContext()
        self._changed: set[PolicyKey] = set()
        self._published = PublishedPolicies()
        self._faults: list[AppliedFault] = []

    # --- objects of the cluster ----------------------------------------------------------------

    @property
    def kinds(self) -> frozenset[str]:
        """Returns the constraint kinds to watch: those of all templates, including broken ones."""
        return frozenset(
            kind for state in self._templates.values() if (kind := state.kind) is not None
        )

    def kind(self, template: str) -> str | None:
        """Returns the constraint kind of a known template."""
        state = self._templates.get(template)
        return None if state is None else state.kind

    @property
    def crds(self) -> Mapping[str, Json]:
        """The constraint CRDs of all usable templates, by name."""
        states = self._templates.values()
        return {crd["metadata"]["name"]: crd for state in states if (crd := state.crd) is not None}

    @property
    def counts(self) -> tuple[int, int]:
        """Returns how many templates are in force, and how many have an error."""
        errors = sum(state.error is not None for state in self._templates.values())
        return sum(state.active > 0 for state in self._templates.values()), errors

    @property
    def not_newest(self) -> dict[tuple[str, ...], float]:
        """Returns how many objects are not enforced in their newest version, by kind and cause."""
        return count_not_newest(self._templates.values(), self._all_constraints())

    def faults(self) -> dict[str, bool]:
        """Returns a line for each object with an error, and whether its revision is in force."""
        states = (*self._templates.values(), *self._all_constraints())
        return {line: state.in_force is not None for state in states if (line := state.fault)}

    def _all_constraints(self) -> list[State]:
        return [state for states in self._constraints.values() for state in states.values()]

    def _known(self, group: str) -> dict[str, State]:
        """Returns the templates, or a kind's constraints, by name; callers must not keep the dict."""
        return self._templates if group == TEMPLATES else self._constraints.get(group, {})

    def listed(self, kind: str) -> None:
        """Notes that all objects of the first list of a kind were taken: readiness waits for these.

        ``kind`` is a constraint kind, or :data:`TEMPLATES`.
        """
        states = self._known(kind)
        readiness_kind = kind if kind == TEMPLATES else constraint_kind(kind)
        self._tracker.expect(readiness_kind, states)
        for name, state in states.items():
            if state.error is not None or state.missing:
                self._update_readiness(readiness_kind, name, state)

    def template(self, name: str, document: Mapping[str, Any] | None) -> None:
        """Takes a template; ``document`` is None if it was deleted.

        There are four cases: it was deleted; its spec is unchanged; it was deleted and created
        again between two events, so it counts as new; it is new or changed.
        """
        if document is None:
            self._drop_template(name)
            return
        before = self._templates.get(name)
        if before is not None and same_policy(before.document, document):
            return
        if before is not None and before.uid != document["metadata"].get("uid", ""):
            # Deleted and created again: the state of the old object no longer counts.
            self._drop_template(name)
            before = None
        known = State(document) if before is None else replace(before, document=document)
        self._templates[name] = replace(known, error=None, missing=())
        self._apply_template(name)

    def is_new(self, group: str, name: str, document: Mapping[str, Any], digest: str) -> bool:
        """Returns whether this revision of an object was never applied, and is not in force."""
        state = self._known(group).get(name)
        if state is None:
            return True
        if same_policy(state.document, document):
            return False
        return state.in_force is None or state.in_force.digest != digest

    def constraint(self, kind: str, name: str, document: Mapping[str, Any] | None) -> None:
        """Takes a constraint, in the same four cases as :meth:`template`."""
        known = self._constraints.setdefault(kind, {})
        before = known.get(name)
        if before is not None and document is not None and same_policy(before.document, document):
            return
        self._changed.add((kind, name))
        if document is None:
            self._object_faults.clear("constraint", kind, name)
            if (gone := known.pop(name, None)) is not None:
                self._client.remove_constraint(kind, name)
                self._observations.forget(gone.uid)
                self._apply_groups(kind)
            return
        if before is None:
            fresh = State(document)
        elif before.uid == document["metadata"].get("uid", ""):
            fresh = replace(before, document=document, error=None)
        else:
            fresh = State(document)
            self._client.remove_constraint(kind, name)
            self._observations.forget(before.uid)
        known[name] = self._applied_constraint(kind, fresh)
        self._apply_groups(kind)

    def take_fault(
        self, group: str, name: str, document: Mapping[str, Any], error: Exception
    ) -> None:
        """Reports an unforeseen error of an object in its status; the version in force stays."""
        strategy = self._of_templates if group == TEMPLATES else self._of_constraints
        of_group = (
            self._templates if group == TEMPLATES else self._constraints.setdefault(group, {})
        )
        known = of_group.get(name)
        is_same = known is not None and known.uid == document["metadata"].get("uid", "")
        state = replace(known, document=document) if known and is_same else State(document)
        of_group[name], broken = faulted(state, strategy, error)
        self._changed.add((group, name))
        if broken is not None:
            strategy.break_(document, broken)

    @property
    def staged(self) -> frozenset[PolicyKey]:
        """The constraints that are at a stage of a roll-out, by kind and name."""
        return frozenset(
            (kind, name)
            for kind, states in self._constraints.items()
            for name, state in states.items()
            if state.action
        )

    def violated(self, kind: str, name: str, now: float) -> None:
        """Notes a violation of a constraint in a roll-out; ``now`` is in seconds since the epoch."""
        state = self._constraints.get(kind, {}).get(name)
        if state is None or not state.action or state.error is not None:
            return
        with self._object_faults.object("rollout", kind, name):
            if self._observations.violated(state.document, now):
                self._changed.add((kind, name))

    def take_breakers(self, breakers: Mapping[PolicyKey, BreakerView]) -> None:
        """Takes the breakers of constraints that took too long, by kind and name."""
        self._mark_changed(self._around.take_breakers(breakers))

    def enforced(self) -> InForceNow:
        """Returns the templates in force by name, and the constraints by kind and name."""
        return enforced(self._templates, self._all_constraints())

    def take_generated(self, statuses: Statuses) -> None:
        """Takes the status fields about generated policies and bindings."""
        self._mark_changed(self._around.take_generated(statuses))

    def take_warnings(self, statuses: Statuses) -> None:
        """Takes the status fields with warnings about expressions."""
        self._mark_changed(self._around.take_warnings(statuses))

    def take_lost(self, lost: Mapping[str, str]) -> None:
        """Takes what templates found without a message, by the template's name."""
        self._mark_changed(self._around.take_lost(lost))

    def take_unestablished(self, crds: Mapping[str, str]) -> None:
        """Takes the constraint CRDs that are not established, by name, with the reason."""
        self._mark_changed(self._around.take_unestablished(crds))

    def _mark_changed(self, keys: Iterable[PolicyKey]) -> None:
        self._changed |= {(group, name) for group, name in keys if name in self._known(group)}

    def audited(self, results: Mapping[PolicyKey, Json | None]) -> None:
        """Takes the results of this replica's share of the audit; None for no violation."""
        for (kind, name), result in results.items():
            state = self._constraints.get(kind, {}).get(name)
            if state is not None and self._observations.audited(state.uid, result):
                self._changed.add((kind, name))

    def revised(self, subjects: Iterable[PolicyKey]) -> None:
        """Applies objects again whose kept revisions changed, if they need one.

        An object needs one if it is rolled back by annotation, or if nothing of it is in force.
        """
        for group, name in subjects:
            states = self._known(group)
            state = states.get(name)
            if state is None or not (rollback_of(state.document) or state.active == 0):
                continue
            if group == TEMPLATES:
                self._apply_template(name)
            else:
                states[name] = self._applied_constraint(group, state)
                self._changed.add((group, name))

    def synced(self, kinds: Collection[GroupVersionKind]) -> None:
        """Takes the kinds that are synced, and applies the templates that require them."""
        before, now = self._of_templates.synced, frozenset(kinds)
        if before == now:
            return
        self._of_templates.synced = now
        for name, state in list(self._templates.items()):
            if missing(state.requirements, before) != missing(state.requirements, now):
                self._apply_template(name)

    def take_listed(self) -> None:
        """Applies again the templates that wait for more fields of synced objects."""
        projection = self._of_templates.projection
        for name in () if projection is None else projection.waiting:
            if name in self._templates:
                self._apply_template(name)

    def retry(self) -> None:
        """Applies templates again whose retry is due, after a lack of machine resources."""
        for name in self._retries.due():
            self._apply_template(name)

    # --- applying ------------------------------------------------------------------------------

    def _apply_template(self, name: str) -> None:
        self._changed.add((TEMPLATES, name))
        state, broken = applied(
            self._templates[name], self._of_templates, self._revisions, self._object_faults
        )
        self._templates[name] = state
        if broken is not None and not state.missing:
            with self._object_faults.object("status", TEMPLATES, name):
                self._of_templates.break_(state.document, broken)
                self._note(state, broken)
        if isinstance(broken, PassingFault):
            self._retries.failed(name)
        else:
            self._retries.forget(name)
        kind = state.kind
        if kind is None:
            self._apply_groups(name)
            return
        self._tracker.track(constraint_kind(kind))
        known = self._constraints.get(kind, {})
        for constraint, of_constraint in known.items():
            # Withheld with its template, nothing of a constraint is in force.
            fresh = replace(of_constraint, in_force=None) if state.active == 0 else of_constraint
            known[constraint] = self._applied_constraint(kind, fresh)
            self._changed.add((kind, constraint))
        self._apply_groups(name)

    def _apply_groups(self, kind: str) -> None:
        """Applies the groups again that name this constraint kind, in upper or lower case."""
        known = self._constraints.get(CONSTRAINT_GROUP, {})
        for name, state in known.items():
            if kind.lower() in templates_of(state.document):
                known[name] = self._applied_constraint(CONSTRAINT_GROUP, state)
                self._changed.add((CONSTRAINT_GROUP, name))

    def _note(self, state: State, refusal: ConstraintFrameworkError) -> None:
        """Remembers the fault of a newest generation, for the record of all replicas."""
        if (fault := generation_fault(state.document, refusal)) is not None:
            self._faults.append(fault)

    def take_generation_faults(self) -> list[AppliedFault]:
        """Returns the faults found since the last call while generations were applied."""
        faults, self._faults = self._faults, []
        return faults

    def _drop_template(self, name: str) -> None:
        state = self._templates.pop(name, None)
        self._object_faults.clear("template", name)
        self._retries.forget(name)
        self._changed.add((TEMPLATES, name))
        self._client.remove_template(name)
        if (projection := self._of_templates.projection) is not None:
            projection.drop(name)
        kind = state.kind if state is not None else None
        if kind is not None:
            self._tracker.forget(constraint_kind(kind))
            gone = self._constraints.pop(kind, {})
            self._changed.update((kind, constraint) for constraint in gone)
            for constraint, of_constraint in gone.items():
                self._object_faults.clear("constraint", kind, constraint)
                self._observations.forget(of_constraint.uid)
        self._apply_groups(name)

    def _applied_constraint(self, kind: str, state: State) -> State:
        taken, broken = applied(state, self._of_constraints, self._revisions, self._object_faults)
        if broken is not None:
            with self._object_faults.object("status", kind, state.name):
                self._of_constraints.break_(state.document, broken)
                self._note(state, broken)
        return taken

    # --- status and readiness ------------------------------------------------------------------

    def published(self) -> bool:
        """Makes statuses and updates readiness, after all applied changes were published.

        Returns whether a status may have changed.
        """
        is_changed = bool(self._changed)
        for group, name in self._changed:
            state = self._known(group).get(name)
            readiness_kind = TEMPLATES if group == TEMPLATES else constraint_kind(group)
            self._update_readiness(readiness_kind, name, state)
            with self._object_faults.object("status", group, name):
                self._published.publish((group, name), partial(self._status, group, state))
            self._published.enforced((group, name), None if state is None else state.in_force)
        self._changed.clear()
        return is_changed

    def take_good(self) -> dict[PolicyKey, InForce | None]:
        """Returns the objects that came into force since the last call.

        None for a withdrawn one.
        """
        return self._published.take_changes()

    def _update_readiness(self, kind: str, name: str, state: State | None) -> None:
        error = ""
        if state is not None and state.error is not None and is_broken(state, self._templates):
            error = state.error.message or state.error.code
        self._tracker.take(kind, name, error, waits=self._wait_for_broken)

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects of this replica, by name, as of the last publication."""
        return self._published.statuses

    def _status(self, group: str, state: State | None) -> Json | None:
        """Returns the status object of a template or constraint; None if it was deleted."""
        if state is None:
            return None
        name, is_template = state.name, group == TEMPLATES
        inputs = StatusInputs(
            self._client.fault_of(*((name,) if is_template else (group, name))),
            self._around.breaker(group, name),
            self._around.no_crd(name) if is_template else "",
            self._observations.fields(state.uid, state.action) | self._around.fields(group, name),
            self._now(),
            self._retries.next_at(name if is_template else group.lower()),
            self._client.elsewhere(name if is_template else group.lower()),
        )
        return policy_status(self._pod, state, inputs, is_template=is_template)
