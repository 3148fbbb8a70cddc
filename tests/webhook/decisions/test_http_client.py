"""Retry delays that an answer asks for."""

import datetime as dt
import email.utils
from pathlib import Path
from typing import Any

import pytest

from webhook.decisions.configuration import InvalidConfiguration, Section
from webhook.decisions.sinks.http_client import Endpoint, Poster, _retry_after, read_endpoint
from webhook.decisions.sinks.sink import SinkUnavailable


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


def test_a_date_is_distinguished_from_now() -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=600)
    assert 500 < _retry_after(email.utils.format_datetime(later, usegmt=True)) <= 600


@pytest.mark.parametrize(
    "settings",
    [
        {"headers": {"a b": "c"}},
        {"headers": {"": "c"}},
        {"headers": {"a": "b\nc: d"}},
        {"headers": {"a": "\u2192"}},
        {"headerFiles": {"a:": "/f"}},
    ],
)
def test_what_is_no_header_is_refused_when_it_is_read(settings: dict[str, Any]) -> None:
    """The request was repeated for ever, with each batch."""
    section = Section({"url": "http://sink.example", **settings}, "here")
    with pytest.raises(InvalidConfiguration, match=r"here\.headers|here\.headerFiles"):
        read_endpoint(section)


def test_a_token_that_is_none_is_reported_and_not_reported(tmp_path: Path) -> None:
    token = tmp_path / "its-file"
    token.write_text("secret\nsecond line\n")
    for endpoint in (
        Endpoint(url="http://127.0.0.1:9", bearer_token_file=token),
        Endpoint(url="http://127.0.0.1:9", header_files={"X-Key": token}),
    ):
        with pytest.raises(SinkUnavailable) as found:
            Poster(endpoint).post(b"", {})
        assert str(token) in str(found.value)
        assert "secret" not in str(found.value)
