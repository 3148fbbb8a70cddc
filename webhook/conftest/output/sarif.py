"""Writes results as SARIF 2.1.0 for code scanning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from webhook.conftest.result import CheckResult, RuleResult, exit_code, totals
from webhook.rego.run.text import OrderedFields, indented

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.conftest.output import OutputOptions

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
    """Returns one run; a file without failures and warnings is a success, or skipped."""
    run = _Run()
    for result in results:
        run.notify(result)
    counted = totals(results)
    outcome = "No policy violations found"
    if counted.failures:
        outcome = "Policy violations found"
    elif counted.warnings:
        outcome = "Policy warnings found"
    driver = OrderedFields(
        informationUri="https://github.com/open-policy-agent/conftest",
        name="conftest",
        rules=run.rules,
        version=options.version,
    )
    invocation = OrderedFields(
        executionSuccessful=True, exitCode=exit_code(results), exitCodeDescription=outcome
    )
    whole = OrderedFields(
        tool=OrderedFields(driver=driver), invocations=[invocation], results=run.results
    )
    document = OrderedFields({"version": "2.1.0", "$schema": _SCHEMA, "runs": [whole]})
    return f"{indented(document)}\n"


class _Run:
    """The rules and results of the single run."""

    def __init__(self) -> None:
        self.rules: list[OrderedFields] = []
        self.results: list[OrderedFields] = []
        self._indices: dict[str, int] = {}

    def notify(self, result: CheckResult) -> None:
        """Adds the results of a file's check."""
        for kind, level, findings in (
            ("deny", "error", result.failures),
            ("warn", "warning", result.warnings),
            ("allow", "note", result.exceptions),
        ):
            for finding in findings:
                self._add(finding, result, kind, level)
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
        file, region = result.file, OrderedFields()
        if finding.place is not None:
            line = int(finding.place.line) if finding.place.line.isdigit() else 0
            file = finding.place.file
            region["region"] = OrderedFields(startLine=line, endLine=line)
        artifact = OrderedFields(uri=quote(file, safe="/-_.~$&+,:;=@!*'()"))
        physical = OrderedFields(artifactLocation=artifact, **region)
        self.results.append(
            OrderedFields(
                ruleId=rule,
                ruleIndex=self._indices[rule],
                level=level,
                message=OrderedFields(text=finding.message),
                locations=[OrderedFields(physicalLocation=physical)],
            )
        )


def _rule(rule: str, kind: str, metadata: Mapping[str, Any]) -> OrderedFields:
    description = OrderedFields(text=_DESCRIPTIONS[kind])
    described = OrderedFields(id=rule, shortDescription=description)
    if metadata:
        described["properties"] = dict(metadata)
    return described
