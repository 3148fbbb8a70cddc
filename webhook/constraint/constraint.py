"""A constraint that has been read, ready to be matched and evaluated."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of
from webhook.constraint.depth import DEPTH_MAX, is_deeper
from webhook.constraint.digest import is_same_generation
from webhook.constraint.errors import InvalidConstraint
from webhook.constraint.excusable import exceptions_allowed
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.causes import FaultStage, OnError
    from webhook.constraint.failure_policy import FailurePolicy
    from webhook.constraint.target import CompiledMatch

GROUP: Final = names.CONSTRAINTS
STORED_VERSION: Final = "v1beta1"
"""The version that the API server stores."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Why the newest revision of a template or constraint cannot be used."""

    stage: FaultStage
    message: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """An accepted constraint with defaults; immutable.

    ``points`` maps enforcement points to the sorted actions of a scoped constraint. ``parameters``
    is ``spec.parameters``, None if absent; ``parameters_key`` is equal for equal parameters.
    ``broken`` is why a newer revision cannot be used. If ``is_good`` is false no revision was ever
    accepted: the constraint only matches, and ``onError`` answers.
    """

    kind: str
    name: str
    document: dict[str, Any] = field(repr=False, compare=False)
    enforcement_action: str = "deny"
    points: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    match: CompiledMatch | None = field(default=None, repr=False, compare=False)
    parameters: Any = field(default=None, repr=False, compare=False)
    parameters_key: bytes = field(default=b"", repr=False)
    on_error: OnError | None = field(default=None, repr=False)
    broken: Broken | None = field(default=None, repr=False)
    is_good: bool = field(default=True, repr=False)
    lets_existing: bool = field(default=False, repr=False)
    """Whether an update is refused only for violations that the old object did not have."""
    failure_policy: FailurePolicy = field(default="ignore", repr=False)
    """Whether requests that it matches pass while no replica answers."""
    exceptions: frozenset[bool] = field(init=False, repr=False, compare=False)
    """The kinds of exceptions that it allows: True for cluster-wide ones, False for others."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "exceptions", exceptions_allowed(self.document))

    @property
    def logged_fields(self) -> dict[str, str]:
        """The fields of Gatekeeper's log lines and Events that name the constraint."""
        group, _, version = str(self.document.get("apiVersion", "")).rpartition("/")
        return {
            "constraint_group": group,
            "constraint_api_version": version,
            "constraint_kind": self.kind,
            "constraint_name": self.name,
        }

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name, the identity of a constraint."""
        return self.kind, self.name

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether ``document`` is the generation in force and the newest known one."""
        return self.broken is None and is_same_generation(self.document, document)


def is_constraint(gvk: GroupVersionKind) -> bool:
    """Whether objects of a kind are constraints: a template's kind, or ConstraintGroup."""
    return gvk.group == GROUP or gvk.group_kind == (names.OURS, names.CONSTRAINT_GROUP)


def rank(gvk: GroupVersionKind) -> int:
    """Returns the order in which policies are added.

    Templates before constraints, members before groups.
    """
    if gvk.group == GROUP:
        return 1
    return 2 if is_constraint(gvk) else 0


def identity_of(document: Mapping[str, Any]) -> GroupVersionKind:
    """Returns the kind of a document that is a constraint.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint` for one that is no constraint.
    """
    name, gvk = name_of(document), gvk_of(document)
    if not name:
        raise InvalidConstraint("invalid Constraint: missing metadata.name")
    if not gvk.kind:
        raise InvalidConstraint("invalid Constraint: missing kind")
    if is_deeper(document.get("spec")):
        raise InvalidConstraint(f"invalid Constraint: nested deeper than {DEPTH_MAX} levels")
    if not is_constraint(gvk):
        raise InvalidConstraint(
            f'invalid Constraint: wrong API Group for Constraint "{name}", '
            f'got "{gvk.group}" but need "{GROUP}"'
        )
    return gvk
