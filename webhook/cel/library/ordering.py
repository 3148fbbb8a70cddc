"""The order of Go's ``sort.Slice``, which is not stable: equal items may change places.

Go uses a pattern-defeating quicksort (Orson Peters); its random swaps depend only on the length.
The difference to a stable sort shows only with items that are equal or have no order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

_Item = TypeVar("_Item")

SHORT: Final = 12
"""Ranges of up to this many items are sorted by insertion, which keeps the order of equal items."""

_LONG: Final = 50
"""From this many items on, a pivot is chosen from nine, and a few misplaced items are moved."""

_PAID: Final = 50
"""The number of items of a divided range that cost one unit."""

_MOST_MOVED: Final = 5
_MOST_SWAPS: Final = 12
_BITS: Final = (1 << 64) - 1


def go_sorted(
    items: list[_Item], less: Callable[[_Item, _Item], bool], charge: Callable[[int], None]
) -> list[_Item]:
    """Returns the sorted items, for any ``less``; a part of the comparisons is charged."""
    sorting = _Sorting(list(items), less, charge)
    sorting.sort(0, len(items), len(items).bit_length())
    return sorting.items


class _Sorting(Generic[_Item]):
    """A sort in progress. Ranges go from ``begin`` to before ``end``."""

    def __init__(
        self,
        items: list[_Item],
        less: Callable[[_Item, _Item], bool],
        charge: Callable[[int], None],
    ) -> None:
        self.items = items
        self._less = less
        self.charge = charge

    def less(self, first: int, other: int) -> bool:
        return self._less(self.items[first], self.items[other])

    def swap(self, first: int, other: int) -> None:
        items = self.items
        items[first], items[other] = items[other], items[first]

    def sort(self, begin: int, end: int, bad_pivots_left: int) -> None:
        """Sorts a range; after ``bad_pivots_left`` bad pivots by heapsort."""
        was_balanced = was_divided = True
        while end - begin > SHORT:
            self.charge((end - begin) // _PAID)
            if not bad_pivots_left:
                self.by_heap(begin, end)
                return
            if not was_balanced:
                self.shuffle(begin, end)
                bad_pivots_left -= 1
            pivot, swaps = self.pivot(begin, end)
            if swaps == _MOST_SWAPS:  # the range is in descending order
                self.items[begin:end] = self.items[begin:end][::-1]
                pivot = begin + end - 1 - pivot
            is_sorted = swaps in {0, _MOST_SWAPS}
            if was_balanced and was_divided and is_sorted and self.insert_misplaced(begin, end):
                return
            if begin and not self.less(begin - 1, pivot):
                begin = self.divide_equal(begin, end, pivot)
                continue
            middle, was_divided = self.divide(begin, end, pivot)
            before, behind = middle - begin, end - middle
            was_balanced = min(before, behind) >= (end - begin) // 8
            if before < behind:
                self.sort(begin, middle, bad_pivots_left)
                begin = middle + 1
            else:
                self.sort(middle + 1, end, bad_pivots_left)
                end = middle
        for at in range(begin + 1, end):
            self.sink(at, begin)

    def sink(self, at: int, lowest: int) -> None:
        """Moves an item down to its place."""
        while at > lowest and self.less(at, at - 1):
            self.swap(at, at - 1)
            at -= 1

    def insert_misplaced(self, begin: int, end: int) -> bool:
        """Moves a few misplaced items; returns whether the range is sorted now."""
        at = begin + 1
        for _ in range(_MOST_MOVED):
            while at < end and not self.less(at, at - 1):
                at += 1
            if at == end:
                return True
            if end - begin < _LONG:
                return False
            self.swap(at, at - 1)
            if at - begin >= 2:
                self.sink(at - 1, 0)
            if end - at >= 2:
                up = at + 1
                while up < end and self.less(up, up - 1):
                    self.swap(up, up - 1)
                    up += 1
        return False

    # --- pivots -------------------------------------------------------------------------------

    def pivot(self, begin: int, end: int) -> tuple[int, int]:
        """Returns the index of a pivot, and the number of swaps that its choice needed."""
        quarter = (end - begin) // 4
        places = [begin + quarter * part for part in (1, 2, 3)]
        swaps = 0
        if end - begin >= _LONG:
            for part, at in enumerate(places):
                places[part], more = self.median(at - 1, at, at + 1)
                swaps += more
        middle, more = self.median(*places)
        return middle, swaps + more

    def median(self, low: int, middle: int, high: int) -> tuple[int, int]:
        swaps = 0
        if self.less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        if self.less(high, middle):
            middle, swaps = high, swaps + 1
        if self.less(middle, low):
            middle, swaps = low, swaps + 1
        return middle, swaps

    def shuffle(self, begin: int, end: int) -> None:
        """Swaps three items in the middle with pseudo-random ones, to break patterns."""
        length = state = end - begin
        first = begin + length // 4 * 2 - 1
        for at in range(first, first + 3):
            state ^= state << 13 & _BITS
            state ^= state >> 7
            state ^= state << 17 & _BITS
            other = state & ((1 << length.bit_length()) - 1)
            self.swap(at, begin + (other - length if other >= length else other))

    # --- dividing -----------------------------------------------------------------------------

    def divide(self, begin: int, end: int, pivot: int) -> tuple[int, bool]:
        """Moves smaller items to the front; returns the pivot's index, and whether they were there."""
        self.swap(begin, pivot)
        low, high = begin + 1, end - 1
        swaps = 0
        while True:
            while low <= high and self.less(low, begin):
                low += 1
            while low <= high and not self.less(high, begin):
                high -= 1
            if low > high:
                break
            self.swap(low, high)
            low, high, swaps = low + 1, high - 1, swaps + 1
        self.swap(high, begin)
        return high, not swaps

    def divide_equal(self, begin: int, end: int, pivot: int) -> int:
        """Moves items equal to the pivot to the front, as none is less; returns the end of them."""
        self.swap(begin, pivot)
        low, high = begin + 1, end - 1
        while True:
            while low <= high and not self.less(begin, low):
                low += 1
            while low <= high and self.less(begin, high):
                high -= 1
            if low > high:
                return low
            self.swap(low, high)
            low, high = low + 1, high - 1

    # --- a heap -------------------------------------------------------------------------------

    def by_heap(self, begin: int, end: int) -> None:
        """Sorts a range by heapsort, after too many bad pivots."""
        length = end - begin
        for root in range((length - 1) // 2, -1, -1):
            self.sift(root, length, begin)
        for last in range(length - 1, -1, -1):
            self.swap(begin, begin + last)
            self.sift(0, last, begin)

    def sift(self, root: int, length: int, begin: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.less(begin + child, begin + child + 1):
                child += 1
            if not self.less(begin + root, begin + child):
                return
            self.swap(begin + root, begin + child)
            root = child
