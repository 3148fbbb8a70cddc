"""The reports of ``waddle test``: gator's text, JSON and YAML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.cli.terminal import printable
from webhook.rego.go.strings import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cli.review_run import Finding


def as_text(findings: Sequence[Finding]) -> str:
    """A line for each violation."""
    return "\n".join(
        f"{printable(finding.subject)}: [{quote(finding.result.constraint.name)}] "
        f"Message: {quote(finding.result.msg)}"
        for finding in findings
    )


def as_json(findings: Sequence[Finding]) -> str:
    """An array of results; ``null`` where there are none, as gator writes it."""
    documents = [_result(finding) for finding in findings]
    return json.dumps(documents or None, indent=4, ensure_ascii=False)


def as_yaml(findings: Sequence[Finding]) -> str:
    """The same as YAML, with the names that gator's encoder makes of them."""
    documents = [_yaml_result(finding) for finding in findings]
    return yaml.safe_dump(documents, sort_keys=False, allow_unicode=True).rstrip("\n")


def _result(finding: Finding) -> dict[str, Any]:
    result = finding.result
    document: dict[str, Any] = {"target": result.target}
    if result.msg:
        document["msg"] = result.msg
    if not result.autoreject:
        document["metadata"] = {"details": result.details}
    document["constraint"] = result.constraint.document
    document["enforcementAction"] = result.enforcement_action
    if result.scoped_actions:
        document["scopedActions"] = list(result.scoped_actions)
    return {**document, "violatingObject": finding.value, "trace": None}


def _yaml_result(finding: Finding) -> dict[str, Any]:
    result = finding.result
    return {
        "result": {
            "target": result.target,
            "msg": result.msg,
            "metadata": {} if result.autoreject else {"details": result.details},
            "constraint": {"object": result.constraint.document},
            "enforcementaction": result.enforcement_action,
            "scopedenforcementactions": list(result.scoped_actions),
        },
        "violatingObject": finding.value,
        "trace": None,
    }


FORMATS: Final[Mapping[str, Callable[[Sequence[Finding]], str]]] = {
    "text": as_text,
    "json": as_json,
    "yaml": as_yaml,
}
