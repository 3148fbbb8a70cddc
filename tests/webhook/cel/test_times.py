"""Parts of times in zones, and numbers that Go reads from texts."""

import pytest

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.errors import EvaluationError

FIRST = "timestamp('0001-01-01T00:00:00Z')"
LAST = "timestamp('9999-12-31T23:59:59.5Z')"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (f"{FIRST}.getFullYear()", 1),
        (f"{FIRST}.getFullYear('-02:00')", 0),
        (f"{FIRST}.getMonth('-02:00')", 11),
        (f"{FIRST}.getDayOfYear('-02:00')", 365),  # of a leap year
        (f"{FIRST}.getDayOfWeek('-02:00')", 0),
        # Before there were zones, each place had its own noon.
        (f"{FIRST}.getHours('America/New_York')", 19),
        (f"{FIRST}.getMinutes('Asia/Tokyo')", 18),
        (f"{FIRST}.getSeconds('Europe/Berlin')", 28),
        (f"{LAST}.getFullYear()", 9999),
        (f"{LAST}.getFullYear('+00:01')", 10000),
        (f"{LAST}.getFullYear('Asia/Tokyo')", 10000),
        (f"{LAST}.getDate('Asia/Tokyo')", 1),
        (f"{LAST}.getHours('America/New_York')", 18),
        (f"{LAST}.getMilliseconds('Asia/Tokyo')", 500),
        ("timestamp('9999-06-30T12:00:00Z').getHours('Europe/Berlin')", 14),
        ("timestamp('2024-02-29T12:30:45Z').getDayOfYear()", 59),
        ("timestamp('2024-02-29T12:30:45Z').getMinutes('-02:15')", 15),
        ("timestamp('2024-02-29T12:30:45Z').getFullYear('999999:00')", 2138),
    ],
)
def test_a_clock_goes_beyond_the_years_that_a_time_may_have(source, part):
    assert evaluate(source) == part


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("1_0:00", 'strconv.Atoi: parsing "1_0": invalid syntax'),
        (":30", 'strconv.Atoi: parsing "": invalid syntax'),
        ("99999999999999999999:00", '"99999999999999999999": value out of range'),
        ("Nowhere/Else", "unknown time zone Nowhere/Else"),
        ("./Local", "unknown time zone ./Local"),
        (".", "is a directory"),
        ("America/", "is a directory"),
        ("posix/Europe", "is a directory"),
        ("UTC/", "not a directory"),
        ("UTC/" + "x" * 300, "not a directory"),
        ("x" * 256, "file name too long"),
        ("a/" * 3000, "file name too long"),
        ("UTC\0", "invalid argument"),
        ("zone.tab", "malformed time zone information"),
    ],
)
def test_a_zone_that_is_none_is_reported_with_the_words_of_go(zone, message):
    with pytest.raises(EvaluationError) as refused:
        evaluate("timestamp(0).getHours(object.zone)", {"object": {"zone": zone}})
    assert refused.value.text.endswith(message)


@pytest.mark.parametrize("zone", ["America//New_York", "./America/./New_York"])
def test_a_zone_is_a_path_to_its_file(zone):
    given = {"object": {"zone": zone}}
    assert evaluate("timestamp('2024-06-01T00:00:00Z').getHours(object.zone)", given) == 20


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1_000.5", 1000.5),
        ("0x_1_0p1", 32.0),
        ("1e1_0", 1e10),
        (".5", 0.5),
        ("-Inf", -float("inf")),
    ],
)
def test_a_double_is_read_as_go_reads_it(text, number):
    assert evaluate("double(object.text)", {"object": {"text": text}}) == number


@pytest.mark.parametrize("text", ["1__0", "_1", "1_", "1_.5", "+nan", "-NaN", "1e400", "0x1.8"])
def test_a_text_that_is_no_double_is_refused(text):
    with pytest.raises(EvaluationError, match="conversion error from 'string' to 'double'"):
        evaluate("double(object.text)", {"object": {"text": text}})
