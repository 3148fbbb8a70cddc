"""SARIF 2.1.0, as code scanning takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from webhook.conftest.result import RuleResult, exit_code, totals
from webhook.rego.run.text import json_string, laid_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.result import CheckResult

_SCHEMA: Final = (
    "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/main/sarif-2.1/schema/"
    "sarif-schema-2.1.0.json"
)
_DESCRIPTIONS: Final = {
    "success": "Policy was satisfied successfully",
    "skip": "Policy check was skipped",
    "allow": "Policy exception",
    "warn": "Policy warning",
    "deny": "Policy violation",
}


def write(results: Sequence[CheckResult], options: OutputOptions) -> str:
    """One run; a file without failures and warnings is told as a success, or as skipped."""
    run = _Run()
    for result in results:
        run.tell(result)
    counted = totals(results)
    outcome = "No policy violations found"
    if counted.failures:
        outcome = "Policy violations found"
    elif counted.warnings:
        outcome = "Policy warnings found"
    driver = {
        "informationUri": "https://github.com/open-policy-agent/conftest",
        "name": "conftest",
        "rules": run.rules,
        "version": options.version,
    }
    invocation = {
        "executionSuccessful": True,
        "exitCode": exit_code(results),
        "exitCodeDescription": outcome,
    }
    document = {
        "version": "2.1.0",
        "$schema": _SCHEMA,
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": run.results}],
    }
    return f"{_indented(document, 0)}\n"


class _Run:
    """The rules and results of the one run."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self._indices: dict[str, int] = {}

    def tell(self, result: CheckResult) -> None:
        """Add the results of a file's check."""
        for kind, level, findings in (
            ("deny", "error", result.failures),
            ("warn", "warning", result.warnings),
            ("allow", "note", result.exceptions),
        ):
            for one in findings:
                self._add(one, result, kind, level)
        if result.failures or result.warnings:
            return
        kind = "success" if result.successes or result.exceptions else "skip"
        description = _DESCRIPTIONS[kind]
        self._add(RuleResult(description, None, {"description": description}), result, kind, "none")

    def _add(self, finding: RuleResult, result: CheckResult, kind: str, level: str) -> None:
        rule = f"{result.namespace}/{kind}"
        if rule not in self._indices:
            self._indices[rule] = len(self.rules)
            self.rules.append(_rule(rule, kind, finding.metadata))
        file, region = result.file, {}
        if finding.place is not None:
            line = int(finding.place.line) if finding.place.line.isdigit() else 0
            file = finding.place.file
            region = {"region": {"startLine": line, "endLine": line}}
        physical = {"artifactLocation": {"uri": quote(file, safe="/-_.~$&+,:;=@!*'()")}, **region}
        self.results.append(
            {
                "ruleId": rule,
                "ruleIndex": self._indices[rule],
                "level": level,
                "message": {"text": finding.message},
                "locations": [{"physicalLocation": physical}],
            }
        )


def _rule(rule: str, kind: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    description = _DESCRIPTIONS[kind]
    described: dict[str, Any] = {"id": rule, "shortDescription": {"text": description}}
    if metadata:
        described["properties"] = _Sorted(metadata)
    return described


class _Sorted(dict[str, Any]):
    """An object whose names are sorted, as Go writes maps; others keep their order."""


def _indented(value: Any, depth: int) -> str:
    line = "\n" + "  " * (depth + 1)
    end = "\n" + "  " * depth
    if type(value) is dict and value:
        parts = [f"{json_string(name)}: {_indented(one, depth + 1)}" for name, one in value.items()]
        return f"{{{line}{f',{line}'.join(parts)}{end}}}"
    if type(value) is list and value:
        parts = [_indented(one, depth + 1) for one in value]
        return f"[{line}{f',{line}'.join(parts)}{end}]"
    plain = dict(value) if isinstance(value, _Sorted) else value
    return laid_out(plain, "  " * depth, "  ")
