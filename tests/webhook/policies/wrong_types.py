"""Documents with one value of a wrong type."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
MATCH = {
    "kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
    "namespaces": ["a"],
    "excludedNamespaces": ["b-*"],
    "labelSelector": SELECTOR,
    "namespaceSelector": SELECTOR,
    "name": "a*",
    "scope": "Namespaced",
    "source": "Original",
}


def places(value, path=()):
    """The path to each value within another."""
    yield path
    kinds: dict[type, Any] = {dict: dict.items, list: enumerate}
    items = kinds.get(type(value))
    for key, item in items(value) if items else ():
        yield from places(item, (*path, key))


def changed(document, path, value):
    """The document with another value at a place."""
    result = deepcopy(document)
    owner = result
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return result
