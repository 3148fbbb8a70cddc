"""``waddle decisions``: shows the decision log to people: tail, stats, compare, replay."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import PROVIDERS, InputPath
from webhook.cli.table import table
from webhook.cli.terminal import complain, listed, styled, write
from webhook.decisions.source import RecordSource, actions_of, excused_by
from webhook.printable import printable, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policies.recorded_answers import RecordedAnswers
    from webhook.policies.replay import ChangedReview, Replay

_COLOURS = {"deny": "red", "error": "magenta", "warn": "yellow", "dryrun": "cyan", "allow": "green"}

_SOURCE = click.argument("source", type=click.Path(path_type=Path), default="-")


_TAIL = """Show decisions, one line each with its violations below.

SOURCE is a file of records (gzip, too), a sidecar's queue directory, or - for standard input."""

_STATS = """Count decisions and violations.

Decisions are counted by verdict and namespace, violations by policy and action."""

_COMPARE = """Compare violations with those that Gatekeeper logged.

It is for a cluster where both run.

\b
  kubectl logs -n gatekeeper-system deploy/gatekeeper-controller-manager > gatekeeper.log
  waddle decisions compare decisions.jsonl --gatekeeper-log gatekeeper.log

Gatekeeper logs them with --log-denies. Its lines name no request: a violation is known by constraint,
action, object, user and message, and counted. Let both begin and end with the same requests."""

_REPLAY = """Try recorded reviews on other policies.

The verdicts that change are printed. Only records with their object can be replayed
(includeObjects)."""


class _NoAnswer(click.ClickException):
    """A question that could not be answered."""

    exit_code = exit_codes.UNKNOWN


@click.group("decisions", help="Read, count, compare and replay the decision log.")
def command() -> None:
    """See the subcommands."""


@command.command("tail", help=_TAIL + exit_codes.paragraph("decisions tail"))
@_SOURCE
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Continue and wait for more records; standard input always does.",
)
def tail(source: Path, *, follow: bool) -> None:
    """Print each record."""
    records = _open(source, follow=follow)
    try:
        for record in _read(records, source):
            for line in describe(record):
                write(line)
    except KeyboardInterrupt:
        return
    _complain_of_unreadable(records)


@command.command("stats", help=_STATS + exit_codes.paragraph("decisions stats"))
@_SOURCE
@output_option(*words.SHORT)
@click.option("--top", default=20, show_default=True, help="Lines of each table; 0 shows all.")
def stats(source: Path, *, output: str, top: int) -> None:
    """Count and print."""
    from webhook.cli.formats.document import as_json  # noqa: PLC0415  # tail starts without it
    from webhook.decisions.statistics import count  # noqa: PLC0415  # likewise

    records = _open(source)
    document = count(_read(records, source)).document()
    if output == "json":
        write(as_json(document))
    else:
        write(
            f"{quantity(document['decisions'], 'decision')}, {document['duplicates']} delivered twice"
        )
        _table("verdict", [(name, number) for name, number in document["verdicts"].items()], top)
        _table(
            "namespace, verdict",
            [
                (f"{row['namespace'] or '(cluster)'}  {row['verdict']}", row["count"])
                for row in document["namespaces"]
            ],
            top,
        )
        _table(
            "policy, action",
            [
                (f"{row['kind']}/{row['name']}  {row['enforcementAction']}", row["count"])
                for row in document["policies"]
            ],
            top,
        )
    _complain_of_unreadable(records)


@command.command("replay", help=_REPLAY + exit_codes.paragraph("decisions replay"))
@_SOURCE
@click.option(
    "--policies",
    "paths",
    multiple=True,
    required=True,
    type=InputPath(),
    help="A directory or file with the policies to replay with. Repeatable.",
)
@PROVIDERS
@output_option(*words.SHORT)
def replay(source: Path, *, paths: Sequence[Path], answers: RecordedAnswers, output: str) -> int:
    """Review again and print."""
    from webhook.cli.clients import new_client  # noqa: PLC0415  # the engine, for this one only
    from webhook.policies.policy_files import PolicyFiles  # noqa: PLC0415  # likewise
    from webhook.policies.replay import replay as run  # noqa: PLC0415  # likewise
    from webhook.policy_kinds.known import kyverno_parts  # noqa: PLC0415  # likewise

    client = new_client()
    foreign = kyverno_parts("enforce")
    policies, report = PolicyFiles(client, paths, foreign=foreign).load()
    if report.faults:
        raise _NoAnswer("\n".join(printable(str(fault)) for fault in report.faults))
    if report.skipped:
        complain(f"skipped, because it is not a Kubernetes object: {listed(report.skipped)}")
    for line in report.repeated:
        complain(line)
    records = _open(source)
    replayed = run(_read(records, source), policies, answers)
    if replayed.replayed and not (client.snapshot.constraints or policies.foreign.keys):
        raise _NoAnswer("nothing was replayed: the files have no constraint")
    _show_replay(replayed, as_json=output == "json")
    _complain_of_unreadable(records)
    if not replayed.replayed:
        return exit_codes.UNKNOWN
    return exit_codes.NO if replayed.changes else 0


@command.command("compare", help=_COMPARE + exit_codes.paragraph("decisions compare"))
@_SOURCE
@click.option(
    "--gatekeeper-log",
    "logs",
    metavar="FILE",
    multiple=True,
    required=True,
    type=InputPath(dir_okay=False),
    help="The log of a Gatekeeper Pod. Repeatable.",
)
@output_option(*words.SHORT)
def compare(source: Path, *, logs: Sequence[Path], output: str) -> int:
    """Count both and print what differs."""
    from webhook.cli.formats.document import as_json  # noqa: PLC0415  # tail starts without it
    from webhook.decisions.comparison import compare as run  # noqa: PLC0415  # likewise

    records = _open(source)
    try:
        with contextlib.ExitStack() as stack:
            opened = [
                stack.enter_context(log.open(encoding="utf-8", errors="replace")) for log in logs
            ]
            comparison = run(records, itertools.chain.from_iterable(opened))
    except OSError as error:
        raise _NoAnswer(f"{error.filename or source}: {error.strerror}") from None
    document = comparison.document()
    if output == "json":
        write(as_json(document))
    else:
        write(f"{quantity(comparison.agreed, 'violation')} that both found")
        for title, name in (("only Waddle", "onlyWaddle"), ("only Gatekeeper", "onlyGatekeeper")):
            for item in document[name]:
                where = f"{item['namespace']}/{item['name']}" if item["namespace"] else item["name"]
                write(
                    _one_line(
                        f"{title}: {item['count']} x {item['constraintKind']}/{item['constraintName']}"
                        f" {item['action']} {item['kind']} {where} by {item['username']}:"
                        f" {item['message']}"
                    )
                )
    _complain_of_unreadable(records)
    if not comparison.ours and not comparison.theirs:
        raise _NoAnswer("neither log has a violation, so nothing was compared")
    return exit_codes.NO if document["onlyWaddle"] or document["onlyGatekeeper"] else exit_codes.OK


def describe(record: Mapping[str, Any]) -> list[str]:
    """Returns a record for people: one line, and one for each violation and error."""
    clock = str(record.get("timestamp", ""))[11:23]
    if record.get("eventType") != "decision":
        shown = record.get("event") or record.get("auditID") or ""
        return [printable(f"{clock} {record.get('eventType', 'record')} {shown}")]
    verdict = str(record.get("verdict", ""))
    lines = [
        f"{clock} {styled(f'{verdict.upper():6}', fg=_COLOURS.get(verdict, 'white'))} {_subject(record)}"
    ]
    for result in record.get("results", ()):
        constraint = result.get("constraint", {})
        where = f"{constraint.get('kind', '')}/{constraint.get('name', '')}"
        text = f"[{where}] {', '.join(actions_of(result))}: {result.get('message', '')}"
        lines.append("    " + _one_line(text))
    for item in record.get("excused", ()):
        named = item.get("constraint", {})
        where = f"{named.get('kind', '')}/{named.get('name', '')}"
        text = f"[{where}] excused by {excused_by(item)}: {item.get('message', '')}"
        lines.append("    " + _one_line(text))
    lines += ["    " + _one_line(f"error: {text}") for text in record.get("errors", ())]
    return lines


def _subject(record: Mapping[str, Any]) -> str:
    namespace = record.get("resourceNamespace", "")
    name = record.get("resourceName", "") or "(unnamed)"
    words = [
        str(record.get("operation") or "AUDIT"),
        str(record.get("resourceKind", "")),
        f"{namespace}/{name}" if namespace else str(name),
    ]
    if record.get("requestUsername"):
        words += ["by", str(record["requestUsername"])]
    if record.get("dryRun"):
        words.append("(dry run)")
    return _one_line(" ".join(words))


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _open(source: Path, *, follow: bool = False) -> RecordSource:
    if str(source) != "-" and not source.exists():
        raise _NoAnswer(f"no such file or directory: {source}")
    return RecordSource(source, follow=follow)


def _read(records: RecordSource, source: Path) -> Iterator[dict[str, Any]]:
    """Reads the records; raises :class:`_NoAnswer` for an unreadable source."""
    try:
        yield from records
    except OSError as error:
        raise _NoAnswer(f"{source}: {error.strerror}") from None


def _complain_of_unreadable(records: RecordSource) -> None:
    if records.unreadable:
        complain(f"skipped, not records of version 1: {quantity(records.unreadable, 'line')}")


def _table(title: str, rows: Sequence[tuple[str, int]], top: int) -> None:
    write(f"\n{title}")
    shown = rows[:top] if top else rows
    cells = [(f"{number:9}", _one_line(name)) for name, number in shown]
    if len(rows) > len(shown):
        cells.append(("", f"and {len(rows) - len(shown)} more"))
    for line in table(cells, right={0}):
        write(line)


def _show_replay(replayed: Replay, *, as_json: bool) -> None:
    from webhook.policies.replay import action_line, excusal_line  # noqa: PLC0415  # see replay

    if as_json:
        from webhook.cli.formats.document import as_json as document_json  # noqa: PLC0415  # here

        write(document_json(_replay_document(replayed)))
        return
    for change in replayed.changes:
        before = styled(change.before, fg=_COLOURS.get(change.before, "white"))
        after = styled(change.after, fg=_COLOURS.get(change.after, "white"))
        write(f"{before} -> {after}  {_subject(change.record)}")
        for sign, violations in (("+", change.added), ("-", change.removed)):
            for kind, name, message in violations:
                write("    " + _one_line(f"{sign} [{kind}/{name}] {message}"))
        for line in (*map(action_line, change.actions), *map(excusal_line, change.excused)):
            write("    " + _one_line(line))
        for error in change.errors:
            write("    " + _one_line(f"! {error}"))
    write(
        f"{quantity(replayed.replayed, 'decision')} replayed, {quantity(len(replayed.changes), 'verdict')} changed, "
        f"{replayed.other_violations} with other violations and the same verdict"
    )
    for line in replayed.totals():
        write("  " + _one_line(line))
    for number, why in (
        (
            replayed.without_object,
            "recorded without an object (includeObjects is off, or maxRecordBytes too low)",
        ),
        (replayed.without_review, "not reviewed when they were recorded"),
        (replayed.masked, "replayed with masked values"),
    ):
        if number:
            write(f"{why}: {number}")


def _replay_document(replayed: Replay) -> dict[str, Any]:
    return {
        "replayed": replayed.replayed,
        "changed": [_change_document(change) for change in replayed.changes],
        "otherViolations": replayed.other_violations,
        **replayed.document(),
        "withoutObject": replayed.without_object,
        "withoutReview": replayed.without_review,
        "masked": replayed.masked,
    }


def _change_document(change: ChangedReview) -> dict[str, Any]:
    from webhook.policies.replay import action_document, excusal_document  # noqa: PLC0415  # see replay

    def listed(violations: Sequence[tuple[str, str, str]]) -> list[dict[str, str]]:
        return [
            {"kind": kind, "name": name, "message": message} for kind, name, message in violations
        ]

    return {
        "id": change.record.get("id", ""),
        "subject": _subject(change.record),
        "before": change.before,
        "after": change.after,
        "added": listed(change.added),
        "removed": listed(change.removed),
        "actions": [action_document(item) for item in change.actions],
        "excused": [excusal_document(item) for item in change.excused],
        "errors": list(change.errors),
    }
