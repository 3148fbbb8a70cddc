"""Writes results as an array with an object for each file and namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.rego.run.numbers import number
from webhook.rego.run.text import json_string, laid_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.result import CheckResult, RuleResult


def write(results: Sequence[CheckResult], _: OutputOptions) -> str:
    """Returns the results; fields have conftest's order."""
    return f"{_array([_result(one) for one in results], 0)}\n"


def _result(result: CheckResult) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = [
        ("filename", "" if result.file == "-" else result.file),
        ("namespace", result.namespace),
        ("successes", result.successes),
    ]
    groups = {
        "skipped": result.skipped,
        "warnings": result.warnings,
        "failures": result.failures,
        "exceptions": result.exceptions,
    }
    fields += [
        (name, [_finding(one) for one in results]) for name, results in groups.items() if results
    ]
    return fields


def _finding(finding: RuleResult) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = [("msg", finding.message)]
    if finding.place is not None:
        place: list[tuple[str, Any]] = []
        if finding.place.file:
            place.append(("file", finding.place.file))
        if finding.place.line:
            place.append(("line", number(finding.place.line)))
        fields.append(("loc", place))
    if finding.metadata:
        fields.append(("metadata", dict(finding.metadata)))
    return fields


def _array(items: Sequence[Any], depth: int) -> str:
    """Returns an array of objects with ordered fields."""
    if not items:
        return "[]" if depth else "null"
    line = "\n" + "\t" * (depth + 1)
    written = f",{line}".join(_object(item, depth + 1) for item in items)
    return f"[{line}{written}\n{chr(9) * depth}]"


def _object(fields: Sequence[tuple[str, Any]], depth: int) -> str:
    line = "\n" + "\t" * (depth + 1)
    written = f",{line}".join(
        f"{json_string(name)}: {_value(one, depth + 1)}" for name, one in fields
    )
    return f"{{{line}{written}\n{chr(9) * depth}}}"


def _value(value: Any, depth: int) -> str:
    if isinstance(value, list):
        return _object(value, depth) if isinstance(value[0], tuple) else _array(value, depth)
    return laid_out(value, "\t" * depth, "\t")
