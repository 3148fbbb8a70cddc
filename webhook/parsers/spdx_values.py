"""Reads structured values of SPDX' tags; a fault is a :class:`ValueError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_ALGORITHMS: Final = {
    "SPDX-2.1": frozenset({"SHA1", "SHA256", "MD5"}),
    "SPDX-2.2": frozenset({"SHA224", "SHA384", "SHA512", "MD2", "MD4", "MD6"}),
    "SPDX-2.3": frozenset(
        {
            "SHA3-256",
            "SHA3-384",
            "SHA3-512",
            "BLAKE2b-256",
            "BLAKE2b-384",
            "BLAKE2b-512",
            "BLAKE3",
            "ADLER32",
        }
    ),
}
VERSIONS: Final = frozenset(_ALGORITHMS)


def read(tag: str, value: str, version: str) -> Any:
    """Returns the value of a tag in JSON's shape; the text itself for most tags."""
    if tag in {"PackageChecksum", "FileChecksum"}:
        return _checksum(value, version)
    reader = _READERS.get(tag)
    return value if reader is None else reader(value)


def agent(value: str, kinds: frozenset[str]) -> str:
    """Returns ``Person: name`` and the like, of one of these kinds."""
    kind, name = _halves(value)
    if kind not in kinds:
        raise ValueError(f"unrecognized type {kind}")
    if not name:
        raise ValueError(f"{kind} has no name")
    return f"{kind}: {name}"


def identifier(value: str) -> str:
    """Returns ``SPDXRef-…``, an element of this document."""
    if not value.startswith("SPDXRef-"):
        raise ValueError("missing SPDXRef- prefix for element identifier")
    if ":" in value:
        raise ValueError("invalid colon in element identifier")
    if value == "SPDXRef-":
        raise ValueError("element identifier has nothing after prefix")
    return value


def reference(value: str) -> str:
    """Returns ``SPDXRef-…`` or ``DocumentRef-…:SPDXRef-…``, an element of any document."""
    if not value.startswith("DocumentRef-"):
        return identifier(value)
    parts = value.split(":")
    if len(parts) != 2:
        raise ValueError(f"expected one colon in {value}")
    if parts[0] == "DocumentRef-":
        raise ValueError("document identifier has nothing after prefix")
    identifier(parts[1])
    return value


def relationship(value: str, version: str) -> dict[str, Any]:
    """Reads ``element KIND other``."""
    words = _words(value)
    if len(words) != 3:
        raise ValueError(f"invalid relationship format for {value}")
    element, kind, other = words
    special = version > "SPDX-2.1" and other in {"NONE", "NOASSERTION"}
    return {
        "spdxElementId": reference(element),
        "relatedSpdxElement": other if special else reference(other),
        "relationshipType": kind,
    }


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(" ") if word.strip()]


def _halves(value: str) -> tuple[str, str]:
    before, colon, after = value.partition(":")
    if not colon:
        raise ValueError(f"invalid subvalue format for {value} (no colon found)")
    return before.strip(), after.strip()


def _owner(value: str) -> str:
    return value if value == "NOASSERTION" else agent(value, frozenset({"Person", "Organization"}))


def _creator(value: str) -> str:
    return agent(value, frozenset({"Person", "Organization", "Tool"}))


def _checksum(value: str, version: str) -> dict[str, str]:
    algorithm, digest = _halves(value)
    if not any(algorithm in known for since, known in _ALGORITHMS.items() if since <= version):
        raise ValueError(f"got unknown checksum type {algorithm}")
    return {"algorithm": algorithm, "checksumValue": digest}


def _verification(value: str) -> dict[str, Any]:
    """Reads ``code (excludes: file)``."""
    code, excludes, rest = value.partition("(excludes:")
    if not excludes:
        return {"packageVerificationCodeValue": value}
    return {
        "packageVerificationCodeValue": code.strip(),
        "packageVerificationCodeExcludedFiles": [rest.partition(")")[0].strip()],
    }


def _external(value: str) -> dict[str, str]:
    """Reads ``CATEGORY type locator``."""
    words = _words(value)
    if len(words) != 3:
        raise ValueError(f"expected 3 elements, got {len(words)}")
    category, kind, locator = words
    return {
        "referenceCategory": category.replace("_", "-"),
        "referenceType": kind,
        "referenceLocator": locator,
    }


def _document(value: str) -> dict[str, Any]:
    """Reads ``DocumentRef-… uri ALGORITHM: digest``."""
    words = _words(value)
    if len(words) == 4 and words[2].endswith(":"):
        name, uri, algorithm, digest = words
        algorithm = algorithm.removesuffix(":")
    elif len(words) == 3 and ":" in words[2]:
        name, uri, joined = words
        algorithm, _, digest = joined.partition(":")
    else:
        raise ValueError(f"expected a document, its URI and its checksum, got {value}")
    if not name.startswith("DocumentRef-"):
        raise ValueError("expected first element to have DocumentRef- prefix")
    if name == "DocumentRef-":
        raise ValueError("document identifier has nothing after prefix")
    return {
        "externalDocumentId": name,
        "spdxDocument": uri,
        "checksum": {"algorithm": algorithm, "checksumValue": digest},
    }


def _range(value: str) -> str:
    for end in _halves(value):
        if not _INTEGER.match(end):
            raise ValueError(f"invalid number {end!r} in a range")
    return value


def _artifact(value: str) -> dict[str, str]:
    return {"name": value, "homePage": "", "URI": ""}


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "SPDXID": identifier,
    "SPDXREF": reference,
    "SnippetSPDXID": identifier,
    "SnippetFromFileSPDXID": reference,
    "SnippetByteRange": _range,
    "SnippetLineRange": _range,
    "Creator": _creator,
    "Annotator": _creator,
    "Reviewer": _creator,
    "PackageSupplier": _owner,
    "PackageOriginator": _owner,
    "PackageVerificationCode": _verification,
    "ExternalRef": _external,
    "ExternalDocumentRef": _document,
    "ArtifactOfProjectName": _artifact,
}
