"""Grafana's schema of dashboards, by which its own classes are made: whether a document keeps to it.

Grafana generates these classes (grafana-foundation-sdk) of the schemas in its sources. They read a
document without looking at types and pass over what they do not know; so here what they have read
is compared with what they declare, and with the document.
"""

import enum
import json
import types
import typing
from collections.abc import Iterator

from grafana_foundation_sdk.cog import plugins, runtime, variants
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard, units

Json = dict[str, typing.Any]

UNITS = {value for name, value in vars(units).items() if not name.startswith("_")}
"""Ids of Grafana's units."""


def faults(document: Json) -> Iterator[str]:
    """Yields the deviations of a dashboard from Grafana's schema, with their place."""
    plugins.register_default_plugins()
    for number, panel in enumerate(document["panels"]):
        where = f"dashboard.panels[{number}]"
        if runtime.panelcfg_config(panel["type"]) is None:
            yield f"{where}: no panel is of the type {panel['type']!r}"
        unit = panel["fieldConfig"]["defaults"]["unit"]
        if unit not in UNITS:
            yield f"{where}: there is no unit {unit!r}"
    try:
        read = dashboard.Dashboard.from_json(document)
    except (TypeError, KeyError, AttributeError) as error:
        yield f"dashboard: it cannot be read: {error!r}"
        return
    yield from _misfits(read, dashboard.Dashboard, "dashboard")
    yield from _lost(document, json.loads(json.dumps(read, cls=JSONEncoder)), "dashboard")


def _misfits(value: typing.Any, declared: typing.Any, where: str) -> Iterator[str]:
    """Values that are not of the types that their classes declare."""
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Union or origin is types.UnionType:
        ways = [list(_misfits(value, part, where)) for part in parts]
        yield from [] if [] in ways else max(ways, key=len)
    elif origin is list and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _misfits(item, parts[0], f"{where}[{number}]")
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _misfits(item, parts[1], f"{where}.{key}")
    elif declared is object or declared is typing.Any:
        yield from _declared_misfits(value, where)
    elif declared is variants.Dataquery:
        if isinstance(value, runtime.UnknownDataquery):
            yield f"{where}: a query of no data source that Grafana has"
        yield from _declared_misfits(value, where)
    elif not _fits(value, declared):
        yield f"{where}: {value!r} is not of {declared}"
    else:
        yield from _declared_misfits(value, where)


def _fits(value: typing.Any, declared: typing.Any) -> bool:
    """Whether a value is of a type that has no parts."""
    if typing.get_origin(declared) is typing.Literal:
        return value in typing.get_args(declared)
    if not isinstance(declared, type):
        return False
    if issubclass(declared, enum.Enum):
        return value in {item.value for item in declared}
    return type(value) is declared or (declared is float and type(value) is int)


def _declared_misfits(value: typing.Any, where: str) -> Iterator[str]:
    """Of an object of Grafana's classes, field by field."""
    owner = type(value)
    if owner.__module__.startswith("grafana_foundation_sdk."):
        for name, declared in typing.get_type_hints(owner).items():
            yield from _misfits(getattr(value, name), declared, f"{where}.{name}")


def _lost(document: typing.Any, kept: typing.Any, where: str) -> Iterator[str]:
    """Yields the parts of a document that Grafana's classes do not know."""
    if isinstance(document, dict) and isinstance(kept, dict):
        for key, value in document.items():
            if key in kept:
                yield from _lost(value, kept[key], f"{where}.{key}")
            elif value not in ({}, []):
                yield f"{where}: Grafana knows no {key!r} there"
    elif isinstance(document, list) and isinstance(kept, list) and len(document) == len(kept):
        for number, pair in enumerate(zip(document, kept, strict=True)):
            yield from _lost(*pair, f"{where}[{number}]")
    elif document != kept:
        yield f"{where}: {document!r} is read as {kept!r}"
