"""Finds files to check as conftest does, and reads them into documents.

An unreadable file is reported, and the others are still checked.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from webhook import parsers
from webhook.parsers.errors import ParseError
from webhook.values import dataclass

STANDARD_INPUT: Final = "-"
COMBINED: Final = "Combined"

FILE_BYTES_MAX: Final = 1 << 28
"""The largest file in bytes; larger ones are not read. It is twice the largest known plans, and
parsed values take some five times as much memory."""


class FileError(Exception):
    """A file or folder is unusable; has its path, the reason and the line."""

    def __init__(self, path: str, message: str, line: int = 0) -> None:
        super().__init__(path, message, line)
        self.path = path
        self.message = message
        self.line = line

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}: {self.message}"
            if self.line
            else f"{self.path}: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file's path for messages, and its value; an array is several documents."""

    path: str
    value: Any

    @property
    def documents(self) -> list[Any]:
        """Returns the documents that policies review one by one."""
        return self.value if type(self.value) is list else [self.value]


def find(
    paths: Sequence[str], ignored: Callable[[str], bool], faults: list[FileError]
) -> list[str]:
    """Returns the files at these paths; for folders all files below them that have a parser.

    ``ignored`` decides which files to skip. Missing or unreadable paths are added to ``faults``.
    """
    files: list[str] = []
    visited: set[tuple[int, int]] = set()
    for path in paths:
        if path == STANDARD_INPUT:
            files.append(path)
        elif path:
            try:
                is_folder = stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  # paths as typed
            except OSError as error:
                faults.append(FileError(path, f"get file info: {_reason(error)}"))
                continue
            if is_folder:
                files += _below(path, ignored, faults, visited)
            elif not ignored(path):
                files.append(path)
    return list(dict.fromkeys(files))


def _below(
    folder: str,
    ignored: Callable[[str], bool],
    faults: list[FileError],
    visited: set[tuple[int, int]],
) -> Iterator[str]:
    """Yields the files below a folder in the order of names; visits a linked folder once."""
    if os.path.islink(folder):  # noqa: PTH114  # paths as in messages
        folder = os.path.realpath(folder)
    try:
        place = os.stat(folder)  # noqa: PTH116  # as above
        if (place.st_dev, place.st_ino) in visited:
            return
        visited.add((place.st_dev, place.st_ino))
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        faults.append(FileError(folder, f"walk path: {_reason(error)}"))
        return
    for entry in entries:
        path = os.path.normpath(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path, ignored, faults, visited)
        elif ignored(path):
            continue
        elif entry.is_symlink():
            yield from _linked(path, ignored, faults, visited)
        elif entry.is_file() and parsers.is_supported(path):
            yield path


def _linked(
    path: str,
    ignored: Callable[[str], bool],
    faults: list[FileError],
    visited: set[tuple[int, int]],
) -> Iterator[str]:
    try:
        real = os.path.realpath(path, strict=True)
    except OSError as error:
        faults.append(FileError(path, f"walk path: {_reason(error)}"))
        return
    if os.path.isdir(real):  # noqa: PTH112  # paths as in messages
        yield from _below(real, ignored, faults, visited)
    elif parsers.is_supported(real):
        yield real


def read(paths: Iterable[str], parser: str, faults: list[FileError]) -> Iterator[Configuration]:
    """Yields each file's value; ``parser`` is a parser's name, or "" to choose by file name."""
    for path in paths:
        try:
            yield read_one(path, parser)
        except FileError as error:
            faults.append(error)


def read_one(path: str, parser: str = "") -> Configuration:
    """Returns one file's value; raises :class:`FileError`."""
    try:
        name = parser or _parser_of(path)
        parse = parsers.parser(name)
    except ParseError as error:
        raise FileError(path, f"new parser: {error.message}") from None
    raw = _bytes_of(path)
    try:
        return Configuration(path, parse(raw, path))
    except ParseError as error:
        raise FileError(path, f"parser unmarshal: {error.message}", error.line) from None
    except RecursionError:
        raise FileError(path, "parser unmarshal: nested too deeply") from None


def _parser_of(path: str) -> str:
    """Returns the parser for a name; YAML for a pipe without one, as for standard input."""
    try:
        return parsers.name_for(path)
    except ParseError:
        if is_pipe(path):
            return "yaml"
        raise


def is_pipe(path: str) -> bool:
    """Whether a path is a pipe, as a shell makes for ``<(command)``."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # paths as in messages
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _bytes_of(path: str) -> bytes:
    if path == STANDARD_INPUT:
        raw = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    else:
        try:
            with Path(path).open("rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raw = stream.read(FILE_BYTES_MAX + 1)
                else:
                    raw = stream.read(min(os.fstat(stream.fileno()).st_size, FILE_BYTES_MAX) + 1)
        except OSError as error:
            raise FileError(path, _reason(error)) from None
    if len(raw) > FILE_BYTES_MAX:
        raise FileError(path, f"larger than {FILE_BYTES_MAX} bytes")
    return raw


def _reason(error: OSError) -> str:
    """Returns the reason of an error in Go's form."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def combined(configurations: Sequence[Configuration]) -> list[dict[str, Any]]:
    """Returns all documents in one array of ``{path, contents}``, in the order of their paths."""
    return [
        {"path": configuration.path, "contents": document}
        for configuration in sorted(configurations, key=lambda item: os.fsencode(item.path))
        for document in configuration.documents
    ]
