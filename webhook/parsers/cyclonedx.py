"""Parses CycloneDX: JSON unchanged, XML in the shape of CycloneDX' JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.parsers import json_text, xml_text
from webhook.parsers.errors import ParseError

if TYPE_CHECKING:
    from webhook.parsers.xml_text import Element

_VERSIONS: Final = frozenset({"1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"})
_NAMESPACE: Final = "http://cyclonedx.org/schema/bom/"

# Elements that contain elements of one kind are arrays in JSON. The names of both, where the array's
# name is not its items' plural.
_ARRAYS: Final = {
    "affects": "target",
    "ancestors": "component",
    "collection": "graphic",
    "descendants": "component",
    "externalReferences": "reference",
    "formulation": "formula",
    "resolves": "issue",
    "runtimeTopology": "dependency",
    "supportingMaterial": "attachment",
    "taskDependencies": "dependency",
    "tlsGroups": "group",
    "tlsSignatureSchemes": "signatureScheme",
    "variants": "component",
}
_ARRAYS_OF: Final = {
    ("dataflow", "destination"): "url",
    ("dataflow", "source"): "url",
    ("declarations", "evidence"): "evidence",
    ("evidence", "copyright"): "text",
    ("issue", "references"): "url",
    ("service", "data"): "dataflow",
}
# Elements that are repeated without an enclosing element, and are arrays in JSON.
_REPEATED: Final = frozenset(
    {
        *("certificateState", "certificationLevel", "counterEvidence", "cryptoRefArray"),
        *("energyProviders", "omniborId", "openCre", "patentAssignee", "sensitiveData", "swhid"),
    }
)
_ENTITIES: Final = frozenset(
    {"supplier", "manufacturer", "manufacture", "provider", "organization"}
)
_REPEATED_OF: Final = frozenset(
    {
        *((of, name) for of in _ENTITIES for name in ("url", "contact")),
        *(("ikev2TransformTypes", name) for name in ("auth", "encr", "integ", "ke", "prf")),
        *(("attestation", "map"), ("claim", "evidence"), ("component", "data")),
        *(("evidence", "data"), ("evidence", "identity")),
    }
)
_INTEGERS: Final = frozenset(
    {
        *("classicalSecurityLevel", "column", "cwe", "keyLength", "line"),
        *("nistQuantumSecurityLevel", "offset", "size", "tagVersion"),
    }
)
_INTEGERS_OF: Final = frozenset({("ke", "group")})
_FRACTIONS: Final = frozenset({"confidence", "score"})
_FRACTIONS_OF: Final = frozenset(
    (of, "value")
    for of in ("activityEnergyCost", "co2CostEquivalent", "co2CostOffset", "energyProvided")
)
# Elements that contain a text and say its type and encoding: objects in JSON, with or without them.
_TEXTS: Final = frozenset({"attachment", "image"})
_TEXTS_OF: Final = frozenset(
    {
        *((of, "text") for of in ("details", "diff", "license", "note", "swid")),
        *((of, "data") for of in ("event", "input", "output")),
    }
)
_BOOLEANS: Final = {
    "authenticated": "service",
    "esn": "ikev2TransformTypes",
    "x-trust-boundary": "service",
    "isExternal": "component",
    "modified": "component",
    "patch": "swid",
    "persistent": "volume",
    "remote": "volume",
    "thirdParty": "assessor",
}
_TRUTHS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
_RENAMED: Final = {"content-type": "contentType", "responses": "response"}
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    **{name: {"name": ""} for name in _ENTITIES},
    "component": {"type": "", "name": ""},
    "ikev2TransformTypes": {"esn": False},
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
        if name in _REPEATED or (of, name) in _REPEATED_OF:
            value: Any = [_member(name, child, of) for child in children]
        else:
            value = _member(name, children[-1], of)
        if value not in ("", []) or name == "licenses":
            members[_RENAMED.get(name, name)] = value
    return members


def _member(name: str, element: Element, of: str) -> Any:
    item = _ARRAYS_OF.get((of, name)) or _ARRAYS.get(name) or _singular(name, element)
    if item or name in ("environmentVars", "licenses"):
        return _array(name, item, element, of)
    if name == "dataflow":
        return _dataflow(element)
    if element.below.keys() == {"-ref"}:
        return _attribute(element, "ref")  # the name of an element that stands elsewhere
    attributes = _attributes(element, name)
    if name in _TEXTS or (of, name) in _TEXTS_OF:
        return {"content": element.text} | attributes
    below = any(not child.startswith("-") for child in element.below)
    if not below and not attributes and name not in _DEFAULTS and name != "metadata":
        return _scalar(name, element.text, of)
    content = {"content": element.text} if not below and element.text else {}
    return _DEFAULTS.get(name, {}) | attributes | content | _members(element, name)


def _singular(name: str, element: Element) -> str:
    """Returns the name of an array's items, or "" for an element that is not an array."""
    singulars = (name.removesuffix("s"), name.removesuffix("es"), f"{name.removesuffix('ies')}y")
    return next((item for item in singulars if item != name and item in element.below), "")


def _attributes(element: Element, of: str) -> dict[str, Any]:
    return {
        _RENAMED.get(name[1:], name[1:]): _scalar(name[1:], attributes[0].text, of)
        for name, attributes in element.below.items()
        if name.startswith("-") and name != "-xmlns" and attributes[0].text
    }


def _scalar(name: str, text: str, of: str) -> Any:
    if name in _INTEGERS or (of, name) in _INTEGERS_OF:
        return _number(text or "0", int)
    if name in _FRACTIONS or (of, name) in _FRACTIONS_OF:
        return _number(text or "0", float)
    if _BOOLEANS.get(name) != of:
        return text
    if text and text not in _TRUTHS:
        raise ParseError(f"decode CycloneDX BOM: {name}: invalid boolean {text!r}", 0)
    return bool(text) and _TRUTHS[text]


def _number(text: str, kind: type[int | float]) -> int | float:
    try:
        number = kind(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise ParseError(f"decode CycloneDX BOM: invalid number {text!r}", 0) from None


def _array(name: str, item: str, element: Element, of: str) -> list[Any]:
    items = element.below.get(item, [])
    match name:
        case "hashes":
            return [{"alg": _attribute(item, "alg"), "content": item.text} for item in items]
        case "properties":
            return [_property(item) for item in items]
        case "licenses":
            return _licenses(element)
        case "environmentVars":
            named = element.below.get("environmentVar", [])
            return [_property(item) for item in named] + [
                item.text for item in element.below.get("value", [])
            ]
        case "copyright":
            return [{"text": item.text} for item in items]
        case "dependencies" | "taskDependencies" | "runtimeTopology" if of != "composition":
            return [_dependency(item) for item in items]
        case _:
            return [_member(item, child, name) for child in items]


def _property(element: Element) -> dict[str, Any]:
    return {"name": _attribute(element, "name"), "value": element.text}


def _licenses(element: Element) -> list[dict[str, Any]]:
    licenses = [
        {"license": _attributes(item, "license") | _members(item, "license")}
        for item in element.below.get("license", [])
    ]
    licenses += [
        {"expression": item.text} | _attributes(item, "expression")
        for item in element.below.get("expression", [])
    ]
    for item in element.below.get("expression-detailed", []):
        details = [
            {"licenseIdentifier": _attribute(detail, "license-identifier")}
            | _members(detail, "details")
            for detail in item.below.get("details", [])
        ]
        expression = _attributes(item, "expression")
        licenses.append(expression | ({"expressionDetails": details} if details else {}))
    return licenses


def _dataflow(element: Element) -> dict[str, Any]:
    members = _members(element, "dataflow")
    classification = members.pop("classification", "")
    if not isinstance(classification, dict):
        classification = {"content": classification}
    return (
        _attributes(element, "dataflow")
        | members
        | {
            "flow": classification.get("flow", ""),
            "classification": classification.get("content", ""),
        }
    )


def _dependency(element: Element) -> dict[str, Any]:
    dependency: dict[str, Any] = {"ref": _attribute(element, "ref")}
    for name, member in (("dependency", "dependsOn"), ("provides", "provides")):
        if below := [_attribute(item, "ref") for item in element.below.get(name, [])]:
            dependency[member] = below
    return dependency
