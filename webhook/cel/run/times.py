"""Reading times, and their parts in a zone (cel-go, common/types/timestamp.go, duration.go)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run.arithmetic import SECOND
from webhook.cel.run.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp
from webhook.duration import InvalidDuration, parse_duration
from webhook.golang.strings import quote
from webhook.golang.time import RFC3339, NoTimeZones, date_of, days_of, load_zone, parse_time
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo


def read_timestamp(text: str) -> tuple[int, int] | None:
    """Returns nanoseconds since 1970 and the offset in seconds; None if the text is no RFC 3339."""
    try:
        moment = parse_time(RFC3339, text)
    except ValueError:
        return None
    return moment.unix_ns, moment.offset


def read_duration(text: str) -> int | None:
    """Returns nanoseconds, as Go's ``time.ParseDuration`` reads them; None for an invalid text."""
    try:
        return parse_duration(text)
    except InvalidDuration:
        return None


_ERA: Final = 146097 * 86400
"""The seconds of 400 years, after which the calendar and its zone offsets repeat."""

_FIRST: Final = -62135596800 + 7 * 86400
_LAST: Final = 253402300800 - 7 * 86400
"""The years 1 to 9999, beyond which Python has no clock, in any zone."""


def _seconds_within(seconds: int) -> int:
    """Returns a time within Python's years at which every zone has the same offset as at this one."""
    if seconds >= _LAST:
        return _LAST - _ERA + (seconds - _LAST) % _ERA
    return max(seconds, _FIRST)


def _zone_offset(value: Timestamp, zone: str) -> int:
    """Returns the seconds east of UTC of a zone at a time."""
    if ":" in zone:
        return _numeric_offset(zone)
    if zone in {"", "UTC", "Local"}:
        return 0
    if zone[0] in "/\\" or ".." in zone:
        raise EvaluationError("time: invalid location name")
    place = _place(zone) or _place(_file_of(zone))
    if place is None:
        raise EvaluationError(f"unknown time zone {zone}")
    seconds = _seconds_within(value.ns // SECOND)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    offset = moment.astimezone(place).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _place(zone: str) -> ZoneInfo | None:
    try:
        return load_zone(zone)
    except NoTimeZones as error:
        raise EvaluationError(str(error)) from None


_DIRECTORIES: Final = frozenset(
    (
        *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Brazil"),
        *("Canada", "Chile", "Etc", "Europe", "Indian", "Mexico", "Pacific", "US"),
        *("America/Argentina", "America/Indiana", "America/Kentucky", "America/North_Dakota"),
    )
)
"""Directories of the database of zones; below ``posix`` and ``right`` each may stand once more."""

_TABLES: Final = {"iso3166.tab", "leapseconds", "tzdata.zi", "zone.tab", "zone1970.tab"}
"""Files of the database that are no zones."""

_PATH_BYTES_MAX: Final = 4095 - len("/usr/share/zoneinfo/")
_NAME_BYTES_MAX: Final = 255


def _file_of(zone: str) -> str:
    """Returns the zone whose file this path opens, in Go's time.LoadLocation.

    Raises :class:`EvaluationError` with the system's message if the path cannot be a file.
    """
    if "\0" in zone:
        raise EvaluationError("invalid argument")
    if len(zone.encode()) > _PATH_BYTES_MAX:
        raise EvaluationError("file name too long")
    path, is_file = "", False
    for name in zone.split("/"):
        if is_file:
            raise EvaluationError("not a directory")
        if name in {"", "."}:
            continue
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise EvaluationError("file name too long")
        path = f"{path}/{name}".removeprefix("/")
        if not _is_directory(path):
            is_file = path in _TABLES or _place(path) is not None
            if not is_file:
                return zone
    if not is_file:
        raise EvaluationError("is a directory")
    if path in _TABLES:
        raise EvaluationError("malformed time zone information")
    return path


def _is_directory(path: str) -> bool:
    top, _, rest = path.partition("/")
    return (rest in _DIRECTORIES or not rest) if top in {"posix", "right"} else path in _DIRECTORIES


def _numeric_offset(zone: str) -> int:
    hours, minutes = map(_read_int, zone.split(":", 1))
    size = hours * 60
    size = _wrapped(size - minutes if zone[0] == "-" else size + minutes)
    ns = _wrapped(size * 60 * SECOND)
    return -(-ns // SECOND) if ns < 0 else ns // SECOND


def _read_int(text: str) -> int:
    """Reads the hours or minutes of a numeric zone.

    Raises with Go's message if it is no integer.
    """
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    sign, digits = text[:1], text.lstrip("+-").lstrip("0")
    size = int(digits[:20] or "0")
    whole = -size if sign == "-" else size
    if not INT_MIN <= whole <= INT_MAX:
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return whole


def _wrapped(value: int) -> int:
    """Returns an integer as 64 bits hold it: it wraps around."""
    return (value - INT_MIN) % (UINT_MAX + 1) + INT_MIN


@dataclass(frozen=True, slots=True)
class Clock:
    """The display of a calendar and a clock in a zone: days and seconds of a day since 1970."""

    days: int
    seconds: int
    ns: int

    @property
    def date(self) -> tuple[int, int, int]:
        """Year, month and day."""
        return date_of(self.days)


def local(value: Timestamp, zone: str = "") -> Clock:
    """Returns the clock of a zone at a time."""
    seconds, ns = divmod(value.ns, SECOND)
    return Clock(*divmod(seconds + _zone_offset(value, zone), 86400), ns)


PARTS: Final[dict[str, Callable[[Clock], int]]] = {
    "getFullYear": lambda at: at.date[0],
    "getMonth": lambda at: at.date[1] - 1,
    "getDate": lambda at: at.date[2],
    "getDayOfMonth": lambda at: at.date[2] - 1,
    "getDayOfWeek": lambda at: (at.days + 4) % 7,
    "getDayOfYear": lambda at: at.days - days_of(at.date[0], 1, 1),
    "getHours": lambda at: at.seconds // 3600,
    "getMinutes": lambda at: at.seconds // 60 % 60,
    "getSeconds": lambda at: at.seconds % 60,
    "getMilliseconds": lambda at: at.ns // 1_000_000,
}

_SPANS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 1_000_000,
}


def part(function: str, value: Timestamp, zone: str = "") -> int:
    """Returns a part of a time, by the name of CEL's function."""
    return PARTS[function](local(value, zone))


def span(function: str, value: Duration) -> int:
    """Returns a duration in whole units, by the name of CEL's function; rounds towards zero."""
    size = abs(value.ns) // _SPANS[function]
    return -size if value.ns < 0 else size


IS_SPAN: Final = frozenset(_SPANS)
