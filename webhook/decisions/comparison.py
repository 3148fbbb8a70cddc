"""Compares two webhooks' answers to the same requests: our records, and Gatekeeper's log of denials."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from webhook.api import names
from webhook.decisions.source import first_deliveries
from webhook.values import dataclass

_DENIED: Final = "denied admission: "
"""The beginning of Gatekeeper's log line of a violation (``--log-denies``), before the message."""

_LOGGED: Final = (
    "constraint_kind",
    "constraint_name",
    "constraint_action",
    "resource_group",
    "resource_kind",
    "resource_namespace",
    "resource_name",
    "request_username",
)
"""The fields of a violation in its log line, in the order of the fields below."""


FIELDS: Final = (
    "constraintKind",
    "constraintName",
    "action",
    "group",
    "kind",
    "namespace",
    "name",
    "username",
    "message",
)
"""The fields that identify a violation: Gatekeeper's log names no request."""

ComparedViolation = tuple[str, ...]


@dataclass(slots=True)
class LogComparison:
    """Violations, with the number of reports in each of both logs."""

    ours: Counter[ComparedViolation] = field(default_factory=Counter)
    theirs: Counter[ComparedViolation] = field(default_factory=Counter)

    @property
    def agreed(self) -> int:
        """The number of violations in both logs."""
        return (self.ours & self.theirs).total()

    @property
    def only_ours(self) -> Counter[ComparedViolation]:
        """The violations that the other webhook did not report, or not as often."""
        return self.ours - self.theirs

    @property
    def only_theirs(self) -> Counter[ComparedViolation]:
        """The violations that we did not report, or not as often."""
        return self.theirs - self.ours

    def document(self) -> dict[str, Any]:
        """Returns the comparison as JSON."""
        return {
            "agreed": self.agreed,
            "onlyWaddle": _listed(self.only_ours),
            "onlyGatekeeper": _listed(self.only_theirs),
        }


def compare(records: Iterable[Mapping[str, Any]], lines: Iterable[str]) -> LogComparison:
    """Counts the violations in records of admissions, and in a log of Gatekeeper's.

    A record that was delivered twice counts once; other lines are skipped.
    """
    return LogComparison(Counter(_of_records(records)), Counter(_of_log(lines)))


def _of_records(records: Iterable[Mapping[str, Any]]) -> Iterator[ComparedViolation]:
    for record in first_deliveries(records):
        if record.get("eventType") != "decision" or record.get("enforcementPoint") != names.WEBHOOK:
            continue
        for result in record.get("results", ()):
            constraint = result.get("constraint", {})
            yield (
                str(constraint.get("kind", "")),
                str(constraint.get("name", "")),
                str(result.get("enforcementAction", "")),
                str(record.get("resourceGroup", "")),
                str(record.get("resourceKind", "")),
                str(record.get("resourceNamespace", "")),
                str(record.get("resourceName", "")),
                str(record.get("requestUsername", "")),
                str(result.get("message", "")),
            )


def _of_log(lines: Iterable[str]) -> Iterator[ComparedViolation]:
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict) or event.get("event_type") != "violation":
            continue
        message = str(event.get("msg", ""))
        if event.get("process") != "admission" or not message.startswith(_DENIED):
            continue
        known = (str(event.get(name, "")) for name in _LOGGED)
        yield (*known, message.removeprefix(_DENIED))


def _listed(violations: Counter[ComparedViolation]) -> list[dict[str, Any]]:
    return [
        {**dict(zip(FIELDS, violation, strict=True)), "count": count}
        for violation, count in sorted(violations.items())
    ]
