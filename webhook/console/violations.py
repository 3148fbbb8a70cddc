"""Violations searched, grouped and told a page at a time."""

from __future__ import annotations

import csv
import io
from collections import Counter
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.console.picture import ShownViolation

T = TypeVar("T")

PAGE_ROWS: Final = 100
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
)


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for; empty is anything. ``text`` is part of any column, whatever its case."""

    text: str = ""
    policy: str = ""
    namespace: str | None = None
    action: str = ""
    kind: str = ""

    def finds(self, violations: Iterable[ShownViolation]) -> list[ShownViolation]:
        """Those that are looked for, in their order."""
        text = self.text.casefold()
        return [
            item
            for item in violations
            if (not self.policy or item.policy == self.policy)
            and (self.namespace is None or item.namespace == self.namespace)
            and (not self.action or self.action in item.action.split(","))
            and (not self.kind or item.kind == self.kind)
            and (not text or _has(item, text))
        ]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Search:
        """What a query says."""
        return cls(
            query.get("q", ""),
            query.get("policy", ""),
            query.get("namespace") or (None if query.get("clusterwide") != "1" else ""),
            query.get("action", ""),
            query.get("kind", ""),
        )


def _has(item: ShownViolation, text: str) -> bool:
    return (
        text in item.message.casefold()
        or text in item.name.casefold()
        or text in item.policy.casefold()
        or text in item.namespace.casefold()
    )


def row(item: ShownViolation) -> dict[str, str]:
    """A violation as JSON."""
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
    }


def counted(violations: Iterable[ShownViolation], by: str) -> list[tuple[Any, int]]:
    """How many there are of each policy, namespace or resource, the most first."""
    counts = Counter(map(attrgetter(by), violations))
    # A text each: to compare tuples in tuples takes five times as long. No name has a NUL.
    if by == "resource":
        ordered = sorted(counts.items(), key=lambda pair: "\0".join(pair[0]))
    else:
        ordered = sorted(counts.items())
    ordered.sort(key=itemgetter(1), reverse=True)
    return ordered


def groups(pairs: Iterable[tuple[Any, int]], by: str) -> list[dict[str, Any]]:
    """Counts as JSON."""
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


def as_csv(violations: Iterable[ShownViolation]) -> Iterator[str]:
    """Lines of RFC 4180, with the names of columns first.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    yield _line(COLUMNS)
    for item in violations:
        yield _line([_no_formula(cell) for cell in row(item).values()])


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@", "\t", "\r"} else cell


def page_of(
    rows: Sequence[T], number: int, size: int = PAGE_ROWS
) -> tuple[Sequence[T], dict[str, int]]:
    """The rows of a page, the first of which is 1, and where it stands among all."""
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    begin = (number - 1) * size
    return rows[begin : begin + size], {
        "page": number,
        "pages": pages,
        "first": begin + 1 if rows else 0,
        "last": min(begin + size, len(rows)),
        "total": len(rows),
    }
