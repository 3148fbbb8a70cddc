"""The tags of SPDX by their sections, and their names in SPDX' JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Section(NamedTuple):
    """The tags of a section; the mappings have the names in JSON."""

    name: str
    single: Mapping[str, str]
    """Tags of which the last value counts."""
    repeated: Mapping[str, str] = _NONE
    """Tags with values collected in a list."""
    defaults: Mapping[str, Any] = _NONE
    """The fields with defaults, for elements without their tags."""
    followers: frozenset[str] = frozenset()
    """Tags that begin an element of another section, or another element of this one."""


CREATION: Final = Section(
    "CreationInfo",
    {
        "LicenseListVersion": "licenseListVersion",
        "Created": "created",
        "CreatorComment": "comment",
    },
    {"Creator": "creators"},
    {"creators": None, "created": ""},
    frozenset({"PackageName", "FileName", "LicenseID", "Reviewer"}),
)
DOCUMENT: Final = Section(
    "Start",
    {
        "SPDXVersion": "spdxVersion",
        "DataLicense": "dataLicense",
        "SPDXID": "SPDXID",
        "DocumentName": "name",
        "DocumentNamespace": "documentNamespace",
        "DocumentComment": "comment",
    },
    {"ExternalDocumentRef": "externalDocumentRefs"},
    {
        "spdxVersion": "",
        "dataLicense": "",
        "SPDXID": "SPDXRef-",
        "name": "",
        "documentNamespace": "",
    },
)
PACKAGE: Final = Section(
    "Package",
    {
        "PackageVersion": "versionInfo",
        "PackageFileName": "packageFileName",
        "PackageSupplier": "supplier",
        "PackageOriginator": "originator",
        "PackageDownloadLocation": "downloadLocation",
        "PackageVerificationCode": "packageVerificationCode",
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
    },
    {
        "PackageChecksum": "checksums",
        "PackageLicenseInfoFromFiles": "licenseInfoFromFiles",
        "PackageAttributionText": "attributionTexts",
        "ExternalRef": "externalRefs",
    },
    {"name": "", "SPDXID": "SPDXRef-", "downloadLocation": "", "filesAnalyzed": True},
    frozenset({"PackageName", "FileName", "LicenseID", "Reviewer"}),
)
FILE: Final = Section(
    "File",
    {
        "LicenseConcluded": "licenseConcluded",
        "LicenseComments": "licenseComments",
        "FileCopyrightText": "copyrightText",
        "FileComment": "comment",
        "FileNotice": "noticeText",
        "SPDXID": "SPDXID",
    },
    {
        "FileType": "fileTypes",
        "FileChecksum": "checksums",
        "LicenseInfoInFile": "licenseInfoInFiles",
        "ArtifactOfProjectName": "artifactOfs",
        "FileContributor": "fileContributors",
        "FileDependency": "fileDependencies",
        "FileAttributionText": "attributionTexts",
    },
    {"fileName": "", "SPDXID": "SPDXRef-", "checksums": None, "copyrightText": ""},
    frozenset({"PackageName", "FileName", "SnippetSPDXID", "LicenseID", "Reviewer"}),
)
# Snippets and reviews are only read for their faults: the JSON does not contain them.
SNIPPET: Final = Section(
    "Snippet",
    {
        name: name
        for name in (
            "SnippetFromFileSPDXID",
            "SnippetByteRange",
            "SnippetLineRange",
            "SnippetLicenseConcluded",
            "LicenseInfoInSnippet",
            "SnippetLicenseComments",
            "SnippetCopyrightText",
            "SnippetComment",
            "SnippetName",
            "SnippetAttributionText",
        )
    },
    followers=FILE.followers,
)
LICENSE: Final = Section(
    "OtherLicense",
    {
        "ExtractedText": "extractedText",
        "LicenseName": "name",
        "LicenseComment": "comment",
    },
    {"LicenseCrossReference": "seeAlsos"},
    {"licenseId": "", "extractedText": ""},
    frozenset({"LicenseID", "Reviewer"}),
)
REVIEW: Final = Section(
    "Review",
    {"ReviewDate": "reviewDate", "ReviewComment": "comment"},
    followers=frozenset({"Reviewer"}),
)

BEGUN: Final = MappingProxyType(
    {
        "PackageName": PACKAGE,
        "FileName": FILE,
        "SnippetSPDXID": SNIPPET,
        "LicenseID": LICENSE,
        "Reviewer": REVIEW,
    }
)
"""The section of the element that a tag begins."""

SINCE: Final = MappingProxyType(
    {
        "PackageAttributionText": "SPDX-2.2",
        "FileAttributionText": "SPDX-2.2",
        "SnippetAttributionText": "SPDX-2.2",
        "PrimaryPackagePurpose": "SPDX-2.3",
        "ReleaseDate": "SPDX-2.3",
        "BuiltDate": "SPDX-2.3",
        "ValidUntilDate": "SPDX-2.3",
    }
)
"""The first version with a tag, for tags that the first version lacks."""
