"""Sampling and drop rules: select the decisions to record.

The first rule that matches decides. Left-out decisions are counted by the exporter (``dropped``
with reason ``rule`` or ``sampled``), never dropped silently.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from webhook.decisions.declaration import setting
from webhook.values import dataclass

VERDICTS: Final = ("allow", "warn", "dryrun", "deny", "error")


@dataclass(frozen=True, slots=True)
class RecordRule:
    """Conditions, of which an empty one matches everything, and the share of records to keep.

    Namespaces, kinds and users may begin or end with ``*``. ``keep`` is a probability: 1 keeps all,
    0 drops all.
    """

    verdicts: frozenset[str] = setting(frozenset(), words=VERDICTS)
    namespaces: tuple[str, ...] = setting(())
    kinds: tuple[str, ...] = setting(())
    users: tuple[str, ...] = setting(())
    keep: float = setting(0.0, most=1.0)

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether every condition holds."""
        return (
            (not self.verdicts or record.get("verdict") in self.verdicts)
            and _any_matches(self.namespaces, record.get("resourceNamespace", ""))
            and _any_matches(self.kinds, record.get("resourceKind", ""))
            and _any_matches(self.users, record.get("requestUsername", ""))
        )


@dataclass(frozen=True, slots=True)
class RecordRules:
    """An ordered list of rules; without a match a record is kept."""

    rules: Sequence[RecordRule] = ()
    source: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def drop_reason(self, record: Mapping[str, Any]) -> str:
        """Returns why a record is not kept: ``rule`` or ``sampled``; empty if it is kept."""
        for rule in self.rules:
            if rule.matches(record):
                if rule.keep >= 1.0:
                    return ""
                if rule.keep <= 0.0:
                    return "rule"
                return "" if self.source.random() < rule.keep else "sampled"
        return ""


POINTS: Final = {"admission": "validation.gatekeeper.sh", "audit": "audit.gatekeeper.sh"}
ACTIONS: Final = ("deny", "warn", "dryrun")


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Selects the records of a sink: every condition that is not empty must hold.

    ``actions`` are those of violations; ``points`` are keys of ``POINTS``. Records without a
    decision (the begin and end of an audit, events of a process) have only a point.
    """

    verdicts: frozenset[str] = setting(frozenset(), words=VERDICTS)
    namespaces: tuple[str, ...] = setting(())
    kinds: tuple[str, ...] = setting(())
    actions: frozenset[str] = setting(frozenset(), words=ACTIONS)
    points: frozenset[str] = setting(frozenset(), words=POINTS)

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Whether the selection includes a record."""
        event = record.get("eventType")
        if event != "decision":
            if event == "lifecycle" or not self.points:
                return not self.points
            return "audit" in self.points
        return (
            (not self.points or record.get("enforcementPoint") in map(POINTS.get, self.points))
            and (not self.verdicts or record.get("verdict") in self.verdicts)
            and (not self.actions or not self.actions.isdisjoint(_actions(record)))
            and _any_matches(self.namespaces, record.get("resourceNamespace", ""))
            and _any_matches(self.kinds, record.get("resourceKind", ""))
        )


def _actions(record: Mapping[str, Any]) -> set[str]:
    actions: set[str] = set()
    for result in record.get("results", ()):
        actions.add(result.get("enforcementAction", ""))
        actions.update(result.get("enforcementActions", ()))
    return actions


def _any_matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(_matches(pattern, text) for pattern in patterns)


def _matches(pattern: str, text: str) -> bool:
    """Whether a text equals a pattern, which may have one ``*`` at the beginning, the end, or both."""
    begin, end = pattern.startswith("*"), pattern.endswith("*")
    word = pattern.strip("*")
    if begin and end:
        return word in text
    if begin:
        return text.endswith(word)
    return text.startswith(word) if end else text == pattern
