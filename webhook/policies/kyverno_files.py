"""The files that a test of Kyverno names: manifests, parameters, answers."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from webhook.api.documents import InvalidDocument, read_objects
from webhook.api.gvk import gvk_of
from webhook.api.shapes import objects_of
from webhook.kyverno.kinds import TEST_FILES
from webhook.policies.manifests import Manifest, find_files
from webhook.policies.suite import InvalidSuite

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.api.shapes import Json
    from webhook.api.yaml_reader import FileDocument


def manifests_of(file: Path, where: str) -> list[Manifest]:
    """Returns the objects, each with its file and line; raises :class:`InvalidSuite`."""
    items: list[Manifest] = []
    for path in _files(file):
        for read in documents_of(path, where):
            document: Json = read.value
            many = document.get("items") if gvk_of(document).kind.endswith("List") else None
            listed = objects_of(many) if many is not None else [document]
            items += [Manifest(item, os.path.normpath(path), read.line) for item in listed]
    return items


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in find_files(path) if file.name not in TEST_FILES]
    is_pattern = any(mark in path.name for mark in "*?[") and not path.exists()
    return sorted(path.parent.glob(path.name)) or [path] if is_pattern else [path]


def documents_of(file: Path, where: str) -> list[FileDocument]:
    """Returns the documents of a file that a field names; raises :class:`InvalidSuite`."""
    try:
        return read_documents(file)
    except OSError as error:
        raise InvalidSuite(
            f"{where}: {file}: {error.strerror}; correct the name, or add the file"
        ) from None


def read_documents(file: Path) -> list[FileDocument]:
    """Returns the documents of a file; raises :class:`InvalidSuite`, and OSError."""
    try:
        return read_objects(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidSuite(f"{file}: it is not UTF-8") from None
    except InvalidDocument as error:
        raise InvalidSuite(f"{file}: {error}") from None
