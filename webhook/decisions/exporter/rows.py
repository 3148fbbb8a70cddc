"""Decisions as rows: each is written as it is answered, and many are put together later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.decisions.exporter.admission import NO_POLICIES, judge, verdict_of
from webhook.decisions.wire.rows import FRAME, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.admission import RecordedPolicies

ROWS: Final = 64
"""Decisions that are put together on one line: some 40 KB, most of a page of the queue's."""

ROW_BYTES_AMPLE: Final = 16 * 1024
"""Longer rows do not wait for others: what waits is not in the queue's bound of bytes yet."""

ROWS_RECORD_BYTES_MIN: Final = 64 * 1024
"""Where records must be shorter, each is looked at by itself: some 64 of them are as long."""


class NotedRows:
    """Decisions that wait to be put together."""

    __slots__ = ("_known", "constraints", "limit", "policies", "results", "rows", "snapshot")

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        """Each as :mod:`webhook.decisions.wire.rows` says; another list after each line."""
        self.limit = 0
        """With fewer rows than this, the next may be noted without asking anything more."""
        self.policies = NO_POLICIES
        """Those that decided them."""
        self.snapshot: Snapshot | None = None
        """The snapshot of which those are, as far as the recorder knows."""
        self.constraints: list[bytes] = []
        """What is said of those of which there are results, each once."""
        self._known: dict[int, tuple[int, Constraint]] = {}
        self.results = 0
        """How many the row has that has most."""

    def begin(self, policies: RecordedPolicies) -> None:
        """Begin another line; the rows of the last one were taken."""
        self.policies = policies
        if self.constraints:
            self.constraints, self._known = [], {}
        self.results = 0

    def more(self, responses: Responses, allowed: bool, error: str, refusal: str) -> dict[str, Any]:
        """What few records have; for the row that is noted next.

        ``error`` and ``refusal`` are as :class:`~webhook.decisions.exporter.admission.ReviewOutcome`
        has them. Raises :class:`TypeError` where orjson cannot write it.
        """
        results = responses.results
        self.results = max(self.results, len(results))
        if not (error or responses.faults or responses.undecided or responses.deadline_exceeded):
            verdict = verdict_of(results)
            if verdict != "allow":
                return {"verdict": verdict, "results": [self._result(each) for each in results]}
        found: dict[str, Any] = {"verdict": "allow"}
        judge(found, responses, allowed, error, refusal, self._result)
        return found

    def _result(self, result: Result) -> tuple[Any, ...]:
        """A result as a row has it."""
        constraint, details = result.constraint, result.details
        known = self._known.get(id(constraint))
        if known is None:
            self.constraints.append(self.policies.written(constraint))
            # Kept with it: no other is to have its id meanwhile.
            known = self._known[id(constraint)] = len(self.constraints) - 1, constraint
        return (
            known[0],
            result.target,
            result.enforcement_action,
            result.scoped_actions,
            result.msg,
            {} if details is None else details,
            result.cause,
        )


class RowWriter:
    """Writes lines of rows of one process."""

    __slots__ = ("_common", "_origin")

    def __init__(self, origin: dict[str, Any]) -> None:
        """``origin`` is what all its records say."""
        self._origin = origin
        self._common: tuple[RecordedPolicies, bytes] | None = None

    def line(self, first: int, noted: NotedRows, rows: Sequence[bytes]) -> list[bytes]:
        """The line of some of the rows that are noted, the first of which has this number.

        In the parts it has: put together here it would be copied once more, to memory that the
        system gives, in pages that are empty, and takes back: that took as long as writing it.
        """
        if self._common is None or self._common[0] is not noted.policies:
            text = orjson.dumps({**self._origin, **noted.policies.common})
            self._common = noted.policies, text
        constraints = b",".join(noted.constraints)
        beginning = b'%b"sequence":%d,"common":%b,"constraints":[%b],"rows":[' % (
            FRAME,
            first,
            self._common[1],
            constraints,
        )
        parts = [beginning]
        for row in rows:
            parts += (row, b",")
        parts[-1] = b"]}"
        return parts

    def record(self, line: bytes, policies: RecordedPolicies) -> dict[str, Any]:
        """What the record of a line with one row says, beside its origin and its number."""
        (record,) = records({**orjson.loads(line), "common": policies.common})
        del record["sequence"]
        return record


def longest_record(size: int, results: int) -> int:
    """No record of a line of so many bytes, whose rows have at most so many results, is longer.

    A record says what the whole line does at most once, but for its constraints: those with each
    of its results.
    """
    return size * (1 + results) + _NAMES_BYTES


_NAMES_BYTES: Final = 1024
"""The names of a record's fields take some 500."""
