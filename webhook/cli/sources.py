"""Reads files, folders and standard input into manifests for a check."""

from __future__ import annotations

import os
import select
import stat
import sys
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.api.targets import declares_target
from webhook.cli.terminal import NoResult, complain, listed
from webhook.constraint import constraint, template
from webhook.constraint.review import Document
from webhook.kyverno.kinds import JSON_MODE, evaluation_mode, is_evaluated
from webhook.policies.definitions import repeated
from webhook.policies.lists import expand_lists
from webhook.policies.manifests import (
    EXTENSIONS,
    Manifest,
    UnreadableFile,
    find_files,
    has_format,
    is_list_of_others,
    is_object,
    is_of_samples,
    parse,
    read_values,
    text_of,
)
from webhook.policies.supporting_files import IGNORED_GROUPS, SUITES, is_input, suite_inputs
from webhook.printable import type_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.api.yaml_reader import FileDocument

STDIN: Final = Path("-")

_PATIENCE_SECONDS: Final = 3.0
"""Seconds; longer than a producer in a pipeline usually takes to write its first bytes."""


class CannotTest(NoResult):
    """The reasons why a check was impossible, one a line."""


class NothingLeft(CannotTest):
    """All inputs were left out, so that there is no result."""


@dataclass(frozen=True, slots=True)
class Other:
    """A document that is no Kubernetes object, with its file and line."""

    document: Document
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Sources:
    """The policies and resources of the inputs, and documents that are no Kubernetes objects.

    ``left_out`` are folders and files of test suites, and ``skipped`` files with documents that are
    no objects.
    """

    manifests: list[Manifest] = field(default_factory=list)
    documents: list[Other] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    targets: list[Manifest] = field(default_factory=list)
    """The declarations of targets for documents."""
    faults: list[str] = field(default_factory=list)
    """The unreadable files, if the others are read all the same."""


def read_sources(
    paths: Sequence[Path],
    *,
    any_value: bool,
    standard_input: bool = True,
    keep_going: bool = False,
    kept: bool = False,
) -> Sources:
    """Reads files, folders and standard input; raises :class:`CannotTest`.

    Standard input is read if it is no terminal, as in gator: input that is piped into a check must
    never be ignored. Without ``standard_input`` it is read only if a path is ``-``.

    With ``any_value`` only templates, constraints and Kyverno's policies are manifests, everything
    else is a document. With ``kept`` values that are no Kubernetes objects are documents, if a
    policy of Kyverno reviews such values. A named file, or a named folder of samples, is read; in
    other folders the inputs of test suites are skipped. With ``keep_going`` unreadable files are
    among the faults, and the rest is read.
    """
    sources = Sources()
    texts: list[tuple[str, FileDocument, bool]] = []
    for path in [*paths, *(_standard_input(paths) if standard_input else [])]:
        try:
            if path == STDIN:
                texts += [("stdin", text, True) for text in _read_standard_input()]
            else:
                texts += _read_path(path, sources, any_value=any_value, keep_going=keep_going)
        except (UnreadableFile, OSError) as error:
            _refuse(sources, _fault_text(path, error), keep_going=keep_going)
    sources.left_out[:] = [name for name in sources.left_out if Path(name) not in paths]
    inputs = suite_inputs((file, text.value) for file, text, _ in texts)
    keeps = kept and any(is_of_documents(text.value) for _, text, _ in texts)
    for file, text, named in texts:
        if not named and is_input(file, inputs):
            _add_once(sources.left_out, file)
        else:
            if text.repeated is not None:
                key, line = text.repeated
                sources.warnings.append(
                    f'{file}:{line}: "{key}" occurs twice, and the last value counts: is a --- missing?'
                )
            try:
                _sort(sources, text, file, named=named, any_value=any_value, keeps=keeps)
            except CannotTest as error:
                _refuse(sources, str(error), keep_going=keep_going)
    if not sources.manifests and not sources.documents and not sources.targets:
        kind = NothingLeft if sources.left_out and not sources.faults else CannotTest
        nothing = [] if sources.faults else _nothing_read(paths)
        raise kind(*sources.faults, *nothing, *about_files(sources))
    sources.warnings.extend(about_files(sources))
    sources.warnings.extend(
        f"WARNING - {line}" for line in repeated(sources.manifests, reviewed=True)
    )
    return sources


def _nothing_read(paths: Sequence[Path]) -> list[str]:
    """Returns gator's words, and which files to give if none were."""
    nothing = "no input data identified"
    return [nothing if paths else f"{nothing}: name files or folders by -f, or pipe objects in"]


def _fault_text(path: Path, error: UnreadableFile | OSError) -> str:
    if isinstance(error, OSError):
        return f'reading: path "{path}": {error.strerror}'
    return f"reading: {error}"


def _refuse(sources: Sources, fault: str, *, keep_going: bool) -> None:
    if not keep_going:
        raise CannotTest(fault) from None
    sources.faults.append(fault)


def _standard_input(paths: Sequence[Path]) -> list[Path]:
    """Reads standard input after the files, if it may have data and is not named."""
    if STDIN in paths or sys.stdin is None or sys.stdin.closed:
        return []
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return [STDIN]  # not a file of the system, but readable
    # Gator's rule: neither a terminal nor /dev/null, which are devices.
    return [] if stat.S_ISCHR(mode) else [STDIN]


def _read_standard_input() -> list[FileDocument]:
    """Reads standard input; reports a wait, since an inherited pipe may stay open for ever."""
    try:
        waits = not select.select([sys.stdin.fileno()], [], [], _PATIENCE_SECONDS)[0]
    except (OSError, ValueError):
        waits = False
    if waits:
        complain("waiting for standard input; if there is none, redirect it from /dev/null")
    return parse(text_of(sys.stdin.buffer.read(), "stdin"), "stdin")


def _read_path(
    path: Path, sources: Sources, *, any_value: bool, keep_going: bool
) -> list[tuple[str, FileDocument, bool]]:
    """Yields the documents of a file or folder, each with whether its file was named."""
    named = path.is_file() or is_of_samples(path)
    if path.is_file() and path.suffix not in EXTENSIONS and not (any_value and has_format(path)):
        raise CannotTest(f'reading: path "{path}" must be of extensions: [{" ".join(EXTENSIONS)}]')
    folders: list[Path] = []
    files = find_files(path, left_out=folders)
    sources.left_out.extend(map(str, folders))
    texts = []
    for file in files:
        try:
            texts += [(str(file), text, named) for text in read_values(file)]
        except UnreadableFile as error:
            _refuse(sources, _fault_text(file, error), keep_going=keep_going)
    return texts


def _sort(
    sources: Sources,
    text: FileDocument,
    file: str,
    *,
    named: bool,
    any_value: bool,
    keeps: bool,
) -> None:
    value = text.value
    if not (named or any_value or keeps) and is_list_of_others(value):
        _add_once(sources.skipped, file)
        return
    # Beside a policy of documents, metadata alone make no object.
    is_foreign = keeps and not (
        type(value) is dict and value.get("apiVersion") and value.get("kind")
    )
    if type(value) is dict and not is_foreign:
        manifests = [Manifest(value, file, text.line)]
        try:
            manifests = list(expand_lists(manifests))
        except UnreadableFile as error:
            if not any_value:
                raise CannotTest(f"reading: {error}") from None
        targets = [item for item in manifests if declares_target(item.document)]
        if targets:
            sources.targets.extend(targets)
            manifests = [item for item in manifests if not declares_target(item.document)]
            if not manifests:
                return
        if not any_value or any(map(_is_policy, manifests)):
            sources.manifests.extend(item for item in manifests if _is_selected(item))
            if not all(_is_selected(item) or item.gvk.group == SUITES for item in manifests):
                _add_once(sources.skipped, file)
            return
    if not (any_value or is_foreign):
        raise CannotTest(
            f'reading: reading file "{file}": line {text.line}: expected an object, '
            f"got {type_of(value)}"
        )
    if not (type(value) is dict and gvk_of(value).group in IGNORED_GROUPS):
        shown = file if text.line == 1 else f"{file}:{text.line}"
        sources.documents.append(Other(Document(value, shown), file, text.line))


def _is_selected(manifest: Manifest) -> bool:
    return is_object(manifest.document) and manifest.gvk.group not in IGNORED_GROUPS


def _is_policy(manifest: Manifest) -> bool:
    """Whether a manifest is a policy of documents, or would be if they were objects."""
    if manifest.gvk.group == template.GROUP or constraint.is_constraint(manifest.gvk):
        return True
    return is_evaluated(manifest.document)


def is_of_documents(value: Any) -> bool:
    """Whether a document is, or lists, a policy of Kyverno that reviews documents (mode JSON)."""
    if type(value) is not dict:
        return False
    try:
        items = list(expand_lists([Manifest(value, "", 1)]))
    except UnreadableFile:
        return False
    return any(
        is_evaluated(item.document) and evaluation_mode(item.document) == JSON_MODE
        for item in items
    )


def _add_once(names: list[str], name: str) -> None:
    if not names or names[-1] != name:
        names.append(name)


def about_files(sources: Sources) -> list[str]:
    """Returns a line for each reason why parts of files were not read."""
    lines = []
    if sources.skipped:
        lines.append(f"skipped, because it is not a Kubernetes object: {listed(sources.skipped)}")
    if sources.left_out:
        lines.append(
            f"left out, because it is a sample of a test suite: {listed(sources.left_out)}"
        )
    return lines
