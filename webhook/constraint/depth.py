"""How deep a policy may nest.

The API server keeps 10,000 levels, and Python's comparisons and the walks of
schemas and values end at some 450. What is within the bound is worked on by every
part; what is beyond is refused by name, in admission and in the status, instead of
by whichever part ends first.
"""

from __future__ import annotations

from typing import Any, Final

DEPTH_MAX: Final = 400
"""Levels of objects and arrays in a template or constraint: 200 of a schema, each of which is two.
The deepest in use have some forty."""


def is_deeper(value: Any, levels: int = DEPTH_MAX) -> bool:
    """Whether a JSON value nests deeper than so many objects and arrays; walks without recursion."""
    level = [value]
    for _ in range(levels + 1):
        level = [part for item in level for part in _within(item)]
        if not level:
            return False
    return True


def _within(item: Any) -> Any:
    """The parts of an object or array, and a stand-in for those of one that is empty."""
    if type(item) is dict:
        return item.values() or (None,)
    if type(item) is list:
        return item or (None,)
    return ()
