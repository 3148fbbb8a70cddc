"""Mutators ready to be applied: their identity, their objects, and their assignment."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from webhook.api import names
from webhook.api.gvk import GroupKind, GroupVersionKind
from webhook.api.shapes import object_of
from webhook.constraint import rollout
from webhook.constraint.rollout import stage_of
from webhook.mutation.location import Field, ListItem, Location
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from webhook.constraint.match import MatchSubject, View
    from webhook.mutation.assigning import Assignment


def staged(document: Mapping[str, Any], status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns the mutator with the mode of its roll-out stage, if its roll-out has begun.

    ``status`` is the status in the cluster, for any revision of the document. A mutator with the
    preview annotation stays in preview.
    """
    if stage_of({**document, "status": status}) != PREVIEW:
        return document
    metadata = document["metadata"]
    return {
        **document,
        "metadata": {**metadata, "annotations": {**metadata["annotations"], MODE: PREVIEW}},
    }


GROUP: Final = rollout.MUTATORS
ENFORCE: Final = rollout.ENFORCE
PREVIEW: Final = rollout.PREVIEW

VERSIONS: Final = {
    "Assign": ("v1", "v1beta1", "v1alpha1"),
    "AssignImage": ("v1alpha1",),
    "AssignMetadata": ("v1", "v1beta1", "v1alpha1"),
    "ModifySet": ("v1", "v1beta1", "v1alpha1"),
}
"""The kinds of mutators, and the versions of each; the first version is the stored version."""

UNMUTATED_GROUPS: Final = frozenset(
    f"{name}.gatekeeper.sh"
    for name in (
        "templates",
        "constraints",
        "mutations",
        "config",
        "externaldata",
        "expansion",
        "status",
    )
) | {names.OURS}
"""Policies themselves, which no mutator changes: Gatekeeper's list, and ours; syncset and connection
are not on it."""

MODE: Final = "waddle.dev/mode"
"""The annotation for preview: the mutator reports its changes and does not apply them."""

OPERATIONS: Final = ("CREATE", "UPDATE")
"""The operations whose requests are mutated."""


_PODS: Final = GroupVersionKind("", "v1", "Pod")

UPDATED_FIELDS: Final = (
    ("metadata",),
    ("spec", "containers", "image"),
    ("spec", "initContainers", "image"),
    ("spec", "activeDeadlineSeconds"),
)
"""The fields of a Pod that an update may change; to ``spec.tolerations`` it may add items."""


class MutatorId(NamedTuple):
    """The identity of a mutator; the order of identities is that in which mutators run."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}.{GROUP} /{self.name}"


class Binding(NamedTuple):
    """A kind and an operation that a mutator applies to."""

    gvk: GroupVersionKind
    operation: str


class MutatingParty(Protocol):
    """A mutator, or another party that changes objects, for annotations, records and metrics."""

    @property
    def id(self) -> MutatorId:
        """Its kind and name."""

    @property
    def generation(self) -> int:
        """Of its object: another one may do other things."""

    @property
    def document(self) -> Mapping[str, Any]:
        """It as it was written."""


@dataclass(frozen=True, slots=True)
class Mutator:
    """A mutator that was read.

    ``bindings`` are those of ``applyTo``, for one set of operations each. They are empty for
    AssignMetadata, which applies to every kind that ``selects`` and has no part in schemas.
    ``matches`` raises :class:`~webhook.constraint.errors.MatchError`.
    """

    id: MutatorId
    generation: int
    location: Location
    assignment: Assignment
    bindings: frozenset[Binding]
    whole: frozenset[GroupVersionKind]
    """Kinds for which one ``applyTo`` entry covers all operations; used for objects without a request."""
    terminal: str
    """The schema's knowledge of the end of the location: Unknown, Set or String."""
    must_terminate: bool
    """Whether no other mutator's location may continue below the end of this one."""
    selects: Callable[[GroupKind], bool]
    matches: Callable[[View, MatchSubject], bool]
    match_key: str
    """Equal for mutators with the same match; empty if every object of its kinds matches."""
    labels_read: frozenset[str]
    """The labels that selectors of its match ask for."""
    is_preview: bool
    """Whether its changes are computed and reported, but not applied."""
    document: Mapping[str, Any] = field(repr=False, hash=False, compare=False)

    @property
    def has_schema(self) -> bool:
        """Whether its location says something about the kinds it applies to."""
        return bool(self.bindings)

    def applies_to(self, gvk: GroupVersionKind, operation: str) -> bool:
        """Whether it applies to objects of a kind at an operation, for any content."""
        if not self.bindings:
            return self.selects(gvk.group_kind)
        return Binding(gvk, operation) in self.bindings if operation else gvk in self.whole

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about a mutator that can be applied, but is probably wrong."""
        is_asked = Binding(_PODS, "UPDATE") in self.bindings
        match = object_of(object_of(self.document.get("spec")).get("match"))
        if not is_asked or match.get("source") == "Generated" or self._may_update:
            return ()
        where = ".".join(node.name for node in self.location if type(node) is Field)
        warning = (
            f"it changes {where} of Pods on UPDATE, which the API server refuses for a Pod that is "
            "there already; have applyTo name the operation CREATE alone"
        )
        return (warning,)

    @property
    def _may_update(self) -> bool:
        """Whether the API server accepts its changes in an existing Pod."""
        fields = tuple(node.name for node in self.location if type(node) is Field)
        if fields == ("spec", "tolerations"):
            # Items that are added, and no whole list in place of another.
            return self.terminal == "Set" or type(self.location[-1]) is ListItem
        adds = any(
            type(node) is ListItem and node.value is not None and allowed.missing
            for node, allowed in zip(self.location, self.assignment.allowed, strict=True)
        )
        return not adds and any(fields[: len(field)] == field for field in UPDATED_FIELDS)

    def __str__(self) -> str:
        """As annotations and logs name it: kind, namespace (there is none), name, generation."""
        return f"{self.id.kind}//{self.id.name}:{self.generation}"
