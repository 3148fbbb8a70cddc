"""Reads violations of reports, decision records and denials, and writes exceptions for them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from webhook.admission_policies import kinds as admission_policy_kinds
from webhook.api.builtin_kinds import BUILTIN_KINDS
from webhook.api.documents import InvalidDocument, read_documents, read_json
from webhook.api.gvk import gvk_of, name_of
from webhook.api.scope import is_cluster_scoped
from webhook.api.shapes import object_of, objects_of
from webhook.api.timestamp import text_of
from webhook.cli import exit_codes
from webhook.cli.formats.document import as_stream
from webhook.cli.terminal import complain, write
from webhook.constraint import constraint
from webhook.constraint.excusable import ANNOTATION
from webhook.duration import duration_seconds
from webhook.exceptions.exception import CLUSTER_KIND, InvalidException
from webhook.exceptions.permission import allows
from webhook.exceptions.reading import read_exception, seconds_of
from webhook.exceptions.writing import ExceptionTerms, KnownViolation, narrow_exceptions
from webhook.kyverno import kinds as kyverno_kinds
from webhook.policies.advice import advice_on_document
from webhook.policies.manifests import UnreadableFile, find_files, read_found
from webhook.policies.manifests import text_of as text_of_bytes
from webhook.printable import reason_of
from webhook.reports.known import results_by_subject
from webhook.reports.report_api import APIS

_BAD: Final = frozenset({"fail", "warn"})
"""The results of reports that are violations."""

_NAMED: Final = r"\[([a-z0-9][-a-z0-9.]*)\] "

_REFUSAL: Final = "denied the request: "
"""The API server's words before the messages of a denial."""

_DONE: Final = (
    "created|configured|unchanged|serverside-applied|pruned|deleted|patched|replaced|labeled|annotated|"
    "edited|scaled|restarted"
)
"""The words of kubectl about objects that were not refused."""

_ENDS: Final = "|".join(
    (
        r"\s*\Z",
        rf"\n{_NAMED}",
        r"\n\s*(?:Error|error|Warning|Normal|…)\b|\n…",  # kubectl's next error; "… and 2 more"
        rf"\n[a-z0-9.-]+/\S+ (?:{_DONE})\b",  # kubectl, of other objects
        r"\n[^\n]*  (?:Warning|Normal) +[A-Z]\w+  ",  # the next row of a table of Events
        r"\n\t\* |\n+Last Helm logs:",  # Helm's next error
        r"\. Retrying attempt #\d| \(retried \d+ times\)",  # Argo CD
        r",(?=error when |admission webhook \")",  # Argo CD's next error
    )
)

_DENIED: Final = re.compile(
    rf"Warning: {_NAMED}([^\n]+)|(?:^\s*|{_REFUSAL}){_NAMED}(.+?)(?={_ENDS})",
    re.DOTALL | re.MULTILINE,
)
"""A warning, which is a line, or a message of a denial, which may have several: the constraint's
name, and the message. The words of the programs that show a denial are not its message."""

_REFUSED: Final = re.compile(
    rf'(?<!Error creating: )admission webhook "[^"\n]*" {_REFUSAL}(.+?)(?={_ENDS})', re.DOTALL
)
"""An object's refusal, and its first message. A controller's next try is for the same object."""

_FOREIGN: Final = kyverno_kinds.KINDS | {admission_policy_kinds.POLICY}
"""The policies whose violations no exception of Waddle's excuses."""

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
            at = seconds_of(expires)
        except ValueError:
            raise click.UsageError(
                f"--expires is not a time such as 2027-03-31T12:00:00Z: {expires!r}"
            ) from None
        if at <= time.time():
            raise click.UsageError(f"--expires is in the past: {expires}")
        return text_of(at)
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
    foreign = {denial.constraint for denial in denials if denial.constraint[0] in _FOREIGN}
    for kind, name in sorted(foreign):
        theirs = " Policies of Kyverno have their own." if kind in kyverno_kinds.KINDS else ""
        complain(f"{kind} {name} gets none: exceptions are for constraints and groups.{theirs}")
    excusable = (denial for denial in denials if denial.constraint not in foreign)
    documents = narrow_exceptions(excusable, terms)
    if not documents and foreign:
        return exit_codes.NO
    if not documents:
        complain(f"{source} has no violation{_of(only)}")
        return exit_codes.NO
    try:
        for document in documents:
            read_exception(document)
    except InvalidException as error:  # such as a reason that is too long
        complain(str(error))
        return exit_codes.UNKNOWN
    write(as_stream(documents))
    for line in _refused(documents, _constraints(denied.filenames)):
        complain(line)
    for document in documents:
        if not ("name" in document["spec"]["match"] or "matchConditions" in document["spec"]):
            complain(
                f"{document['kind']} {name_of(document)}: {source} does not name the object, so the "
                "exception is for every object of its kind: add spec.match.name"
            )
        for problem in advice_on_document(document):
            complain(str(problem))
    return exit_codes.OK


def _refused(
    documents: Iterable[Mapping[str, Any]], known: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[str]:
    """Yields why the constraints in files allow none of these exceptions."""
    for document in documents:
        (named,) = document["spec"]["constraints"]
        of_file = known.get(named["name"], {}).get(named["kind"])
        if of_file is None or allows(of_file, of_cluster=document["kind"] == CLUSTER_KIND):
            continue
        title = f"{named['kind']} {named['name']}"
        if allows(of_file, of_cluster=True):
            yield f"{title} allows no exceptions of namespaces: add --cluster"
        else:
            yield f"{title} allows no exceptions: its annotation {ANNOTATION} says so"


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
        yield from _of_denial(_refusals(text), denied, only)
        return
    for document in documents:
        is_report = gvk_of(document).group in _REPORT_GROUPS
        for violation in _of_report(document) if is_report else _of_record(document):
            if not only or violation.constraint[1] in only:
                yield violation


def _documents(text: str) -> list[dict[str, Any]] | None:
    """Returns the reports or records of a text, out of lists; None where it is something else."""
    try:
        items = read_json(text)  # records stand on a line each
    except InvalidDocument:
        try:
            items = read_documents(text)
        except InvalidDocument:
            return None
    documents: list[Any] = []
    for item in items:
        documents += objects_of(object_of(item.value).get("items")) or [item.value]
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
    # Those of effect warn and dryrun are among the results, too.
    excused = [_named(item) for item in objects_of(record.get("excused"))]
    for result in results:
        named = object_of(result.get("constraint"))
        is_violation = result.get("cause", "violation") == "violation"
        if is_violation and named.get("name") and _named(result) not in excused:
            yield KnownViolation(
                (str(named.get("kind", "")), str(named["name"])),
                str(record.get("resourceGroup", "")),
                str(record.get("resourceKind", "")),
                str(record.get("resourceNamespace", "")),
                str(record.get("resourceName", "")),
                f"{result.get('message', '')}{'*' if is_cut else ''}",
                is_connection=record.get("operation") == "CONNECT",
            )


def _named(result: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    named = object_of(result.get("constraint"))
    return named.get("kind"), named.get("name"), result.get("message")


def _refusals(text: str) -> list[str]:
    """Returns the texts with denials: those within documents such as Events, else the text."""
    try:
        inside = [inner for item in read_documents(text) for inner in _texts(item.value)]
    except InvalidDocument:
        inside = []
    refusals = [inner for inner in inside if _REFUSAL in inner]
    return refusals or [text.replace("\r\n", "\n")]


def _texts(value: Any) -> Iterator[str]:
    """Returns the texts in a document."""
    if type(value) is str:
        yield value
    elif type(value) is dict:
        for inner in value.values():
            yield from _texts(inner)
    elif type(value) is list:
        for inner in value:
            yield from _texts(inner)


def _of_denial(
    texts: Sequence[str], denied: Denied, only: frozenset[str]
) -> Iterator[KnownViolation]:
    denials = [
        (warned or named, warning or message)
        for text in texts
        for warned, warning, named, message, *_ in _DENIED.findall(text)
    ]
    if not denials:
        raise ValueError("it is not a policy report, a decision record or a denial")
    of_kind, _, name = denied.named.partition("/")
    kind, _, group = of_kind.partition(".")
    if not kind or not name:
        raise ValueError("a denial does not name its object: add --object KIND[.GROUP]/NAME")
    of_chosen = [f"[{name_}] " for name_ in only] or [""]
    refused = {
        first
        for text in texts
        for first, *_ in _REFUSED.findall(text)
        if any(chosen in first for chosen in of_chosen)
    }
    if len(refused) > 1:
        raise ValueError(
            f"it has refusals of several objects, {len(refused)} at least: give the message of one object, "
            "with its --object"
        )
    kinds = _constraints(denied.filenames)
    for constraint_name, message in denials:
        if only and constraint_name not in only:
            continue
        if constraint_name not in kinds:
            raise ValueError(
                f"the kind of the constraint {constraint_name} is not known: give its file with -f "
                "FILE"
            )
        of_name = sorted(kinds[constraint_name])
        if len(of_name) > 1:
            raise ValueError(
                f"{' and '.join(of_name)} have a constraint {constraint_name}: give the file of only "
                "one with -f FILE"
            )
        if not denied.namespace and _is_namespaced(group, kind):
            raise ValueError(f"a {kind} is in a namespace: add -n NAMESPACE")
        yield KnownViolation(
            (of_name[0], constraint_name), group, kind, denied.namespace, name, message
        )


def _is_namespaced(group: str, kind: str) -> bool:
    """Whether a kind of Kubernetes' own is in a namespace; of another kind that is not known."""
    is_known = (group, kind) in BUILTIN_KINDS and not kind.endswith("ProxyOptions")
    return is_known and not is_cluster_scoped(group, kind)


def _constraints(filenames: Iterable[Path]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Returns the constraints in files, by name and kind."""
    constraints: dict[str, dict[str, Mapping[str, Any]]] = {}
    for filename in filenames:
        for path in find_files(filename):
            for item in read_found(path, filename):
                if constraint.is_constraint(item.gvk):
                    constraints.setdefault(name_of(item.document), {})[item.gvk.kind] = (
                        item.document
                    )
    return constraints
