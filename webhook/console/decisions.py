"""Searches the end of a decision log for requests."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from webhook.api.shapes import object_of, objects_of
from webhook.api.timestamp import seconds_of
from webhook.console.listing import choices, position_of
from webhook.console.visitor import Right
from webhook.decisions.source import RecordSource, actions_of, excused_by, first_deliveries
from webhook.values import dataclass

ROWS_MAX: Final = 200
SECONDS_MAX: Final = 5.0
"""The longest time of one search through the log; the page says if the search ended early."""

MINUTES: Final = 60
TRIED_MAX: Final = 200
"""The most recorded decisions that a new policy is tried on."""


FILTERS: Final = ("verdict", "user", "namespace", "policy")
PAGES_MAX: Final = 50
"""The most pages of one search, as the rows of all pages up to the shown one stay in memory."""


@dataclass(frozen=True, slots=True)
class DecisionSearch:
    """The filters of a search; an empty one accepts any record.

    ``uid`` is the UID of a request or of a resource.
    """

    text: str = ""
    uid: str = ""
    verdict: str = ""
    user: str = ""
    namespace: str = ""
    policy: str = ""
    """``Kind/name`` of a constraint."""
    minute: str = ""
    """A minute in UTC, as ``2026-01-01T00:00``."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> DecisionSearch:
        """Reads a search from a query."""
        return cls(
            query.get("q", ""),
            query.get("uid", ""),
            **{name: query.get(name, "") for name in (*FILTERS, "minute")},
        )

    def misses(self, record: Mapping[str, Any]) -> list[str] | None:
        """Returns the filters that a record fails; None if its text, UID or minute differs."""
        if self.uid and self.uid not in _uids(record):
            return None
        if self.minute and str(record.get("timestamp", ""))[:16] != self.minute:
            return None
        if self.text and self.text.casefold() not in _words(record):
            return None
        return [
            name
            for name in FILTERS
            if (text := getattr(self, name)) and text not in _values(record, name)
        ]


def _values(record: Mapping[str, Any], name: str) -> list[str]:
    """Returns the values of a record for a filter."""
    if name == "policy":
        named = [
            object_of(result.get("constraint")) for result in objects_of(record.get("results"))
        ]
        return [
            f"{constraint.get('kind', '')}/{constraint.get('name', '')}" for constraint in named
        ]
    value = record.get(_FIELDS[name])
    return [value] if isinstance(value, str) and value else []


_FIELDS: Final = {
    "verdict": "verdict",
    "user": "requestUsername",
    "namespace": "resourceNamespace",
}


def _uids(record: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = object_of(object_of(record.get("object")).get("metadata"))
    candidates = (record.get("requestUID"), record.get("id"), metadata.get("uid"))
    return tuple(item for item in candidates if isinstance(item, str))


def _words(record: Mapping[str, Any]) -> str:
    names = ("resourceName", "resourceNamespace", "resourceKind", "requestUsername")
    words = [str(record.get(name, "")) for name in names]
    for result in objects_of(record.get("results")) + objects_of(record.get("excused")):
        named = object_of(result.get("constraint"))
        words += [
            str(named.get("kind", "")),
            str(named.get("name", "")),
            str(result.get("message")),
        ]
    return " ".join(words).casefold()


def right_of(record: Mapping[str, Any]) -> Right | None:
    """Returns the right to read a decision's object; None if the record names no resource."""
    resource = object_of(record.get("requestResource"))
    group, plural = resource.get("group", ""), resource.get("resource")
    namespace = record.get("resourceNamespace") or ""
    if not (isinstance(group, str) and isinstance(plural, str) and isinstance(namespace, str)):
        return None
    return Right(group, plural, namespace, "get")


class _Reader:
    """Decides whether a visitor may read a record; checks each right once."""

    def __init__(self, may: Callable[[Right], bool] | None) -> None:
        self._may = may
        self._known: dict[Right, bool] = {}

    def reads(self, record: Mapping[str, Any]) -> bool:
        if self._may is None:
            return True
        right = right_of(record)
        if right is None:
            return False
        if right not in self._known:
            everywhere = replace(right, namespace="")
            if everywhere not in self._known:
                self._known[everywhere] = self._may(everywhere)
            self._known[right] = self._known[everywhere] or self._may(right)
        return self._known[right]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Decisions to replay, the newest first, and the number recorded without an object."""

    records: tuple[Mapping[str, Any], ...]
    without_object: int
    complete: bool


def recorded(path: Path, may: Callable[[Right], bool] | None = None) -> Recorded:
    """Returns the newest admissions that were recorded with their objects; raises OSError."""
    until = time.monotonic() + SECONDS_MAX
    reader = _Reader(may)
    records: deque[Mapping[str, Any]] = deque(maxlen=TRIED_MAX)
    without = total = 0
    complete = True
    for record in first_deliveries(RecordSource(path)):
        total += 1
        if total % 1000 == 0 and time.monotonic() > until:
            complete = False
            break
        if record.get("eventType") != "decision" or not reader.reads(record):
            continue
        if type(record.get("object")) is dict or type(record.get("oldObject")) is dict:
            records.append(record)
        else:
            without += 1
    return Recorded(tuple(reversed(records)), without, complete)


def look(
    path: Path,
    search: DecisionSearch,
    may: Callable[[Right], bool] | None = None,
    page: int = 1,
) -> dict[str, Any]:
    """Returns the records that match, the newest first, and denials per minute in the last hour.

    Reads the sidecar's file or queue without changing it, for at most ``SECONDS_MAX`` seconds.
    Counts only the records that ``may`` lets the visitor read.
    """
    until = time.monotonic() + SECONDS_MAX
    page = min(max(1, page), PAGES_MAX)
    reader = _Reader(may)
    source = RecordSource(path)
    rows: deque[dict[str, Any]] = deque(maxlen=page * ROWS_MAX)
    minutes: Counter[int] = Counter()
    counts: dict[str, Counter[str]] = {name: Counter() for name in FILTERS}
    total = matching = newest = 0
    complete = True
    try:
        for record in first_deliveries(source):
            if record.get("eventType") != "decision" or not reader.reads(record):
                continue
            total += 1
            minute = _minute(record)
            newest = max(newest, minute)
            minutes[minute] += record.get("verdict") == "deny"
            misses = search.misses(record)
            if misses is not None and len(misses) < 2:
                for name in misses or FILTERS:
                    counts[name].update(set(_values(record, name)))
            if misses == []:
                matching += 1
                rows.append(row(record))
            if total % 1000 == 0 and time.monotonic() > until:
                complete = False
                break
    except OSError as error:
        return {"error": f"{path}: {error.strerror or error}", "records": []}
    position = position_of(matching, page, ROWS_MAX, PAGES_MAX)
    first = max(0, position["first"] - 1)
    shown = list(reversed(rows))[first : first + ROWS_MAX]
    return {
        "records": shown,
        "matching": matching,
        "total": total,
        "unreadable": source.unreadable,
        "complete": complete,
        "position": position,
        "choices": {name: choices(counts[name], getattr(search, name)) for name in FILTERS},
        "denialsPerMinute": [minutes[newest - MINUTES + 1 + index] for index in range(MINUTES)]
        if newest
        else [],
        "newestMinute": newest,
    }


def _minute(record: Mapping[str, Any]) -> int:
    try:
        # Microseconds do not matter here.
        return int(seconds_of(f"{str(record.get('timestamp', ''))[:19]}Z") // 60)
    except ValueError:
        return 0


_ENTRIES: Final = {"fail": "fails closed", "ignore": "fails open"}


def row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a page's row for a record; the log has the whole record."""
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
        "entry": _ENTRIES.get(str(record.get("failurePolicy")), ""),
        "results": [
            {
                "kind": object_of(result.get("constraint")).get("kind", ""),
                "name": object_of(result.get("constraint")).get("name", ""),
                "action": ", ".join(actions_of(result)),
                "message": result.get("message", ""),
            }
            for result in objects_of(record.get("results"))
        ]
        + [
            {
                "kind": object_of(item.get("constraint")).get("kind", ""),
                "name": object_of(item.get("constraint")).get("name", ""),
                "action": "excused",
                "message": f"{item.get('message', '')} ({excused_by(item)})",
            }
            for item in objects_of(record.get("excused"))
        ],
        "errors": [str(item) for item in record.get("errors") or ()],
    }
