"""The facts about a kind of policy object, and about the part of a policy set that it fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from webhook.admission_policies.kinds import name_or_digest
from webhook.api.gvk import GroupVersionKind, gvk_of, namespace_of
from webhook.api.resource import Resource
from webhook.constraint.errors import ConstraintFrameworkError
from webhook.external_data.provider import InvalidProvider
from webhook.mutation.errors import InvalidMutator
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.api.pod_status import StatusKind
    from webhook.api.shapes import Json

    PolicyObject: TypeAlias = Mapping[str, Any]

REFUSALS: Final = (ConstraintFrameworkError, InvalidMutator, InvalidProvider)
"""The exceptions that a kind's reader raises for an unusable object."""

ExtensionKey: TypeAlias = "tuple[str, str]"
"""The kind and name of a policy object other than templates and constraints; ``NAMESPACE/NAME`` for
namespaced kinds."""


def extension_key(document: PolicyObject, *, namespaced: bool = False) -> ExtensionKey:
    """Returns the key of an object; ignores the namespace of a cluster-scoped object."""
    name = name_or_digest(document)
    return gvk_of(document).kind, f"{namespace_of(document)}/{name}" if namespaced else name


Role: TypeAlias = Literal["template", "constraint", "configuration", "extension"]
"""The consumer of a kind's objects: the framework, the configuration of data and namespaces, or a
part."""


class ExtensionStanding(NamedTuple):
    """The state of an object among the others of its part, for its status.

    ``shared_error`` is a fault caused by other objects, for the status.
    """

    shared_error: Json | None = None
    warnings: tuple[str, ...] = ()
    is_preview: bool = False


class PolicyPart(Protocol):
    """The part of a policy set that the objects of some kinds fill. Used by one task."""

    @property
    def value(self) -> Any:
        """Returns the value for a policy set; the same object until something changes."""

    @property
    def keys(self) -> Collection[ExtensionKey]:
        """Returns the keys of all objects, including those with shared faults."""

    @property
    def count(self) -> int:
        """Returns the number of objects with an effect."""

    def put(self, document: PolicyObject) -> None:
        """Puts a generation of an object in force; raises one of :data:`REFUSALS`.

        After a refusal the earlier generation stays in force.
        """

    def remove(self, key: ExtensionKey) -> None:
        """Removes an object from force; does nothing if it is not in force."""

    def is_applied(self, key: ExtensionKey) -> bool:
        """Returns whether an object is in force, and not blocked by another."""

    def shared_faults(self) -> dict[ExtensionKey, str]:
        """Returns the faults of objects that other objects cause."""

    def standing(self, key: ExtensionKey, shared: str) -> ExtensionStanding:
        """Returns an object's standing among the others; ``shared`` is its shared fault or ""."""


class Part(NamedTuple):
    """A part of a policy set: its constructor, and the field that it fills.

    ``name`` is the noun for one object on pages and in messages. ``fills`` is a field of
    :class:`~webhook.review.policy_set.PolicySet`. Each part of ``stages`` is called with the
    findings on an object.
    """

    name: str
    make: Callable[[], PolicyPart]
    fills: Literal["mutations", "expansion", "providers", "stages"] = "stages"


def _as_it_is(document: PolicyObject, status: PolicyObject | None) -> PolicyObject:
    del status
    return document


def _no_messages(document: PolicyObject) -> tuple[str, ...]:
    del document
    return ()


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A row of the table of kinds.

    ``versions`` begins with the stored version. ``kind`` is empty if a group's kinds arise while a
    cluster runs, as those of constraints do.
    """

    role: Role
    group: str
    kind: str
    versions: tuple[str, ...]
    plural: str
    status: StatusKind | None = None
    """The kind of a replica's status of an object in the cluster; None for none."""
    part: Part | None = None
    """The part of a policy set that objects fill together; None for other kinds."""
    read: Callable[[PolicyObject], Any] | None = None
    """Reads a new object of admission or of files; raises one of :data:`REFUSALS`."""
    schema: PolicyObject | None = None
    """The schema of ``spec``, by which files are checked as the CRD checks objects; None if
    ``read`` checks them."""
    faults: Callable[[PolicyObject], tuple[str, ...]] = _no_messages
    """The function that returns the fields without effect of a usable object in a file."""
    warnings: Callable[[PolicyObject], tuple[str, ...]] = _no_messages
    """The function that returns the probable mistakes of an object that ``read`` takes."""
    staged: Callable[[PolicyObject, PolicyObject | None], PolicyObject] = _as_it_is
    """Returns an object at its stage of a roll-out, from its status in the cluster."""
    namespaced: bool = False
    known_as: str = ""
    """A unique name, if another group has a kind of the same name."""

    @property
    def name(self) -> str:
        """Returns the unique name of the kind."""
        return self.known_as or self.kind

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind at the stored version."""
        return GroupVersionKind(self.group, self.versions[0], self.kind)

    @property
    def resource(self) -> Resource:
        """Returns the served resource."""
        return Resource(self.gvk, self.plural, namespaced=self.namespaced)
