"""Checks the defaults of a schema against the schema (apiextensions, defaulting/validation.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api.names import LABEL, SUBDOMAIN
from webhook.constraint import structural
from webhook.constraint.errors import invalid
from webhook.constraint.names import dns_label_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = Mapping[str, Any]

_META: Final = ("apiVersion", "kind")
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_NAMES: Final = {
    "k8s-short-name": {"pattern": f"^{LABEL}$", "maxLength": 63},
    "k8s-long-name": {"pattern": f"^{SUBDOMAIN}$", "maxLength": 253},
}
"""Formats that the API server checks for defaults only."""


def default_faults(schema: Schema, path: str) -> Iterator[str]:
    """Yields the faults of the defaults of a structural schema; recursive."""
    default = schema.get("default")
    if default is not None:
        at = f"{path}.default"
        if structural.is_pruned(default, schema):
            yield invalid(at, default, "must not have unknown fields")
        yield from _embedded_faults(default, schema, at) or structural.faults_at(
            at, default, _schema_of_defaults(schema)
        )
    items = schema.get("items")
    if type(items) is dict:
        yield from default_faults(items, f"{path}.items")
    for name, item in (schema.get("properties") or {}).items():
        yield from default_faults(item, f"{path}.properties[{name}]")


def _schema_of_defaults(schema: Any) -> Any:
    """Returns the schema for checking a default: without int-or-string."""
    if type(schema) is list:
        return [_schema_of_defaults(item) for item in schema]
    if type(schema) is not dict:
        return schema
    checked = {
        keyword: item if keyword in {"enum", "default"} else _schema_of_defaults(item)
        for keyword, item in schema.items()
        if keyword != _INT_OR_STRING or item is not True
    }
    form = schema.get("format")
    if type(form) is str and form in _NAMES:
        checked["allOf"] = [*(checked.get("allOf") or ()), _NAMES[form]]
    return checked


def _malformed(name: str, text: str) -> str:
    """Returns the fault of a kind's or version's name; empty for none."""
    if name == "apiVersion":
        return f"unexpected GroupVersion string: {text}" if text.count("/") > 1 else ""
    if faults := dns_label_faults(text.lower()):
        return f"may have mixed case, but should otherwise match: {','.join(faults)}"
    return ""


def _embedded_faults(value: Any, schema: Schema | None, path: str) -> list[str]:
    """Returns the faults of a default that embeds a Kubernetes object."""
    if schema is None:
        return []
    faults: list[str] = []
    if type(value) is list:
        items = schema.get("items")
        for index, item in enumerate(value):
            faults += _embedded_faults(item, items, f"{path}[{index}]")
    elif type(value) is dict:
        if schema.get("x-kubernetes-embedded-resource"):
            for name in _META:
                text = value.get(name)
                if name not in value:
                    faults.append(f"{path}.{name}: Required value")
                elif type(text) is not str:
                    faults.append(invalid(f"{path}.{name}", text, "must be a string"))
                elif not text:
                    faults.append(invalid(f"{path}.{name}", text, "must not be empty"))
                elif why := _malformed(name, text):
                    faults.append(invalid(f"{path}.{name}", text, why))
            if type(value.get("metadata", {})) is not dict:
                why = "must be an object"
                faults.append(invalid(f"{path}.metadata", value["metadata"], why))
        more = schema.get("additionalProperties")
        for name, item in value.items():
            known = (schema.get("properties") or {}).get(name)
            if known is None and type(more) is dict:
                known = more
            faults += _embedded_faults(item, known, f"{path}.{name}")
    return faults
