"""Reads violations of reports, decision records and denials, and writes exceptions for them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from webhook.api.documents import InvalidDocument, read_documents
from webhook.api.gvk import gvk_of, name_of
from webhook.api.shapes import object_of, objects_of
from webhook.api.timestamp import text_of
from webhook.cli import exit_codes
from webhook.cli.formats.document import as_stream
from webhook.cli.terminal import complain, write
from webhook.constraint import constraint
from webhook.duration import duration_seconds
from webhook.exceptions.reading import seconds_of
from webhook.exceptions.writing import ExceptionTerms, KnownViolation, narrow_exceptions
from webhook.policies.manifests import UnreadableFile, find_files, read_found
from webhook.policies.manifests import text_of as text_of_bytes
from webhook.printable import reason_of
from webhook.reports.known import results_by_subject
from webhook.reports.report_api import APIS

_BAD: Final = frozenset({"fail", "warn"})
"""The results of reports that are violations."""

_NAMED: Final = r"\[([a-z0-9][-a-z0-9.]*)\] "

_DENIED: Final = re.compile(
    rf"Warning: {_NAMED}([^\n]+)"
    rf"|{_NAMED}(.+?)(?=\s*\Z|\n{_NAMED}|\n\s*(?:Error|error|Warning|Normal|…)\b|\n…)",
    re.DOTALL,
)
"""A warning, which is a line, or a message of a denial, which may have several: the constraint's
name, and the message. kubectl's next error or warning ends a message."""

_REPORT_GROUPS: Final = frozenset(api.namespaced.gvk.group for api in APIS.values())


class Denied(NamedTuple):
    """Facts that a denial lacks: the object, and the source of the constraints."""

    namespace: str
    named: str
    filenames: tuple[Path, ...]


def end(duration: str, expires: str) -> str:
    """When the exceptions end; raises :class:`click.UsageError`."""
    if expires:
        try:
            return text_of(seconds_of(expires))
        except ValueError:
            raise click.UsageError(
                f"--expires is not a time such as 2027-03-31T12:00:00Z: {expires!r}"
            ) from None
    seconds = duration_seconds(duration)
    if seconds is None or seconds <= 0:
        raise click.UsageError(f"--for is not a duration such as 720h: {duration!r}")
    return text_of(time.time() + seconds)


def write_exceptions(
    source: str, terms: ExceptionTerms, denied: Denied, only: frozenset[str]
) -> int:
    """Writes exceptions for the violations of a source; returns the exit code."""
    try:
        denials = list(violations(_text(source), denied, only))
    except OSError as error:
        complain(f"{error.filename or source} cannot be read: {reason_of(error)}")
        return exit_codes.UNKNOWN
    except ValueError as error:
        complain(str(error) if isinstance(error, UnreadableFile) else f"{source}: {error}")
        return exit_codes.UNKNOWN
    documents = narrow_exceptions(denials, terms)
    if not documents:
        complain(f"{source} has no violation{_of(only)}")
        return exit_codes.NO
    write(as_stream(documents))
    return exit_codes.OK


def _of(only: frozenset[str]) -> str:
    return f" of {' and '.join(sorted(only))}" if only else ""


def _text(source: str) -> str:
    """Raises OSError and :class:`UnreadableFile`."""
    if source == "-":
        return text_of_bytes(sys.stdin.buffer.read(), "stdin")
    return text_of_bytes(Path(source).read_bytes(), source)


def violations(text: str, denied: Denied, only: frozenset[str]) -> Iterator[KnownViolation]:
    """Returns the violations in a text, of all constraints or of those with the names ``only``.

    Raises ``ValueError`` where the text has no known form.
    """
    documents = _documents(text)
    if documents is None:
        yield from _of_denial(text, denied, only)
        return
    for document in documents:
        is_report = gvk_of(document).group in _REPORT_GROUPS
        for violation in _of_report(document) if is_report else _of_record(document):
            if not only or violation.constraint[1] in only:
                yield violation


def _documents(text: str) -> list[dict[str, Any]] | None:
    """Returns the reports or records of a text, out of lists; None where it is something else."""
    try:
        read = [item.value for item in read_documents(text)]
    except InvalidDocument:
        read = []
        for line in text.splitlines():  # records stand on a line each
            try:
                read += [item.value for item in read_documents(line)]
            except InvalidDocument:
                return None
    documents: list[Any] = []
    for value in read:
        items = objects_of(object_of(value).get("items")) if type(value) is dict else []
        documents += items or [value]
    known = [
        document
        for document in documents
        if type(document) is dict
        and (gvk_of(document).group in _REPORT_GROUPS or "eventType" in document)
    ]
    return known or None


def _of_report(document: Mapping[str, Any]) -> Iterator[KnownViolation]:
    for subject, findings in results_by_subject(document):
        for finding in findings:
            if finding.verdict in _BAD and finding.rule and not finding.exception:
                yield KnownViolation(
                    (finding.policy, finding.rule),
                    subject.gvk.group,
                    subject.gvk.kind,
                    subject.namespace,
                    subject.name,
                    finding.message,
                )


def _of_record(record: Mapping[str, Any]) -> Iterator[KnownViolation]:
    results = objects_of(record.get("results"))
    if results and not record.get("resourceKind"):
        raise ValueError("the decision record does not have the object's kind")
    is_cut = "results.message" in (record.get("truncated") or ())
    for result in results:
        named = object_of(result.get("constraint"))
        if result.get("cause", "violation") == "violation" and named.get("name"):
            yield KnownViolation(
                (str(named.get("kind", "")), str(named["name"])),
                str(record.get("resourceGroup", "")),
                str(record.get("resourceKind", "")),
                str(record.get("resourceNamespace", "")),
                str(record.get("resourceName", "")),
                f"{result.get('message', '')}{'*' if is_cut else ''}",
            )


def _of_denial(text: str, denied: Denied, only: frozenset[str]) -> Iterator[KnownViolation]:
    denials = [
        (warned or named, warning or message)
        for warned, warning, named, message, _ in _DENIED.findall(text)
    ]
    if not denials:
        raise ValueError("it is not a policy report, a decision record or a denial")
    of_kind, _, name = denied.named.partition("/")
    kind, _, group = of_kind.partition(".")
    if not kind or not name:
        raise ValueError("a denial does not name its object: add --object KIND[.GROUP]/NAME")
    kinds = _kinds(denied.filenames)
    for constraint_name, message in denials:
        if only and constraint_name not in only:
            continue
        if constraint_name not in kinds:
            raise ValueError(
                f"the kind of the constraint {constraint_name} is not known: give its file with -f "
                "FILE"
            )
        yield KnownViolation(
            (kinds[constraint_name], constraint_name), group, kind, denied.namespace, name, message
        )


def _kinds(filenames: Iterable[Path]) -> dict[str, str]:
    """Returns the kinds of constraints in files, by name."""
    return {
        name_of(item.document): item.gvk.kind
        for filename in filenames
        for path in find_files(filename)
        for item in read_found(path, filename)
        if constraint.is_constraint(item.gvk)
    }
