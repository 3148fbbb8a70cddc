"""Mutators that have nothing to do with each other, applied in one walk over an object.

A walk follows one tree of fields, made of the locations of all these mutators
(:mod:`webhook.mutation.independence`). Values that do not hang on the object and stand side by side
are put there together; the JSON Patch is written on the way, and its pieces are kept by where they
belong. Objects are never changed, as elsewhere: what is on the way is copied, the rest shared.

A walk is exact whenever it ends. What it does not know raises :class:`Unknown`: a field of another
type, very many items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.api.encoding import encode
from webhook.mutation.errors import ApplyError
from webhook.mutation.patch import PATCH_BYTES_MAX, compare, escaped, packed
from webhook.mutation.setting import Image
from webhook.mutation.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.mutation.assigning import Assignment
    from webhook.mutation.patch import Operation
    from webhook.mutation.setting import Context

ITEMS_MAX: Final = 1024
"""Items of lists in one walk, which never looks at the clock: at some 10 µs for one with a hundred
mutators it takes 10 ms."""

PLACES_MAX: Final = 64
"""Places for which a group of values keeps its piece of the patch: containers of a Pod."""

PIECE_BYTES_MAX: Final = 16 * 1024
"""Of a piece that is kept, in base64: with those of all places a group has 1 MiB at most."""

IMAGES_MAX: Final = 256
"""Names of images that a mutator remembers with what it makes of them: at up to 512 characters each,
some 300 KiB; and as many of their pieces of patches, 1 KiB each."""

IMAGE_LENGTH_MAX: Final = 512


class Unknown(Exception):
    """The walk does not know what the mutators do to this object."""


class Walk:
    """One walk: who assigned anything, as a bit for each mutator, and the pieces of the patch.

    One that ``makes`` gives the object that comes of it, too. Otherwise what comes back is what was
    given: whoever answers an admission needs the patch alone.
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
        """Add a piece to the patch (:func:`~webhook.mutation.patch.packed`)."""
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
    """A field where a mutator's location ends, or beneath which no other one's goes on."""

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
        """Assign in ``current``; ``changed`` is what others have made of that."""
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
        """The operation that puts another image in the place of one that is remembered."""
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
            # What was made of an image may be read otherwise in the next pass.
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
        """Nothing: a list has no items before somebody adds one."""
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
        """``values`` are what ``together`` put where there is none of these fields.

        ``below`` has a field's name, what is under it, and whether null there is as if it were
        missing.
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
        """The operations that add all values to an object that has none of them."""
        added = (_added(f"{place}/{escaped(name)}", value) for name, value in self._values.items())
        return _kept(self._pieces, place, packed(b",".join(added)))


def _kept(pieces: dict[str, bytes], place: str, piece: bytes) -> bytes:
    if len(piece) > PIECE_BYTES_MAX:
        return piece
    if len(pieces) >= PLACES_MAX:
        pieces.clear()
    pieces[place] = piece
    return piece
