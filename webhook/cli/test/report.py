"""The reports of ``waddle test``: a table, gator's forms, and those of pipelines."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from webhook.api.gvk import gvk_of
from webhook.cli import run_times
from webhook.cli.formats.document import as_yaml as yaml_of
from webhook.cli.formats.document import patch_lines
from webhook.cli.formats.finding import (
    Report,
    ShownFinding,
    exception_of,
    exception_until,
    excused_finding,
    level_of,
)
from webhook.cli.formats.pipelines import as_read_by
from webhook.cli.table import table
from webhook.cli.terminal import styled
from webhook.constraint.constraint import is_constraint
from webhook.golang.strings import quote
from webhook.policies.field_lines import FilesFieldLines
from webhook.printable import one_line, printable_json, printable_name, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.cli.test.run import CheckedViolation, CheckOutcome
    from webhook.constraint.result import Result

_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def as_table(outcome: CheckOutcome) -> str:
    """Returns the mutations and violations as a table by place, and the number of reviews."""
    lines = _mutated_lines(outcome)
    ordered = sorted(outcome.shown, key=lambda item: (item.file, item.line, item.subject))
    rows = iter(table([(_constraint(item), _message(item.result)) for item in ordered]))
    for (file, line, subject), violations in groupby(
        ordered, key=lambda item: (item.file, item.line, item.subject)
    ):
        place = f"{file}:{line}"
        lines.append(printable_name(place if subject == file else f"{place}: {subject}"))
        for item in violations:
            action = ",".join(item.result.actions)
            colour = _COLOURS[level_of(item.result.actions)]
            lines.append(f"  {styled(f'{action:6}', fg=colour)}  {next(rows)}")
        lines.append("")
    if outcome.times is not None:
        lines += [*run_times.as_table(outcome.times), ""]
    return "\n".join([*lines, *_excused_lines(outcome), summary(outcome)])


def _excused_lines(outcome: CheckOutcome) -> list[str]:
    """Returns the violations that exceptions excuse."""
    lines = []
    for item in outcome.excused:
        subject, result = item.subject, item.result
        violation = f"{'/'.join(result.constraint.key)}  {_message(result)}"
        lines += [printable_name(subject), f"  {styled('excused', fg='cyan')}  {violation}"]
    return [*lines, ""] if lines else []


def _message(result: Result) -> str:
    """Returns a violation's message, and the exception if there is one."""
    exception = exception_until(result)
    shown = one_line(result.msg)
    return f"{shown}  ({printable_name(exception)})" if exception else shown


def _mutated_lines(outcome: CheckOutcome) -> list[str]:
    """Returns the changes of mutators before the review."""
    lines = []
    for item in outcome.mutated:
        lines.append(printable_name(f"{item.file}:{item.line}: {item.subject}"))
        by = one_line(f"by {item.mutators}")
        lines.append(f"  {styled('mutated', fg='cyan')}  {by}")
        lines += [*patch_lines(item.patch), ""]
    return lines


def excused_notes(outcome: CheckOutcome) -> list[str]:
    """Returns a line for each excused violation, for the formats that have gator's fields alone."""
    return [
        f"excused: {printable_name(item.subject)}: {item.rule}: {one_line(item.text)}"
        for item in report(outcome).excused
    ]


def summary(outcome: CheckOutcome) -> str:
    """Returns the number of violations and of reviewed objects."""
    counts: dict[str, int] = {}
    for item in outcome.violations:
        for action in item.result.actions:
            counts[action] = counts.get(action, 0) + 1
    listed = ", ".join(f"{number} {action}" for action, number in sorted(counts.items()))
    counted = quantity(len(outcome.violations), "violation") + (f" ({listed})" if listed else "")
    reviewed = quantity(
        outcome.reviewed, "reviewed document" if outcome.documents else "reviewed object"
    )
    if outcome.faults and not outcome.violations:
        counted = f"the check is incomplete (faults: {len(outcome.faults)}); it found no violation"
    summary = f"{counted} in {reviewed}, by {quantity(len(outcome.constraints), 'constraint')}"
    # Where they are why nothing was checked, the error says so.
    left_out = "" if outcome.nothing else "; ".join(outcome.left_out)
    return f"{summary}; left out: {left_out}" if left_out else summary


def _constraint(item: CheckedViolation) -> str:
    return "/".join(item.result.constraint.key)


def as_text(outcome: CheckOutcome) -> str:
    """Returns a line for each violation, in gator's format."""
    return "\n".join(
        f"{printable_name(item.subject)}: [{quote(item.result.constraint.name)}] "
        f"Message: {quote(item.result.msg)}"
        for item in outcome.shown
    )


def as_json(outcome: CheckOutcome) -> str:
    """Returns an array of results; ``null`` without results, as in gator."""
    documents: Any = [_result(outcome, item) for item in outcome.shown] or None
    if outcome.times is not None:
        documents = {"results": documents, "stats": outcome.times}
    return printable_json(json.dumps(documents, indent=4, ensure_ascii=False))


def as_yaml(outcome: CheckOutcome) -> str:
    """Returns the results as YAML, with the field names of gator's encoder."""
    documents: Any = [_yaml_result(outcome, item) for item in outcome.shown]
    if outcome.times is not None:
        documents = {"results": documents, "stats": outcome.times}
    return yaml_of(documents)


def report(outcome: CheckOutcome) -> Report:
    """Returns the results for SARIF, JUnit and annotations."""
    places = FilesFieldLines()

    def finding_of(item: CheckedViolation) -> ShownFinding:
        result = item.result
        return ShownFinding(
            rule=_constraint(item),
            level=level_of(result.actions),
            label=",".join(result.actions),
            subject=item.subject,
            message=result.msg,
            exception=exception_of(result),
            file=item.file,
            line=places.line(item.file, item.line, item.value, result.msg, result.details),
        )

    missing = [*outcome.faults, *([outcome.nothing] if outcome.nothing else ())]
    return Report(
        outcome.constraints,
        list(map(finding_of, outcome.shown)),
        missing,
        outcome.descriptions,
        [excused_finding(finding_of(item), item.result) for item in outcome.excused],
    )


def _as_github(outcome: CheckOutcome) -> str:
    return "\n".join(filter(None, (as_read_by("github", report(outcome)), summary(outcome))))


def _result(outcome: CheckOutcome, item: CheckedViolation) -> dict[str, Any]:
    result = item.result
    document: dict[str, Any] = {"target": result.target}
    if result.msg:
        document["msg"] = result.msg
    if metadata := _metadata(result):
        document["metadata"] = metadata
    document["constraint"] = _defaulted(result)
    document["enforcementAction"] = result.enforcement_action
    if result.scoped_actions:
        document["scopedActions"] = list(result.scoped_actions)
    if result.existing:
        document["existing"] = True
    return {**document, "violatingObject": item.value, "trace": _trace(outcome, item)}


def _defaulted(result: Result) -> dict[str, Any]:
    """Returns the constraint with the defaults of Gatekeeper's CRD, as gator shows it."""
    document = result.constraint.document
    if not is_constraint(gvk_of(document)):
        return document
    return {**document, "spec": {"enforcementAction": "deny", **(document.get("spec") or {})}}


def _metadata(result: Result) -> dict[str, Any]:
    """Returns details as in gator.

    CEL has none, nor has a constraint that could not be matched. Rego always has details, even
    after a failed evaluation.
    """
    if result.autoreject or (result.details is None and not result.error):
        return {}
    return {"details": result.details}


def _yaml_result(outcome: CheckOutcome, item: CheckedViolation) -> dict[str, Any]:
    result = item.result
    return {
        "result": {
            "target": result.target,
            "msg": result.msg,
            "metadata": _metadata(result),
            "constraint": {"object": _defaulted(result)},
            "enforcementaction": result.enforcement_action,
            "scopedenforcementactions": list(result.scoped_actions),
        },
        "violatingObject": item.value,
        "trace": _trace(outcome, item),
    }


def _trace(outcome: CheckOutcome, item: CheckedViolation) -> str | None:
    """Returns the steps that led to a violation, as one text."""
    constraint = item.result.constraint
    for trace in outcome.traces:
        given = trace.template, trace.parameters, trace.review.get("object")
        if given == (constraint.kind, constraint.parameters or {}, item.value):
            return "\n".join(trace.steps)
    return None


FORMATS: Final[Mapping[str, Callable[[CheckOutcome], str]]] = {
    "table": as_table,
    "text": as_text,
    "json": as_json,
    "yaml": as_yaml,
    "sarif": lambda outcome: as_read_by("sarif", report(outcome)) or "",
    "junit": lambda outcome: as_read_by("junit", report(outcome)) or "",
    "github": _as_github,
}
