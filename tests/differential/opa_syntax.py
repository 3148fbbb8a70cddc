"""Syntax trees in the JSON form of OPA's, made alike to compare two parsers.

Locations, annotations and flags of OPA's own stages are left out on both sides.
"""

from typing import Any

_DROPPED = {
    "index",
    "generated",
    "location",
    "annotations",
    "name",
    "explicit_body",
    "explicit_lhs",
    "explicit_rhs",
    "comments",
}


def comparable(found: Any) -> Any:
    """OPA's JSON without what our tree does not carry."""
    if isinstance(found, list):
        return [comparable(one) for one in found]
    if not isinstance(found, dict):
        return found
    kind, value = found.get("type"), found.get("value")
    if kind == "number":
        return {"type": "number", "value": getattr(value, "text", value)}
    if kind == "set" and isinstance(value, list):
        return {"type": "set", "value": sorted(map(comparable, value), key=repr)}
    if kind == "object" and isinstance(value, list):
        return {"type": "object", "value": sorted(map(comparable, value), key=repr)}
    kept = {name: comparable(one) for name, one in found.items() if name not in _DROPPED}
    if "ref" in kept and ("key" in kept or "value" in kept):
        if "key" in kept and "value" in kept:  # a head's key repeats the end of its reference
            del kept["key"]
        if not kept.get("assign", True):
            del kept["assign"]
    return kept
