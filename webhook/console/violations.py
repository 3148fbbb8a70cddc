"""Violations: searched, grouped, and shown a page at a time."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

from webhook.api.names import CLUSTER_WIDE
from webhook.api.timestamp import text_of
from webhook.console.listing import choices
from webhook.console.sorts import rank
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.console.picture import ShownPolicy, ShownViolation

    PoliciesByKey = Mapping[tuple[str, str], ShownPolicy]
    """By kind and name."""

GROUPS: Final = ("policy", "namespace", "resource")
COLUMNS: Final = (
    "policy",
    "action",
    "severity",
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "message",
    "place",
    "firstSeen",
    "lastSeen",
)
FILTERS: Final = ("policy", "action", "severity", "namespace", "kind")
SORTS: Final = ("gravity", "newest", "oldest", "policy", "namespace")


def gravity(item: ShownViolation) -> tuple[int, int, str, str, str, str, str]:
    """Returns the sort key of a violation: the gravest action first, then the gravest severity."""
    return (
        *rank(item.action, item.severity),
        item.policy,
        item.namespace,
        item.kind,
        item.name,
        item.message,
    )


def in_order(violations: list[ShownViolation], sort: str) -> list[ShownViolation]:
    """Returns the violations, given the gravest first, in the requested order.

    Violations without a first-seen time come last, and so do objects in no namespace.
    """
    if sort == "newest":
        return sorted(violations, key=lambda item: -item.since)
    if sort == "oldest":
        return sorted(violations, key=lambda item: item.since or sys.maxsize)
    if sort == "policy":
        return sorted(violations, key=attrgetter("policy"))
    if sort == "namespace":
        return sorted(violations, key=lambda item: (not item.namespace, item.namespace))
    return violations


@dataclass(frozen=True, slots=True)
class Search:
    """The filters of a search; an empty one accepts any violation.

    ``text`` is part of message, name, policy or namespace, in any case.
    """

    text: str = ""
    policy: str = ""
    action: str = ""
    severity: str = ""
    namespace: str = ""
    kind: str = ""

    def finds(self, violations: Iterable[ShownViolation]) -> list[ShownViolation]:
        """Returns the violations that match, in their order."""
        return [item for item, misses in self._looked_at(violations) if not misses]

    def choices(self, violations: Iterable[ShownViolation]) -> dict[str, list[dict[str, Any]]]:
        """Returns the values of each filter with their counts, as the other filters leave them."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in FILTERS}
        for item, misses in self._looked_at(violations):
            if len(misses) > 1:
                continue
            for name in misses or FILTERS:
                counts[name].update(_values(item, name))
        return {name: choices(counts[name], getattr(self, name)) for name in FILTERS}

    def _looked_at(
        self, violations: Iterable[ShownViolation]
    ) -> Iterator[tuple[ShownViolation, list[str]]]:
        """Yields the violations with the text, each with the filters that it fails."""
        text = self.text.casefold()
        filters = [(name, value) for name in FILTERS if (value := getattr(self, name))]
        for item in violations:
            if not text or _has(item, text):
                yield item, [name for name, value in filters if value not in _values(item, name)]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Search:
        """Reads a search from a query."""
        return cls(query.get("q", ""), *(query.get(name, "") for name in FILTERS))


def _values(item: ShownViolation, name: str) -> Sequence[str]:
    """Returns the values of a violation for a filter."""
    if name == "action":
        return item.action.split(",")
    if name == "namespace":
        return (item.namespace or CLUSTER_WIDE,)
    value: str = getattr(item, name)
    return (value,) if value else ()


def _has(item: ShownViolation, text: str) -> bool:
    return (
        text in item.message.casefold()
        or text in item.name.casefold()
        or text in item.policy.casefold()
        or text in item.namespace.casefold()
    )


def last_seen(item: ShownViolation, policies: PoliciesByKey) -> int:
    """Returns the last time a violation was seen, in seconds since 1970; 0 if unknown.

    That is the last audit of its policy, or the first-seen time if later.
    """
    kind, _, name = item.policy.partition("/")
    policy = policies.get((kind, name))
    return max(item.since, policy.audited if policy is not None else 0)


def row(item: ShownViolation, policies: PoliciesByKey) -> dict[str, str]:
    """Returns a violation as JSON; its last-seen time is that of its policy's last audit."""
    return {
        "policy": item.policy,
        "action": item.action,
        "severity": item.severity,
        "apiVersion": item.api_version,
        "kind": item.kind,
        "namespace": item.namespace,
        "name": item.name,
        "message": item.message,
        "place": item.place,
        "firstSeen": _time(item.since),
        "lastSeen": _time(last_seen(item, policies)),
    }


def _time(seconds: int) -> str:
    return text_of(seconds) if seconds else ""


def counted(violations: Iterable[ShownViolation], by: str) -> list[tuple[Any, int]]:
    """Returns the number of violations of each policy, namespace or resource, the largest first."""
    counts = Counter(map(attrgetter(by), violations))
    # Compares texts, as comparing nested tuples takes five times as long. No name has a NUL.
    if by == "resource":
        ordered = sorted(counts.items(), key=lambda pair: "\0".join(pair[0]))
    else:
        ordered = sorted(counts.items())
    ordered.sort(key=itemgetter(1), reverse=True)
    return ordered


def groups(pairs: Iterable[tuple[Any, int]], by: str) -> list[dict[str, Any]]:
    """Returns counts as JSON."""
    return [_group(by, key, number) for key, number in pairs]


def _group(by: str, key: Any, number: int) -> dict[str, Any]:
    if by != "resource":
        return {by: key, "violations": number}
    api_version, kind, namespace, name = key
    return {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "violations": number,
    }


def as_csv(violations: Iterable[ShownViolation], policies: PoliciesByKey) -> Iterator[str]:
    """Yields lines of RFC 4180, beginning with the column names.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    yield _line(COLUMNS)
    for item in violations:
        yield _line([_no_formula(cell) for cell in row(item, policies).values()])


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@", "\t", "\r"} else cell
