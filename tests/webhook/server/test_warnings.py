"""Warnings that the API server passes on."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.server.verdict import CHARACTERS_MAX, TOTAL_BYTES_MAX, one_line, safe_warnings


def test_a_clean_short_warning_is_left_alone() -> None:
    assert safe_warnings(["[a] b: «c»"]) == ("[a] b: «c»",)


def test_control_characters_and_line_ends_become_a_space() -> None:
    assert one_line("a\r\n\tb\x00c\x1b[0m\x7f\x85d\u2028e\u202ef ") == "a b c [0m d e f"


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert one_line("a\ud800b") == "a\N{REPLACEMENT CHARACTER}b"


def test_a_long_warning_ends_in_an_ellipsis() -> None:
    assert one_line("é" * 256) == "é" * 256
    assert one_line("é" * 257) == "é" * 255 + "…"


def test_a_repeated_warning_is_sent_once() -> None:
    assert safe_warnings(["a", "b", "a\n"]) == ("a", "b")


def test_the_first_ones_are_kept_and_the_rest_counted() -> None:
    found = safe_warnings(f"{number:03}" + "x" * 250 for number in range(100))
    assert found[0].startswith("000")
    assert found[-1] == f"{100 - (len(found) - 1)} more warnings"


@given(st.lists(st.text(max_size=400), max_size=60))
def test_whatever_is_warned_of_fits_what_the_api_server_passes_on(texts: list[str]) -> None:
    found = safe_warnings(texts)
    assert sum(len(text.encode()) for text in found) <= TOTAL_BYTES_MAX
    for text in found:
        assert len(text) <= CHARACTERS_MAX
        assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text)
