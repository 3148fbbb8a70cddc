"""Durations: Go's reading, one for flags, CEL and Rego."""

import pytest

from webhook.cel.run.times import read_duration
from webhook.duration import InvalidDuration, duration_seconds, parse_duration, shown
from webhook.rego.builtins.times import parse_duration_ns
from webhook.rego.errors import BuiltinError


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h2m3.5s", 3_723_500_000_000),
        ("-.5ms", -500_000),
        ("+0", 0),
        ("1.00000000000000000000000000001s", 1_000_000_000),
        ("9223372036854775807ns", (1 << 63) - 1),
        ("-9223372036854775808ns", -(1 << 63)),
    ],
)
def test_a_duration_is_the_same_to_all_who_read_one(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds
    assert read_duration(text) == nanoseconds
    assert parse_duration_ns(text) == nanoseconds
    seconds = None if text[0] in "+-" else pytest.approx(nanoseconds / 1e9)
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1q", 'time: unknown unit "q" in duration "1q"'),
        (".s", 'time: invalid duration ".s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_what_is_no_duration_is_none_to_anybody(text: str, message: str) -> None:
    with pytest.raises(InvalidDuration):
        parse_duration(text)
    assert read_duration(text) is None
    assert duration_seconds(text) is None
    with pytest.raises(BuiltinError) as refused:
        parse_duration_ns(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5\u00b5s"),
        (12_345_678, "12.345678ms"),
        (59_999_000_000, "59.999s"),
        (75_500_000_000, "1m15.5s"),
        (3_600_000_000_000, "1h0m0s"),
        (-90_061_000_000_001, "-25h1m1.000000001s"),
    ],
)
def test_a_span_is_shown_as_go_shows_it_and_read_back(ns, text):
    assert shown(ns) == text
    assert parse_duration(text) == ns
