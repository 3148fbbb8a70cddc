"""CycloneDX: JSON as it is, XML in the shape of its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.parsers import json_text, xml_text
from webhook.parsers.errors import ParseError

if TYPE_CHECKING:
    from webhook.parsers.xml_text import Element

_VERSIONS: Final = frozenset({"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"})
_NAMESPACE: Final = "http://cyclonedx.org/schema/bom/"

# What holds elements of one kind is an array in JSON, by the names of both.
_ARRAYS: Final = {
    "components": "component",
    "dependencies": "dependency",
    "externalReferences": "reference",
    "hashes": "hash",
    "properties": "property",
    "services": "service",
    "tools": "tool",
    "authors": "author",
    "licenses": "license",
    "vulnerabilities": "vulnerability",
    "compositions": "composition",
    "annotations": "annotation",
    "lifecycles": "lifecycle",
    "ratings": "rating",
    "advisories": "advisory",
    "references": "reference",
    "endpoints": "endpoint",
    "affects": "target",
    "commits": "commit",
    "patches": "patch",
    "ancestors": "component",
    "descendants": "component",
    "variants": "component",
    "tags": "tag",
    "cwes": "cwe",
}
_NUMBERS: Final = frozenset({"version", "score", "cwe"})
_BOOLEANS: Final = frozenset({"authenticated", "x-trust-boundary", "modified"})


def parse(raw: bytes, path: str = "") -> Any:
    """``{bomFormat, specVersion, metadata, components, …}``."""
    del path
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _of_xml(raw)
    document = json_text.parse(raw)
    version = document.get("specVersion") if isinstance(document, dict) else None
    if not isinstance(document, dict) or (version is not None and version not in _VERSIONS):
        raise ParseError(f"decode CycloneDX BOM: invalid specification version: {version}", 1)
    return document


def _of_xml(raw: bytes) -> dict[str, Any]:
    document = xml_text.read(raw, "decode CycloneDX BOM: ")
    roots = document.below.get("bom")
    if not roots:
        raise ParseError("decode CycloneDX BOM: expected element type <bom>", 1)
    root = roots[0]
    space = _attribute(root, "xmlns")
    version = space.removeprefix(_NAMESPACE)
    if version not in _VERSIONS:
        raise ParseError(f"decode CycloneDX BOM: unsupported namespace: {space!r}", 1)
    members: dict[str, Any] = {"xmlns": space, "specVersion": version, "bomFormat": "CycloneDX"}
    if serial := _attribute(root, "serialNumber"):
        members["serialNumber"] = serial
    members["version"] = int(_attribute(root, "version") or 1)
    members |= _members(root, "bom")
    return members


def _attribute(element: Element, name: str) -> str:
    elements = element.below.get(f"-{name}")
    return elements[0].text if elements else ""


def _members(element: Element, of: str) -> dict[str, Any]:
    """The elements below one, by their names in JSON."""
    members: dict[str, Any] = {}
    for name, children in element.below.items():
        if not name.startswith("-"):
            members[name] = _member(name, children[-1], of)
    return members


def _member(name: str, element: Element, of: str) -> Any:
    if name in _ARRAYS:
        return _array(name, element)
    below = {child for child in element.below if not child.startswith("-")}
    attributes = {
        child[1:]: members[0].text
        for child, members in element.below.items()
        if child.startswith("-") and child != "-xmlns"
    }
    if not below and not attributes:
        return _scalar(name, element.text, of)
    renamed = {"mime-type": "mime-type", "bom-ref": "bom-ref"}
    members: dict[str, Any] = {renamed.get(key, key): value for key, value in attributes.items()}
    if not below and element.text:
        members["content"] = element.text
    return members | _members(element, name)


def _scalar(name: str, text: str, of: str) -> Any:
    if name in _NUMBERS and of in {"vulnerability", "rating", "cwes"}:
        try:
            return float(text) if name == "score" else int(text)
        except ValueError:
            return text
    if name in _BOOLEANS:
        return text == "true"
    return text


def _array(name: str, element: Element) -> list[Any]:
    items = element.below.get(_ARRAYS[name], [])
    match name:
        case "hashes":
            return [{"alg": _attribute(one, "alg"), "content": one.text} for one in items]
        case "properties":
            return [{"name": _attribute(one, "name"), "value": one.text} for one in items]
        case "licenses":
            expressions = [{"expression": one.text} for one in element.below.get("expression", [])]
            return [{"license": _members(one, "license")} for one in items] + expressions
        case "dependencies":
            return [_dependency(one) for one in items]
        case _:
            return [_member(_ARRAYS[name], one, name) for one in items]


def _dependency(element: Element) -> dict[str, Any]:
    dependency: dict[str, Any] = {"ref": _attribute(element, "ref")}
    below = [_attribute(one, "ref") for one in element.below.get("dependency", [])]
    if below:
        dependency["dependsOn"] = below
    return dependency
