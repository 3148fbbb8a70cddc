"""The JSON Patch (RFC 6902) that makes one object of another: deterministic, and what changed alone.

Parts that are one object in both are not looked into. Fields come in the order of the new object
and those that are gone before them; the items of a list by their places, in which a run of items
that were put in or taken out is found from both ends.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import decode, encode
from webhook.mutation.pace import LOOK_ITEMS, UNBOUNDED
from webhook.mutation.values import MISSING, are_same

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.mutation.pace import Pace

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

    Base64 takes three bytes at a time: where blanks, which JSON does not mind, fill up the last
    three, pieces are joined as they are, and one that is kept is never written in base64 again.
    """
    return b64encode(operations + b" " * (-len(operations) % 3))


class Patch:
    """A patch as it is answered, of which the operations are looked at by whoever asks for them."""

    __slots__ = ("_operations", "base64")

    def __init__(self, base64: bytes = b"", operations: list[Operation] | None = None) -> None:
        self.base64 = base64
        """The document, as the API server takes it; empty where nothing changes."""
        self._operations = operations

    @classmethod
    def of_pieces(cls, pieces: Iterable[bytes]) -> Patch:
        """The patch of all operations of some pieces, at least one (:func:`packed`)."""
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
    """The patch that makes ``new`` of ``old``; raises :class:`PatchTooLarge` and ``OutOfTime``.

    A value that stands in many places is one object here and written out in each, so that the
    size shows only while it is written: it ends where it is too large.
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
    """The operations that make ``new`` of ``old``; none where they are the same JSON."""
    operations: list[Operation] = []
    compare("", old, new, operations, pace)
    return operations


def compare(
    path: str, old: Any, new: Any, operations: list[Operation], pace: Pace = UNBOUNDED
) -> None:
    """Add the operations that make of what stands at a path something else."""
    if old is new:
        return
    if type(old) is dict and type(new) is dict:
        _compare_objects(path, old, new, operations, pace)
    elif type(old) is list and type(new) is list:
        _compare_lists(path, old, new, operations, pace)
    elif not are_same(old, new, pace):
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
        if length < len(shorter) and are_same(shorter[length], item, pace):
            length += 1
        else:
            lacking.append(place)
    return lacking if length == len(shorter) else None


def _compare_ends(
    path: str, old: list[Any], new: list[Any], operations: list[Operation], pace: Pace
) -> None:
    """Compare item by item; what the longer has more of comes or goes at the end."""
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
    """A field's name as a segment of a path."""
    return name.replace("~", "~0").replace("/", "~1")
