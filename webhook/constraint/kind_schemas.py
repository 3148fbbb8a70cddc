"""Schemas of Gatekeeper kinds that CRDs check in a cluster, for objects of files.

A field of a wrong type would have no effect, so it is reported with the API server's message. Null
counts as absent, as in Go. A test compares these schemas with the CRDs in manifests/crds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from webhook.constraint.targets.match_schema import MATCH_SCHEMA, WILDCARD_PATTERN
from webhook.printable import nearest_name


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
_EXTERNAL_DATA: Final = {
    **_object(
        dataSource=_one_of("ValueAtLocation", "Username"),
        default=_TEXT,
        failurePolicy=_one_of("UseDefault", "Ignore", "Fail"),
        provider=_TEXT,
    ),
    "required": ["provider"],
}
MUTATOR: Final = _object(
    match=_object(source=_one_of("All", "Generated", "Original")),
    parameters=_object(
        assign={"properties": {"externalData": _EXTERNAL_DATA}},
        operation=_one_of("merge", "prune"),
        pathTests=_list(_object(subPath=_TEXT, condition=_one_of("MustExist", "MustNotExist"))),
    ),
)
"""The schema of the four kinds of mutators."""

_NAMED: Final[dict[str, Any]] = {}
"""A field of which only the name matters here; its reader checks the value."""

PROVIDER: Final = _object(caBundle=_NAMED, timeout=_NAMED, url=_NAMED)
TEMPLATE: Final = _object(
    crd=_object(
        spec=_object(
            # The last three are those of a CRD, which templates often have; nobody expects an effect.
            names=_object(
                **dict.fromkeys(("kind", "shortNames", "plural", "singular", "listKind"), _NAMED)
            ),
            validation=_object(legacySchema=_NAMED, openAPIV3Schema=_NAMED),
        )
    ),
    targets=_list(
        _object(
            code=_list(_object(engine=_NAMED, source=_NAMED)),
            libs=_NAMED,
            operations=_NAMED,
            rego=_NAMED,
            target=_NAMED,
        )
    ),
)
"""The fields of a template, of which only the names are checked by this schema."""

_MUTATOR_FIELDS: Final = _object(
    applyTo=_list(_object(groups=_NAMED, kinds=_NAMED, operations=_NAMED, versions=_NAMED)),
    location=_NAMED,
    match=_object(**dict.fromkeys(MATCH_SCHEMA["properties"], _NAMED)),
    parameters=_object(
        assign=_object(
            externalData=_EXTERNAL_DATA, fromMetadata=_object(field=_NAMED), value=_NAMED
        ),
        assignDomain=_NAMED,
        assignPath=_NAMED,
        assignTag=_NAMED,
        operation=_NAMED,
        pathTests=_list(_object(subPath=_NAMED, condition=_NAMED)),
        values=_NAMED,
    ),
)
"""The fields that any of the four kinds of mutators has."""

_UNKNOWN_SHOWN: Final = 5
"""The unknown fields of an object that are named; more would hide the others' faults."""


def unknown_fields(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Returns a fault for each of the first fields of ``spec`` that the kind does not have.

    ``kubectl apply`` refuses an object with such a field, and an API server drops the field.
    """
    known = _MUTATOR_FIELDS if schema is MUTATOR else schema
    return list(islice(_unknown(document.get("spec"), known, "spec"), _UNKNOWN_SHOWN))


def _unknown(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if type(value) is list and "items" in schema:
        for index, item in enumerate(value):
            yield from _unknown(item, schema["items"], f"{path}[{index}]")
    elif type(value) is dict and "properties" in schema:
        fields = schema["properties"]
        for name, item in value.items():
            if name in fields:
                yield from _unknown(item, fields[name], f"{path}.{name}")
            else:
                near = nearest_name(name, fields)
                hint = f': is "{near}" meant?' if near else ""
                yield f"{path}.{name}: unknown field, without effect{hint}"


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
