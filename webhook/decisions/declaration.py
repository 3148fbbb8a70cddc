"""Declarations of settings in a configuration file: one for each field, with its default."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, field
from typing import Any, Final

from webhook.values import dataclass

SETTING: Final = "setting"
"""Where a field's metadata has its :class:`Declared`."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting of a configuration file.

    ``key`` is its key, after the keys of the mappings around it (``queue.maxBytes``); empty for the
    field's name in camelCase. Numbers lie between ``least`` and ``most``, texts are among
    ``words``; None and empty for no such bound.
    """

    key: str
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()

    def key_of(self, name: str) -> list[str]:
        """Returns the keys that lead to a field of this name."""
        first, *rest = name.split("_")
        return (self.key or first + "".join(part.capitalize() for part in rest)).split(".")


def setting(
    default: Any = MISSING,
    key: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    words: Collection[str] = (),
) -> Any:
    """Declares a field that a file sets; its type is that of the default, text without one.

    Lists of texts default to a tuple, or to a frozenset of words. Mappings of texts default to a
    dict, of which each object has its own copy.
    """
    metadata = {SETTING: Declared(key, least, most, tuple(words))}
    if default is MISSING:
        return field(metadata=metadata)
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    if type(default) is dict:
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)
