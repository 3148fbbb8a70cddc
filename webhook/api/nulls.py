"""Null fields of objects in files: what an API server decodes into its types has none."""

from __future__ import annotations

from typing import Any

from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.gvk import gvk_of


def as_decoded(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without null fields, where its kind is Kubernetes' own; the same if it has none.

    Go takes null for a field that is not there. Objects of other kinds keep theirs: whether a null
    stands is for their CRD to say.
    """
    if gvk_of(obj).group_kind not in BUILTIN_KINDS:
        return obj
    kept: dict[str, Any] = _without_nulls(obj)
    return kept


def _without_nulls(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        kept = {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
        same = len(kept) == len(value) and all(kept[name] is value[name] for name in kept)
        return value if same else kept
    if kind is list:
        items = [_without_nulls(item) for item in value]
        same = all(item is old for item, old in zip(items, value, strict=True))
        return value if same else items
    return value
