"""Masks providers' keys and answers that quote what is masked in a request.

A policy reads a confidential field and asks a provider about it: the value is then a key, and may
come back in the answer. What a policy derives from it in other ways (a hash, an encryption) is not
recognized.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Path = tuple[str, ...]

MASK: Final = "**masked**"

QUOTED_CHARACTERS_MIN: Final = 4
"""A shorter text is only compared as a whole, because most texts contain it."""

COMPARED_CHARACTERS_MAX: Final = 64 << 20
"""The most characters to search for one record, in about 20 ms; beyond it everything is masked."""


def values_at(value: Any, path: Path) -> Iterator[Any]:
    """Yields the values at a path; ``*`` steps into every item."""
    if not path:
        yield value
        return
    head, rest = path[0], path[1:]
    if type(value) is dict:
        for key in list(value) if head == "*" else [head] if head in value else []:
            yield from values_at(value[key], rest)
    elif type(value) is list and head == "*":
        for item in value:
            yield from values_at(item, rest)


class HiddenValues:
    """The texts and numbers of masked fields, also decoded from base64."""

    def __init__(self, values: Iterable[Any]) -> None:
        texts = {text for value in values for text in _texts(value, has_names=False)}
        self._texts = {form.lower() for text in texts for form in _forms(text)} - {""}
        self._characters = sum(map(len, self._texts))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def mask(self, calls: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
        """Returns the calls of a record without hidden values, and the paths that were masked."""
        calls = list(calls)
        count = sum(1 for call in calls for _ in _texts(call))
        is_all = count * self._characters > COMPARED_CHARACTERS_MAX
        if not is_all:
            # A provider's error may quote a key that is a part of a hidden value.
            keys = {key for call in calls for key in call.get("keys", ()) if self._is_in(key)}
            self._texts |= {key.lower() for key in keys}
        masked: dict[str, None] = {}
        without: list[dict[str, Any]] = []
        for call in calls:
            kept = dict(call)
            for name in ("keys", "responses", "errors", "systemError"):
                if name not in call:
                    continue
                kept[name] = self._without(call[name], is_all=is_all)
                if kept[name] != call[name]:
                    masked[f"externalData.*.{name}"] = None
            without.append(kept)
        return without, list(masked)

    def _without(self, value: Any, *, is_all: bool) -> Any:
        if type(value) is not list:
            return MASK if is_all or self._is_in(value) else value
        kept = []
        for item in value:
            if type(item) is not list:
                kept.append(MASK if is_all or self._is_in(item) else item)
            elif is_all or self._is_in(item[0]):
                kept.append([MASK] * len(item))  # The answer is about the hidden value.
            else:
                kept.append([MASK if self._is_in(part) else part for part in item])
        return kept

    def _is_in(self, value: Any) -> bool:
        return any(self._is_quoted(text.lower()) for text in _texts(value))

    def _is_quoted(self, text: str) -> bool:
        if text in self._texts:
            return True
        is_long = len(text) >= QUOTED_CHARACTERS_MIN
        return any(
            (is_long and text in hidden)
            or (len(hidden) >= QUOTED_CHARACTERS_MIN and hidden in text)
            for hidden in self._texts
        )


def _texts(value: Any, *, has_names: bool = True) -> Iterator[str]:
    """Yields the texts and numbers of a value, with ``has_names`` also the names of fields."""
    due = [value]
    while due:
        item = due.pop()
        if isinstance(item, dict):
            due += item.keys() if has_names else ()
            due += item.values()
        elif isinstance(item, list | tuple):
            due += item
        elif isinstance(item, str):
            yield item
        elif item is not None and not isinstance(item, bool):
            yield str(item)


def _forms(text: str) -> Iterator[str]:
    yield text
    try:
        yield base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return
