"""ConstraintTemplates and constraints of the cluster, kept in step with a client.

Each object costs only itself. A template that is refused leaves its last good
revision in force, and so does a constraint; both say so in their status. After a
restart that is a kept one (:mod:`webhook.controllers.revisions`). A template
whose required data is not synced is withheld with its constraints. One
task uses this: it applies a batch of changes, publishes the client's snapshot,
and only then calls :meth:`PolicyController.published`, so that no status and no
readiness ever speaks of policy that does not answer admissions yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.api.pod_status import StatusError
from webhook.constraint import constraint as constraints
from webhook.constraint.errors import (
    ConstraintFrameworkError,
    InvalidConstraint,
    InvalidTemplate,
    MissingEngine,
    MissingTemplate,
    PassingFault,
)
from webhook.constraint.rollout import stage_of, staged
from webhook.controllers.constraint_crds import owned
from webhook.controllers.observations import Observations
from webhook.controllers.observed import TEMPLATES, constraint_kind
from webhook.controllers.policy_state import (
    UNFORESEEN,
    State,
    count_not_newest,
    enforced,
    is_broken,
    same_policy,
    uncached,
)
from webhook.controllers.policy_statuses import Circumstances, policy_status
from webhook.controllers.requirements import missing, read_requirements
from webhook.controllers.retries import Retries
from webhook.controllers.revisions import (
    MISSING_REVISION,
    InForce,
    NoRevisions,
    attempts,
    rollback_of,
)
from webhook.controllers.spoiled import Spoiled, described
from webhook.controllers.statuses import keep_since
from webhook.controllers.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.api.gvk import GroupVersionKind
    from webhook.api.pod_status import Pod
    from webhook.api.shapes import Json
    from webhook.constraint.breaker import BreakerView
    from webhook.constraint.client import Client
    from webhook.controllers.generation_statuses import Statuses
    from webhook.controllers.policy_state import InForceNow
    from webhook.controllers.requirements import Requirements
    from webhook.controllers.revisions import Revisions
    from webhook.readiness import Tracker


class PolicyController:
    """Applies templates and constraints, and knows the statuses that follow."""

    def __init__(
        self,
        client: Client,
        tracker: Tracker,
        pod: Pod,
        now: Callable[[], str],
        *,
        wait_for_broken: bool = False,
        revisions: Revisions | None = None,
        spoiled: Spoiled | None = None,
        retries: Retries | None = None,
    ) -> None:
        """``now`` gives the time for statuses, in RFC 3339; ``revisions`` has those kept.

        ``spoiled`` takes what nobody foresaw; ``retries`` knows what the machine did not compile.
        With ``wait_for_broken`` a broken object holds readiness back; without, it
        is given up on as Gatekeeper does by default.
        """
        self._client = client
        self._tracker = tracker
        self._pod = pod
        self._now = now
        self._wait_for_broken = wait_for_broken
        self._revisions = revisions or NoRevisions()
        self._spoiled = spoiled or Spoiled()
        self._retries = retries or Retries()
        self._templates: dict[str, State] = {}
        self._constraints: dict[str, dict[str, State]] = {}
        self._requirements: dict[str, Requirements] = {}
        self._synced: frozenset[GroupVersionKind] = frozenset()
        self._crds: dict[str, Json] = {}
        self._touched: set[tuple[str, str]] = set()
        self._statuses: dict[str, Json] = {}
        self._status_names: dict[tuple[str, str], str] = {}
        self._good: dict[tuple[str, str], InForce | None] = {}
        self._observations = Observations()
        self._around = Surroundings()

    # --- what the cluster holds ----------------------------------------------------------------

    @property
    def kinds(self) -> frozenset[str]:
        """The constraint kinds to watch: those of all templates, broken ones included."""
        return frozenset(
            kind for state in self._templates.values() if (kind := state.kind) is not None
        )

    def kind(self, template: str) -> str | None:
        """The constraint kind of a known template."""
        state = self._templates.get(template)
        return None if state is None else state.kind

    @property
    def crds(self) -> Mapping[str, Json]:
        """The constraint CRDs there should be, by name: of each template that can be used."""
        return self._crds

    @property
    def counts(self) -> tuple[int, int]:
        """How many templates are in force, and how many are in error."""
        errors = sum(state.error is not None for state in self._templates.values())
        return sum(state.active > 0 for state in self._templates.values()), errors

    @property
    def not_newest(self) -> dict[tuple[str, ...], float]:
        """How many objects are not enforced as they are now, by kind and cause."""
        return count_not_newest(self._templates.values(), self._all_constraints())

    def faults(self) -> dict[str, bool]:
        """What is wrong with the objects, each in a line; whether a revision stays in force."""
        states = (*self._templates.values(), *self._all_constraints())
        return {line: state.in_force is not None for state in states if (line := state.fault)}

    def _all_constraints(self) -> list[State]:
        return [state for states in self._constraints.values() for state in states.values()]

    def listed(self, kind: str) -> None:
        """Every object of a kind that there was has been taken: readiness waits for no other.

        ``kind`` is a constraint kind, or :data:`TEMPLATES`.
        """
        states = self._states(kind)
        readiness_kind = kind if kind == TEMPLATES else constraint_kind(kind)
        self._tracker.expect(readiness_kind, states)
        for name, state in states.items():
            if state.error is not None or state.missing:
                self._tell(readiness_kind, name, state)

    def template(self, name: str, document: Mapping[str, Any] | None) -> None:
        """Take a template as it is now; None when it is gone."""
        if document is None:
            self._drop_template(name)
            return
        before = self._templates.get(name)
        if before is not None and same_policy(before.document, document):
            return
        if before is not None and before.uid != document["metadata"].get("uid", ""):
            # Deleted and made anew between two looks: nothing of the old one counts.
            self._drop_template(name)
            before = None
        in_force = before.in_force if before is not None else None
        self._templates[name] = State(document, in_force)
        self._apply_template(name)

    def constraint(self, kind: str, name: str, document: Mapping[str, Any] | None) -> None:
        """Take a constraint as it is now; None when it is gone."""
        known = self._constraints.setdefault(kind, {})
        before = known.get(name)
        if before is not None and document is not None and same_policy(before.document, document):
            return
        self._touched.add((kind, name))
        if document is None:
            self._spoiled.clear("constraint", kind, name)
            if (gone := known.pop(name, None)) is not None:
                self._client.remove_constraint(kind, name)
                self._observations.forget(gone.uid)
            return
        fresh = State(document)
        if before is not None:
            if before.uid == document["metadata"].get("uid", ""):
                fresh = replace(fresh, in_force=before.in_force, action=before.action)
            else:
                self._client.remove_constraint(kind, name)
                self._observations.forget(before.uid)
        known[name] = self._applied_constraint(fresh)

    @property
    def staged(self) -> frozenset[tuple[str, str]]:
        """The constraints that are enforced at a stage of a roll-out, by kind and name."""
        return frozenset(
            (kind, name)
            for kind, states in self._constraints.items()
            for name, state in states.items()
            if state.action
        )

    def violated(self, kind: str, name: str, now: float) -> None:
        """A constraint in a roll-out was violated; ``now`` is in seconds since the epoch."""
        state = self._constraints.get(kind, {}).get(name)
        if state is None or not state.action or state.error is not None:
            return
        with self._spoiled.object("rollout", kind, name):
            if self._observations.violated(state.document, now):
                self._touched.add((kind, name))

    def take_breakers(self, breakers: Mapping[tuple[str, str], BreakerView]) -> None:
        """Constraints that took too long, by kind and name, as they are now."""
        self._touch(self._around.take_breakers(breakers))

    def enforced(self) -> InForceNow:
        """What is in force: templates by name, constraints by kind and name."""
        return enforced(self._templates, self._all_constraints())

    def take_generated(self, statuses: Statuses) -> None:
        """What is to be said of policies and bindings that are generated."""
        self._touch(self._around.take_generated(statuses))

    def take_unestablished(self, crds: Mapping[str, str]) -> None:
        """The constraint CRDs that are not established, by name, with the reason."""
        self._touch(self._around.take_unestablished(crds))

    def _touch(self, keys: Iterable[tuple[str, str]]) -> None:
        self._touched |= {(group, name) for group, name in keys if name in self._states(group)}

    def _states(self, group: str) -> dict[str, State]:
        """The templates, or the constraints of a kind, by name."""
        return self._templates if group == TEMPLATES else self._constraints.get(group, {})

    def audited(self, results: Mapping[tuple[str, str], Json | None]) -> None:
        """Take what this replica's share of the audit found of constraints; None for nothing more."""
        for (kind, name), found in results.items():
            state = self._constraints.get(kind, {}).get(name)
            if state is not None and self._observations.audited(state.uid, found):
                self._touched.add((kind, name))

    def revised(self, subjects: Iterable[tuple[str, str]]) -> None:
        """Revisions of these objects came or went: see whether one was waited for.

        A subject is a constraint kind, or :data:`TEMPLATES`, and a name.
        """
        for group, name in subjects:
            states = self._states(group)
            state = states.get(name)
            if state is None or not (rollback_of(state.document) or state.active == 0):
                continue
            if group == TEMPLATES:
                self._apply_template(name)
            else:
                states[name] = self._applied_constraint(state)
                self._touched.add((group, name))

    def synced(self, kinds: Collection[GroupVersionKind]) -> None:
        """Take the kinds whose objects are all in the snapshot; templates that ask for them follow."""
        before, self._synced = self._synced, frozenset(kinds)
        if before == self._synced:
            return
        for name, requirements in self._requirements.items():
            if missing(requirements, before) != missing(requirements, self._synced):
                self._apply_template(name)

    def retry(self) -> None:
        """Try again what the machine could not compile, where its time has come."""
        for name in self._retries.due():
            self._apply_template(name)

    # --- applying ------------------------------------------------------------------------------

    def _apply_template(self, name: str) -> None:
        state = self._templates[name]
        self._touched.add((TEMPLATES, name))
        broken: InvalidTemplate | None
        try:
            self._templates[name], broken = self._attempted_template(state)
        except Exception as error:  # noqa: BLE001  # the object's boundary: it ends in its status
            broken = self._unforeseen_template(name, error)
            error_ = StatusError(broken.code, str(broken))
            self._templates[name] = replace(state, error=error_)
        if broken is not None and not self._templates[name].missing:
            with self._spoiled.object("status", TEMPLATES, name):
                self._client.break_template(state.document, broken)
        self._retries.tried(name, again=isinstance(broken, PassingFault))
        kind = self._templates[name].kind
        if kind is None:
            return
        self._tracker.track(constraint_kind(kind))
        known = self._constraints.get(kind, {})
        for constraint, constraint_state in known.items():
            # Withheld with its template, nothing of a constraint is in force.
            withheld = self._templates[name].active == 0
            fresh = replace(constraint_state, in_force=None) if withheld else constraint_state
            known[constraint] = self._applied_constraint(fresh)
            self._touched.add((kind, constraint))

    def _attempted_template(self, state: State) -> tuple[State, InvalidTemplate | None]:
        """The template with what of it can be enforced, and why the newest cannot, if so."""
        name = state.document["metadata"]["name"]
        fault: StatusError | None = None
        broken: InvalidTemplate | None = None
        unforeseen = False
        for attempt in attempts(state.document, state.in_force, self._revisions):
            if not isinstance(attempt, InForce):
                fault = fault or StatusError(MISSING_REVISION, str(attempt))
                continue
            try:
                tried = replace(self._tried_template(state, attempt), error=fault)
            except Exception as error:  # noqa: BLE001  # the object's boundary, as above
                refused = error
                if not isinstance(refused, InvalidTemplate):
                    refused, unforeseen = self._unforeseen_template(name, error), True
                fault = fault or StatusError(refused.code, str(refused))
                broken = broken or (None if attempt.revision else refused)
            else:
                break
        else:
            tried = replace(self._kept_template(state), error=fault)
        if not unforeseen:
            self._spoiled.clear("template", name)
        return tried, broken

    def _unforeseen_template(self, name: str, error: Exception) -> InvalidTemplate:
        """What nobody foresaw, as the refusal that it amounts to."""
        self._spoiled.take("template", name, error=error)
        return InvalidTemplate(described(error), UNFORESEEN)

    def _tried_template(self, state: State, attempt: InForce) -> State:
        """Enforce this, or withhold it until its data is there; raises :class:`InvalidTemplate`."""
        name = state.document["metadata"]["name"]
        requirements = read_requirements(attempt.document)
        absent = missing(requirements, self._synced)
        crd = self._client.create_crd(attempt.document)
        if absent:
            self._client.remove_template(name)
        else:
            try:
                self._client.add_template(attempt.document)
            except MissingEngine:
                # Its constraints are what they are, whoever evaluates them.
                self._crds[crd["metadata"]["name"]] = owned(crd, attempt.document)
                raise
        self._requirements[name] = requirements
        self._crds[crd["metadata"]["name"]] = owned(crd, attempt.document)
        return State(state.document, None if absent else attempt, missing=absent)

    def _kept_template(self, state: State) -> State:
        """What was in force stays, unless its data is gone."""
        name = state.document["metadata"]["name"]
        absent = missing(self._requirements.get(name, ()), self._synced)
        if not absent or state.in_force is None:
            return replace(state, missing=())
        self._client.remove_template(name)
        return replace(state, in_force=None, missing=absent)

    def _drop_template(self, name: str) -> None:
        state = self._templates.pop(name, None)
        self._requirements.pop(name, None)
        self._spoiled.clear("template", name)
        self._retries.forget(name)
        self._touched.add((TEMPLATES, name))
        self._client.remove_template(name)
        self._crds.pop(f"{name}.{constraints.GROUP}", None)
        kind = state.kind if state is not None else None
        if kind is not None:
            self._tracker.forget(constraint_kind(kind))
            gone = self._constraints.pop(kind, {})
            self._touched.update((kind, constraint) for constraint in gone)
            for constraint in gone:
                self._spoiled.clear("constraint", kind, constraint)
            for constraint_state in gone.values():
                self._observations.forget(constraint_state.uid)

    def _applied_constraint(self, state: State) -> State:
        metadata = state.document["metadata"]
        key = (state.document["kind"], metadata["name"])
        broken: ConstraintFrameworkError | None
        try:
            taken, broken = self._attempted_constraint(state)
        except Exception as error:  # noqa: BLE001  # the object's boundary: it ends in its status
            broken = self._unforeseen_constraint(key, error)
            taken = replace(state, error=uncached(broken))
        if broken is not None:
            with self._spoiled.object("status", *key):
                self._client.break_constraint(state.document, broken)
        return taken

    def _attempted_constraint(self, state: State) -> tuple[State, ConstraintFrameworkError | None]:
        """The constraint with what of it can be enforced, and why the newest cannot, if so."""
        key = (state.document["kind"], state.document["metadata"]["name"])
        fault: StatusError | None = None
        broken: ConstraintFrameworkError | None = None
        taken: State | None = None
        unforeseen = False
        for attempt in attempts(state.document, state.in_force, self._revisions):
            if not isinstance(attempt, InForce):
                fault = fault or StatusError(MISSING_REVISION, str(attempt))
                continue
            try:
                status = state.document.get("status")
                # What was kept was valid once; that its template has another schema by now
                # would not have taken it out of force either.
                self._client.add_constraint(
                    staged(attempt.document, status), is_valid=bool(attempt.revision)
                )
                action = stage_of({**attempt.document, "status": status})
                taken = State(state.document, attempt, fault, action=action)
                break
            except Exception as error:  # noqa: BLE001  # the object's boundary, as above
                refused = error
                if not isinstance(refused, ConstraintFrameworkError):
                    refused, unforeseen = self._unforeseen_constraint(key, error), True
                fault = fault or uncached(refused)
                broken = broken or (None if attempt.revision else refused)
                if isinstance(error, MissingTemplate):
                    break  # No other generation would find it.
        if not unforeseen:
            self._spoiled.clear("constraint", *key)
        return taken or replace(state, error=fault), broken

    def _unforeseen_constraint(self, key: tuple[str, str], error: Exception) -> InvalidConstraint:
        """What nobody foresaw, as the refusal that it amounts to."""
        self._spoiled.take("constraint", *key, error=error)
        return InvalidConstraint(described(error))

    # --- saying so -----------------------------------------------------------------------------

    def published(self) -> bool:
        """The snapshot with everything applied so far answers admissions now.

        Whether that changed any status, or may have.
        """
        changed = bool(self._touched)
        for group, name in self._touched:
            if group == TEMPLATES:
                state = self._templates.get(name)
                self._tell(TEMPLATES, name, state)
            else:
                state = self._constraints.get(group, {}).get(name)
                self._tell(constraint_kind(group), name, state)
            with self._spoiled.object("status", group, name):
                self._write(group, name, state)
            self._good[group, name] = None if state is None else state.in_force
        self._touched.clear()
        return changed

    def take_good(self) -> dict[tuple[str, str], InForce | None]:
        """What is in force of each object that changed since the last call; None for none."""
        taken, self._good = self._good, {}
        return taken

    def _tell(self, kind: str, name: str, state: State | None) -> None:
        if state is None:
            self._tracker.cancel(kind, name)
        elif state.error is None or not is_broken(state, self._templates):
            self._tracker.observe(kind, name)
        else:
            self._tracker.fail(kind, name, state.error.message)
            if not self._wait_for_broken:
                self._tracker.cancel(kind, name)

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status objects that this replica should have, by name, as of the last publication."""
        return self._statuses

    def _write(self, group: str, name: str, state: State | None) -> None:
        """Bring the status object of one template or constraint up to date."""
        status_name = self._status_names.pop((group, name), None)
        before = self._statuses.pop(status_name, None) if status_name is not None else None
        document = self._status(group, state) if state is not None else None
        if document is not None:
            keep_since(document, before)
            status_name = document["metadata"]["name"]
            self._status_names[group, name] = status_name
            self._statuses[status_name] = document

    def _status(self, group: str, state: State) -> Json | None:
        name = state.document["metadata"]["name"]
        is_template = group == TEMPLATES
        circumstances = Circumstances(
            self._client.fault_of(*((name,) if is_template else (group, name))),
            self._around.breaker(group, name),
            self._around.no_crd(name) if is_template else "",
            self._observations.fields(state.uid, state.action)
            | self._around.generated(group, name),
            self._now(),
            self._retries.at(name if is_template else group.lower()),
        )
        return policy_status(self._pod, state, circumstances, is_template=is_template)
