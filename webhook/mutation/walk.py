"""Mutators that have nothing to do with each other, applied in one walk over an object.

A walk follows one tree of fields, made of the locations of all these mutators
(:mod:`webhook.mutation.independence`). Neighbouring values that do not depend on the object are
assigned together. The JSON Patch is written on the way, and its pieces are cached by place. Objects
are never changed in place: parts on the way are copied, all others shared.

A completed walk is exact. Cases that it does not handle raise :class:`Unknown`: a field of another
type, very many items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.encoding import encode
from webhook.mutation.errors import ApplyError
from webhook.mutation.patch import PATCH_BYTES_MAX, Operation, compare, escaped, packed
from webhook.mutation.setting import Context, Image
from webhook.mutation.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.mutation.assigning import Assignment

ITEMS_MAX: Final = 1024
"""The most list items in one walk, which never checks the clock: an item with a hundred mutators
takes some 10 µs, so a walk takes 10 ms.
"""

PLACES_MAX: Final = 64
"""Places for which a group of values keeps its piece of the patch: containers of a Pod."""

PIECE_BYTES_MAX: Final = 16 * 1024
"""The most bytes of a cached piece in base64: the pieces of all places of a group have at most 1
MiB.
"""

IMAGES_MAX: Final = 256
"""The most image names that a mutator caches with their results. Names of at most 512 characters
take some 300 KiB; as many pieces of patches take 1 KiB each.
"""

IMAGE_LENGTH_MAX: Final = 512


class Unknown(Exception):
    """The walk does not handle the effect of the mutators on this object."""


class Walk:
    """One walk: the mutators that assigned a value, as bits, and the pieces of the patch.

    With ``makes`` the walk also returns the resulting object. Otherwise it returns the given
    object: the answer to an admission needs only the patch.
    """

    __slots__ = ("_room", "assigned", "context", "items_left", "makes", "pieces", "root")

    def __init__(self, root: dict[str, Any], context: Context, *, makes: bool) -> None:
        self.root = root
        self.context = context
        self.makes = makes
        self.assigned = 0
        self.pieces: list[bytes] = []
        self.items_left = ITEMS_MAX
        self._room = PATCH_BYTES_MAX

    def put(self, piece: bytes) -> None:
        """Adds a piece to the patch (:func:`~webhook.mutation.patch.packed`)."""
        self.pieces.append(piece)
        self._room -= len(piece) // 4 * 3
        if self._room < 0:
            raise Unknown

    def changed(self, place: str, old: Any, new: Any) -> None:
        """Another value stands at a place."""
        if old is MISSING:
            self.put(packed(_added(place, new)))
            return
        operations: list[Operation] = []
        compare(place, old, new, operations)
        if operations:
            self.put(packed(b",".join(map(encode, operations))))


def _added(place: str, value: Any) -> bytes:
    return encode({"op": "add", "path": place, "value": value})


class Below(Protocol):
    """The nodes below a field of an object."""

    is_made_alike: bool
    """Whether the value made where nothing stands is the same for every object."""

    def apply(self, current: Any, place: str, walk: Walk, /) -> Any:
        """Returns the value after the walk; the same object where nothing changes."""

    def made(self, place: str, existing: Any, walk: Walk, /) -> Any:
        """Makes a missing value; ``MISSING`` where no mutator assigns anything."""


class Leaf:
    """A field at the end of a mutator's location, or with only one mutator's location below."""

    __slots__ = (
        "_assignment",
        "_depth",
        "_images",
        "_is_end",
        "_replacing",
        "_segment",
        "bit",
        "name",
    )

    def __init__(self, name: str, assignment: Assignment, depth: int, bit: int) -> None:
        """``depth`` is the field's in the location."""
        self.name = name
        self.bit = bit
        self._assignment = assignment
        self._depth = depth
        self._segment = f"/{escaped(name)}"
        self._is_end = depth + 1 == len(assignment.location)
        self._images: dict[str, str] = {}
        self._replacing: dict[tuple[str, str], bytes] = {}

    def apply(
        self, current: dict[str, Any], changed: dict[str, Any], place: str, walk: Walk
    ) -> dict[str, Any]:
        """Assigns in ``current``; ``changed`` is the result of other mutators so far."""
        existing = current.get(self.name, MISSING)
        if self._is_end:
            allowed = self._assignment.allowed[self._depth]
            if not (allowed.missing if existing is MISSING else allowed.present):
                return changed
            value = self._value(existing, walk)
        else:
            try:
                assigned, inner = self._assignment.walk(
                    current, self._depth, walk.root, walk.context
                )
            except ApplyError:
                raise Unknown from None
            if not assigned:
                return changed
            value = existing if inner is current else inner[self.name]
        walk.assigned |= self.bit
        if value is existing:
            return changed
        if type(existing) is str and existing in self._images and existing != value:
            walk.put(self._replaced(place, value))
        else:
            walk.changed(place + self._segment, existing, value)
        if not walk.makes:
            return changed
        changed = dict(current) if changed is current else changed
        changed[self.name] = value
        return changed

    def _replaced(self, place: str, image: str) -> bytes:
        """Returns the operation that replaces a cached image."""
        piece = self._replacing.get((place, image))
        if piece is None:
            path = place + self._segment
            piece = packed(encode({"op": "replace", "path": path, "value": image}))
            if len(place) + len(image) <= IMAGE_LENGTH_MAX:
                if len(self._replacing) >= IMAGES_MAX:
                    self._replacing.clear()
                self._replacing[place, image] = piece
        return piece

    def _value(self, existing: Any, walk: Walk) -> Any:
        """Returns the mutator's value for the end of its location."""
        setter = self._assignment.setter
        if type(setter) is Image:
            known = self._images.get(existing) if type(existing) is str else None
            if known is not None:
                return existing if known == existing else known
        try:
            value = setter(existing, walk.root, walk.context)
            # The next pass may read an assigned image in another way.
            if type(setter) is Image and setter(value, walk.root, walk.context) is not value:
                raise Unknown
        except ApplyError:
            raise Unknown from None
        if type(setter) is Image and type(existing) is str and len(existing) <= IMAGE_LENGTH_MAX:
            if len(self._images) >= IMAGES_MAX:
                self._images.clear()
            self._images[existing] = value
        return value


class Items:
    """Every item of a list."""

    __slots__ = ("_fields",)

    is_made_alike = True

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def apply(self, current: Any, place: str, walk: Walk) -> Any:
        """Returns an object after the walk."""
        if type(current) is not list:
            raise Unknown
        walk.items_left -= len(current)
        if walk.items_left < 0:
            raise Unknown
        new: list[Any] | None = None
        for number, item in enumerate(current):
            changed = self._fields.apply(item, f"{place}/{number}", walk)
            if changed is not item:
                new = list(current) if new is None else new
                new[number] = changed
        return current if new is None else new

    def made(self, _place: str, _existing: Any, _walk: Walk) -> Any:
        """Returns no items: a list has no items before a mutator adds one."""
        return MISSING


class Fields:
    """The fields of an object."""

    __slots__ = (
        "_alike",
        "_below",
        "_bits",
        "_leaves",
        "_made",
        "_pieces",
        "_together",
        "_values",
        "is_made_alike",
    )

    def __init__(
        self,
        values: dict[str, Any],
        together: Iterable[Leaf],
        leaves: Iterable[Leaf],
        below: Sequence[tuple[str, Below, bool]],
    ) -> None:
        """``values`` are the assignments of ``together`` if none of these fields exists.

        ``below`` has a field's name, its walk below, and whether null counts as missing there.
        """
        self._values = values
        self._together = tuple(together)
        self._leaves = tuple(leaves)
        self._below = [
            (name, f"/{escaped(name)}", node, null_too) for name, node, null_too in below
        ]
        self._bits = sum(leaf.bit for leaf in self._together)
        self._pieces: dict[str, bytes] = {}
        self._made: dict[str, bytes] = {}
        self.is_made_alike = not self._leaves and all(
            node.is_made_alike for _, _, node, _ in self._below
        )
        self._alike: tuple[Any, int] | None = None

    def apply(self, current: Any, place: str, walk: Walk) -> Any:
        """Returns a list after the walk."""
        if type(current) is not dict:
            raise Unknown
        new = current
        if self._values:
            if self._values.keys().isdisjoint(current):
                if walk.makes:
                    new = {**current, **self._values}
                walk.assigned |= self._bits
                walk.put(self._pieces.get(place) or self._piece(place))
            else:
                for leaf in self._together:
                    new = leaf.apply(current, new, place, walk)
        for leaf in self._leaves:
            new = leaf.apply(current, new, place, walk)
        for name, segment, node, null_too in self._below:
            existing = current.get(name, MISSING)
            if existing is MISSING or (existing is None and null_too):
                value = node.made(place + segment, existing, walk)
                if value is MISSING or not walk.makes:
                    continue
            else:
                value = node.apply(existing, place + segment, walk)
                if value is existing:
                    continue
            new = dict(current) if new is current else new
            new[name] = value
        return new

    def made(self, place: str, existing: Any, walk: Walk) -> Any:
        """Makes a list where none is."""
        if self._alike is None:
            fresh = self._fresh(walk)
            if self.is_made_alike:
                self._alike = fresh
        else:
            fresh = self._alike
        value, bits = fresh
        if not bits:
            return MISSING
        walk.assigned |= bits
        if existing is not MISSING or not self.is_made_alike:
            walk.changed(place, existing, value)
            return value
        piece = self._made.get(place)
        if piece is None:
            piece = _kept(self._made, place, packed(_added(place, value)))
        walk.put(piece)
        return value

    def _fresh(self, walk: Walk) -> tuple[Any, int]:
        """Makes an object without fields; returns it, and the mutators that did."""
        inner = Walk(walk.root, walk.context, makes=True)
        value = self.apply({}, "", inner)
        return value, inner.assigned

    def _piece(self, place: str) -> bytes:
        """Returns the operations that add all values to an object without these fields."""
        added = (_added(f"{place}/{escaped(name)}", value) for name, value in self._values.items())
        return _kept(self._pieces, place, packed(b",".join(added)))


def _kept(pieces: dict[str, bytes], place: str, piece: bytes) -> bytes:
    if len(piece) > PIECE_BYTES_MAX:
        return piece
    if len(pieces) >= PLACES_MAX:
        pieces.clear()
    pieces[place] = piece
    return piece
