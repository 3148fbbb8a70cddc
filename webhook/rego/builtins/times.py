"""Built-ins on times: nanoseconds since 1970, calendars, clocks and durations.

Documented in OPA's reference under "Time"; behaviour from v1/topdown/time.go and
Go's package time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from webhook import duration as go_duration
from webhook.golang import time as gotime
from webhook.golang.floats import float_text
from webhook.golang.time import Moment, NoTimeZones, date_of, days_in, days_of, load_zone
from webhook.rego.builtins.operands import integer
from webhook.rego.builtins.registry import Context, builtin, wrong_operand
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.numbers import binary
from webhook.rego.run.values import Value, type_name
from webhook.rego.types import NUMBER, STRING, any_of, static_array

TIME = any_of(NUMBER, static_array(NUMBER, STRING))
TRIPLE = static_array(NUMBER, NUMBER, NUMBER)

LAYOUTS: Final = {
    "ANSIC": "Mon Jan _2 15:04:05 2006",
    "UnixDate": "Mon Jan _2 15:04:05 MST 2006",
    "RubyDate": "Mon Jan 02 15:04:05 -0700 2006",
    "RFC822": "02 Jan 06 15:04 MST",
    "RFC822Z": "02 Jan 06 15:04 -0700",
    "RFC850": "Monday, 02-Jan-06 15:04:05 MST",
    "RFC1123": "Mon, 02 Jan 2006 15:04:05 MST",
    "RFC1123Z": "Mon, 02 Jan 2006 15:04:05 -0700",
    "RFC3339": gotime.RFC3339,
    "RFC3339Nano": gotime.RFC3339_NANO,
}
"""The layouts with names."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INT64: Final = 1 << 63


def _safe(nanoseconds: int) -> int:
    if not -_INT64 <= nanoseconds < _INT64:
        raise BuiltinError("time outside of valid range")
    return nanoseconds


# --- an operand that is a time ---------------------------------------------------------------


def _zone(name: str) -> tzinfo:
    if name in {"", "UTC"}:
        return UTC
    if name == "Local":
        return datetime.now().astimezone().tzinfo or UTC
    if ".." in name or name[0] in "/\\":
        raise BuiltinError("time: invalid location name")
    try:
        zone = load_zone(name)
    except NoTimeZones as error:  # no value of the policy's: it must not go on as undefined
        raise EvaluationError("eval_internal_error", str(error)) from None
    if zone is None:
        raise BuiltinError(f"unknown time zone {name}")
    return zone


def _offset(zone: tzinfo, seconds: int) -> tuple[int, str]:
    """Returns the zone's offset in seconds and its name at that time."""
    if zone is UTC:
        return 0, "UTC"
    local = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    shift = local.utcoffset() or timedelta()
    name = local.tzname() or ""
    # A zone without letters for its name has its offset there, which Go shows as it is.
    return shift.days * 86400 + shift.seconds, name


def _operand(value: Value) -> tuple[int, tzinfo, str]:
    """Returns nanoseconds, zone and layout."""
    zone: tzinfo = UTC
    layout = ""
    stamp = value
    if type(value) is list:
        if not value:
            _not_a_time(value)
        stamp = value[0]
        if type_name(stamp) != "number":
            wrong_operand(1, stamp, "number")
        for item in value[1:3]:
            if type(item) is not str:
                wrong_operand(1, item, "string")
        if len(value) > 1:
            zone = _zone(value[1])
        if len(value) > 2:
            layout = value[2]
    elif type_name(value) != "number":
        _not_a_time(value)
    mantissa, exponent = binary(stamp)
    whole = mantissa << exponent if exponent >= 0 else mantissa >> -exponent
    if (exponent < 0 and whole << -exponent != mantissa) or not -_INT64 <= whole < _INT64:
        raise BuiltinError("timestamp too big")
    return whole, zone, layout


def _not_a_time(value: Value) -> None:
    wrong_operand(1, value, "either number (ns) or [number (ns), string (tz)]")


def _moment(nanoseconds: int, zone: tzinfo) -> Moment:
    seconds, rest = divmod(nanoseconds, 10**9)
    offset, name = _offset(zone, seconds)
    days, clock = divmod(seconds + offset, 86400)
    year, month, day = date_of(days)
    return Moment(year, month, day, clock // 3600, clock // 60 % 60, clock % 60, rest, offset, name)


# --- built-ins -------------------------------------------------------------------------------


@builtin("time.now_ns", result=NUMBER, context=True, deterministic=False)
def now_ns(context: Context) -> int:
    """Returns the query's time, which does not pass while it runs."""
    return context.now_ns


@builtin("time.parse_ns", STRING, STRING, result=NUMBER)
def parse_ns(layout: str, value: str) -> int:
    """Returns the time of a string in a layout."""
    try:
        return _safe(gotime.parse_time(LAYOUTS.get(layout, layout), value).unix_ns)
    except gotime.TimeParseError as error:
        raise BuiltinError(str(error)) from None


@builtin("time.parse_rfc3339_ns", STRING, result=NUMBER)
def parse_rfc3339_ns(value: str) -> int:
    """Returns the time of a string in RFC 3339's form."""
    return parse_ns(gotime.RFC3339, value)  # type: ignore[no-any-return]  # as decorated


@builtin(
    "time.format",
    any_of(NUMBER, static_array(NUMBER, STRING), static_array(NUMBER, STRING, STRING)),
    result=STRING,
    context=True,
    check=False,
)
def format_(context: Context, x: Value) -> str:
    """Returns the time as text; in RFC 3339's form unless a layout is given."""
    nanoseconds, zone, layout = _operand(x)
    context.charge(1 + len(layout))
    return gotime.format_time(
        _moment(nanoseconds, zone), LAYOUTS.get(layout, layout) or gotime.RFC3339_NANO
    )


@builtin("time.date", TIME, result=TRIPLE, check=False)
def date(x: Value) -> list[int]:
    """Returns year, month and day."""
    moment = _moment(*_operand(x)[:2])
    return [moment.year, moment.month, moment.day]


@builtin("time.clock", TIME, result=TRIPLE, check=False)
def clock(x: Value) -> list[int]:
    """Returns hour, minute and second."""
    moment = _moment(*_operand(x)[:2])
    return [moment.hour, moment.minute, moment.second]


@builtin("time.weekday", TIME, result=STRING, check=False)
def weekday(x: Value) -> str:
    """Returns the name of the day."""
    return _moment(*_operand(x)[:2]).weekday


@builtin("time.add_date", NUMBER, NUMBER, NUMBER, NUMBER, result=NUMBER, check=False)
def add_date(x: Value, years: Value, months: Value, days: Value) -> int:
    """Returns the time so many years, months and days later; days run over into months."""
    nanoseconds, zone, _ = _operand(x)
    moment = _moment(nanoseconds, zone)
    year = moment.year + integer(2, years)
    month = moment.month + integer(3, months)
    day = days_of(year, month, 1) + moment.day - 1 + integer(4, days)
    local = day * 86400 + moment.hour * 3600 + moment.minute * 60 + moment.second
    return _safe(_from_local(local, zone) * 10**9 + moment.nanosecond)


def _from_local(local: int, zone: tzinfo) -> int:
    """Returns seconds since 1970 of a zone's local time, as Go's ``Date`` does."""
    if zone is UTC or not -_INT64 <= local * 10**9 < _INT64:
        return local
    offset, _ = _offset(zone, local)
    again, _ = _offset(zone, local - offset)
    return local - again


@builtin("time.diff", TIME, TIME, result=static_array(*[NUMBER] * 6), check=False)
def diff(x: Value, y: Value) -> list[int]:
    """Returns the years, months, days, hours, minutes and seconds between two times."""
    first, zone, _ = _operand(x)
    second, _, _ = _operand(y)
    a, b = _moment(min(first, second), zone), _moment(max(first, second), zone)
    parts = [
        b.year - a.year,
        b.month - a.month,
        b.day - a.day,
        b.hour - a.hour,
        b.minute - a.minute,
        b.second - a.second,
    ]
    for at, size in ((5, 60), (4, 60), (3, 24), (2, days_in(a.year, a.month)), (1, 12)):
        if parts[at] < 0:
            parts[at] += size
            parts[at - 1] -= 1
    return parts


# --- durations -------------------------------------------------------------------------------

_EXTENDED: Final = {"d": 24, "w": 7 * 24, "y": 365 * 24}
_SEGMENT: Final = re.compile(r"([0-9.]+)(ms|us|µs|ns|[a-z])")


@builtin("time.parse_duration_ns", STRING, result=NUMBER)
def parse_duration_ns(duration: str) -> int:
    """Returns the nanoseconds of a duration such as ``1h30m`` or ``2w``."""
    if not re.search("[dwy]", duration):
        return _parse_duration(duration, duration)
    sign = duration[0] if duration[0] in "+-" else ""
    rewritten, at = sign, len(sign)
    while at < len(duration):
        match = _SEGMENT.match(duration, at)
        if match is None:
            raise _invalid(duration)
        rewritten += _in_hours(match[1], match[2], duration)
        at = match.end()
    return _parse_duration(rewritten, duration)


def _invalid(duration: str) -> BuiltinError:
    return BuiltinError(f"time: invalid duration {gotime.quote_time(duration)}")


def _in_hours(digits: str, unit: str, duration: str) -> str:
    hours = _EXTENDED.get(unit)
    if hours is None:
        return digits + unit
    try:
        value = float(digits) * hours
    except ValueError:
        raise _invalid(duration) from None
    text = float_text(value)
    return f"{int(value) if value.is_integer() else format(value, 'f') if 'e' in text else text}h"


def _parse_duration(text: str, shown: str) -> int:
    try:
        return go_duration.parse_duration(text)
    except go_duration.InvalidDuration as error:
        if error.unit is None:
            raise _invalid(shown) from None
        named = f"unknown unit {gotime.quote_time(error.unit)}" if error.unit else "missing unit"
        raise BuiltinError(f"time: {named} in duration {gotime.quote_time(shown)}") from None
