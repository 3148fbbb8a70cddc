"""The JSON Patch (RFC 6902) from one object to another: deterministic, with changed parts only.

Parts that are the same Python object in both are skipped. Removed fields come first, then fields in
the order of the new object. List items are compared by position; a run of added or removed items is
found from both ends.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.api.encoding import decode, encode, is_same_json
from webhook.mutation.pace import LOOK_ITEMS, UNBOUNDED, Pace
from webhook.mutation.values import MISSING

Operation = dict[str, Any]

PATCH_BYTES_MAX: Final = 3 * 1024 * 1024
"""Of a patch: the API server takes no request that is larger, so no object needs more."""


class PatchTooLarge(Exception):
    """A patch of more than :data:`PATCH_BYTES_MAX`."""


_SEPARATOR: Final = b64encode(b",  ")
_BEGINNING: Final = b64encode(b"[  ")
_END: Final = b64encode(b"  ]")


def packed(operations: bytes) -> bytes:
    """Encoded operations, with commas between them, as a piece of :meth:`Patch.of_pieces`.

    Base64 encodes three bytes at a time. Blanks, which JSON allows, fill up the last three, so
    encoded pieces can be joined and a kept piece is encoded only once.
    """
    return b64encode(operations + b" " * (-len(operations) % 3))


class Patch:
    """An encoded patch, whose operations are decoded at their first use."""

    __slots__ = ("_operations", "base64")

    def __init__(self, base64: bytes = b"", operations: list[Operation] | None = None) -> None:
        self.base64 = base64
        """The document, as the API server takes it; empty where nothing changes."""
        self._operations = operations

    @classmethod
    def of_pieces(cls, pieces: Iterable[bytes]) -> Patch:
        """Returns the patch of all operations of at least one piece (:func:`packed`)."""
        return cls(_BEGINNING + _SEPARATOR.join(pieces) + _END)

    def __bool__(self) -> bool:
        return bool(self.base64)

    @property
    def operations(self) -> list[Operation]:
        """The operations, in their order."""
        if self._operations is None:
            self._operations = decode(b64decode(self.base64)) if self.base64 else []
        return self._operations


NO_PATCH: Final = Patch()


def patch_between(old: Mapping[str, Any], new: Mapping[str, Any], pace: Pace = UNBOUNDED) -> Patch:
    """Returns the patch from ``old`` to ``new``; raises :class:`PatchTooLarge` and ``OutOfTime``.

    A value in many places is one Python object but is written in each place. So the size is known
    only while writing, which ends if it is too large.
    """
    operations = make_patch(old, new, pace)
    if not operations:
        return NO_PATCH
    pieces: list[bytes] = []
    room = PATCH_BYTES_MAX
    for number, operation in enumerate(operations):
        if number & LOOK_ITEMS == LOOK_ITEMS:
            pace.look()
        piece = encode(operation)
        room -= len(piece) + 1
        if room < 0:
            raise PatchTooLarge(
                "the mutators' patch is larger than an object may be: more than "
                f"{PATCH_BYTES_MAX} bytes"
            )
        pieces.append(piece)
    return Patch(b64encode(b"[" + b",".join(pieces) + b"]"), operations)


def make_patch(
    old: Mapping[str, Any], new: Mapping[str, Any], pace: Pace = UNBOUNDED
) -> list[Operation]:
    """Returns the operations that make ``new`` of ``old``; none where they are the same JSON."""
    operations: list[Operation] = []
    compare("", old, new, operations, pace)
    return operations


def compare(
    path: str, old: Any, new: Any, operations: list[Operation], pace: Pace = UNBOUNDED
) -> None:
    """Adds the operations that change the value at a path into another value."""
    if old is new:
        return
    if type(old) is dict and type(new) is dict:
        _compare_objects(path, old, new, operations, pace)
    elif type(old) is list and type(new) is list:
        _compare_lists(path, old, new, operations, pace)
    elif not is_same_json(old, new, pace.look):
        operations.append({"op": "replace", "path": path, "value": new})


def _compare_objects(
    path: str, old: dict[str, Any], new: dict[str, Any], operations: list[Operation], pace: Pace
) -> None:
    pace.look()
    operations.extend(
        {"op": "remove", "path": f"{path}/{escaped(name)}"} for name in old if name not in new
    )
    for name, value in new.items():
        before = old.get(name, MISSING)
        if before is value:
            continue
        place = f"{path}/{escaped(name)}"
        if before is MISSING:
            operations.append({"op": "add", "path": place, "value": value})
        else:
            compare(place, before, value, operations, pace)


def _compare_lists(
    path: str, old: list[Any], new: list[Any], operations: list[Operation], pace: Pace
) -> None:
    if len(old) == len(new):
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            if place & LOOK_ITEMS == LOOK_ITEMS:
                pace.look()
            compare(f"{path}/{place}", before, after, operations, pace)
        return
    longer, shorter = (old, new) if len(old) > len(new) else (new, old)
    places = _places_of(shorter, longer, pace)
    if places is None:
        _compare_ends(path, old, new, operations, pace)
    elif longer is old:
        operations.extend({"op": "remove", "path": f"{path}/{place}"} for place in reversed(places))
    else:
        operations.extend(
            {"op": "add", "path": f"{path}/{place}", "value": new[place]} for place in places
        )


def _places_of(shorter: Sequence[Any], longer: Sequence[Any], pace: Pace) -> list[int] | None:
    """The places of the longer list's items that the shorter lacks; None where more differs."""
    lacking: list[int] = []
    length = 0
    for place, item in enumerate(longer):
        if place & LOOK_ITEMS == LOOK_ITEMS:
            pace.look()
        if length < len(shorter) and is_same_json(shorter[length], item, pace.look):
            length += 1
        else:
            lacking.append(place)
    return lacking if length == len(shorter) else None


def _compare_ends(
    path: str, old: list[Any], new: list[Any], operations: list[Operation], pace: Pace
) -> None:
    """Compares item by item; the surplus of the longer list is added or removed at the end."""
    common = min(len(old), len(new))
    for place in range(common):
        if place & LOOK_ITEMS == LOOK_ITEMS:
            pace.look()
        compare(f"{path}/{place}", old[place], new[place], operations, pace)
    operations.extend(
        {"op": "remove", "path": f"{path}/{place}"} for place in range(len(old) - 1, common - 1, -1)
    )
    operations.extend(
        {"op": "add", "path": f"{path}/{place}", "value": new[place]}
        for place in range(common, len(new))
    )


def escaped(name: str) -> str:
    """Returns a field's name as a segment of a path."""
    return name.replace("~", "~0").replace("/", "~1")
