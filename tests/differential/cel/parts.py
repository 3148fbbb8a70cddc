"""Values that the oracle cannot show as they are: which they are, and the questions for their parts.

Of an optional it tells what it holds alone, of a list or map with one, or with a value of a
library, at best Go's own text.
"""

import json
from typing import Any, Final

from webhook.cel.run.values import NOTHING, Opaque, Optional, Uint, from_key

MOST: Final = 3
"""Items of a list or map that are asked for."""


def is_shown(value: Any, *, within: bool = False) -> bool:
    """Whether the oracle shows all of a value: one of a library, by itself, as a text."""
    match value:
        case Optional():
            return False
        case Opaque():
            return not within
        case list():
            return all(is_shown(item, within=True) for item in value)
        case dict():
            keys = [from_key(key) for key in value]
            if any(key != key for key in keys if type(key) is float):  # noqa: PLR0124
                return False  # NaN is not found
            return all(is_shown(item, within=True) for item in (*keys, *value.values()))
    return True


def parts_of(expression: str, value: Any) -> list[str]:
    """Expressions for all that is to be known of a value which is not shown."""
    match value:
        case Optional():
            conditions = [f"({expression}).hasValue()"]
            return (
                conditions if value.value is NOTHING else [*conditions, f"({expression}).value()"]
            )
        case list():
            indices = range(min(len(value), MOST))
            return [f"size({expression})", *(f"({expression})[{at}]" for at in indices)]
        case dict():
            keys = [written for key in value if (written := _written(from_key(key)))]
            return [f"size({expression})", *(f"({expression})[{key}]" for key in keys[:MOST])]
    return []


def _written(key: Any) -> str | None:
    """A key as a literal."""
    match key:
        case bool() | str():
            return json.dumps(key, ensure_ascii=False)
        case Uint():
            return f"{int(key)}u"
        case int():
            return str(key)
    return None
