"""Patterns: what goes to `re` means the same to RE2."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.rego.run.patterns import SHORT, pattern

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "-",
        "\\.",
        ".",
        "[a-c]",
        "[^a]",
        "[a-z0-9.-]",
        "\\d",
        "\\w",
        "(ab|c)",
        "/",
        "[\\w.]",
    ]
)
TIMES = st.sampled_from(["", "", "", "*", "+", "?", "{2}"])
PATTERNS = st.builds(
    lambda start, atoms, end: start + "".join(a + t for a, t in atoms) + end,
    st.sampled_from(["", "^"]),
    st.lists(st.tuples(ATOMS, TIMES), max_size=4),
    st.sampled_from(["", "$"]),
)


@given(PATTERNS, st.text(alphabet="abc-./1_\né日", max_size=12))
def test_both_engines_find_the_same(text, subject):
    """Where `re` may be used at all, its answer is RE2's."""
    compiled = pattern(text)
    if compiled.simple is not None:
        found = compiled.compiled.search(subject.encode()) is not None
        assert (compiled.simple(subject) is not None) == found


@pytest.mark.parametrize(
    "text", ["^[a-z0-9.-]+$", "^(foo|bar)$", "a.c", "^.+@sha256:[a-f0-9]{64}$", "^v\\d+\\.\\d+$"]
)
def test_common_patterns_are_simple(text):
    assert pattern(text).simple is not None


@pytest.mark.parametrize(
    "text",
    [
        "a*b*c*",
        "(a+)+",
        "(?i)a",
        "é",
        "\\s",
        "a*?",
        "\\bx",
        "[[:alpha:]]",
        "(a|b)*",
        "$a",
        "a**"[:2] * 3,
    ],
)
def test_what_could_differ_or_backtrack_goes_to_re2(text):
    assert pattern(text).simple is None


def test_a_long_subject_goes_to_re2():
    """Beyond the bound the square of the length would show."""
    compiled = pattern("a*b")
    assert compiled.found_in("a" * SHORT + "b")
    assert not compiled.found_in("a" * 100_000)


def test_the_end_is_the_end_of_the_text():
    """In Python's own language a dollar sign also matches before a final line end."""
    assert re.search("a$", "a\n")
    assert not pattern("a$").found_in("a\n")
