"""Times written and read by Go's layouts (package time): ``Mon Jan _2 15:04:05 2006``.

A layout is the text of a reference time. Its parts are recognised greedily from the left, and every
other character is literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

from webhook.golang.strings import utf8
from webhook.values import dataclass

MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS: Final = (
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
)

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_NANO: Final = "2006-01-02T15:04:05.999999999Z07:00"

# In Go's order: of two parts with the same beginning, the first one is tried first.
_PART: Final = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|0[1-6]|002|15|1|2006|2|_2(?!006)|__2|3|4|5|PM|pm"
    r"|-070000|-07:00:00|-0700|-07:00|-07|Z070000|Z07:00:00|Z0700|Z07:00|Z07"
    r"|[.,](?:0+|9+)(?![0-9])",
    re.ASCII,
)


NO_ZONES: Final = "this machine has no time zones: install its tzdata, or pip install tzdata"
"""The error if no time zones are installed: a result without them would look right but be wrong."""


class NoTimeZones(Exception):
    """Neither the system nor Python has the database of time zones."""


def load_zone(name: str) -> ZoneInfo | None:
    """Returns a zone by name, None for an unknown name; raises :class:`NoTimeZones`."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        if not _has_zones():
            raise NoTimeZones(NO_ZONES) from None
        return None


@cache
def _has_zones() -> bool:
    try:
        return ZoneInfo("Etc/GMT+1") is not None
    except (OSError, ValueError, KeyError):
        return False


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as calendar and clock of a zone show it."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nanosecond: int
    offset: int = 0
    zone: str = "UTC"

    @property
    def days(self) -> int:
        """Days since 1970."""
        return days_of(self.year, self.month, self.day)

    @property
    def weekday(self) -> str:
        """The name of the day; 1970 began on a Thursday."""
        return WEEKDAYS[(self.days + 4) % 7]

    @property
    def unix_ns(self) -> int:
        """Nanoseconds since 1970 in UTC."""
        clock = self.hour * 3600 + self.minute * 60 + self.second
        return (self.days * 86400 + clock - self.offset) * 10**9 + self.nanosecond


def days_of(year: int, month: int, day: int) -> int:
    """Returns days from 1970 to a Gregorian date; months and days may overflow."""
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    # Years begin in March, so that the leap day is their last; 719468 days lie before 1970.
    year -= month <= 2
    era_day = (153 * ((month + 9) % 12) + 2) // 5
    return 365 * year + year // 4 - year // 100 + year // 400 + era_day + day - 1 - 719468


def date_of(days: int) -> tuple[int, int, int]:
    """Returns year, month and day of a number of days since 1970."""
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    rest = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * rest + 2) // 153
    month = (shifted + 2) % 12 + 1
    return year + era * 400 + (month <= 2), month, rest - (153 * shifted + 2) // 5 + 1


def days_in(year: int, month: int) -> int:
    """Returns the number of days of a month."""
    return days_of(year, month + 1, 1) - days_of(year, month, 1)


# --- writing ---------------------------------------------------------------------------------


def format_time(moment: Moment, layout: str) -> str:
    """Returns the time in a layout."""
    return _PART.sub(lambda part: _shown(moment, part[0]), layout)


def _clock_12(moment: Moment) -> int:
    return moment.hour % 12 or 12


def _year_day(moment: Moment) -> int:
    return moment.days - days_of(moment.year, 1, 1) + 1


_SHOW: Final[dict[str, Callable[[Moment], str]]] = {
    "January": lambda t: MONTHS[t.month - 1],
    "Jan": lambda t: MONTHS[t.month - 1][:3],
    "1": lambda t: str(t.month),
    "01": lambda t: f"{t.month:02d}",
    "Monday": lambda t: t.weekday,
    "Mon": lambda t: t.weekday[:3],
    "2": lambda t: str(t.day),
    "_2": lambda t: f"{t.day:2d}",
    "02": lambda t: f"{t.day:02d}",
    "__2": lambda t: f"{_year_day(t):3d}",
    "002": lambda t: f"{_year_day(t):03d}",
    "15": lambda t: f"{t.hour:02d}",
    "3": lambda t: str(_clock_12(t)),
    "03": lambda t: f"{_clock_12(t):02d}",
    "4": lambda t: str(t.minute),
    "04": lambda t: f"{t.minute:02d}",
    "5": lambda t: str(t.second),
    "05": lambda t: f"{t.second:02d}",
    "2006": lambda t: f"{t.year:04d}" if t.year >= 0 else f"-{-t.year:04d}",
    "06": lambda t: f"{abs(t.year) % 100:02d}",
    "PM": lambda t: "PM" if t.hour >= 12 else "AM",
    "pm": lambda t: "pm" if t.hour >= 12 else "am",
    "MST": lambda t: t.zone or _offset_shown(t, "-0700"),
}


def _shown(moment: Moment, part: str) -> str:
    show = _SHOW.get(part)
    if show is not None:
        return show(moment)
    if part[0] in ".,":
        digits = f"{moment.nanosecond:09d}"[: len(part) - 1].ljust(len(part) - 1, "0")
        if part[1] == "9":
            digits = digits.rstrip("0")
        return part[0] + digits if digits else ""
    return _offset_shown(moment, part)


def _offset_shown(moment: Moment, part: str) -> str:
    if part[0] == "Z" and not moment.offset:
        return "Z"
    # Go divides towards zero, so that -30 seconds show a plus.
    minutes = abs(moment.offset) // 60
    sign = "-" if moment.offset <= -60 else "+"
    colon = ":" if ":" in part else ""
    shown = f"{sign}{minutes // 60:02d}"
    if len(part) > 3:
        shown += f"{colon}{minutes % 60:02d}"
    if len(part) > 6:
        shown += f"{colon}{abs(moment.offset) % 60:02d}"
    return shown


# --- reading ---------------------------------------------------------------------------------


class TimeParseError(ValueError):
    """The value does not have this layout; the message is Go's."""


class _BadPart(Exception):
    """A part of the value does not fit; ``rest`` is the text that Go's error names."""

    def __init__(self, out_of_range: str = "") -> None:
        super().__init__(out_of_range)
        self.out_of_range = out_of_range


def quote_time(text: str) -> str:
    """Returns the string as package time quotes it in messages."""
    shown: list[str] = []
    for character in text:
        if character < " " or character > "\x7f":
            shown.extend(f"\\x{byte:02x}" for byte in utf8(character))
        else:
            shown.append(f"\\{character}" if character in '"\\' else character)
    return f'"{"".join(shown)}"'


@dataclass(slots=True)
class _Reading:
    """The parts of a time that have been read so far."""

    rest: str
    values: dict[str, int] = field(default_factory=dict)
    half: str = ""
    zone: str = ""
    utc: bool = False
    layout_after: str = ""

    def number(self, *, fixed: bool, most: int = 2) -> int:
        """Reads up to ``most`` digits; exactly that many if ``fixed``."""
        match = re.match(rf"[0-9]{{{most if fixed else 1},{most}}}", self.rest)
        if match is None:
            raise _BadPart
        self.rest = self.rest[match.end() :]
        return int(match[0])

    def name(self, names: tuple[str, ...]) -> int:
        """Reads one of the names, in upper or lower case."""
        for at, name in enumerate(names):
            if self.rest[: len(name)].lower() == name.lower():
                self.rest = self.rest[len(name) :]
                return at
        raise _BadPart

    def ranged(self, name: str, value: int, low: int, high: int) -> None:
        self.values[name] = value
        if not low <= value <= high:
            raise _BadPart(name)

    def fraction(self, size: int) -> None:
        """Reads a separator and digits, ``size`` characters in total; digits below 1 ns are cut."""
        text = self.rest[:size]
        if text[:1] not in {".", ","} or not re.fullmatch(r"[0-9]*", text[1:10]):
            raise _BadPart
        self.values["nanosecond"] = int(text[1:10].ljust(9, "0"))
        self.rest = self.rest[size:]


def parse_time(layout: str, value: str) -> Moment:
    """Returns a time; parts missing in the layout are January, 1, 0 and UTC."""
    reading = _Reading(value)
    at = 0
    while True:
        match = _PART.search(layout, at)
        prefix = layout[at : match.start()] if match else layout[at:]
        hold = reading.rest
        try:
            reading.rest = _skip(reading.rest, prefix)
        except _Skipped as stop:
            raise _cannot(layout, value, stop.rest, stop.prefix) from None
        if match is None:
            if reading.rest:
                raise TimeParseError(
                    f"parsing time {quote_time(value)}: extra text: {quote_time(reading.rest)}"
                )
            return _finish(reading, value)
        hold = reading.rest
        at = match.end()
        reading.layout_after = layout[at:]
        try:
            _read(reading, match[0])
        except _BadPart as bad:
            if bad.out_of_range:
                raise TimeParseError(
                    f"parsing time {quote_time(value)}: {bad.out_of_range} out of range"
                ) from None
            raise _cannot(layout, value, hold, match[0]) from None


def _cannot(layout: str, value: str, rest: str, part: str) -> TimeParseError:
    return TimeParseError(
        f"parsing time {quote_time(value)} as {quote_time(layout)}: "
        f"cannot parse {quote_time(rest)} as {quote_time(part)}"
    )


class _Skipped(Exception):
    def __init__(self, rest: str, prefix: str) -> None:
        super().__init__()
        self.rest = rest
        self.prefix = prefix


def _skip(value: str, prefix: str) -> str:
    """Skips the layout's own text; a space in it matches any number of spaces."""
    whole = prefix
    while prefix:
        if prefix[0] == " ":
            if value and value[0] != " ":
                raise _Skipped(value, whole)
            prefix, value = prefix.lstrip(" "), value.lstrip(" ")
        elif value[:1] != prefix[0]:
            raise _Skipped(value, whole)
        else:
            prefix, value = prefix[1:], value[1:]
    return value


def _read(reading: _Reading, part: str) -> None:
    if part in _DIRECT:
        _DIRECT[part](reading)
    elif part == "MST":
        _read_zone_name(reading)
    elif part[0] in ".,":
        _read_fraction(reading, part)
    else:
        _read_offset(reading, part)


def _read_year(reading: _Reading) -> None:
    if not re.match(r"[0-9]{4}", reading.rest):
        raise _BadPart
    reading.values["year"] = int(reading.rest[:4])
    reading.rest = reading.rest[4:]


def _read_short_year(reading: _Reading) -> None:
    year = reading.number(fixed=True)
    reading.values["year"] = year + (1900 if year >= 69 else 2000)


def _read_second(reading: _Reading, *, fixed: bool) -> None:
    reading.ranged("second", reading.number(fixed=fixed), 0, 59)
    fraction = re.match(r"[.,][0-9]+", reading.rest)
    following = _PART.search(reading.layout_after)
    if fraction and not (following and following[0][0] in ".,"):
        reading.fraction(fraction.end())


def _read_half(reading: _Reading, names: tuple[str, str]) -> None:
    if reading.rest[:2] not in names:
        raise _BadPart
    reading.half = reading.rest[:2].upper()
    reading.rest = reading.rest[2:]


def _read_day(reading: _Reading, *, fixed: bool = False, padded: bool = False) -> None:
    if padded:
        reading.rest = reading.rest.removeprefix(" ")
    reading.values["day"] = reading.number(fixed=fixed)


def _read_year_day(reading: _Reading, *, fixed: bool) -> None:
    if not fixed:
        reading.rest = reading.rest.removeprefix(" ").removeprefix(" ")
    reading.values["year_day"] = reading.number(fixed=fixed, most=3)


def _set_month(reading: _Reading, month: int) -> None:
    reading.values["month"] = month + 1


_SHORT_MONTHS: Final = tuple(name[:3] for name in MONTHS)
_SHORT_WEEKDAYS: Final = tuple(name[:3] for name in WEEKDAYS)

_DIRECT: Final[dict[str, Callable[[_Reading], object]]] = {
    "2006": _read_year,
    "06": _read_short_year,
    "January": lambda r: _set_month(r, r.name(MONTHS)),
    "Jan": lambda r: _set_month(r, r.name(_SHORT_MONTHS)),
    "1": lambda r: r.ranged("month", r.number(fixed=False), 1, 12),
    "01": lambda r: r.ranged("month", r.number(fixed=True), 1, 12),
    "Monday": lambda r: r.name(WEEKDAYS),
    "Mon": lambda r: r.name(_SHORT_WEEKDAYS),
    "2": _read_day,
    "_2": lambda r: _read_day(r, padded=True),
    "02": lambda r: _read_day(r, fixed=True),
    "__2": lambda r: _read_year_day(r, fixed=False),
    "002": lambda r: _read_year_day(r, fixed=True),
    "15": lambda r: r.ranged("hour", r.number(fixed=False), 0, 23),
    "3": lambda r: r.ranged("hour", r.number(fixed=False), 0, 12),
    "03": lambda r: r.ranged("hour", r.number(fixed=True), 0, 12),
    "4": lambda r: r.ranged("minute", r.number(fixed=False), 0, 59),
    "04": lambda r: r.ranged("minute", r.number(fixed=True), 0, 59),
    "5": lambda r: _read_second(r, fixed=False),
    "05": lambda r: _read_second(r, fixed=True),
    "PM": lambda r: _read_half(r, ("AM", "PM")),
    "pm": lambda r: _read_half(r, ("am", "pm")),
}


def _read_fraction(reading: _Reading, part: str) -> None:
    if part[1] == "0":
        if len(reading.rest) < len(part):
            raise _BadPart
        reading.fraction(len(part))
        return
    given = re.match(r"[.,][0-9]+", reading.rest)
    if given:
        reading.fraction(given.end())


def _read_offset(reading: _Reading, part: str) -> None:
    if part[0] == "Z" and reading.rest[:1] == "Z":
        reading.rest = reading.rest[1:]
        reading.utc = True
        return
    shape = part[1:]
    pattern = "(.)([0-9][0-9])"
    colon = ":" if ":" in shape else ""
    if len(shape) > 2:
        pattern += f"{colon}([0-9][0-9])"
    if len(shape) > 5:
        pattern += f"{colon}([0-9][0-9])"
    match = re.match(pattern, reading.rest, re.DOTALL)
    if match is None:
        raise _BadPart
    sign, *numbers = match.groups()
    units = ("time zone offset hour", "time zone offset minute", "time zone offset second")
    total = 0
    for digits, unit, most, seconds in zip(
        numbers, units, (24, 60, 60), (3600, 60, 1), strict=False
    ):
        if int(digits) > most:
            raise _BadPart(unit)
        total += int(digits) * seconds
    if sign not in "+-":
        raise _BadPart
    reading.values["offset"] = -total if sign == "-" else total
    reading.rest = reading.rest[match.end() :]


# Capitals that Go reads as a zone's name; an offset follows GMT or stands alone.
_ZONE: Final = re.compile(
    r"ChST|MeST|GMT(?:[+-](?:2[0-3]|1[0-9]|0*[0-9])(?![0-9]))?|[+-](?:2[0-3]|1[0-9]|0*[0-9])(?![0-9])"
    r"|(?:[A-Z]{4}T|[A-Z]{3}T|WITA|[A-Z]{3})(?![A-Z])"
)


def _read_zone_name(reading: _Reading) -> None:
    if reading.rest.startswith("UTC"):
        reading.utc = True
        reading.rest = reading.rest[3:]
        return
    match = _ZONE.match(reading.rest)
    if match is None or len(reading.rest) < 3:
        raise _BadPart
    reading.zone = match[0]
    reading.rest = reading.rest[match.end() :]


def _finish(reading: _Reading, value: str) -> Moment:
    values = reading.values
    year = values.get("year", 0)
    hour = values.get("hour", 0)
    if reading.half == "PM" and hour < 12:
        hour += 12
    elif reading.half == "AM" and hour == 12:
        hour = 0
    month, day = values.get("month", 1), values.get("day", 1)
    if "year_day" in values:
        month, day = _from_year_day(year, values, value)
    if not 1 <= day <= days_in(year, month):
        raise TimeParseError(f"parsing time {quote_time(value)}: day out of range")
    offset, zone = values.get("offset", 0), "UTC"
    if not reading.utc and "offset" in values:
        zone = reading.zone
    elif not reading.utc and reading.zone:
        zone = reading.zone
        if zone.startswith("GMT") and len(zone) > 3:
            offset = int(zone[3:]) * 3600
    if reading.utc:
        offset = 0
    return Moment(
        year,
        month,
        day,
        hour,
        values.get("minute", 0),
        values.get("second", 0),
        values.get("nanosecond", 0),
        offset,
        zone,
    )


def _from_year_day(year: int, values: dict[str, int], value: str) -> tuple[int, int]:
    year_day = values["year_day"]
    problem = ""
    if not 1 <= year_day <= days_of(year + 1, 1, 1) - days_of(year, 1, 1):
        problem = "day-of-year out of range"
    _, month, day = date_of(days_of(year, 1, 1) + year_day - 1)
    if not problem and values.get("month", month) != month:
        problem = "day-of-year does not match month"
    if not problem and values.get("day", day) != day:
        problem = "day-of-year does not match day"
    if problem:
        raise TimeParseError(f"parsing time {quote_time(value)}: {problem}")
    return month, day
