"""Reads the output of ``-o json`` (internal/commands/reformat.go)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from webhook.conftest.result import CheckResult, PolicyPlace, RuleResult


class UnreadableResults(ValueError):
    """The given text is not valid results; the message has the place."""


def read_results(text: str) -> list[CheckResult]:
    """Returns the results of the first JSON value in a text; raises :class:`UnreadableResults`."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip("\ufeff \t\r\n"))
    except ValueError as error:
        raise UnreadableResults(str(error) if text.strip() else "EOF") from None
    except RecursionError:
        raise UnreadableResults("it is nested too deeply") from None
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableResults("results are an array")
    return [_result(item, f"[{position}]") for position, item in enumerate(value)]


def _result(value: Any, where: str) -> CheckResult:
    if not isinstance(value, dict):
        raise UnreadableResults(f"{where} is not an object")
    successes = value.get("successes") or 0
    if type(successes) is not int:
        raise UnreadableResults(f"{where}.successes is not a number")
    result = CheckResult(
        _text(value, "filename", where), _text(value, "namespace", where), successes
    )
    for name in ("skipped", "warnings", "failures", "exceptions"):
        findings = value.get(name) or []
        if not isinstance(findings, list):
            raise UnreadableResults(f"{where}.{name} is not an array")
        getattr(result, name).extend(_finding(finding, f"{where}.{name}") for finding in findings)
    return result


def _finding(value: Any, where: str) -> RuleResult:
    if not isinstance(value, dict):
        raise UnreadableResults(f"{where} has an item that is not an object")
    metadata = value.get("metadata") or {}
    place = value.get("loc")
    if not isinstance(metadata, dict) or not isinstance(place, dict | None):
        raise UnreadableResults(f"{where} has metadata or a loc that is not an object")
    line = place.get("line") if place else None
    at = place and PolicyPlace(_text(place, "file", where), "" if line is None else str(line))
    return RuleResult(_text(value, "msg", where), at or None, metadata)


def _text(value: Mapping[str, Any], name: str, where: str) -> str:
    text = value.get(name) or ""
    if not isinstance(text, str):
        raise UnreadableResults(f"{where}.{name} is not a string")
    return text
