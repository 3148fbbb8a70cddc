"""SPDX of tags and values: what conftest's parser (spdx/tools-golang) makes of it, and refuses."""

import pytest

from webhook import parsers
from webhook.parsers.errors import ParseError

HEAD = "SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\nSPDXID: SPDXRef-DOCUMENT\n"
PACKAGE = "PackageName: hello\nSPDXID: SPDXRef-hello\n"
FILE = "FileName: ./hello.c\nSPDXID: SPDXRef-hello-c\n"
SNIPPET = FILE + "SnippetSPDXID: SPDXRef-main\n"

DOCUMENT = """\
SPDXVersion: SPDX-2.3
DataLicense: CC0-1.0
SPDXID: SPDXRef-DOCUMENT
DocumentName: hello-1.0
DocumentNamespace: https://example.com/spdx/hello-1.0
ExternalDocumentRef: DocumentRef-base https://example.com/spdx/base SHA1: d6a770ba38583ed4bb4525bd96e50461655d2759
ExternalDocumentRef: DocumentRef-libc https://example.com/spdx/libc SHA256:11b6d3ee
DocumentComment: <text>Made by
the release job.</text>
# creation
LicenseListVersion: 3.21
Creator: Tool: syft-1.0
Creator: Organization:  Example (info@example.com)
Created: 2024-01-02T03:04:05Z
CreatorComment: <text>one line</text> and what follows
Relationship: SPDXRef-DOCUMENT DESCRIBES SPDXRef-hello
RelationshipComment: the one product

PackageName: hello
SPDXID: SPDXRef-hello
PackageVersion: 1.0
PackageFileName: hello-1.0.tar.gz
PackageSupplier: Organization: Example
PackageOriginator: NOASSERTION
PackageDownloadLocation: git+https://example.com/hello.git@v1.0
FilesAnalyzed: false
FilesAnalyzed: perhaps
PackageVerificationCode: d6a770ba38583ed4bb4525bd96e50461655d2758 (excludes: ./hello.spdx)
PackageChecksum: SHA256: 5f70bf18
PackageChecksum: BLAKE3: af1349b9
PackageHomePage:
PackageLicenseConcluded: MIT
PackageLicenseInfoFromFiles: MIT
PackageLicenseInfoFromFiles: NOASSERTION
PackageCopyrightText: <text>Copyright
  Example</text>
PackageAttributionText: thanks
PrimaryPackagePurpose: APPLICATION
ReleaseDate: 2024-01-02T00:00:00Z
ExternalRef: PACKAGE_MANAGER purl pkg:generic/hello@1.0
ExternalRefComment: where it is had
ExternalRef: SECURITY cpe23Type cpe:2.3:a:example:hello:1.0
ExternalRefComment:
FileName: ./hello.c
SPDXID: SPDXRef-hello-c
FileType: SOURCE
FileType: TEXT
FileChecksum: SHA1: 20862a6d
LicenseConcluded: MIT
LicenseInfoInFile: MIT
FileCopyrightText: NOASSERTION
ArtifactOfProjectName: Jena
ArtifactOfProjectHomePage: https://jena.example.com
ArtifactOfProjectURI: https://jena.example.com/x
FileContributor: A
FileDependency: ./b.c
FileNotice: n
SnippetSPDXID: SPDXRef-snippet
SnippetFromFileSPDXID: DocumentRef-base:SPDXRef-hello-c
SnippetByteRange: 310:420
SnippetLineRange: 5:23
SnippetName: main
PackageName: libhello
SPDXID: SPDXRef-lib
PackageDownloadLocation: NONE
Annotator: Person: Jane
AnnotationDate: 2024-02-03T00:00:00Z
AnnotationType: REVIEW
SPDXREF: SPDXRef-lib
AnnotationComment: looks right
Relationship: SPDXRef-hello CONTAINS SPDXRef-lib
Relationship: DocumentRef-base:SPDXRef-x OTHER NOASSERTION
RelationshipComment:
LicenseID: LicenseRef-1
ExtractedText: <text>Do
as you like</text>
LicenseName: Free
LicenseCrossReference: https://example.com/free
LicenseComment: c
LicenseID: LicenseRef-2
Reviewer: Person: Joe
ReviewDate: 2024-02-03T00:00:00Z
ReviewComment: good
"""
SHAPE = {
    "SPDXID": "SPDXRef-DOCUMENT",
    "annotations": [
        {
            "annotationDate": "2024-02-03T00:00:00Z",
            "annotationType": "REVIEW",
            "annotator": "Person: Jane",
            "comment": "looks right",
        }
    ],
    "comment": "Made by\nthe release job.",
    "creationInfo": {
        "comment": "one line",
        "created": "2024-01-02T03:04:05Z",
        "creators": ["Tool: syft-1.0", "Organization: Example (info@example.com)"],
        "licenseListVersion": "3.21",
    },
    "dataLicense": "CC0-1.0",
    "documentNamespace": "https://example.com/spdx/hello-1.0",
    "externalDocumentRefs": [
        {
            "checksum": {
                "algorithm": "SHA1",
                "checksumValue": "d6a770ba38583ed4bb4525bd96e50461655d2759",
            },
            "externalDocumentId": "DocumentRef-base",
            "spdxDocument": "https://example.com/spdx/base",
        },
        {
            "checksum": {"algorithm": "SHA256", "checksumValue": "11b6d3ee"},
            "externalDocumentId": "DocumentRef-libc",
            "spdxDocument": "https://example.com/spdx/libc",
        },
    ],
    "hasExtractedLicensingInfos": [
        {
            "comment": "c",
            "extractedText": "Do\nas you like",
            "licenseId": "LicenseRef-1",
            "name": "Free",
            "seeAlsos": ["https://example.com/free"],
        },
        {"extractedText": "", "licenseId": "LicenseRef-2"},
    ],
    "name": "hello-1.0",
    "packages": [
        {
            "SPDXID": "SPDXRef-hello",
            "attributionTexts": ["thanks"],
            "checksums": [
                {"algorithm": "SHA256", "checksumValue": "5f70bf18"},
                {"algorithm": "BLAKE3", "checksumValue": "af1349b9"},
            ],
            "copyrightText": "Copyright\n  Example",
            "downloadLocation": "git+https://example.com/hello.git@v1.0",
            "externalRefs": [
                {
                    "comment": "where it is had",
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceLocator": "pkg:generic/hello@1.0",
                    "referenceType": "purl",
                },
                {
                    "referenceCategory": "SECURITY",
                    "referenceLocator": "cpe:2.3:a:example:hello:1.0",
                    "referenceType": "cpe23Type",
                },
            ],
            "files": [
                {
                    "SPDXID": "SPDXRef-hello-c",
                    "artifactOfs": [
                        {
                            "URI": "https://jena.example.com/x",
                            "homePage": "https://jena.example.com",
                            "name": "Jena",
                        }
                    ],
                    "checksums": [{"algorithm": "SHA1", "checksumValue": "20862a6d"}],
                    "copyrightText": "NOASSERTION",
                    "fileContributors": ["A"],
                    "fileDependencies": ["./b.c"],
                    "fileName": "./hello.c",
                    "fileTypes": ["SOURCE", "TEXT"],
                    "licenseConcluded": "MIT",
                    "licenseInfoInFiles": ["MIT"],
                    "noticeText": "n",
                }
            ],
            "filesAnalyzed": False,
            "licenseConcluded": "MIT",
            "licenseInfoFromFiles": ["MIT", "NOASSERTION"],
            "name": "hello",
            "originator": "NOASSERTION",
            "packageFileName": "hello-1.0.tar.gz",
            "packageVerificationCode": {
                "packageVerificationCodeExcludedFiles": ["./hello.spdx"],
                "packageVerificationCodeValue": "d6a770ba38583ed4bb4525bd96e50461655d2758",
            },
            "primaryPackagePurpose": "APPLICATION",
            "releaseDate": "2024-01-02T00:00:00Z",
            "supplier": "Organization: Example",
            "versionInfo": "1.0",
        },
        {
            "SPDXID": "SPDXRef-lib",
            "downloadLocation": "NONE",
            "filesAnalyzed": True,
            "name": "libhello",
        },
    ],
    "relationships": [
        {
            "comment": "the one product",
            "relatedSpdxElement": "SPDXRef-hello",
            "relationshipType": "DESCRIBES",
            "spdxElementId": "SPDXRef-DOCUMENT",
        },
        {
            "relatedSpdxElement": "SPDXRef-lib",
            "relationshipType": "CONTAINS",
            "spdxElementId": "SPDXRef-hello",
        },
        {
            "relatedSpdxElement": "NOASSERTION",
            "relationshipType": "OTHER",
            "spdxElementId": "DocumentRef-base:SPDXRef-x",
        },
    ],
    "spdxVersion": "SPDX-2.3",
}
# The value of a document with the head alone.
BARE = {
    "spdxVersion": "SPDX-2.3",
    "dataLicense": "CC0-1.0",
    "SPDXID": "SPDXRef-DOCUMENT",
    "name": "",
    "documentNamespace": "",
    "creationInfo": None,
}
CREATED = {"creators": None, "created": ""}


def of_version(version, text):
    return parsers.parse("spdx", (HEAD.replace("2.3", version) + text).encode())


def test_every_section_is_reported_in_the_shape_of_spdx_json():
    assert parsers.parse("spdx", DOCUMENT.encode()) == SHAPE


def test_a_head_without_creation_has_none():
    assert of_version("2.3", "") == BARE


@pytest.mark.parametrize(("version", "verification", "creation"), [
    ("2.3", {}, CREATED),
    ("2.2", {"packageVerificationCode": {"packageVerificationCodeValue": ""}}, None),
    ("2.1", {"packageVerificationCode": {"packageVerificationCodeValue": ""}}, None),
])  # fmt: skip
def test_an_older_version_is_brought_to_the_model_of_the_newest(version, verification, creation):
    package = {
        "name": "hello",
        "SPDXID": "SPDXRef-hello",
        "downloadLocation": "",
        "filesAnalyzed": True,
        "files": [
            {
                "fileName": "./hello.c",
                "SPDXID": "SPDXRef-hello-c",
                "checksums": None,
                "copyrightText": "",
            }
        ],
    }

    found = of_version(version, PACKAGE + FILE)

    assert found == BARE | {"creationInfo": creation, "packages": [package | verification]}


def test_files_before_any_package_are_the_documents():
    found = of_version("2.3", FILE + PACKAGE)

    assert [file["fileName"] for file in found["files"]] == ["./hello.c"]
    assert "files" not in found["packages"][0]


def test_a_value_emptied_again_is_reported_only_where_it_must_be():
    found = of_version("2.3", "Created: x\nCreated:\nLicenseListVersion: 1\nLicenseListVersion:\n")

    assert found["creationInfo"] == CREATED


def test_a_comment_on_the_document_leads_back_to_its_tags():
    found = of_version("2.2", "Creator: Tool: a\nDocumentComment: b\nDocumentName: c\n")

    created = {"creators": ["Tool: a"], "created": ""}
    assert found == BARE | {"name": "c", "comment": "b", "creationInfo": created}


def test_the_comment_of_2_1_is_a_tag_among_the_documents():
    found = of_version("2.1", "DocumentComment: a\nDocumentName: b\n")

    assert found == BARE | {"name": "b", "comment": "a"}


def test_what_stands_around_a_text_is_not_of_the_value():
    assert of_version("2.3", "DocumentName: a <text>b</text> c\r\n") == BARE | {"name": "b"}


REFUSED = [
    ("2.3", "Creator: Tool: a\nDocumentName: b\n", 5, "unknown tag DocumentName in CreationInfo"),
    ("2.1", "Creator: Tool: a\nDocumentComment: b\n", 5, "unknown tag DocumentComment"),
    ("2.1", SNIPPET + "SnippetAttributionText: a\n", 7, "unknown tag SnippetAttributionText"),
    ("2.3", "Zork: a\n", 4, "unknown tag Zork in CreationInfo"),
    ("2.3", SNIPPET + "Zork: a\n", 7, "unknown tag Zork in Snippet"),
    ("2.3", "Reviewer: Tool: a\nFileName: b\n", 5, "unknown tag FileName in Review"),
    ("2.3", "LicenseID: a\nPackageName: b\n", 5, "unknown tag PackageName in OtherLicense"),
    ("2.2", PACKAGE + "ReleaseDate: a\n", 6, "unknown tag ReleaseDate in Package"),
    ("2.1", PACKAGE + "PackageAttributionText: a\n", 6, "unknown tag PackageAttributionText"),
    ("2.1", PACKAGE + "PackageChecksum: SHA512: a\n", 6, "unknown checksum type SHA512"),
    ("2.2", PACKAGE + "PackageChecksum: BLAKE3: a\n", 6, "unknown checksum type BLAKE3"),
    ("2.1", "Relationship: SPDXRef-a B NONE\n", 4, "missing SPDXRef- prefix"),
    ("2.3", "Relationship: NONE B SPDXRef-a\n", 4, "missing SPDXRef- prefix"),
    ("2.3", "Relationship: SPDXRef-a B\n", 4, "invalid relationship format"),
    ("2.3", "Relationship: DocumentRef-a B NONE\n", 4, "colon"),
    ("2.3", "Relationship: DocumentRef-:SPDXRef-a B NONE\n", 4, "nothing after prefix"),
    ("2.3", "RelationshipComment: a\n", 4, "RelationshipComment"),
    ("2.3", "AnnotationDate: a\n", 4, "AnnotationDate"),
    ("2.3", "Annotator: Robot: a\n", 4, "unrecognized type Robot"),
    ("2.3", "Annotator: Tool: a\nSPDXREF: b\n", 5, "missing SPDXRef- prefix"),
    ("2.3", "Creator: Tool:\n", 4, "Tool has no name"),
    ("2.3", "SPDXID: SPDXRef-\n", 4, "nothing after prefix"),
    ("2.3", "SPDXID: SPDXRef-a:b\n", 4, "invalid colon"),
    ("2.3", "ExternalDocumentRef: DocumentRef-a b c d\n", 4, "its checksum"),
    ("2.3", "ExternalDocumentRef: DocumentRef-a b c\n", 4, "its checksum"),
    ("2.3", "ExternalDocumentRef: a b c:d\n", 4, "DocumentRef- prefix"),
    ("2.3", "ExternalDocumentRef: DocumentRef- b c:d\n", 4, "nothing after prefix"),
    ("2.3", "PackageName: a\nPackageName: b\n", 5, "package a does not have SPDX identifier"),
    ("2.3", PACKAGE + "FileName: a\nFileType: b\n", 7, "file a does not have SPDX identifier"),
    ("2.3", PACKAGE + "PackageSupplier: Tool: a\n", 6, "unrecognized type Tool"),
    ("2.3", PACKAGE + "ExternalRef: a b\n", 6, "expected 3 elements, got 2"),
    ("2.3", PACKAGE + "ExternalRef: a b c\nPackageComment: d\nExternalRefComment: e\n", 8, "ExternalRef "),
    ("2.3", FILE + "ArtifactOfProjectURI: a\n", 6, "no current ArtifactOfProject"),
    ("2.3", SNIPPET + "SnippetByteRange: 1\n", 7, "no colon found"),
    ("2.3", SNIPPET + "SnippetLineRange: a:2\n", 7, "invalid number 'a'"),
    ("2.3", "DocumentName: <text>b\n\n", 4, "not closed"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "text", "line", "message"), REFUSED)
def test_a_tag_out_of_place_or_with_a_wrong_value_is_refused(version, text, line, message):
    with pytest.raises(ParseError, match=message) as error:
        of_version(version, text)

    assert error.value.line == line


@pytest.mark.parametrize("text", ["", "DocumentName: a\n", "# SPDXVersion: SPDX-2.3\n"])
def test_a_text_without_a_version_is_refused(text):
    with pytest.raises(ParseError, match="unsupported SPDX version: ''"):
        parsers.parse("spdx", text.encode())
