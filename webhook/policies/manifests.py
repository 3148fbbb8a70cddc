"""Reads YAML and JSON files and directories into manifests with their file and line."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook import parsers
from webhook.admission_policies.kinds import name_or_digest
from webhook.api import names
from webhook.api.documents import InvalidDocument, only_objects, read_documents, read_json
from webhook.api.gvk import GroupVersionKind, gvk_of, name_of, namespace_of
from webhook.api.yaml_reader import FileDocument
from webhook.constraint import constraint
from webhook.parsers.errors import ParseError
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api.documents import Dialect

EXTENSIONS: Final = (".yaml", ".yml", ".json")

_SAMPLES: Final = "samples"
_SCENARIOS: Final = frozenset({"chainsaw-test.yaml", "chainsaw-test.yml"})
"""The files of Chainsaw's tests, whose folders have the objects of a scenario."""

FILE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The largest file, in bytes: more than ten times etcd's limit for one object."""

JSON_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest JSON document, such as Terraform's plans, in bytes; decoded it takes some five times
as much."""


_OF_CONSTRAINTS: Final = (constraint.GROUP, names.CONSTRAINT_GROUP)
"""The texts that a file with constraints or groups contains."""

_HELM: Final = re.compile(
    r"\{\{-? *(?:[^{}\n]*\.(?:Values|Release|Chart|Capabilities)\b|include |if |range |with )"
)
"""Template expressions of nearly every file of a chart, and of no other file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object with its ``file`` and first line."""

    document: dict[str, Any]
    file: str
    line: int = 1

    @property
    def gvk(self) -> GroupVersionKind:
        """The object's group, version and kind."""
        return gvk_of(self.document)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Group, kind, namespace and name: unique for each object."""
        gvk = self.gvk
        name = name_or_digest(self.document)
        return gvk.group, gvk.kind, namespace_of(self.document), name

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name."""
        return self.gvk.kind, name_of(self.document)

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        namespace, name = namespace_of(self.document), name_of(self.document)
        return f"{self.gvk.kind or 'object'} {f'{namespace}/' if namespace else ''}{name or '?'}"


@dataclass(frozen=True, slots=True)
class PolicyFault:
    """An unusable part of a file, in words for its author."""

    file: str
    line: int
    title: str
    message: str
    of_constraints: bool = False
    """Whether it concerns a constraint, or an unreadable file that may contain constraints."""
    stays: bool = False
    """Whether an earlier good revision stays in force."""
    switched_off: bool = False
    """Whether the only fault is that the engine of a template's code is disabled."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return (
            f"{place}: {self.title}: {self.message}" if self.title else f"{place}: {self.message}"
        )


class UnreadableFile(ValueError):
    """A file cannot be read as manifests; has the :class:`PolicyFault`."""

    def __init__(self, fault: PolicyFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def find_files(path: Path, *, left_out: list[Path] | None = None) -> list[Path]:
    """Returns the manifest files at a path: itself, or the files below it, sorted.

    Names that begin with ``..`` are left out: a mounted ConfigMap keeps its revisions in them and
    links to the current one. Pipes and devices are left out, too. With ``left_out``, a folder
    ``samples`` beside a test suite, and a folder below the path with a test of Chainsaw, are left
    out and added to it: they have examples, not policies to enforce. Raises OSError.
    """
    if not path.is_dir():
        path.stat()
        return [path]
    paths: list[Path] = []
    for folder, folders, files in os.walk(path, onerror=_raise):
        if left_out is not None and Path(folder) != path and not _SCENARIOS.isdisjoint(files):
            folders.clear()
            left_out.append(Path(folder))
            continue
        if left_out is not None and _SAMPLES in folders and "suite.yaml" in files:
            folders.remove(_SAMPLES)
            left_out.append(Path(folder, _SAMPLES))
        folders[:] = sorted(name for name in folders if not name.startswith(".."))
        paths += [
            file
            for name in sorted(files)
            if name.endswith(EXTENSIONS) and not name.startswith("..")
            if not _never_ends(file := Path(folder, name))
        ]
    return paths


def is_of_samples(path: Path) -> bool:
    """Returns whether a path is a folder of a test suite's samples, or below one."""
    return path.is_dir() and any(
        (folder.name == _SAMPLES and (folder.parent / "suite.yaml").exists())
        or any((folder / name).exists() for name in _SCENARIOS)
        for folder in (path, *path.parents)
    )


def _never_ends(file: Path) -> bool:
    """Returns whether a file is a device or a pipe, whose reader waits for a writer."""
    try:
        return not stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return False  # The reading reports the fault.


def _raise(error: OSError) -> None:
    raise error


def read_file(path: Path, dialect: Dialect = "kubernetes") -> list[Manifest]:
    """Returns the manifests of one file; raises :class:`UnreadableFile`."""
    return read_text(_read(path), str(path), dialect)


def read_found(file: Path, path: Path) -> list[Manifest]:
    """Returns the manifests of a file found at ``path``; raises :class:`UnreadableFile`.

    In a folder, a list without Kubernetes objects counts as a document that is no object.
    """
    if file == path:
        return read_file(file)
    text = _read(file)
    documents = [
        FileDocument({}, document.line) if is_list_of_others(document.value) else document
        for document in parse(text, str(file))
    ]
    return _manifests(documents, str(file), text)


def is_list_of_others(value: object) -> bool:
    """Returns whether a document is a list without items meant as Kubernetes objects.

    Kustomize's patches and Ansible's playbooks are such lists, beside manifests.
    """
    return type(value) is list and not any(type(item) is dict and is_object(item) for item in value)


def read_values(path: Path) -> list[FileDocument]:
    """Returns the documents of one file, of any type and format; raises :class:`UnreadableFile`."""
    if path.suffix == ".json":
        return parse(_read(path, JSON_BYTES_MAX), str(path))
    if path.suffix in EXTENSIONS or is_stream(path):
        return parse(_read(path), str(path))
    return _parsed(path)


def is_stream(path: Path) -> bool:
    """Returns whether this is standard input or a pipe, such as a shell's ``<(command)``."""
    try:
        return str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/")) or path.is_fifo()
    except OSError:
        return False


def has_format(path: Path) -> bool:
    """Returns whether :func:`read_values` knows the format of a file by its name."""
    return path.suffix in EXTENSIONS or parsers.is_supported(str(path))


def _parsed(path: Path) -> list[FileDocument]:
    """Parses a file of another format; an array contains several documents, as in conftest."""
    file = str(path)
    raw = _bytes(path, FILE_BYTES_MAX)
    if len(raw) > FILE_BYTES_MAX:
        raise _unreadable(file, f"larger than {FILE_BYTES_MAX} bytes", "")
    try:
        value = parsers.parse(parsers.name_for(file), raw, file)
    except ParseError as error:
        raise UnreadableFile(PolicyFault(file, error.line, "", error.message)) from None
    except RecursionError:
        raise _unreadable(file, "nested too deeply", "") from None
    return [FileDocument(item, 1) for item in (value if type(value) is list else [value])]


def _bytes(path: Path, bytes_max: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(str(path), error.strerror or str(error)) from None


def _read(path: Path, bytes_max: int = FILE_BYTES_MAX) -> str:
    return text_of(_bytes(path, bytes_max), str(path), bytes_max)


def text_of(raw: bytes, file: str, bytes_max: int = FILE_BYTES_MAX) -> str:
    """Returns the text of a file's bytes; raises :class:`UnreadableFile`."""
    if len(raw) > bytes_max:
        raise _unreadable(file, f"larger than {bytes_max} bytes")
    try:
        return parsers.utf8_of(raw).decode()
    except ParseError as error:
        raise _unreadable(file, error.message) from None


def read_text(text: str, file: str, dialect: Dialect = "kubernetes") -> list[Manifest]:
    """Returns the manifests of a text from ``file``; raises :class:`UnreadableFile`."""
    return _manifests(parse(text, file, dialect), file, text)


def _manifests(documents: list[FileDocument], file: str, text: str) -> list[Manifest]:
    try:
        only_objects(documents)
    except InvalidDocument as error:
        raise _unreadable(file, str(error), text) from None
    return [Manifest(document.value, file, document.line) for document in documents]


def parse(text: str, file: str, dialect: Dialect = "kubernetes") -> list[FileDocument]:
    """Returns the documents of a text, of any type; raises :class:`UnreadableFile`."""
    try:
        if file.endswith(".json"):
            return _json_documents(text, dialect)
        return read_documents(text, dialect)
    except InvalidDocument as error:
        helm = "; this is a Helm template: render it first" if _HELM.search(text) else ""
        raise _unreadable(file, f"{error}{helm}", text) from None


def _json_documents(text: str, dialect: Dialect) -> list[FileDocument]:
    """Parses JSON, or YAML that kubectl and gator accept there: with comments or single quotes.

    Raises :class:`InvalidDocument`, about the JSON.
    """
    try:
        return read_json(text, dialect)
    except InvalidDocument as error:
        if len(text) > FILE_BYTES_MAX:
            raise
        try:
            documents = read_documents(text, dialect)
        except InvalidDocument:
            raise error from None
        if not all(type(document.value) is dict for document in documents):
            raise
        return documents


def _unreadable(file: str, message: str, text: str = constraint.GROUP) -> UnreadableFile:
    """Returns the fault of a file.

    Unless ``text`` excludes it, the file may contain constraints.
    """
    return UnreadableFile(
        PolicyFault(file, 0, "", message, any(part in text for part in _OF_CONSTRAINTS))
    )


def is_object(document: Mapping[str, Any]) -> bool:
    """Returns whether a document is meant as a Kubernetes object.

    Other files beside manifests (a chart's values and its Chart.yaml, many a kustomization) lack a
    kind or an apiVersion, and have no metadata. A document with metadata that lacks kind or
    apiVersion is a mistyped object, and must be reported.
    """
    if "metadata" in document:
        return True
    return bool(document.get("kind")) and bool(document.get("apiVersion"))
