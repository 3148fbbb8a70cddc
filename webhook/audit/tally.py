"""Counts violations by constraint, and keeps those that its status shows.

Order, limit and truncation are those of Gatekeeper's code (pkg/audit/manager.go, v3.23): the first
violations in the order of their fields are kept, and written in reverse order; a message of more
than 256 bytes is cut to 253 and an ellipsis.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.values import dataclass

if TYPE_CHECKING:
    from webhook.audit.sink import Identity
    from webhook.constraint.result import Result

MESSAGE_BYTES_MAX: Final = 256
_ELLIPSIS: Final = "..."

ConstraintKey = tuple[str, str]
"""A constraint's kind and name."""


class StatusViolation(NamedTuple):
    """A violation in a constraint's status; its fields are in the order of sorting."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    message: str
    enforcement_action: str
    enforcement_actions: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Returns the entry of ``status.violations``."""
        document: dict[str, Any] = {
            "group": self.group,
            "version": self.version,
            "kind": self.kind,
            "name": self.name,
            "message": self.message,
            "enforcementAction": self.enforcement_action,
        }
        if self.namespace:
            document["namespace"] = self.namespace
        if self.enforcement_actions:
            document["enforcementActions"] = list(self.enforcement_actions)
        return document


def truncated(message: str) -> str:
    """Returns the message for statuses and the log.

    Go cuts bytes, and its encoder replaces each byte of a torn character by U+FFFD.
    """
    if len(message) * 4 <= MESSAGE_BYTES_MAX:
        return message
    data = message.encode("utf-8", "replace")
    if len(data) <= MESSAGE_BYTES_MAX:
        return message
    kept = data[: MESSAGE_BYTES_MAX - len(_ELLIPSIS)]
    whole = kept.decode("utf-8", "ignore")
    return whole + "\ufffd" * (len(kept) - len(whole.encode())) + _ELLIPSIS


def violation(identity: Identity, result: Result) -> StatusViolation:
    """Returns the violation that a result is."""
    gvk = identity.gvk
    return StatusViolation(
        gvk.group,
        gvk.version,
        gvk.kind,
        identity.namespace,
        identity.name,
        truncated(result.msg),
        result.enforcement_action,
        result.scoped_actions,
    )


@dataclass(slots=True)
class Count:
    """The violations of one constraint: the number, by action, and the first ``limit`` of them."""

    limit: int
    total: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    first: list[StatusViolation] = field(default_factory=list)
    """The first violations in order; never more than ``limit``."""

    def add(self, violation: StatusViolation) -> None:
        """Counts a violation, and keeps it if it is among the first."""
        self.total += 1
        self.actions[violation.enforcement_action] += 1
        self._keep(violation)

    def merge(self, other: Count) -> None:
        """Adds another count."""
        self.total += other.total
        self.actions += other.actions
        for violation in other.first:
            self._keep(violation)

    def _keep(self, violation: StatusViolation) -> None:
        first = self.first
        if len(first) < self.limit:
            insort(first, violation)
        elif first and violation < first[-1]:
            insort(first, violation)
            first.pop()

    def documents(self) -> list[dict[str, Any]]:
        """Returns ``status.violations``: in reverse order, as in Gatekeeper."""
        return [violation.document() for violation in reversed(self.first)]


class Tally:
    """Counts by constraint."""

    def __init__(self, limit: int) -> None:
        """``limit`` is the most violations kept of each constraint."""
        self._limit = limit
        self.counts: dict[ConstraintKey, Count] = {}

    def add(self, identity: Identity, result: Result) -> None:
        """Counts a result."""
        self._count(result.constraint.key).add(violation(identity, result))

    def merge(self, other: Tally) -> None:
        """Adds another tally."""
        for key, count in other.counts.items():
            self._count(key).merge(count)

    def get(self, key: ConstraintKey) -> Count:
        """Returns a constraint's count; an empty one without violations."""
        return self.counts.get(key) or Count(self._limit)

    def _count(self, key: ConstraintKey) -> Count:
        count = self.counts.get(key)
        if count is None:
            count = self.counts[key] = Count(self._limit)
        return count
