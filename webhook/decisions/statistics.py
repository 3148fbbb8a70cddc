"""Counts over recorded decisions: by verdict, namespace and policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from webhook.decisions.source import first_deliveries
from webhook.values import dataclass


@dataclass(slots=True)
class DecisionStatistics:
    """Counts of records; ``policies`` counts violations, the others decisions."""

    decisions: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[tuple[str, str]] = field(default_factory=Counter)
    policies: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    duplicates: int = 0

    def document(self) -> dict[str, Any]:
        """Returns the numbers as JSON, the largest first, ties by name."""
        return {
            "decisions": self.decisions,
            "duplicates": self.duplicates,
            "verdicts": dict(sorted(self.verdicts.items(), key=_by_count)),
            "namespaces": [
                {"namespace": namespace, "verdict": verdict, "count": count}
                for (namespace, verdict), count in sorted(self.namespaces.items(), key=_by_count)
            ],
            "policies": [
                {"kind": kind, "name": name, "enforcementAction": action, "count": count}
                for (kind, name, action), count in sorted(self.policies.items(), key=_by_count)
            ],
        }


def count(records: Iterable[Mapping[str, Any]]) -> DecisionStatistics:
    """Counts decisions; a decision that was delivered twice counts once."""
    statistics = DecisionStatistics()

    def repeated() -> None:
        statistics.duplicates += 1

    decisions = (record for record in records if record.get("eventType") == "decision")
    for record in first_deliveries(decisions, repeated):
        statistics.decisions += 1
        verdict = str(record.get("verdict", ""))
        statistics.verdicts[verdict] += 1
        statistics.namespaces[str(record.get("resourceNamespace", "")), verdict] += 1
        for result in record.get("results", ()):
            constraint = result.get("constraint", {})
            name = str(constraint.get("kind", "")), str(constraint.get("name", ""))
            statistics.policies[*name, str(result.get("enforcementAction", ""))] += 1
    return statistics


def _by_count(item: tuple[Any, int]) -> tuple[int, Any]:
    return -item[1], item[0]
