"""Rego modules and base documents from files, as ``opa test`` and ``opa eval`` load them.

Folders are read recursively. ``.rego`` files are modules; ``.json``, ``.yaml`` and ``.yml`` files
are objects placed below ``data`` by their folder's path. Files of other kinds are skipped unless
they are named. A path ``a.b:FILE`` puts the content of FILE at ``data.a.b``. (OPA
v1/loader/loader.go.)
"""

from __future__ import annotations

import os.path
import stat
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.builtins import go_json, yaml_documents
from webhook.rego.check.checks import path_text
from webhook.rego.errors import BuiltinError, RegoErrors, RegoLoadError
from webhook.rego.run.limits import UNBOUNDED_STEPS, EvaluationContext
from webhook.rego.syntax.metadata import block_faults
from webhook.rego.syntax.parser import parse_module
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.rego.syntax.ast import Module, RegoVersion

BYTES_MAX: Final = 1 << 30
"""A larger file is refused before it is read."""

YAML: Final = (".yaml", ".yml")


class LoadErrors(Exception):
    """Files that could not be loaded, one a line; ``messages`` has all of them.

    ``faults`` are the same faults, those of sources as they were raised.
    """

    def __init__(self, faults: Sequence[str | RegoLoadError]) -> None:
        super().__init__(faults)
        self.faults = tuple(faults)
        self.messages = tuple(map(str, faults))

    def __str__(self) -> str:
        if len(self.messages) == 1:
            return f"1 error occurred during loading: {self.messages[0]}"
        lines = "\n".join(self.messages)
        return f"{len(self.messages)} errors occurred during loading:\n{lines}"


@dataclass(frozen=True, slots=True)
class RegoFiles:
    """The loaded modules in the order of their paths, and the documents below ``data``."""

    modules: list[Module] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


def load(
    paths: Sequence[str],
    *,
    version: RegoVersion = "v1",
    ignore: Sequence[str] = (),
    documents: bool = True,
    annotations: bool = False,
) -> RegoFiles:
    """Loads everything at these paths; raises :class:`LoadErrors` that name every faulty file.

    ``ignore`` has patterns of names of files and folders to skip below a path. Without
    ``documents`` a folder's files are no documents. With ``annotations`` unreadable annotations are
    faults.
    """
    loading = _Loading(version, tuple(ignore), documents=documents, annotations=annotations)
    for path in paths:
        prefix, place = _split_prefix(path)
        loading.path(Path(place), prefix, ())
    if loading.faults:
        raise LoadErrors(loading.faults)
    # Otherwise the neighbour `folder-b` would precede a folder's files: "-" sorts before "/".
    loading.files.modules.sort(key=lambda module: module.file)
    return loading.files


def read_input(text: str) -> Any:
    """Reads an input, JSON or YAML regardless of its name; raises :class:`BuiltinError`."""
    try:
        return go_json.decode(text)
    except BuiltinError:
        return yaml_value(text)


def ignored(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file or folder of that name is passed over."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def system_words(error: OSError) -> str:
    """Returns the system's words for the fault of a file, as OPA has them."""
    return (error.strerror or "cannot be read").lower()


def _split_prefix(path: str) -> tuple[tuple[str, ...], str]:
    prefix, colon, rest = path.partition(":")
    if not colon or not prefix or rest.startswith("//"):
        return (), path.removeprefix("file://")
    return tuple(prefix.split(".")), rest


class _Loading:
    """The modules and documents loaded so far."""

    def __init__(
        self,
        version: RegoVersion,
        ignore: tuple[str, ...],
        *,
        documents: bool,
        annotations: bool,
    ) -> None:
        self.files = RegoFiles()
        self.faults: list[str | RegoLoadError] = []
        self._version = version
        self._ignore = ignore
        self._documents_of_folders = documents
        self._annotations = annotations
        self._seen: set[tuple[tuple[str, ...], str]] = set()
        self._documents: list[tuple[str, dict[str, Any]]] = []

    def path(self, path: Path, at: tuple[str, ...], around: tuple[tuple[int, int], ...]) -> None:
        """Loads a file, or a folder recursively; ``around`` are its parent folders."""
        if around and ignored(path.name, self._ignore):
            return
        doing = "stat"
        try:
            status = path.stat()
            doing = "open"
            if not stat.S_ISDIR(status.st_mode):
                self._file(path, at, named=not around)
                return
            folder = status.st_dev, status.st_ino
            if folder in around:
                self.faults.append(f"{path}: a link leads back to a folder that it is in")
                return
            below = (*at, path.name) if around else at
            for inner in _entries(path):
                self.path(inner, below, (*around, folder))
        except OSError as error:
            self.faults.append(f"{doing} {path}: {system_words(error)}")

    def _file(self, path: Path, at: tuple[str, ...], *, named: bool) -> None:
        # The place of a document depends on its path; a module declares its package.
        seen = () if path.suffix == ".rego" else at, os.path.normpath(path)
        if seen in self._seen:
            return
        self._seen.add(seen)
        kind = path.suffix
        if not named and not self._is_selected(path):
            return
        if path.stat().st_size > BYTES_MAX:
            self.faults.append(f"{path}: over {BYTES_MAX} bytes")
            return
        try:
            text = path.read_text("utf-8", "surrogateescape")
            if kind == ".rego":
                module = parse_module(text, str(path), self._version)
                self.faults.extend(block_faults(module) if self._annotations else ())
                self.files.modules.append(module)
            elif kind == ".json":
                self._merge(path, at, go_json.decode(text))
            elif kind in YAML:
                self._merge(path, at, yaml_value(text))
            else:
                self._of_any_kind(path, at, text)
        except RegoErrors as errors:
            self.faults.extend(errors.errors)
        except BuiltinError as error:
            prefix = "error converting YAML to JSON: " if kind in YAML else ""
            self.faults.append(f"{path}: {prefix}{error.message}")

    def _is_selected(self, path: Path) -> bool:
        kind = path.suffix
        return kind == ".rego" or (self._documents_of_folders and kind in {".json", *YAML})

    def _of_any_kind(self, path: Path, at: tuple[str, ...], text: str) -> None:
        """Reads a named file of any kind: the first kind that parses."""
        try:
            self.files.modules.append(parse_module(text, str(path), self._version))
        except RegoErrors:
            try:
                self._merge(path, at, yaml_value(text))  # JSON is YAML
            except BuiltinError:
                self.faults.append(f"{path}: can't recognize file type")

    def _merge(self, path: Path, at: tuple[str, ...], document: Any) -> None:
        for name in reversed(at):
            document = {name: document}
        if not isinstance(document, dict):
            self.faults.append(f"{path}: document must be of type object")
            return
        place = conflict(self.files.data, document)
        if place is not None:
            self.faults.append(self._conflict_text(path, place))
            return
        merge_into(self.files.data, document)
        self._documents.append((str(path), document))

    def _conflict_text(self, path: Path, keys: tuple[str, ...]) -> str:
        place = path_text(("data", *keys))
        other = next(
            (name for name, document in self._documents if _has(document, keys)), "another file"
        )
        return f"{path}: merge error: conflicting values at {place}, also defined in {other}"


def _entries(folder: Path) -> Iterator[Path]:
    """Lists a folder, in the order of names as bytes."""
    return iter(sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name)))


def yaml_value(text: str) -> Any:
    """Returns the value of YAML text; raises :class:`BuiltinError`."""
    return yaml_documents.unmarshal(EvaluationContext(steps=UNBOUNDED_STEPS), text)


def conflict(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, ...] | None:
    """Returns the first path with two values that are not both objects."""
    for name, value in b.items():
        if name not in a:
            continue
        mine = a[name]
        if not isinstance(mine, dict) or not isinstance(value, dict):
            return (name,)
        below = conflict(mine, value)
        if below is not None:
            return (name, *below)
    return None


def merge_into(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Merges b into a; they must not conflict."""
    for name, value in b.items():
        if isinstance(a.get(name), dict):
            merge_into(a[name], value)
        else:
            a[name] = _copied(value)


def _copied(value: Any) -> Any:
    """Returns a copy of the objects that a later file may add to."""
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return value


def _has(document: Any, keys: Sequence[str]) -> bool:
    for name in keys:
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True
