"""Merges an apply configuration into an object, as an API server's policies do.

k8s.io/apiserver, admission/plugin/policy/mutating/patch/smd.go; structured-merge-diff,
typed/merge.go. The schema of the kind is unknown here, so fields are not checked; the API server
checks them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from webhook.cel.errors import EvaluationError
from webhook.golang.strings import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.admission_policies.list_types import MergeType

_Id = tuple[Any, ...]


def applied(
    obj: dict[str, Any],
    configuration: dict[str, Any],
    of: MergeType,
    *,
    replaces_wholes: bool = False,
) -> dict[str, Any]:
    """Returns the object merged with a configuration; changes neither argument.

    ``replaces_wholes`` allows atomic lists and objects in the configuration, which replace the old
    ones. Raises :class:`~webhook.cel.errors.EvaluationError` for a configuration that cannot be
    applied.
    """
    wholes = [] if replaces_wholes else list(_wholes(configuration, of, ""))
    if wholes:
        raise EvaluationError(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            f"or structs: {', '.join(wholes)}"
        )
    merged: dict[str, Any] = _merged(obj, configuration, of, "")
    return merged


def _wholes(value: Any, of: MergeType, at: str) -> Iterator[str]:
    """Yields the paths of atomic values, which an apply would replace as a whole."""
    if type(value) is dict:
        if of.is_whole:
            yield at
        for name, inner in value.items():
            yield from _wholes(inner, of.field(name), f"{at}.{name}")
    elif type(value) is list:
        if not of.keys and not of.is_set:
            yield at
        for number, inner in enumerate(value):
            yield from _wholes(inner, of.item(), f"{at}[{number}]")


def _merged(old: Any, new: Any, of: MergeType, at: str) -> Any:
    if type(new) is dict and type(old) in {dict, type(None)}:
        if of.is_whole or not (old or new):
            return new
        merged = dict(old or {})
        for name, value in new.items():
            merged[name] = _merged(merged.get(name), value, of.field(name), f"{at}.{name}")
        return merged
    if type(new) is list and type(old) in {list, type(None)} and (of.keys or of.is_set):
        return _merged_lists(old or [], new, of, at)
    return new


def _merged_lists(old: Sequence[Any], new: Sequence[Any], of: MergeType, at: str) -> Any:
    """Returns the items of both lists, merged by their keys.

    Items only in the old list keep their places; items of the new list come in its order.
    """
    ids = _distinct(new, of, at)
    old_ids = [_id(item, of, f"{at}[{number}]") for number, item in enumerate(old)]
    by_id: dict[_Id, Any] = {}
    for one, item in zip(old_ids, old, strict=True):
        by_id[one] = (
            None if one in by_id else item
        )  # items of the old list with the same key are not merged
    made: list[Any] = []
    named = set(ids)
    shared = deque(one for one in ids if one in by_id)
    merged: set[_Id] = set()
    left, right = 0, 0

    def take() -> None:
        nonlocal right
        one = ids[right]
        merged.add(one)
        made.append(_merged(by_id.get(one), new[right], of.item(), f"{at}{_shown(one, of)}"))
        if shared and shared[0] == one:
            shared.popleft()
        right += 1

    while left < len(old_ids) or right < len(ids):
        if left < len(old_ids) and right < len(ids):
            if old_ids[left] == ids[right]:
                take()
                left += 1
                continue
            if old_ids[left] in named and shared and shared[0] != old_ids[left]:
                left += 1
                continue
        if left < len(old_ids):
            if old_ids[left] not in named:
                made.append(old[left])
                left += 1
                continue
            if old_ids[left] in merged:
                left += 1
        if right < len(ids):
            take()
    return made


def _distinct(new: Sequence[Any], of: MergeType, at: str) -> list[_Id]:
    ids = [_id(item, of, f"{at}[{number}]") for number, item in enumerate(new)]
    known: set[_Id] = set()
    for one in ids:
        if one in known:
            raise EvaluationError(
                f"error applying patch: failed to convert patch object to typed object: {at}: "
                f"duplicate entries for key {_shown(one, of)}"
            )
        known.add(one)
    return ids


def _id(item: Any, of: MergeType, at: str) -> _Id:
    """Returns the key that identifies an item."""
    if of.is_set:
        return (_hashable(item),)
    if type(item) is not dict:
        raise EvaluationError(f"error applying patch: {at}: is not an object with keys")
    values = []
    for key in of.keys:
        value = item.get(key.name)
        value = key.default if value is None else value
        if value is None:
            raise EvaluationError(
                f"error applying patch: {at}: associative list with keys has an element that omits "
                f"key field {quote(key.name)} (and doesn't have default value)"
            )
        values.append(_hashable(value))
    return tuple(values)


def _hashable(value: Any) -> Any:
    return repr(value) if type(value) in {dict, list} else value


def _shown(one: _Id, of: MergeType) -> str:
    if of.is_set:
        return f"[={_value(one[0])}]"
    pairs = zip(of.keys, one, strict=True)
    return f"[{','.join(f'{key.name}={_value(value)}' for key, value in pairs)}]"


def _value(value: Any) -> str:
    return quote(value) if type(value) is str else str(value)
