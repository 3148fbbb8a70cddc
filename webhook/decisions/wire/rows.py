"""Decisions in rows: values common to many records are sent once.

A replica that decides thousands of requests a second would repeat the same names, Pod and policies
in each record, and pay for it while it decides. Version 3 of the protocol has a frame
``decisions``: the common values, and a row of raw values for each decision. The records are made
from it where they are stored, or by the sender if the receiver speaks version 1. docs/protocol.md
is the specification.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Any, Final, TypeAlias

import orjson

from webhook.api.gvk import labels_of
from webhook.decisions.wire.framing import (
    MAX_LINE_BYTES,
    SEQUENCE_MAX,
    ProtocolError,
    Record,
    StreamID,
)

_second = (-1, "")
"""The last second that was written, and its text: each costs a third of isoformat."""


def timestamp(now: float | None = None) -> str:
    """Now, or ``now`` in seconds since 1970: RFC 3339 with microseconds, UTC."""
    global _second  # noqa: PLW0603  # a pair, replaced as a whole: two threads may both make it
    if now is None:
        now = time.time()
    whole = int(now)
    second, text = _second
    if whole != second:
        text = dt.datetime.fromtimestamp(whole, dt.UTC).isoformat(timespec="seconds")[:19]
        _second = whole, text
    return f"{text}.{int((now - whole) * 1e6):06d}Z"


FRAME: Final = b'{"type":"decisions",'
"""The beginning of a line of rows, as this side writes it."""

NAMES: Final = (
    *("id", "requestUID", "operation", "dryRun"),
    *("resourceGroup", "resourceAPIVersion", "resourceKind"),
    *("resourceNamespace", "resourceName", "resourceLabels"),
    *("requestResource", "requestSubresource"),
    *("requestUsername", "requestUserUID", "requestUserGroups"),
    "constraintsEvaluated",
)
"""The fields of a row with the same values as in the record, in this order, after
:data:`BEGINNING`; labels and groups are those of the request."""

BEGINNING: Final = ("received", "began", "decided", "more")
"""Three moments, in seconds from the frame's ``clock`` on; and an object of rare fields, or null
for a decision that allows with code 200."""

RESULT_NAMES: Final = ("target", "enforcementAction", "enforcementActions", "message", "details")
"""The fields of a result with the same values as in the record's result, between its constraint's
number and its cause."""

ROWS_MAX: Final = 256

EXPANDED_BYTES_MAX: Final = 4 * MAX_LINE_BYTES
"""The most bytes of one frame's records: the limit of a gRPC message."""

_YEAR_10000: Final = 253_402_300_800
"""In seconds since 1970: the first time beyond RFC 3339."""

_WIDTH: Final = len(BEGINNING) + len(NAMES)
_RESULT_WIDTH: Final = len(RESULT_NAMES) + 2


def records(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the records of a frame; raises :class:`ProtocolError` for an invalid frame."""
    first, common = value.get("sequence"), value.get("common")
    constraints, rows = value.get("constraints"), value.get("rows")
    if type(first) is not int or not 1 <= first <= SEQUENCE_MAX - ROWS_MAX:
        raise _wrong("its sequence is not the number of a record")
    if type(common) is not dict or type(constraints) is not list or type(rows) is not list:
        raise _wrong("it lacks common, constraints or rows")
    if not 1 <= len(rows) <= ROWS_MAX:
        raise _wrong(f"it has {len(rows)} rows, of at most {ROWS_MAX}")
    clock = value.get("clock")
    if type(clock) not in {int, float}:
        raise _wrong("its clock is not a time")
    decoded = [_record(common, clock, row) for row in rows]
    for number, (record, more) in enumerate(decoded, first):
        record["sequence"] = number
        if more:
            _add(record, constraints, more)
    return [record for record, _ in decoded]


def lines(value: dict[str, Any]) -> list[bytes]:
    """Returns the lines of a frame's records; raises :class:`ProtocolError`."""
    written = []
    size = 0
    for record in records(value):
        line = orjson.dumps(record)
        size += len(line)
        if len(line) > MAX_LINE_BYTES or size > EXPANDED_BYTES_MAX:
            raise ProtocolError("line_too_long", "the records of a frame of rows are too long")
        written.append(line)
    return written


def received(value: dict[str, Any], stream: StreamID) -> list[Record]:
    """Returns the records of a sender's frame; raises :class:`ProtocolError`.

    The stream in the frame is ignored: records get the sender's own.
    """
    common = value.get("common")
    if type(common) is dict:
        value["common"] = {**common, "podUID": stream.pod_uid, "process": stream.process}
    written = lines(value)
    first: int = value["sequence"]
    return [Record(line, stream, first + place) for place, line in enumerate(written)]


def expanded(text: bytes) -> bytes:
    """Converts lines of this side's version to version 1: rows become records."""
    if FRAME not in text:
        return text
    written: list[bytes] = []
    for line in text.splitlines():
        written += lines(orjson.loads(line)) if line.startswith(FRAME) else (line,)
    return b"\n".join(written) + b"\n"


_Made: TypeAlias = "tuple[dict[str, Any], Any]"
"""A record without its number, and its additional fields."""


def _record(common: dict[str, Any], clock: Any, row: Any) -> _Made:
    if type(row) not in {list, tuple} or len(row) != _WIDTH:
        raise _wrong(f"a row does not have {_WIDTH} values")
    received, began, decided, more, *values = row
    if not (_is_time(received) and _is_time(began) and _is_time(decided)):
        raise _wrong("a row's time is not a time")
    record = {
        **common,
        **dict(zip(NAMES, values, strict=True)),
        "timestamp": _timestamp(clock + decided),
        "verdict": "allow",
        "code": 200,
        "allowed": True,
        "durationNs": int((decided - began) * 1e9),
        "queueDurationNs": int((began - received) * 1e9),
    }
    record["resourceLabels"] = labels_of({"metadata": {"labels": record["resourceLabels"]}})
    record["requestUserGroups"] = record["requestUserGroups"] or []
    return record, more


def _is_time(value: Any) -> bool:
    return type(value) in {int, float} and -_YEAR_10000 < value < _YEAR_10000


def _timestamp(when: Any) -> str:
    if not _is_time(when) or when < 0:
        raise _wrong("a row's time is not a time")
    return timestamp(when)


def _add(record: dict[str, Any], constraints: list[Any], more: Any) -> None:
    """Adds the fields that few records have: results, and other verdicts than `allow`."""
    if type(more) is not dict:
        raise _wrong("the additional part of a row is not an object")
    record.update(more)
    results = more.get("results")
    if results is None:
        return
    if type(results) is not list:
        raise _wrong("a row's results are not a list")
    record["results"] = [_result(constraints, result) for result in results]


def _result(constraints: list[Any], result: Any) -> dict[str, Any]:
    if type(result) not in {list, tuple} or len(result) not in {_RESULT_WIDTH, _RESULT_WIDTH + 1}:
        raise _wrong(f"a result does not have {_RESULT_WIDTH} values")
    number, *values, cause = result[:_RESULT_WIDTH]
    existing = {"existing": True} if len(result) > _RESULT_WIDTH else {}
    if type(number) is not int or not 0 <= number < len(constraints):
        raise _wrong("a result is of a constraint that the frame does not have")
    described = constraints[number]
    if type(described) is not dict:
        raise _wrong("a constraint is not an object")
    fields = dict(zip(RESULT_NAMES, values, strict=True))
    return {**described, **fields, "cause": cause, **existing}


def _wrong(how: str) -> ProtocolError:
    return ProtocolError("bad_frame", f"a frame of rows: {how}")
