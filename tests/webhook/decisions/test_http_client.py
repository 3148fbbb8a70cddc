"""What an answer asks for before the next try."""

import datetime as dt
import email.utils

import pytest

from webhook.decisions.sinks.http_client import _retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("99999", 3600.0),
        ("soon", 0.0),
        ("-7", 0.0),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 3600.0),
    ],
)
def test_seconds_and_dates_are_understood_and_bounded(value: str | None, seconds: float) -> None:
    assert _retry_after(value) == seconds


def test_a_date_is_told_from_now() -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=600)
    assert 500 < _retry_after(email.utils.format_datetime(later, usegmt=True)) <= 600
