"""SPDX documents of tags and values, in the shape of SPDX' JSON (spdx/tools-golang)."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Final

from webhook.parsers.errors import ParseError
from webhook.values import dataclass

_LINE: Final = re.compile(r"\s*([A-Za-z]+)\s*:\s*(.*)\Z", re.DOTALL)

_DOCUMENT: Final = {
    "SPDXVersion": "spdxVersion",
    "DataLicense": "dataLicense",
    "SPDXID": "SPDXID",
    "DocumentName": "name",
    "DocumentNamespace": "documentNamespace",
    "DocumentComment": "comment",
}
_CREATION: Final = {
    "LicenseListVersion": "licenseListVersion",
    "Created": "created",
    "CreatorComment": "comment",
}
_PACKAGE: Final = {
    "PackageVersion": "versionInfo",
    "PackageFileName": "packageFileName",
    "PackageSupplier": "supplier",
    "PackageOriginator": "originator",
    "PackageDownloadLocation": "downloadLocation",
    "PackageHomePage": "homepage",
    "PackageSourceInfo": "sourceInfo",
    "PackageLicenseConcluded": "licenseConcluded",
    "PackageLicenseDeclared": "licenseDeclared",
    "PackageLicenseComments": "licenseComments",
    "PackageCopyrightText": "copyrightText",
    "PackageSummary": "summary",
    "PackageDescription": "description",
    "PackageComment": "comment",
    "PrimaryPackagePurpose": "primaryPackagePurpose",
    "ReleaseDate": "releaseDate",
    "BuiltDate": "builtDate",
    "ValidUntilDate": "validUntilDate",
    "SPDXID": "SPDXID",
}
_FILE: Final = {
    "LicenseConcluded": "licenseConcluded",
    "LicenseComments": "licenseComments",
    "FileCopyrightText": "copyrightText",
    "FileComment": "comment",
    "FileNotice": "noticeText",
    "SPDXID": "SPDXID",
}
_LICENSE: Final = {
    "ExtractedText": "extractedText",
    "LicenseName": "name",
    "LicenseComment": "comment",
}
_LISTS: Final = {
    "PackageLicenseInfoFromFiles": "licenseInfoFromFiles",
    "PackageAttributionText": "attributionTexts",
    "LicenseInfoInFile": "licenseInfoInFiles",
    "FileType": "fileTypes",
    "FileContributor": "fileContributors",
    "FileAttributionText": "attributionTexts",
    "LicenseCrossReference": "seeAlsos",
}
_VERSIONS: Final = frozenset({"SPDX-2.1", "SPDX-2.2", "SPDX-2.3"})
_IGNORED: Final = frozenset({"Reviewer", "ReviewDate", "ReviewComment", "FileDependency"})


def parse(raw: bytes, path: str = "") -> Any:
    """``{spdxVersion, dataLicense, SPDXID, name, creationInfo, packages, …}``."""
    del path
    reader = _Reader()
    for tag, value, line in _pairs(raw.decode("utf-8", "replace")):
        reader.take(tag, value, line)
    return reader.document()


def _pairs(text: str) -> list[tuple[str, str, int]]:
    """Each tag with its value, which ``<text>`` may spread over lines, and its line."""
    pairs = []
    lines = text.removeprefix("\ufeff").split("\n")
    at = 0
    while at < len(lines):
        begun = at + 1
        line = lines[at].rstrip("\r")
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise _fault("no colon found", begun)
        value = match[2].strip()
        if value.startswith("<text>"):
            value = value.removeprefix("<text>")
            while "</text>" not in value:
                if at >= len(lines):
                    raise _fault("a <text> is not closed", begun)
                value += "\n" + lines[at].rstrip("\r")
                at += 1
            value = value.partition("</text>")[0]
        pairs.append((match[1], value, begun))
    return pairs


def _fault(message: str, line: int) -> ParseError:
    return ParseError(f"error while parsing SPDX: {message}", line)


def _creator(value: str, line: int) -> str:
    """``Person: name`` and the like."""
    kind, colon, name = value.partition(":")
    if not colon:
        raise _fault(f"invalid subvalue format for {value} (no colon found)", line)
    if kind.strip() not in {"Person", "Organization", "Tool"}:
        raise _fault(f"unrecognized Creator type {kind.strip()}", line)
    return f"{kind.strip()}: {name.strip()}"


def _check_identifier(value: str, line: int) -> None:
    if not value.startswith("SPDXRef-"):
        raise _fault("missing SPDXRef- prefix for element identifier", line)
    if ":" in value:
        raise _fault("invalid colon in element identifier", line)
    if value == "SPDXRef-":
        raise _fault("element identifier has nothing after prefix", line)


@dataclass(slots=True)
class _Reader:
    """What has been read, and the element that tags are about."""

    found: dict[str, Any] = field(default_factory=dict)
    creation: dict[str, Any] = field(default_factory=lambda: {"creators": None, "created": ""})
    packages: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    licenses: list[dict[str, Any]] = field(default_factory=list)
    relationships: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    references: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] | None = None
    names: dict[str, str] = field(default_factory=lambda: _DOCUMENT)

    def take(self, tag: str, value: str, line: int) -> None:
        """Take one tag and its value; raises :class:`ParseError` for a tag out of place."""
        if tag in {"PackageName", "FileName", "LicenseID"}:
            self._begin(tag, value)
        elif tag == "Creator":
            self.creation["creators"] = [
                *(self.creation["creators"] or []),
                _creator(value, line),
            ]
        elif tag in _CREATION:
            self.creation[_CREATION[tag]] = value
        elif self.about is None and tag in _DOCUMENT:
            self.found[_DOCUMENT[tag]] = value
            if tag == "SPDXVersion" and value not in _VERSIONS:
                raise _fault(f"unsupported SPDX version: {value!r}", line)
            if tag == "SPDXID":
                _check_identifier(value, line)
        elif tag == "Relationship":
            self._relationship(value, line)
        elif tag == "RelationshipComment" and self.relationships:
            self.relationships[-1]["comment"] = value
        elif tag == "ExternalDocumentRef":
            self._reference(value, line)
        elif tag.startswith("Annotat") or tag == "SPDXREF":
            self._annotation(tag, value)
        elif tag not in _IGNORED and not tag.startswith("Snippet"):
            self._of_element(tag, value, line)

    def _begin(self, tag: str, value: str) -> None:
        if tag == "PackageName":
            self.about = {
                "name": value,
                "SPDXID": "",
                "downloadLocation": "",
                "filesAnalyzed": True,
            }
            self.names = _PACKAGE
            self.packages.append(self.about)
        elif tag == "FileName":
            package = self.packages[-1] if self.packages else None
            self.about = {"fileName": value, "SPDXID": "", "checksums": None, "copyrightText": ""}
            self.names = _FILE
            if package is not None:
                package.setdefault("files", []).append(self.about)
            else:
                self.files.append(self.about)
        else:
            self.about = {"licenseId": value, "extractedText": ""}
            self.names = _LICENSE
            self.licenses.append(self.about)

    def _of_element(self, tag: str, value: str, line: int) -> None:
        about = self.about
        if about is None:
            raise _fault(f"received unknown tag {tag} in section Creation Info", line)
        if tag in self.names:
            about[self.names[tag]] = value
        elif tag in _LISTS:
            about.setdefault(_LISTS[tag], []).append(value)
        elif tag in {"PackageChecksum", "FileChecksum"}:
            algorithm, _, digest = value.partition(":")
            checksum = {"algorithm": algorithm.strip(), "checksumValue": digest.strip()}
            about["checksums"] = [*(about.get("checksums") or []), checksum]
        elif tag == "FilesAnalyzed":
            about["filesAnalyzed"] = value == "true"
        elif tag == "PackageVerificationCode":
            about["packageVerificationCode"] = {"packageVerificationCodeValue": value}
        elif tag == "ExternalRef":
            words = value.split()
            if len(words) != 3:
                raise _fault("expected three elements in ExternalRef", line)
            names = ("referenceCategory", "referenceType", "referenceLocator")
            about.setdefault("externalRefs", []).append(dict(zip(names, words, strict=True)))
        elif tag == "ExternalRefComment" and about.get("externalRefs"):
            about["externalRefs"][-1]["comment"] = value
        else:
            raise _fault(f"received unknown tag {tag}", line)

    def _relationship(self, value: str, line: int) -> None:
        words = value.split()
        if len(words) != 3:
            raise _fault("expected three elements in Relationship", line)
        names = ("spdxElementId", "relationshipType", "relatedSpdxElement")
        self.relationships.append(dict(zip(names, words, strict=True)))

    def _reference(self, value: str, line: int) -> None:
        words = value.split()
        if len(words) < 3:
            raise _fault("expected three elements in ExternalDocumentRef", line)
        algorithm, _, digest = "".join(words[2:]).partition(":")
        self.references.append(
            {
                "externalDocumentId": words[0],
                "spdxDocument": words[1],
                "checksum": {"algorithm": algorithm, "checksumValue": digest},
            }
        )

    def _annotation(self, tag: str, value: str) -> None:
        if tag == "Annotator":
            self.annotations.append(
                {"annotator": value, "annotationDate": "", "annotationType": "", "comment": ""}
            )
        elif self.annotations:
            names = {
                "AnnotationDate": "annotationDate",
                "AnnotationType": "annotationType",
                "AnnotationComment": "comment",
            }
            if tag in names:
                self.annotations[-1][names[tag]] = value

    def document(self) -> dict[str, Any]:
        """All of it."""
        needed = ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace")
        document: dict[str, Any] = dict.fromkeys(needed, "") | {"SPDXID": "SPDXRef-"} | self.found
        # What is read is brought to the model of this version.
        document["spdxVersion"] = "SPDX-2.3"
        document["creationInfo"] = self.creation
        lists = {
            "externalDocumentRefs": self.references,
            "packages": self.packages,
            "files": self.files,
            "hasExtractedLicensingInfos": self.licenses,
            "relationships": self.relationships,
            "annotations": self.annotations,
        }
        return document | {name: items for name, items in lists.items() if items}
