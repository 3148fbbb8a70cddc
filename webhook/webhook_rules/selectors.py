"""Whether labels can satisfy several selectors at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.api.shapes import object_of, objects_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def are_contrary(*selectors: Mapping[str, Any]) -> bool:
    """Whether no labels satisfy all of these; each key can be looked at by itself."""
    by_key: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for selector in selectors:
        for key, operator, values in _requirements(selector):
            by_key.setdefault(key, []).append((operator, values))
    return any(map(_is_impossible, by_key.values()))


def _requirements(selector: Mapping[str, Any]) -> Iterator[tuple[str, str, frozenset[str]]]:
    for key, value in object_of(selector.get("matchLabels")).items():
        yield key, "In", frozenset({str(value)})
    for one in objects_of(selector.get("matchExpressions")):
        yield str(one.get("key")), str(one.get("operator")), frozenset(texts_of(one.get("values")))


def _is_impossible(asked: list[tuple[str, frozenset[str]]]) -> bool:
    operators = {operator for operator, _ in asked}
    if "DoesNotExist" in operators and operators & {"In", "Exists"}:
        return True
    allowed = [values for operator, values in asked if operator == "In"]
    if not allowed:
        return False  # some value is none of those that must not be
    refused = (values for operator, values in asked if operator == "NotIn")
    return not frozenset.intersection(*allowed).difference(*refused)
