"""Schemas of Gatekeeper kinds that CRDs check in a cluster, for objects of files.

A field of a wrong type would have no effect, so it is reported with the API server's message. Null
counts as absent, as in Go. A test compares these schemas with the CRDs in manifests/crds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.constraint.targets.match_schema import WILDCARD_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_TEXT: Final = {"type": "string"}
_TEXTS: Final = _list(_TEXT)
_GVK: Final = _object(group=_TEXT, version=_TEXT, kind=_TEXT)

EXPANSION_TEMPLATE: Final = _object(
    applyTo=_list(_object(groups=_TEXTS, kinds=_TEXTS, versions=_TEXTS)),
    enforcementAction=_TEXT,
    generatedGVK=_GVK,
    templateSource=_TEXT,
)
CONFIG: Final = _object(
    match=_list(
        _object(
            excludedNamespaces=_list({"type": "string", "pattern": WILDCARD_PATTERN}),
            processes=_TEXTS,
        )
    ),
    readiness=_object(statsEnabled={"type": "boolean"}),
    sync=_object(syncOnly=_list(_GVK)),
    validation=_object(traces=_list(_object(dump=_TEXT, kind=_GVK, user=_TEXT))),
)
SYNC_SET: Final = _object(gvks=_list(_GVK))
MUTATOR: Final = _object(
    match=_object(source=_one_of("All", "Generated", "Original")),
    parameters=_object(
        operation=_one_of("merge", "prune"),
        pathTests=_list(_object(subPath=_TEXT, condition=_one_of("MustExist", "MustNotExist"))),
    ),
)
"""The schema of the four kinds of mutators."""


def spec_faults(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Returns the faults of an object by the schema of ``spec``, with the API server's messages."""
    # Imported here: callers that need only the names of kinds need no patterns.
    from webhook.constraint import structural  # noqa: PLC0415

    spec = document.get("spec")
    if spec is None:
        return []
    faults = structural.faults(_without_nulls(spec), schema, "spec")
    return [fault.removeprefix("[].") for fault in faults]


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if type(value) is list:
        return [_without_nulls(item) for item in value if item is not None]
    return value
