"""The steps that put a template or a constraint in force.

:func:`applied` is common to both: it tries one revision after the other, and records every error in
the object's own state. A foreseen refusal is a return value. An unforeseen exception of any class
is caught here and treated as a refusal.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol

from webhook.api.pod_status import StatusError
from webhook.constraint.errors import (
    CompileError,
    ConstraintFrameworkError,
    InvalidConstraint,
    InvalidTemplate,
    MissingEngine,
    MissingTemplate,
)
from webhook.constraint.rollout import stage_of, staged
from webhook.controllers.apply.constraint_crds import owned
from webhook.controllers.object_faults import ObjectFaults, described
from webhook.controllers.requirements import Requirements, missing, read_requirements
from webhook.controllers.revisions.policy_state import UNFORESEEN, State
from webhook.controllers.revisions.revisions import MISSING_REVISION, InForce, Revisions, attempts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from typing import Any

    from webhook.api.gvk import GroupVersionKind
    from webhook.constraint.client import Client
    from webhook.controllers.apply.projection import SyncProjection


class Strategy(Protocol):
    """The strategy for one kind of object."""

    @property
    def follower(self) -> Literal["template", "constraint"]:
        """The controller that object faults are counted for."""

    @property
    def final(self) -> tuple[type[ConstraintFrameworkError], ...]:
        """Refusals after which no earlier revision need be tried."""

    def path(self, state: State) -> tuple[str, ...]:
        """Returns the name of the object in object faults."""

    def attempt(
        self, state: State, attempt: InForce
    ) -> tuple[State, ConstraintFrameworkError | None]:
        """Returns the state with this version in force or withheld; or the refusal and the state."""

    def beyond_bounds(self, why: str) -> ConstraintFrameworkError:
        """Returns the refusal for a trial that exceeded its limits in another replica."""

    def kept(self, state: State) -> State:
        """Returns the state if no version can be put in force: the previous one stays if possible."""

    def unforeseen(self, error: Exception) -> ConstraintFrameworkError:
        """Returns the refusal for an unforeseen error."""

    def status_error(self, refusal: ConstraintFrameworkError) -> StatusError:
        """Returns a refusal as a status error."""

    def break_(self, document: Mapping[str, Any], refusal: ConstraintFrameworkError) -> None:
        """Reports to the client that the newest generation cannot be used."""


class TemplateStrategy:
    """Templates: compiled, and withheld until the data that they ask for is synced."""

    follower: Final = "template"
    final: Final = ()

    def __init__(self, client: Client, projection: SyncProjection | None = None) -> None:
        """``projection`` selects the kept fields of synced objects; None keeps whole objects."""
        self._client = client
        self.projection = projection
        self.synced: AbstractSet[GroupVersionKind] = frozenset()
        """The kinds whose objects are all in the snapshot."""

    def path(self, state: State) -> tuple[str, ...]:
        """Its name."""
        return (state.name,)

    def attempt(
        self, state: State, attempt: InForce
    ) -> tuple[State, ConstraintFrameworkError | None]:
        """Enforce this, or withhold it until its data is there."""
        name = state.name
        crd: Mapping[str, Any]
        try:
            requirements = read_requirements(attempt.document)
            absent = missing(requirements, self.synced)
            projected = self._projected(attempt.document, is_withheld=bool(absent))
            if not absent and projected:
                # Objects are being listed anew with more fields: the version in force stays
                # meanwhile.
                crd = self._client.create_crd(attempt.document)
                crd = state.crd if state.active and state.crd else owned(crd, attempt.document)
                return replace(state, missing=projected, crd=crd), None
            if not absent:
                self._client.add_template(attempt.document)
                crd = self._client.crd_of(name)
                absent = self._projected(attempt.document, is_usable=True)
            if absent:
                crd = self._client.create_crd(attempt.document)
                self._client.remove_template(name)
        except MissingEngine as refusal:
            # The CRD of its constraints does not depend on the engine.
            crd = self._client.create_crd(attempt.document)
            return replace(state, crd=owned(crd, attempt.document)), refusal
        except InvalidTemplate as refusal:
            return state, refusal
        in_force = None if absent else attempt
        return replace(
            state,
            in_force=in_force,
            missing=absent,
            requirements=requirements,
            crd=owned(crd, attempt.document),
        ), None

    def _projected(
        self, document: Mapping[str, Any], *, is_usable: bool = False, is_withheld: bool = False
    ) -> Requirements:
        """Returns the kinds of which a template reads more fields than are kept."""
        if self.projection is None:
            return ()
        return self.projection.awaited(document, is_usable=is_usable, is_withheld=is_withheld)

    def beyond_bounds(self, why: str) -> ConstraintFrameworkError:
        """Returns the error that the trial itself would have given."""
        return CompileError(why)

    def kept(self, state: State) -> State:
        """Keeps the generation in force, unless its data is no longer synced."""
        absent = missing(state.requirements, self.synced)
        if not absent or state.in_force is None:
            return replace(state, missing=())
        self._client.remove_template(state.name)
        return replace(state, in_force=None, missing=absent)

    def unforeseen(self, error: Exception) -> ConstraintFrameworkError:
        """Returns an internal error of the template."""
        return InvalidTemplate(described(error), UNFORESEEN)

    def status_error(self, refusal: ConstraintFrameworkError) -> StatusError:
        """Returns the status error, with Gatekeeper's code."""
        assert isinstance(refusal, InvalidTemplate)
        return StatusError(refusal.code, str(refusal))

    def break_(self, document: Mapping[str, Any], refusal: ConstraintFrameworkError) -> None:
        """Reports the broken template to the client; ``onError`` decides requests that match it."""
        assert isinstance(refusal, InvalidTemplate)
        self._client.break_template(document, refusal)


class ConstraintStrategy:
    """Constraints: enforced at the stage of their roll-out."""

    follower: Final = "constraint"
    final: Final = (MissingTemplate,)

    def __init__(self, client: Client) -> None:
        self._client = client

    def path(self, state: State) -> tuple[str, ...]:
        """Its kind and name."""
        return state.document["kind"], state.name

    def attempt(
        self, state: State, attempt: InForce
    ) -> tuple[State, ConstraintFrameworkError | None]:
        """Puts this constraint in force.

        A kept revision was valid once. A later change of the template's schema would not have taken
        it out of force either, so it is not validated again.
        """
        status = state.document.get("status")
        try:
            self._client.add_constraint(
                staged(attempt.document, status), is_valid=bool(attempt.revision)
            )
            action = stage_of({**attempt.document, "status": status})
        except ConstraintFrameworkError as refusal:
            return state, refusal
        return replace(state, in_force=attempt, action=action), None

    def beyond_bounds(self, why: str) -> ConstraintFrameworkError:
        """Returns a fault of the constraint: its parameters make it so."""
        return InvalidConstraint(why)

    def kept(self, state: State) -> State:
        """Keeps the state unchanged."""
        return state

    def unforeseen(self, error: Exception) -> ConstraintFrameworkError:
        """Returns an internal error of the constraint."""
        return InvalidConstraint(described(error))

    def status_error(self, refusal: ConstraintFrameworkError) -> StatusError:
        """Returns the status error, with Gatekeeper's text."""
        return StatusError("", f"could not cache constraint: {refusal}")

    def break_(self, document: Mapping[str, Any], refusal: ConstraintFrameworkError) -> None:
        """Reports the broken constraint to the client; ``onError`` decides requests that match it."""
        self._client.break_constraint(document, refusal)


def applied(
    state: State, strategy: Strategy, revisions: Revisions, object_faults: ObjectFaults
) -> tuple[State, ConstraintFrameworkError | None]:
    """Puts an object in force; returns its state, and the refusal of the newest revision, if any."""
    outcome = object_faults.attempt(
        strategy.follower,
        strategy.path(state),
        lambda: _attempted(state, strategy, revisions, object_faults),
    )
    return faulted(state, strategy, outcome) if isinstance(outcome, Exception) else outcome


def faulted(
    state: State, strategy: Strategy, error: Exception
) -> tuple[State, ConstraintFrameworkError | None]:
    """Returns the object with an unforeseen error, which its status reports."""
    refusal = strategy.unforeseen(error)
    return replace(state, error=strategy.status_error(refusal)), refusal


def _attempted(
    state: State, strategy: Strategy, revisions: Revisions, object_faults: ObjectFaults
) -> tuple[State, ConstraintFrameworkError | None]:
    fault: StatusError | None = None
    broken: ConstraintFrameworkError | None = None
    is_foreseen = True
    for attempt in attempts(state.document, state.in_force, revisions):
        if not isinstance(attempt, InForce):
            fault = fault or StatusError(MISSING_REVISION, str(attempt))
            continue
        outcome = object_faults.attempt(
            strategy.follower,
            strategy.path(state),
            partial(_tried, state, strategy, revisions, attempt),
        )
        refusal: ConstraintFrameworkError | None
        if isinstance(outcome, Exception):
            refusal, is_foreseen = strategy.unforeseen(outcome), False
        else:
            state, refusal = outcome
        if refusal is None:
            break
        fault = fault or strategy.status_error(refusal)
        broken = broken or (None if attempt.revision else refusal)
        if isinstance(refusal, strategy.final):
            state = strategy.kept(state)
            break
    else:
        state = strategy.kept(state)
    if is_foreseen:
        object_faults.clear(strategy.follower, *strategy.path(state))
    return replace(state, error=fault), broken


def _tried(
    state: State, strategy: Strategy, revisions: Revisions, attempt: InForce
) -> tuple[State, ConstraintFrameworkError | None]:
    if why := revisions.refusal(attempt.document, attempt.digest):
        return state, strategy.beyond_bounds(why)
    return strategy.attempt(state, attempt)
