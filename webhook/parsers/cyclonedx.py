"""Parses CycloneDX: JSON unchanged, XML in the shape of CycloneDX' JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.parsers import json_text, xml_text
from webhook.parsers.errors import ParseError

if TYPE_CHECKING:
    from webhook.parsers.xml_text import Element

_VERSIONS: Final = frozenset({"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"})
_NAMESPACE: Final = "http://cyclonedx.org/schema/bom/"

# Elements that contain elements of one kind are arrays in JSON: the names of both.
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
    "versions": "version",
    "responses": "response",
    "commits": "commit",
    "patches": "patch",
    "resolves": "issue",
    "ancestors": "component",
    "descendants": "component",
    "variants": "component",
    "tags": "tag",
    "cwes": "cwe",
}
# Elements that refer to components and others: the names of the array and its items.
_REFERRING: Final = {
    ("composition", "assemblies"): "assembly",
    ("composition", "dependencies"): "dependency",
    ("annotation", "subjects"): "subject",
}
# Elements that are repeated without an enclosing element.
_ENTITIES: Final = frozenset(
    {"supplier", "manufacturer", "manufacture", "provider", "organization"}
)
_REPEATED: Final = frozenset((of, name) for of in _ENTITIES for name in ("url", "contact"))
_NUMBERS: Final = frozenset({("rating", "score"), ("cwes", "cwe")})
_BOOLEANS: Final = {
    "authenticated": "service",
    "x-trust-boundary": "service",
    "modified": "component",
}
_TRUTHS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
_RENAMED: Final = {"content-type": "contentType", "responses": "response"}
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "component": {"type": "", "name": ""},
    "service": {"name": ""},
    "vulnerability": {"id": ""},
    "issue": {"description": ""},
}
"""The fields of an element with defaults, for documents that lack them."""


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{bomFormat, specVersion, metadata, components, …}``."""
    del path
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _of_xml(raw)
    document = json_text.parse(raw)
    version = document.get("specVersion") if isinstance(document, dict) else None
    is_cyclonedx = isinstance(document, dict) and "specVersion" in document
    if not isinstance(document, dict) or (is_cyclonedx and version not in _VERSIONS):
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
    members: dict[str, Any] = {"specVersion": version, "bomFormat": "CycloneDX"}
    if serial := _attribute(root, "serialNumber"):
        members["serialNumber"] = serial
    members["version"] = _number(_attribute(root, "version") or "0", int)
    return members | _members(root, "bom")


def _attribute(element: Element, name: str) -> str:
    elements = element.below.get(f"-{name}")
    return elements[0].text if elements else ""


def _members(element: Element, of: str) -> dict[str, Any]:
    """Returns the children of an element by their names in JSON; leaves out empty ones."""
    members: dict[str, Any] = {}
    for name, children in element.below.items():
        if name.startswith("-"):
            continue
        if (of, name) in _REPEATED:
            value: Any = [_member(name, child, of) for child in children]
        else:
            value = _member(name, children[-1], of)
        if value not in ("", []) or name == "licenses":
            members[_RENAMED.get(name, name)] = value
    return members


def _member(name: str, element: Element, of: str) -> Any:
    if referring := _REFERRING.get((of, name)):
        return [_attribute(one, "ref") for one in element.below.get(referring, [])]
    if (of, name) == ("issue", "references"):
        return [one.text for one in element.below.get("url", [])]
    if name in _ARRAYS and not (name == "tools" and "tool" not in element.below):
        return _array(name, element)
    attributes = _attributes(element)
    below = any(not child.startswith("-") for child in element.below)
    if not below and not attributes and name not in _DEFAULTS and name != "metadata":
        return _scalar(name, element.text, of)
    content = {"content": element.text} if not below and element.text else {}
    return _DEFAULTS.get(name, {}) | attributes | content | _members(element, name)


def _attributes(element: Element) -> dict[str, str]:
    return {
        _RENAMED.get(name[1:], name[1:]): attributes[0].text
        for name, attributes in element.below.items()
        if name.startswith("-") and name != "-xmlns" and attributes[0].text
    }


def _scalar(name: str, text: str, of: str) -> Any:
    if (of, name) in _NUMBERS:
        return _number(text, float if name == "score" else int)
    if _BOOLEANS.get(name) != of:
        return text
    if text not in _TRUTHS:
        raise ParseError(f"decode CycloneDX BOM: {name}: invalid boolean {text!r}", 0)
    return _TRUTHS[text]


def _number(text: str, kind: type[int | float]) -> int | float:
    try:
        number = kind(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise ParseError(f"decode CycloneDX BOM: invalid number {text!r}", 0) from None


def _array(name: str, element: Element) -> list[Any]:
    items = element.below.get(_ARRAYS[name], [])
    match name:
        case "hashes":
            return [{"alg": _attribute(one, "alg"), "content": one.text} for one in items]
        case "properties":
            return [{"name": _attribute(one, "name"), "value": one.text} for one in items]
        case "licenses":
            licenses = [{"license": _attributes(one) | _members(one, "license")} for one in items]
            return licenses + [
                {"expression": one.text} | _attributes(one)
                for one in element.below.get("expression", [])
            ]
        case "dependencies":
            return [_dependency(one) for one in items]
        case _:
            return [_member(_ARRAYS[name], one, name) for one in items]


def _dependency(element: Element) -> dict[str, Any]:
    dependency: dict[str, Any] = {"ref": _attribute(element, "ref")}
    for name, member in (("dependency", "dependsOn"), ("provides", "provides")):
        if below := [_attribute(one, "ref") for one in element.below.get(name, [])]:
            dependency[member] = below
    return dependency
