"""Decisions as rows: what is noted while a request is answered, and what is made of it later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.decisions.exporter.admission import NO_POLICIES, judge
from webhook.decisions.wire.rows import records, rows_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.constraint.result import Result
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.admission import RecordedPolicies

ROWS: Final = 32
"""Decisions that are written together. More would win little, and delay one request by it."""

ROWS_RECORD_BYTES_MIN: Final = 64 * 1024
"""Where records must be shorter, each is looked at by itself: some 32 of them are as long."""

MORE: Final = 1
"""Where a row has what few records have: None, or until it is written what :func:`judge` takes."""


class NotedRows:
    """Decisions that wait to be written together."""

    __slots__ = ("limit", "policies", "rows", "snapshot")

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        """As :mod:`webhook.decisions.wire.rows` says; another list after each writing."""
        self.limit = 0
        """With fewer rows than this, the next may be noted without asking anything more."""
        self.policies = NO_POLICIES
        """Those that decided them."""
        self.snapshot: Snapshot | None = None
        """The snapshot of which those are, as far as the recorder knows."""


class RowWriter:
    """Writes rows of one process."""

    __slots__ = ("_common", "_origin")

    def __init__(self, origin: dict[str, Any]) -> None:
        """``origin`` is what all its records say."""
        self._origin = origin
        self._common: tuple[RecordedPolicies, orjson.Fragment] | None = None

    def frame(
        self, first: int, policies: RecordedPolicies, rows: Sequence[tuple[Any, ...]]
    ) -> dict[str, Any]:
        """The frame of these rows, the first of which has this number."""
        if self._common is None or self._common[0] is not policies:
            text = orjson.dumps({**self._origin, **policies.common})
            self._common = policies, orjson.Fragment(text)
        constraints = _Constraints(policies)
        written = [row if row[MORE] is None else _whole(row, constraints) for row in rows]
        return rows_frame(first, self._common[1], constraints.described, written)

    def line(self, frame: dict[str, Any], record_bytes_max: int) -> bytes:
        """The frame's line; empty where it cannot be written, or a record might be too long."""
        try:
            line = orjson.dumps(frame)
        except TypeError:
            return b""
        return line if _longest_record(line, frame) <= record_bytes_max else b""

    def record(self, frame: dict[str, Any], policies: RecordedPolicies) -> dict[str, Any]:
        """What the record of a frame with one row says, beside its origin and its number."""
        (record,) = records({**frame, "common": policies.common})
        del record["sequence"]
        return record


def _longest_record(line: bytes, frame: dict[str, Any]) -> int:
    """No record of a frame is longer than this, in bytes.

    A record says what the whole frame does at most once, but for its constraints: those with each
    of its results.
    """
    results = max(len(row[MORE].get("results", ())) if row[MORE] else 0 for row in frame["rows"])
    return len(line) * (1 + results) + _NAMES_BYTES


_NAMES_BYTES: Final = 1024
"""The names of a record's fields take some 500."""


class _Constraints:
    """Those of which results are on a frame, each described once."""

    __slots__ = ("_numbers", "_policies", "described")

    def __init__(self, policies: RecordedPolicies) -> None:
        self._policies = policies
        self._numbers: dict[int, int] = {}
        self.described: list[dict[str, Any]] = []

    def result(self, result: Result) -> tuple[Any, ...]:
        """A result as a frame of rows has it."""
        constraint, details = result.constraint, result.details
        number = self._numbers.get(id(constraint))
        if number is None:
            number = self._numbers[id(constraint)] = len(self.described)
            self.described.append(self._policies.described(constraint))
        return (
            number,
            result.target,
            result.enforcement_action,
            result.scoped_actions,
            result.msg,
            {} if details is None else details,
            result.cause,
        )


def _whole(row: tuple[Any, ...], constraints: _Constraints) -> list[Any]:
    """The row with what was found, in a form that can be written."""
    more: dict[str, Any] = {"verdict": "allow"}
    responses, allowed, error, refusal = row[MORE]
    judge(more, responses, allowed, error, refusal, constraints.result)
    whole = list(row)
    whole[MORE] = more
    return whole
