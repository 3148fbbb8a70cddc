"""The state of a template or constraint of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from webhook.api.encoding import is_same_json
from webhook.constraint.enforcement import action_of
from webhook.constraint.errors import (
    ConstraintFrameworkError,
    MemberFault,
    MissingEngine,
    MissingTemplate,
    PassingFault,
    TrialEnded,
)
from webhook.constraint.rollout import stage_of
from webhook.constraint.template import kind_of
from webhook.generation.plan import Enforced
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api.pod_status import StatusError
    from webhook.api.shapes import Json
    from webhook.controllers.requirements import Requirements
    from webhook.controllers.revisions.revisions import InForce

InForceNow: TypeAlias = "tuple[dict[str, Mapping[str, Any]], dict[tuple[str, str], Enforced]]"
"""Templates by name, constraints by kind and name."""

ENGINE: Final = "engine"
"""Code of the status error of a template whose engine is off: waiting would not help."""

UNFORESEEN: Final = "internal_error"
"""Code of the status error for an unforeseen error."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a template or constraint: its document, its version in force, and its error.

    ``missing`` is the data that a template waits for, ``requirements`` that of the version in
    force. ``crd`` is the CRD of its constraints. ``action`` is a constraint's enforcement action at
    its stage of a roll-out.
    """

    document: Mapping[str, Any]
    in_force: InForce | None = None
    error: StatusError | None = None
    missing: Requirements = ()
    requirements: Requirements = ()
    crd: Json | None = None
    action: str = ""

    @property
    def name(self) -> str:
        """The object's."""
        name: str = self.document["metadata"]["name"]
        return name

    @property
    def active(self) -> int:
        """The generation in force, 0 for none."""
        return 0 if self.in_force is None else self.in_force.generation

    @property
    def uid(self) -> str:
        """The object's."""
        uid: str = self.document["metadata"].get("uid", "")
        return uid

    @property
    def kind(self) -> str | None:
        """The constraint kind of the template in force, or the kind that a broken template names.

        None if the template's name does not match: the kind then belongs to the template of that
        name.
        """
        kind = kind_of(self.document if self.in_force is None else self.in_force.document)
        return kind if kind and kind.lower() == self.name else None

    @property
    def fault(self) -> str:
        """Returns the fault of the object in a line; empty for none."""
        if self.error is None:
            return ""
        return f"{self.document['kind']} {self.document['metadata']['name']}: {self.error.message}"


@dataclass(frozen=True, slots=True)
class AppliedFault:
    """The fault of a generation found while it was applied: any replica would find the same."""

    document: Mapping[str, Any]
    verdict: Literal["refused", "ended"]
    message: str

    @property
    def name(self) -> str:
        """The object's."""
        name: str = self.document["metadata"]["name"]
        return name


def generation_fault(
    document: Mapping[str, Any], refusal: ConstraintFrameworkError
) -> AppliedFault | None:
    """Returns the fault of a generation for a refusal; None if its text is not at fault.

    The text is not at fault if machine resources, an engine or the template are missing, or for a
    bug of ours.
    """
    if refusal.bug is not None or isinstance(
        refusal, MemberFault | MissingEngine | MissingTemplate | PassingFault
    ):
        return None
    verdict: Literal["refused", "ended"] = "ended" if isinstance(refusal, TrialEnded) else "refused"
    return AppliedFault(document, verdict, str(refusal))


def is_broken(state: State, templates: Mapping[str, State]) -> bool:
    """Whether nothing of an object is enforced until it is corrected; ``templates`` is by name.

    A template that waits for data is not broken, and neither are its constraints. Readiness waits
    for data that is being synced; other data may never be synced.
    """
    error = state.error
    if error is None or state.in_force is not None or error.code == ENGINE:
        return False
    template = templates.get(state.document["kind"].lower())
    return template is None or not template.missing or template.error is not None


def enforced(templates: Mapping[str, State], constraints: Iterable[State]) -> InForceNow:
    """Returns the objects in force, with the current action of each constraint."""
    documents = {
        name: state.in_force.document
        for name, state in templates.items()
        if state.in_force is not None
    }
    in_force: dict[tuple[str, str], Enforced] = {}
    for state in constraints:
        if state.in_force is not None:
            document = state.in_force.document
            key = document["kind"], document["metadata"]["name"]
            in_force[key] = Enforced(document, state.action or action_of(document))
    return documents, in_force


def count_not_newest(
    templates: Iterable[State], constraints: Iterable[State]
) -> dict[tuple[str, ...], float]:
    """Returns how many objects are not enforced in their newest version, by kind and cause."""
    counts: dict[tuple[str, ...], float] = {
        (kind, cause): 0.0
        for kind in ("template", "constraint")
        for cause in ("earlier", "none", "rollback")
    }
    for kind, states in (("template", templates), ("constraint", constraints)):
        for state in states:
            if state.in_force is not None and state.in_force.rollback:
                counts[kind, "rollback"] += 1
            elif state.error is not None:
                counts[kind, "earlier" if state.in_force is not None else "none"] += 1
    return counts


def same_policy(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two states of an object differ in nothing that decides: statuses change often."""
    ours, theirs = first["metadata"], other["metadata"]
    return (
        all(
            ours.get(field) == theirs.get(field)
            for field in ("uid", "generation", "labels", "annotations")
        )
        and is_same_json(first.get("spec"), other.get("spec"))
        and stage_of(first) == stage_of(other)
    )
