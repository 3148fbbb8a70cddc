"""The time for a review."""

import pytest

from webhook.server.deadline import InvalidTimeout, seconds_for


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        (b"timeout=10s", 6.2),
        (b"timeout=3s", 2.7),
        (b"timeout=1m0s", 16.2),
        (b"timeout=500ms", 0.45),
        (b"timeout=100ms", 0.05),
        (b"timeout=10ms", 0),
        (b"a=b&timeout=1s", 0.9),
        (b"timeout=1s&timeout=30s", 0.9),
        (b"", 3.7),
        (b"timeout=", 3.7),
        (b"other=1", 3.7),
    ],
)
def test_a_part_is_kept_for_the_answer_s_way(query: bytes, seconds: float) -> None:
    assert seconds_for(query, 5.0) == pytest.approx(seconds)
    assert seconds_for(query, 5.0) == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"1", b"x", b"-1s", b"0s", b"1s1", b"%00"])
def test_what_is_no_duration_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidTimeout):
        seconds_for(b"timeout=" + text, 5.0)
