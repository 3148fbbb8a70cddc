"""The observations of constraints in a replica's statuses, such as audit results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.api import audit_shard
from webhook.api.shapes import Json
from webhook.constraint.rollout import violation_time


class Observations:
    """The last violation and audit of each constraint, by its UID."""

    def __init__(self) -> None:
        self._violated: dict[str, str] = {}
        self._audits: dict[str, Json] = {}

    def violated(self, document: Mapping[str, Any], now: float) -> bool:
        """Notes a violation of a constraint in a roll-out; returns whether its status changes."""
        uid = document["metadata"].get("uid", "")
        violated_at = violation_time(document, self._violated.get(uid), now)
        if violated_at is None:
            return False
        self._violated[uid] = violated_at
        return True

    def audited(self, uid: str, audited: Json | None) -> bool:
        """Takes the results of this replica's share of the audit; None for no result.

        Returns whether the status changes: a different time alone does not count.
        """
        known = self._audits.get(uid)
        if audited is None:
            return self._audits.pop(uid, None) is not None
        if known is not None and {**known, "auditTimestamp": ""} == {
            **audited,
            "auditTimestamp": "",
        }:
            return False
        self._audits[uid] = audited
        return True

    def forget(self, uid: str) -> None:
        """Drops the observations of a deleted constraint."""
        self._violated.pop(uid, None)
        self._audits.pop(uid, None)

    def fields(self, uid: str, action: str) -> Json:
        """Returns the fields of its status; ``action`` is that of its roll-out stage, if any."""
        fields: Json = {}
        if (audit := self._audits.get(uid)) is not None:
            fields[audit_shard.FIELD] = audit
        if action:
            fields["enforcementAction"] = action
            if (violated := self._violated.get(uid)) is not None:
                fields["lastViolation"] = violated
        return fields
