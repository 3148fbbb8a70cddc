"""The known objects of one kind, and the changes between two states.

Every reported change has happened: the same version again is no change, and a complete list is
compared with the known objects, so that missing ones are deletions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from webhook.api.encoding import decode, encode_to_keep, is_same_json
from webhook.api.names import LAST_APPLIED
from webhook.values import dataclass

Object = dict[str, Any]


class Key(NamedTuple):
    """An object's namespace (empty for cluster-wide kinds) and name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """The new state of an object, or its deletion with the last known state."""

    kind: Literal["set", "delete"]
    key: Key
    object: Object


@dataclass(frozen=True, slots=True)
class Mark:
    """The known version of an object when a write request began; None for an unknown object."""

    object: Any
    """The object as the store holds it."""
    deletions: int


def slim(obj: Object) -> Object:
    """Returns the object without ``managedFields``, which every object has and no policy reads."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop(LAST_APPLIED, None)
    return obj


def shared(obj: Object) -> Object:
    """Returns the object with short texts shared, for a store of policies or statuses.

    Each object is decoded with texts of its own, and most of them are in many objects.
    """
    _share(obj)
    return obj


def _share(obj: Any) -> None:
    """Replaces short texts by shared ones, except those that identify an object."""
    pending = [obj]  # A recursive function would fail at an object that is nested deeply.
    while pending:
        value = pending.pop()
        items: Iterable[tuple[Any, Any]]
        items = list(value.items()) if type(value) is dict else enumerate(value)
        for place, item in items:
            if type(item) is str:
                if len(item) <= _SHARED_MAX and place not in _OWN:
                    value[place] = sys.intern(item)
            elif type(item) is dict or type(item) is list:
                pending.append(item)


_SHARED_MAX: Final = 64
"""The longest text that is shared, in characters."""
_OWN: Final = frozenset({"name", "uid", "resourceVersion"})


def key_of(obj: Object) -> Key:
    """Returns the key of an object."""
    metadata = obj["metadata"]
    # Many objects are of one namespace, and each is decoded with a text of its own.
    return Key(sys.intern(metadata.get("namespace", "")), metadata["name"])


class Store:
    """The known objects of one kind."""

    def __init__(self) -> None:
        self._objects: dict[Key, Any] = {}
        """The objects, each in the form of :meth:`_held`."""
        self._deletions = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter([obj for obj in self._objects.values() if obj is not _UNSEEN])

    @property
    def keys(self) -> list[Key]:
        """Returns the keys of all objects, including expected ones that are not known yet."""
        return list(self._objects)

    def get(self, namespace: str, name: str) -> Object | None:
        """Returns one object; None if it is not known."""
        obj: Object | None = self._objects.get(Key(namespace, name))
        return None if obj is _UNSEEN else obj

    def expect(self, keys: Iterable[Key]) -> None:
        """Registers objects that their receiver already has, without their states.

        Each is a change once it arrives, and a deletion if a list lacks it.
        """
        for key in keys:
            self._objects.setdefault(key, _UNSEEN)

    def _held(self, obj: Object) -> Any:
        """Returns the part of an object that the store keeps."""
        return obj

    def _is_same(self, held: Any, obj: Object) -> bool:
        """Whether an object has the held version."""
        return _same(held, obj)

    def _is_equal(self, held: Any, obj: Object) -> bool:
        """Whether an object has the held content."""
        return is_same_json(held, obj)

    def _is_other(self, held: Any, obj: Object) -> bool:
        """Whether an object of the same name has another UID."""
        return bool(_uid(held) != _uid(obj))

    def _last_state(self, key: Key, held: Any) -> Object:
        """Returns the last known state of a deleted object."""
        return _named(key) if held is _UNSEEN else held

    def set(self, obj: Object, *, by_content: bool = False) -> list[Change]:
        """Stores an object; returns the changes.

        With ``by_content`` objects are compared by content and not by version.
        """
        key = key_of(obj)
        known = self._objects.get(key)
        is_seen = known is not None and known is not _UNSEEN
        if is_seen and self._is_same(known, obj) and (not by_content or self._is_equal(known, obj)):
            return []
        self._objects[key] = self._held(obj)
        changes = [Change("set", key, obj)]
        if is_seen and self._is_other(known, obj):
            # Another object of the same name: the first one's deletion was not seen.
            changes.insert(0, Change("delete", key, self._last_state(key, known)))
        return changes

    def delete(self, obj: Object) -> list[Change]:
        """Removes an object; returns the changes."""
        key = key_of(obj)
        known = self._objects.get(key)
        if known is None or (known is not _UNSEEN and self._is_other(known, obj)):
            return []
        del self._objects[key]
        self._deletions += 1
        return [Change("delete", key, obj)]

    def mark(self, namespace: str, name: str) -> Mark:
        """Returns the known version of an object before we write it."""
        held = self._objects.get(Key(namespace, name))
        return Mark(None if held is _UNSEEN else held, self._deletions)

    def take_answer(self, mark: Mark, obj: Object) -> None:
        """Stores the answer to our write, unless the watch has delivered the object meanwhile.

        The watch may be faster than the answer and have a newer state: a CRD that is established,
        or deleted again. If the answer replaced it, no later event would correct that.
        """
        key = key_of(obj)
        if self._objects.get(key) is not mark.object:
            return
        if mark.object is None and self._deletions != mark.deletions:
            return
        self._objects[key] = self._held(slim(obj))

    def replace(self, objects: Iterable[Object], *, by_content: bool = False) -> list[Change]:
        """Stores a complete list; returns the changes, including deletions of missing objects."""
        listed = {key_of(obj): obj for obj in objects}
        gone = [key for key in self._objects if key not in listed]
        changes = [
            Change("delete", key, self._last_state(key, self._objects.pop(key))) for key in gone
        ]
        self._deletions += len(gone)
        for obj in listed.values():
            changes += self.set(obj, by_content=by_content)
        return changes


class EncodedStore(Store):
    """Holds objects as JSON, in a third of the memory; an object is decoded when it is read.

    For objects that are read rarely: when they change, or are to be written.
    """

    def _held(self, obj: Object) -> Any:
        return encode_to_keep(obj)

    def _is_same(self, held: Any, obj: Object) -> bool:
        return _same(decode(held), obj)

    def _is_equal(self, held: Any, obj: Object) -> bool:
        return is_same_json(decode(held), obj)

    def _is_other(self, held: Any, obj: Object) -> bool:
        return bool(_uid(decode(held)) != _uid(obj))

    def _last_state(self, key: Key, held: Any) -> Object:
        return _named(key) if held is _UNSEEN else decode(held)

    def __iter__(self) -> Iterator[Object]:
        known = [held for held in self._objects.values() if held is not _UNSEEN]
        return iter(map(decode, known))

    def get(self, namespace: str, name: str) -> Object | None:
        """Returns one object, decoded anew; None if it is not known."""
        held = self._objects.get(Key(namespace, name))
        return None if held is None or held is _UNSEEN else decode(held)


class IdentityStore(Store):
    """Knows keys and versions of objects, but not the objects, which their receiver keeps."""

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
        """Returns None: it keeps no objects."""
        del namespace, name
        return None


_UNSEEN: Final[Any] = object()
"""The version of an expected object that has not arrived."""

_VERSION_BITS: Final = 44
"""Bits of a keyed hash of a version: two versions collide once in 10^13."""

_VERSION: Final = (1 << _VERSION_BITS) - 1
_UID: Final = 0xFFFF


def _named(key: Key) -> Object:
    return {"metadata": {"namespace": key.namespace, "name": key.name}}


def _uid(obj: Object) -> Any:
    return obj["metadata"].get("uid")


def _same(first: Object, other: Object) -> bool:
    ours, theirs = first["metadata"], other["metadata"]
    return bool(
        ours.get("uid") == theirs.get("uid")
        and ours.get("resourceVersion") == theirs.get("resourceVersion")
    )
