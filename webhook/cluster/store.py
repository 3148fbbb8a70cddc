"""The objects of one kind as this replica knows them, and what changes between two states.

Every change that leaves is one that happened: an object seen twice at the same
version is no change, a list is compared with what was known, and what it lacks
has been deleted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from webhook.api.names import LAST_APPLIED
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Object = dict[str, Any]


class Key(NamedTuple):
    """An object's namespace (empty for cluster-wide kinds) and name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """An object is there in this state, or is there no more (with its last known state)."""

    kind: Literal["set", "delete"]
    key: Key
    object: Object


@dataclass(frozen=True, slots=True)
class Mark:
    """An object as it was known when a request to write it began; None for unknown."""

    object: Object | None
    deletions: int


def slim(obj: Object) -> Object:
    """The object without what no policy reads and every object carries: its writers' history."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop(LAST_APPLIED, None)
    return obj


def key_of(obj: Object) -> Key:
    """Where the object is stored."""
    metadata = obj["metadata"]
    # Many objects are of one namespace, and each is decoded with a text of its own.
    return Key(sys.intern(metadata.get("namespace", "")), metadata["name"])


class Store:
    """The known objects of one kind."""

    def __init__(self) -> None:
        self._objects: dict[Key, Any] = {}
        """Each as :meth:`_held` has it."""
        self._deletions = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter([obj for obj in self._objects.values() if obj is not _UNSEEN])

    @property
    def keys(self) -> list[Key]:
        """Namespace and name of each object, also of those that are not held yet."""
        return list(self._objects)

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, if it is known."""
        obj: Object | None = self._objects.get(Key(namespace, name))
        return None if obj is _UNSEEN else obj

    def expect(self, keys: Iterable[Key]) -> None:
        """Know that there are objects, as their receiver does, and nothing of their states.

        Each is a change once it is taken in, and one that a list lacks has been deleted.
        """
        for key in keys:
            self._objects.setdefault(key, _UNSEEN)

    def _held(self, obj: Object) -> Any:
        """Returns the part of an object that the store keeps."""
        return obj

    def _is_same(self, held: Any, obj: Object) -> bool:
        """Whether an object is at the version that is held."""
        return _same(held, obj)

    def _is_other(self, held: Any, obj: Object) -> bool:
        """Whether it is another object of the same name."""
        return bool(_uid(held) != _uid(obj))

    def _last_state(self, key: Key, held: Any) -> Object:
        """An object that is there no more."""
        return _named(key) if held is _UNSEEN else held

    def set(self, obj: Object, *, by_content: bool = False) -> list[Change]:
        """Take in an object; what changed by that.

        With ``by_content`` the same version is not taken for the same object.
        """
        key = key_of(obj)
        known = self._objects.get(key)
        is_seen = known is not None and known is not _UNSEEN
        if is_seen and self._is_same(known, obj) and (not by_content or known == obj):
            return []
        self._objects[key] = self._held(obj)
        changes = [Change("set", key, obj)]
        if is_seen and self._is_other(known, obj):
            # Another object of the same name: the first one's deletion was not seen.
            changes.insert(0, Change("delete", key, self._last_state(key, known)))
        return changes

    def delete(self, obj: Object) -> list[Change]:
        """Take out an object; what changed by that."""
        key = key_of(obj)
        known = self._objects.get(key)
        if known is None or (known is not _UNSEEN and self._is_other(known, obj)):
            return []
        del self._objects[key]
        self._deletions += 1
        return [Change("delete", key, obj)]

    def mark(self, namespace: str, name: str) -> Mark:
        """Return a mark of an object's version before a request of ours writes it."""
        return Mark(self.get(namespace, name), self._deletions)

    def take_answer(self, mark: Mark, obj: Object) -> None:
        """Take in the answer to that request, unless the watch has told of the object meanwhile.

        The watch may be faster than the answer, and then knows a state as new or newer:
        a CRD that is established already, or deleted again. Nothing would correct an
        answer that is put over it, because no other event need ever come.
        """
        key = key_of(obj)
        if self._objects.get(key) is not mark.object:
            return
        if mark.object is None and self._deletions != mark.deletions:
            return
        self._objects[key] = slim(obj)

    def replace(self, objects: Iterable[Object], *, by_content: bool = False) -> list[Change]:
        """Take the whole list in; what it lacks has been deleted."""
        listed = {key_of(obj): obj for obj in objects}
        gone = [key for key in self._objects if key not in listed]
        changes = [
            Change("delete", key, self._last_state(key, self._objects.pop(key))) for key in gone
        ]
        self._deletions += len(gone)
        for obj in listed.values():
            changes += self.set(obj, by_content=by_content)
        return changes


class IdentityStore(Store):
    """Knows which objects there are, and at which version, and holds none: their receiver does."""

    def _held(self, obj: Object) -> Any:
        uid = obj["metadata"].get("uid")
        version = hash((uid, obj["metadata"].get("resourceVersion")))
        return (hash(uid) & _UID) << _VERSION_BITS | version & _VERSION

    def _is_same(self, held: Any, obj: Object) -> bool:
        return bool(held == self._held(obj))

    def _is_other(self, held: Any, obj: Object) -> bool:
        return bool(held >> _VERSION_BITS != self._held(obj) >> _VERSION_BITS)

    def _last_state(self, key: Key, held: Any) -> Object:
        del held
        return _named(key)

    def __iter__(self) -> Iterator[Object]:
        return iter(())

    def get(self, namespace: str, name: str) -> Object | None:
        """None: it holds no object."""
        del namespace, name
        return None


_UNSEEN: Final[Any] = object()
"""Stands for an object whose key alone is known."""

_VERSION_BITS: Final = 44
"""Of a hash with a secret of the process: two versions of an object are taken for one once in 10^13."""

_VERSION: Final = (1 << _VERSION_BITS) - 1
_UID: Final = 0xFFFF


def _named(key: Key) -> Object:
    return {"metadata": {"namespace": key.namespace, "name": key.name}}


def _uid(obj: Object) -> Any:
    return obj["metadata"].get("uid")


def _same(one: Object, other: Object) -> bool:
    ours, theirs = one["metadata"], other["metadata"]
    return bool(
        ours.get("uid") == theirs.get("uid")
        and ours.get("resourceVersion") == theirs.get("resourceVersion")
    )
