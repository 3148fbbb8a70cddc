"""The end of a decision log, and what it says of one request."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final

from webhook.api.shapes import object_of, objects_of
from webhook.api.timestamp import seconds_of
from webhook.decisions.source import RecordSource
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROWS_MAX: Final = 200
SECONDS_MAX: Final = 5.0
"""For one look through the records; what was not looked at is said."""

MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class DecisionSearch:
    """What is looked for; empty is anything. ``uid`` is a request's or a resource's."""

    text: str = ""
    uid: str = ""
    verdict: str = ""

    def finds(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is looked for."""
        if self.verdict and record.get("verdict") != self.verdict:
            return False
        if self.uid and self.uid not in _uids(record):
            return False
        return not self.text or self.text.casefold() in _words(record)


def _uids(record: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = object_of(object_of(record.get("object")).get("metadata"))
    found = (record.get("requestUID"), record.get("id"), metadata.get("uid"))
    return tuple(item for item in found if isinstance(item, str))


def _words(record: Mapping[str, Any]) -> str:
    names = ("resourceName", "resourceNamespace", "resourceKind", "requestUsername")
    words = [str(record.get(name, "")) for name in names]
    for result in objects_of(record.get("results")):
        named = object_of(result.get("constraint"))
        words += [
            str(named.get("kind", "")),
            str(named.get("name", "")),
            str(result.get("message")),
        ]
    return " ".join(words).casefold()


def look(path: Path, search: DecisionSearch) -> dict[str, Any]:
    """The newest records that are looked for, and denials a minute over the last hour.

    Reads the file or queue, which is a sidecar's and only read; takes some seconds at most.
    """
    until = time.monotonic() + SECONDS_MAX
    source = RecordSource(path)
    found: deque[dict[str, Any]] = deque(maxlen=ROWS_MAX)
    minutes: Counter[int] = Counter()
    total = matching = newest = 0
    complete = True
    try:
        for record in source:
            if record.get("eventType") != "decision":
                continue
            total += 1
            minute = _minute(record)
            newest = max(newest, minute)
            minutes[minute] += record.get("verdict") == "deny"
            if search.finds(record):
                matching += 1
                found.append(record)
            if total % 1000 == 0 and time.monotonic() > until:
                complete = False
                break
    except OSError as error:
        return {"error": f"{path}: {error.strerror or error}", "records": []}
    return {
        "records": [row(record) for record in reversed(found)],
        "matching": matching,
        "total": total,
        "unreadable": source.unreadable,
        "complete": complete,
        "denialsPerMinute": [minutes[newest - MINUTES + 1 + index] for index in range(MINUTES)]
        if newest
        else [],
    }


def _minute(record: Mapping[str, Any]) -> int:
    try:
        # Microseconds are of no matter here.
        return int(seconds_of(f"{str(record.get('timestamp', ''))[:19]}Z") // 60)
    except ValueError:
        return 0


def row(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a page shows of a record; the whole of it is in the log."""
    return {
        "time": record.get("timestamp", ""),
        "verdict": record.get("verdict", ""),
        "operation": record.get("operation", ""),
        "kind": record.get("resourceKind", ""),
        "namespace": record.get("resourceNamespace", ""),
        "name": record.get("resourceName", ""),
        "user": record.get("requestUsername", ""),
        "uid": record.get("requestUID", ""),
        "replica": record.get("pod", ""),
        "dryRun": record.get("dryRun") is True,
        "results": [
            {
                "kind": object_of(result.get("constraint")).get("kind", ""),
                "name": object_of(result.get("constraint")).get("name", ""),
                "action": result.get("enforcementAction", ""),
                "message": result.get("message", ""),
            }
            for result in objects_of(record.get("results"))
        ],
        "errors": [str(item) for item in record.get("errors") or ()],
    }
