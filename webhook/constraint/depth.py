"""The depth to which a policy may nest.

The API server stores 10,000 levels. Python's comparisons and recursive walks of schemas and values
fail at about 450. So a policy beyond :data:`DEPTH_MAX` is refused at admission and in its status,
with an error that names the depth.
"""

from __future__ import annotations

from typing import Any, Final

DEPTH_MAX: Final = 400
"""Levels of objects and arrays in a template or constraint: 200 of a schema, each of which is two.
The deepest ones in use have about forty.
"""


def is_deeper(value: Any, levels: int = DEPTH_MAX) -> bool:
    """Whether a JSON value nests deeper than ``levels``.

    Walks it level by level, without recursion.
    """
    level = [value]
    for _ in range(levels + 1):
        level = [part for item in level for part in _within(item)]
        if not level:
            return False
    return True


def _within(item: Any) -> Any:
    """Returns the members of an object or array.

    An empty one gives one None, since it is a level too.
    """
    if type(item) is dict:
        return item.values() or (None,)
    if type(item) is list:
        return item or (None,)
    return ()
