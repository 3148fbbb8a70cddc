"""Values that mutators put at the end of their locations.

A setter takes the current value, or ``MISSING``, and returns the new value. Without a change it
returns the same object, so that a comparison is fast. ``MISSING`` again leaves the field out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from webhook.api.encoding import is_same_json
from webhook.api.gvk import name_of
from webhook.mutation.errors import ApplyError
from webhook.mutation.pace import LOOK_ITEMS, UNBOUNDED, Pace
from webhook.mutation.values import MISSING, go_type, key_of, shown
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from webhook.constraint.review import ReviewSource
    from webhook.mutation.image import ImageParts


@dataclass(frozen=True, slots=True)
class Context:
    """The facts of a request beside its object.

    ``namespace`` is the Namespace of the object, None if there is none or it is unknown.
    ``namespace_name`` is the name of the namespace used for matching. ``operation`` is CREATE or
    UPDATE; it is empty for objects without a request, of an audit or expansion. ``pace`` is checked
    while the object is mutated.
    """

    operation: str = ""
    namespace: Mapping[str, Any] | None = None
    namespace_name: str = ""
    username: str = ""
    source: ReviewSource = "Original"
    pace: Pace = UNBOUNDED


class Setter(Protocol):
    """The value that a mutator assigns."""

    def __call__(self, existing: Any, root: dict[str, Any], context: Context, /) -> Any:
        """Returns the value that replaces ``existing`` in the object ``root``."""


@dataclass(frozen=True, slots=True)
class Constant:
    """``assign.value``."""

    value: Any

    def __call__(self, existing: Any, _root: dict[str, Any], context: Context) -> Any:
        """The value; an item of a list that has another key than the location's is its own."""
        return existing if is_same_json(existing, self.value, context.pace.look) else self.value


@dataclass(frozen=True, slots=True)
class FromMetadata:
    """``assign.fromMetadata``: the object's name or namespace, empty where it has none."""

    field: str

    def __call__(self, existing: Any, root: dict[str, Any], context: Context) -> Any:
        """Returns the name or namespace."""
        value = context.namespace_name if self.field == "namespace" else name_of(root)
        return existing if existing == value else value


@dataclass(frozen=True, slots=True)
class Merge:
    """ModifySet's ``merge``: the values that a list lacks come at its end."""

    values: Sequence[Any]

    def __call__(self, existing: Any, root: dict[str, Any], context: Context) -> Any:
        """Returns the list with all values."""
        if existing is MISSING:
            return list(self.values)
        present = {key for _, key in _keyed(existing, root, context)}
        added = []
        for value in self.values:
            key = key_of(value)
            if key not in present:
                present.add(key)
                added.append(value)
        return [*existing, *added] if added else existing


@dataclass(frozen=True, slots=True)
class Prune:
    """ModifySet's ``prune``: the values are taken out of a list."""

    values: Sequence[Any]

    def __call__(self, existing: Any, root: dict[str, Any], context: Context) -> Any:
        """Returns the list without the values."""
        if existing is MISSING:
            return MISSING
        unwanted = {key_of(value) for value in self.values}
        kept = [item for item, key in _keyed(existing, root, context) if key not in unwanted]
        return existing if len(kept) == len(existing) else kept


def _keyed(value: Any, root: dict[str, Any], context: Context) -> Iterator[tuple[Any, Hashable]]:
    """Returns the items of a list, each with the key for its look-up."""
    if type(value) is not list:
        message = f"{_shown(value, root)} is not a list of values, cannot treat it as a set"
        raise ApplyError(message)
    for place, item in enumerate(value):
        if place & LOOK_ITEMS == LOOK_ITEMS:
            context.pace.look()
        yield item, key_of(item)


def _shown(value: Any, root: dict[str, Any]) -> str:
    """A value in Gatekeeper's message; of a Secret its type: messages go to logs and records."""
    return f"a {go_type(value)} of a Secret" if is_secret(root) else shown(value)


def is_secret(root: Mapping[str, Any]) -> bool:
    """Whether an object's values must not appear in a message."""
    return root.get("apiVersion") == "v1" and root.get("kind") == "Secret"


@dataclass(frozen=True, slots=True)
class UnknownOperation:
    """A ModifySet without a valid operation; a cluster's schema admits none."""

    operation: str

    def __call__(self, _existing: Any, _root: dict[str, Any], _context: Context) -> Any:
        """Always raises."""
        raise ApplyError(f"unrecognized operation for modifyset: {self.operation}")


@dataclass(frozen=True, slots=True)
class Image:
    """AssignImage's parts."""

    parts: ImageParts

    def __call__(self, existing: Any, root: dict[str, Any], _context: Context) -> Any:
        """Returns the image with the parts that are assigned."""
        if existing is MISSING:
            return self.parts.assigned_to("")
        if type(existing) is not str:
            raise ApplyError(
                "expected value at AssignImage location to be a string, "
                f"got {_shown(existing, root)} of type {go_type(existing)}"
            )
        image = self.parts.assigned_to(existing)
        return existing if image == existing else image


@dataclass(frozen=True, slots=True)
class ExternalData:
    """``assign.externalData``: the provider, and the fallback for a missing answer."""

    provider: str
    data_source: str
    failure_policy: str
    default: str

    def __call__(self, existing: Any, root: dict[str, Any], context: Context) -> Any:
        """Returns a placeholder, which the provider's answer replaces at the end."""
        if type(existing) is Placeholder:
            if existing.source == self:
                return existing
            return replace(existing, source=self)
        if type(existing) is str:
            return Placeholder(self, existing)
        if existing is not MISSING:
            raise ApplyError(
                "value assigned to external data placeholder is not a string, "
                f"got {_shown(existing, root)} ({go_type(existing)})"
            )
        return Placeholder(self, context.username if self.data_source == "Username" else "")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A field that a provider's answer for ``key`` is to replace."""

    source: ExternalData
    key: str

    def __str__(self) -> str:
        return f"an answer of the provider {self.source.provider}"
