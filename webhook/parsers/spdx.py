"""Parses SPDX tag-value documents, in the shape of SPDX' JSON (spdx/tools-golang)."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from webhook.parsers import spdx_values
from webhook.parsers.errors import ParseError
from webhook.parsers.spdx_sections import (
    BEGUN,
    CREATION,
    DOCUMENT,
    FILE,
    LICENSE,
    PACKAGE,
    SINCE,
    Section,
)
from webhook.values import dataclass

_ANNOTATION: Final = {
    "AnnotationDate": "annotationDate",
    "AnnotationType": "annotationType",
    "AnnotationComment": "comment",
}
# Tags with further members for the value of the preceding tag.
_MORE: Final = {
    "ExternalRefComment": ("ExternalRef", "comment"),
    "ArtifactOfProjectHomePage": ("ArtifactOfProjectName", "homePage"),
    "ArtifactOfProjectURI": ("ArtifactOfProjectName", "URI"),
}


def parse(raw: bytes, path: str = "") -> Any:
    """Returns ``{spdxVersion, dataLicense, SPDXID, name, creationInfo, packages, …}``."""
    del path
    pairs = _pairs(raw.decode("utf-8", "replace"))
    version, line = next(((value, at) for tag, value, at in pairs if tag == "SPDXVersion"), ("", 1))
    if version not in spdx_values.VERSIONS:
        raise _fault(f"unsupported SPDX version: {version!r}", line)
    reader = _Reader(version)
    for tag, value, at in pairs:
        try:
            reader.take(tag, value)
        except ValueError as error:
            raise _fault(str(error), at) from error
    try:
        return reader.finished()
    except ValueError as error:
        raise _fault(str(error), pairs[-1][2]) from error


def _pairs(text: str) -> list[tuple[str, str, int]]:
    """Returns each tag with its value, which ``<text>`` may spread over lines, and its line."""
    pairs = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        begun = at + 1
        line = lines[at].rstrip("\r").lstrip()
        at += 1
        if not line or line.startswith("#"):
            continue
        tag, colon, value = line.partition(":")
        if not colon:
            raise _fault("no colon found", begun)
        _, opened, spread = value.partition("<text>")
        if opened:
            pieces = [spread]
            while "</text>" not in pieces[-1]:
                if at >= len(lines):
                    raise _fault("a <text> is not closed", begun)
                pieces.append(lines[at].rstrip("\r"))
                at += 1
            value = "\n".join(pieces).partition("</text>")[0]
        else:
            value = value.strip()
        pairs.append((tag.strip(), value, begun))
    return pairs


def _fault(message: str, line: int) -> ParseError:
    return ParseError(f"error while parsing SPDX: {message}", line)


def _has_identifier(element: dict[str, Any] | None, kind: str, name: str) -> None:
    if element is not None and element["SPDXID"] == "SPDXRef-":
        raise ValueError(f"{kind} {element[name]} does not have SPDX identifier")


@dataclass(slots=True)
class _Reader:
    """The document read so far, with the section and element of the next tags."""

    version: str
    section: Section = DOCUMENT
    document: dict[str, Any] = field(default_factory=lambda: dict(DOCUMENT.defaults))
    creation: dict[str, Any] | None = None
    package: dict[str, Any] | None = None
    file: dict[str, Any] | None = None
    about: dict[str, Any] = field(default_factory=dict)
    last: tuple[str, dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.about = self.document

    def take(self, tag: str, value: str) -> None:
        """Reads one tag; raises :class:`ValueError` for a misplaced or wrong one."""
        if tag in _MORE:
            self._add_detail(tag, value)
            return
        self.last = None
        if tag == "DocumentComment" and self._leads_back():
            self.section, self.about = DOCUMENT, self.document
        if tag in self.section.followers:
            self._begin(tag, spdx_values.read(tag, value, self.version))
        elif SINCE.get(tag, "") > self.version:
            raise ValueError(f"received unknown tag {tag} in {self.section.name} section")
        elif tag in self.section.single:
            self._put(self.section.single[tag], spdx_values.read(tag, value, self.version))
        elif tag in self.section.repeated:
            self._add(tag, spdx_values.read(tag, value, self.version))
        elif self.section is DOCUMENT:
            self._create()
            self.take(tag, value)
        elif tag == "FilesAnalyzed" and self.section is PACKAGE:
            self.about["filesAnalyzed"] = {"true": True, "false": False}.get(
                value, self.about["filesAnalyzed"]
            )
        else:
            self._relate(tag, value)

    def _leads_back(self) -> bool:
        """Whether the document's comment switches back to the document's section."""
        return self.section is CREATION and self.version > "SPDX-2.1"

    def _create(self) -> None:
        if self.creation is None:
            self.creation = dict(CREATION.defaults)
        self.section, self.about = CREATION, self.creation

    def _begin(self, tag: str, value: str) -> None:
        """Begins the element that a tag names."""
        if tag in {"PackageName", "FileName", "SnippetSPDXID"}:
            _has_identifier(self.file, "file", "fileName")
        if tag == "PackageName":
            _has_identifier(self.package, "package", "name")
            self.file = None
            self.about = self.package = {**PACKAGE.defaults, "name": value}
        elif tag == "FileName":
            self.about = self.file = {**FILE.defaults, "fileName": value}
        elif tag == "LicenseID":
            self.about = {**LICENSE.defaults, "licenseId": value}
            self.document.setdefault("hasExtractedLicensingInfos", []).append(self.about)
        else:
            self.about = {}
        self.section = BEGUN[tag]

    def _put(self, name: str, value: Any) -> None:
        """Sets a member; an optional one is only set with a value."""
        if value or name in self.section.defaults:
            self.about[name] = value
        else:
            self.about.pop(name, None)
        if name == "SPDXID" and self.section is PACKAGE:
            self.document.setdefault("packages", []).append(self.about)
        elif name == "SPDXID" and self.section is FILE:
            holder = self.document if self.package is None else self.package
            holder.setdefault("files", []).append(self.about)

    def _add(self, tag: str, value: Any) -> None:
        name = self.section.repeated[tag]
        if self.about.get(name) is None:
            self.about[name] = []
        self.about[name].append(value)
        if isinstance(value, dict):
            self.last = tag, value

    def _add_detail(self, tag: str, value: str) -> None:
        before, name = _MORE[tag]
        if self.last is None or self.last[0] != before:
            raise ValueError(f"no current {before} found for {tag}")
        if value:
            self.last[1][name] = value
        if tag == "ExternalRefComment":
            self.last = None

    def _relate(self, tag: str, value: str) -> None:
        """Reads relationships and annotations, which may stand in any section."""
        relationships = self.document.get("relationships")
        annotations = self.document.get("annotations")
        if tag == "Relationship":
            stated = spdx_values.relationship(value, self.version)
            self.document.setdefault("relationships", []).append(stated)
        elif tag == "RelationshipComment" and relationships:
            relationships[-1].pop("comment", None)
            relationships[-1] |= {"comment": value} if value else {}
        elif tag == "Annotator":
            annotation = {"annotator": spdx_values.read(tag, value, self.version)}
            empty = dict.fromkeys(_ANNOTATION.values(), "")
            self.document.setdefault("annotations", []).append(annotation | empty)
        elif tag in _ANNOTATION and annotations:
            annotations[-1][_ANNOTATION[tag]] = value
        elif tag == "SPDXREF" and annotations:
            spdx_values.reference(value)
        else:
            raise ValueError(f"received unknown tag {tag} in {self.section.name} section")

    def finished(self) -> dict[str, Any]:
        """Returns the document in the model of 2.3.

        Raises :class:`ValueError` for a missing identifier.
        """
        _has_identifier(self.file, "file", "fileName")
        _has_identifier(self.package, "package", "name")
        older = self.version != "SPDX-2.3"
        for package in self.document.get("packages", []) if older else []:
            package.setdefault("packageVerificationCode", {"packageVerificationCodeValue": ""})
        # An empty struct of an older version becomes None.
        creation = None if older and self.creation == CREATION.defaults else self.creation
        return self.document | {"spdxVersion": "SPDX-2.3", "creationInfo": creation}
