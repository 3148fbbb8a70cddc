"""Reading times, and their parts in a zone (cel-go, common/types/timestamp.go, duration.go)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from webhook.cel.errors import EvaluationError
from webhook.cel.run.arithmetic import SECOND
from webhook.duration import InvalidDuration, parse_duration
from webhook.rego.go.strings import quote
from webhook.rego.go.time import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.cel.run.values import Duration, Timestamp

_RFC3339: Final = "2006-01-02T15:04:05Z07:00"


def read_timestamp(text: str) -> tuple[int, int] | None:
    """Nanoseconds since 1970 and the offset in seconds; None for what is no RFC 3339."""
    try:
        moment = parse_time(_RFC3339, text)
    except ValueError:
        return None
    return moment.unix_ns, moment.offset


def read_duration(text: str) -> int | None:
    """Nanoseconds, as Go's ``time.ParseDuration`` reads them; None for what is none."""
    try:
        return parse_duration(text)
    except InvalidDuration:
        return None


def _zone_offset(value: Timestamp, zone: str) -> int:
    """Seconds east of UTC in a zone, at a time."""
    if ":" in zone:
        return _numeric_offset(zone)
    if zone in {"", "UTC", "Local"}:
        return 0
    if zone[0] in "/\\" or ".." in zone:
        raise EvaluationError("time: invalid location name")
    try:
        place = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value.ns // SECOND)
    try:
        offset = moment.astimezone(place).utcoffset()
    except OverflowError:  # beyond the years 1 to 9999 there
        return 0
    return 0 if offset is None else int(offset.total_seconds())


def _numeric_offset(zone: str) -> int:
    hours, _, minutes = zone.partition(":")
    for part in (hours, minutes):
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", part, re.ASCII):
            raise EvaluationError(f"strconv.Atoi: parsing {quote(part)}: invalid syntax")
    size = int(hours) * 60
    return (size - int(minutes) if zone[0] == "-" else size + int(minutes)) * 60


def local(value: Timestamp, zone: str = "") -> tuple[datetime, int]:
    """The time of a clock in a zone, and its nanoseconds."""
    seconds, ns = divmod(value.ns, SECOND)
    seconds += _zone_offset(value, zone)
    try:
        return datetime(1970, 1, 1) + timedelta(seconds=seconds), ns  # noqa: DTZ001  # a clock's
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


PARTS: Final[dict[str, Callable[[datetime, int], int]]] = {
    "getFullYear": lambda at, _: at.year,
    "getMonth": lambda at, _: at.month - 1,
    "getDate": lambda at, _: at.day,
    "getDayOfMonth": lambda at, _: at.day - 1,
    "getDayOfWeek": lambda at, _: at.isoweekday() % 7,
    "getDayOfYear": lambda at, _: at.timetuple().tm_yday - 1,
    "getHours": lambda at, _: at.hour,
    "getMinutes": lambda at, _: at.minute,
    "getSeconds": lambda at, _: at.second,
    "getMilliseconds": lambda _, ns: ns // 1_000_000,
}

_SPANS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 1_000_000,
}


def part(function: str, value: Timestamp, zone: str = "") -> int:
    """A part of a time."""
    return PARTS[function](*local(value, zone))


def span(function: str, value: Duration) -> int:
    """A duration in whole units, towards zero."""
    size = abs(value.ns) // _SPANS[function]
    return -size if value.ns < 0 else size


IS_SPAN: Final = frozenset(_SPANS)
