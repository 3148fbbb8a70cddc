"""A constraint, read and ready to be matched and evaluated."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from webhook.api import names
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.depth import DEPTH_MAX, is_deeper
from webhook.constraint.digest import is_same_generation
from webhook.constraint.errors import InvalidConstraint
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.gvk import GroupVersionKind
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
    """One constraint as accepted: defaults filled in, never changed again.

    ``points`` gives for each enforcement point the actions of a scoped
    constraint, sorted. ``parameters`` is ``spec.parameters``, None where there are none, and
    ``parameters_key`` is equal where they are. ``broken`` says why a newer
    revision than this cannot be used; one that is not ``is_good`` was never
    accepted itself, and is here to be matched and answered for.
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
    """Whether an update is refused only for what the old object has not."""
    failure_policy: FailurePolicy = field(default="ignore", repr=False)
    """The answer to requests that it matches, while no replica answers."""

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name: a constraint's identity."""
        return self.kind, self.name

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Return whether this generation is in force, and the newest one known."""
        return self.broken is None and is_same_generation(self.document, document)


def is_constraint(gvk: GroupVersionKind) -> bool:
    """Return whether objects of a kind are constraints: a template's kind, or ConstraintGroup."""
    return gvk.group == GROUP or gvk.group_kind == (names.OURS, names.CONSTRAINT_GROUP)


def rank(gvk: GroupVersionKind) -> int:
    """The order in which policies are added: a constraint needs its template, a group its members."""
    if gvk.group == GROUP:
        return 1
    return 2 if is_constraint(gvk) else 0


def identity_of(document: Mapping[str, Any]) -> GroupVersionKind:
    """Return the kind of a document that is a constraint.

    Raises :class:`~webhook.constraint.errors.InvalidConstraint` for one that can be none.
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
