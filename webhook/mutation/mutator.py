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
    from collections.abc import Callable, Iterable, Mapping

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


_POD: Final = GroupKind("", "Pod")


class Fixed(NamedTuple):
    """The fields of a kind that an update may not change, but for those among them that it may."""

    fields: tuple[str, ...]
    but: tuple[str, ...] = ()

    def holds(self, field: str) -> bool:
        """Whether an update may not change a field, which is written with dots."""
        return _is_below(field, self.fields) and not _is_below(field, self.but)


FIXED: Final = {
    # Items may be added to spec.tolerations, too.
    _POD: Fixed(
        ("spec",),
        ("spec.containers.image", "spec.initContainers.image", "spec.activeDeadlineSeconds"),
    ),
    GroupKind("batch", "Job"): Fixed(("spec.template", "spec.selector", "spec.completionMode")),
    GroupKind("apps", "StatefulSet"): Fixed(
        ("spec",),
        (
            *("spec.replicas", "spec.template", "spec.updateStrategy", "spec.ordinals"),
            *("spec.minReadySeconds", "spec.revisionHistoryLimit"),
            "spec.persistentVolumeClaimRetentionPolicy",
        ),
    ),
    **dict.fromkeys(
        (GroupKind("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet")),
        Fixed(("spec.selector",)),
    ),
    GroupKind("storage.k8s.io", "StorageClass"): Fixed(
        ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    ),
    **dict.fromkeys(
        (
            GroupKind("rbac.authorization.k8s.io", kind)
            for kind in ("ClusterRoleBinding", "RoleBinding")
        ),
        Fixed(("roleRef",)),
    ),
}
"""Kinds of which an API server refuses some changes of what is there already."""


def _is_below(field: str, fields: Iterable[str]) -> bool:
    return any(f"{field}.".startswith(f"{above}.") for above in fields)


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


class MutationSource(Protocol):
    """A mutator or another policy that changes objects, for annotations, records and metrics."""

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
        match = object_of(object_of(self.document.get("spec")).get("match"))
        if match.get("source") == "Generated":
            return ()
        updated = {gvk.group_kind for gvk, operation in self.bindings if operation == "UPDATE"}
        field = ".".join(node.name for node in self.location if type(node) is Field)
        return tuple(
            f"it changes {field} of {kind.kind}s on UPDATE, which the API server refuses for a "
            f"{kind.kind} that is there already; have applyTo name the operation CREATE alone"
            for kind in sorted(updated & FIXED.keys())
            if self._is_refused(kind, field)
        )

    def _is_refused(self, kind: GroupKind, field: str) -> bool:
        """Whether the API server refuses its change of an existing object of a kind."""
        if kind == _POD and field == "spec.tolerations":
            # Items may be added, and no whole list put in place of another.
            return self.terminal != "Set" and type(self.location[-1]) is not ListItem
        adds = any(
            type(node) is ListItem and node.value is not None and allowed.missing
            for node, allowed in zip(self.location, self.assignment.allowed, strict=True)
        )
        return FIXED[kind].holds(field) or (kind == _POD and adds)

    def __str__(self) -> str:
        """As annotations and logs name it: kind, namespace (there is none), name, generation."""
        return f"{self.id.kind}//{self.id.name}:{self.generation}"
