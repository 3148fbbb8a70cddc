"""Decisions as rows: each is encoded as it is answered, and many are joined later."""

from __future__ import annotations

from io import BytesIO
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.decisions.exporter.admission import NO_POLICIES, judge, verdict_of, why
from webhook.decisions.wire.rows import FRAME, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.constraint.constraint import Constraint
    from webhook.constraint.result import Responses, Result
    from webhook.constraint.snapshot import Snapshot
    from webhook.decisions.exporter.admission import RecordedPolicies

_EXISTING: Final = (True,)
"""The mark of a result that the old object had already."""

ROWS: Final = 64
"""The decisions on one line: some 40 KB, most of a page of the queue."""

ROW_BYTES_AMPLE: Final = 16 * 1024
"""Longer rows are queued at once: waiting rows do not count for the queue's limit of bytes yet."""

LINE_BYTES_MAX: Final = 256 * 1024
"""The most bytes of a line; more rows go on several lines. A receiver takes four times as much."""

TEXT_BYTES_KEPT: Final = 64 * 1024
"""The most memory kept for waiting rows, more than they usually need."""

ROWS_RECORD_BYTES_MIN: Final = 64 * 1024
"""If the limit of a record is lower, each record is checked: some 64 of them are as long."""


class NotedRows:
    """Decisions that wait to be joined into a line, encoded one behind the other.

    The memory is reused: each row's memory is the next one's, and still in the processor's caches.
    """

    __slots__ = (
        "_known",
        "_taken",
        "_text",
        "constraints",
        "limit",
        "longest",
        "policies",
        "results",
        "snapshot",
        "total",
        "write",
    )

    write: Callable[[bytes], int]
    """Takes a row in the format of :mod:`webhook.decisions.wire.rows`, and then a comma; returns
    the bytes."""

    def __init__(self) -> None:
        self.total = 0
        """Rows that there ever were."""
        self.limit = 0
        """While ``total`` is below this, the next row may be added without further checks."""
        self.policies = NO_POLICIES
        """The policies that decided the admissions of these rows."""
        self.snapshot: Snapshot | None = None
        """The snapshot of these policies, if known to the recorder."""
        self.constraints: list[bytes] = []
        """The encoded constraints with results, each once."""
        self._known: dict[int, tuple[int, Constraint]] = {}
        self.results = 0
        """The most results of a row."""
        self.longest = ROW_BYTES_AMPLE
        """No row has more bytes."""
        self._taken = 0
        self._have_text()

    @property
    def count(self) -> int:
        """Rows that wait."""
        return self.total - self._taken

    def begin(self, policies: RecordedPolicies) -> None:
        """Begins another line; the rows of the last one have been taken."""
        self.policies = policies
        if self.constraints:
            self.constraints, self._known = [], {}
        self.results, self.longest = 0, ROW_BYTES_AMPLE

    def take(self) -> memoryview:
        """Returns the rows, with commas between them; to be released before the next row is added."""
        self._taken = self.total
        text = self._text
        end = text.tell() - 1
        text.seek(0)
        rows = text.getbuffer()[:end]
        if end > TEXT_BYTES_KEPT:
            self._have_text()
        return rows

    def more(self, responses: Responses, allowed: bool, code: int, message: str) -> dict[str, Any]:
        """Returns the rare fields for the next row.

        The arguments are those of the answer. Raises :class:`TypeError` if orjson cannot encode the
        row.
        """
        results, faults, late, _, undecided, excused, *_ = responses
        self.results = max(self.results, len(results))
        if (not allowed and code != 403) or not results or faults or undecided or late or excused:
            return self._judged(responses, allowed, code, message)
        # The gravest is always the first.
        verdict = "deny" if results[0].enforcement_action == "deny" else verdict_of(results)
        if verdict == "allow":
            return self._judged(responses, allowed, code, message)
        known, written = self._known, []
        for target, constraint, msg, details, action, scoped, cause, excuse, existing in results:
            if excuse is not None:
                return self._judged(responses, allowed, code, message)
            number, _ = known.get(id(constraint)) or self._describe(constraint)
            values = number, target, action, scoped, msg, {} if details is None else details, cause
            written.append((*values, *_EXISTING) if existing else values)
        return {"verdict": verdict, "code": code, "allowed": allowed, "results": written}

    def _have_text(self) -> None:
        """Memory for rows."""
        self._text = BytesIO()
        self.write = self._text.write

    def _judged(
        self, responses: Responses, allowed: bool, code: int, message: str
    ) -> dict[str, Any]:
        row: dict[str, Any] = {"verdict": "allow", "code": code, "allowed": allowed}
        judges = why(allowed, code, message)
        judge(row, responses, allowed, *judges, self.policies, written=self._result)
        return row

    def _result(self, result: Result) -> tuple[Any, ...]:
        number, _ = self._known.get(id(result.constraint)) or self._describe(result.constraint)
        details = {} if result.details is None else result.details
        action, scoped = result.enforcement_action, result.scoped_actions
        existing = _EXISTING if result.existing else ()
        return number, result.target, action, scoped, result.msg, details, result.cause, *existing

    def _describe(self, constraint: Constraint) -> tuple[int, Constraint]:
        """Adds a constraint's description to this line."""
        self.constraints.append(self.policies.written(constraint))
        # Kept with its id: no other object may get the same id meanwhile.
        known = self._known[id(constraint)] = len(self.constraints) - 1, constraint
        return known


def separated(rows: bytes | memoryview) -> list[bytes]:
    """Splits rows at the commas between them."""
    return [orjson.dumps(row) for row in orjson.loads(b"[%b]" % bytes(rows))]


class RowWriter:
    """Writes lines of rows of one process."""

    __slots__ = ("_common", "_origin")

    def __init__(self, origin: dict[str, Any]) -> None:
        """``origin`` are the fields common to all its records."""
        self._origin = origin
        self._common: tuple[RecordedPolicies, bytes] | None = None

    def line(
        self, first: int, noted: NotedRows, rows: bytes | memoryview
    ) -> tuple[bytes, bytes | memoryview, bytes]:
        """Returns the line of some of the waiting rows, the first of which has this number.

        The line is in parts: joining them would copy it once more, to memory that the system
        allocates and frees each time.
        """
        if self._common is None or self._common[0] is not noted.policies:
            text = orjson.dumps({**self._origin, **noted.policies.common})
            self._common = noted.policies, text
        beginning = b'%b"sequence":%d,"clock":%f,"common":%b,"constraints":[%b],"rows":[' % (
            FRAME,
            first,
            time() - monotonic(),
            self._common[1],
            b",".join(noted.constraints),
        )
        return beginning, rows, b"]}"

    def longest_record(self, noted: NotedRows, longest: int) -> int:
        """Returns an upper bound for the bytes of a record from a line of rows.

        A record repeats the common values of the line, and the constraint with each of its results.
        """
        common = b"" if self._common is None else self._common[1]
        described = max(map(len, noted.constraints)) if noted.constraints else 0
        return longest + len(common) + noted.results * described + _NAMES_BYTES

    def record(self, line: bytes, policies: RecordedPolicies) -> dict[str, Any]:
        """Makes the record of a line with one row, without its origin and its number."""
        (record,) = records({**orjson.loads(line), "common": policies.common})
        del record["sequence"]
        return record


_NAMES_BYTES: Final = 1024
"""The names of a record's fields take some 500."""
