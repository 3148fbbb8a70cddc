"""Patterns: what goes to `re` means the same to RE2."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.cel.evaluation import evaluate
from webhook.cel.run.meter import Meter
from webhook.rego.engine import EvaluationContext, compile_modules
from webhook.rego.errors import BuiltinError, EvaluationError
from webhook.rego.run.patterns import LARGE, MAX_TEXT, SHORT, pattern
from webhook.rego.syntax.parser import parse_module

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
    """If `re` may be used at all, its answer is RE2's."""
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


LARGE_ONES = [f"\\pL{{{count}}}" for count in range(30, 45)]
TOO_LARGE = [f"\\pL{{{count}}}" for count in range(900, 930)]


@pytest.mark.parametrize("patterns", [LARGE_ONES, TOO_LARGE], ids=["large", "too large"])
@pytest.mark.parametrize(
    "call", ['regex.match(p, "1")', "regex.is_valid(p)", 'regex.replace("1", p, "") == "2"']
)
def test_an_evaluation_pays_for_patterns_that_it_compiles(call, patterns):
    """Nine characters may take 40 ms, in which the clock was not reviewed."""
    module = parse_module(f"package p\nr if {{ some p in input.x; {call}; false }}", "p.rego", "v1")
    rule = compile_modules([module]).rule("data.p.r")
    pattern.cache_clear()
    with pytest.raises(EvaluationError, match="budget of steps"):
        rule({"x": patterns}, {}, EvaluationContext(steps=1_000_000))


def test_a_pattern_that_is_there_costs_nothing_more():
    module = parse_module('package p\nr := [m | m := regex.match(input.x, "")]', "p.rego", "v1")
    rule = compile_modules([module]).rule("data.p.r")
    pattern.cache_clear()
    assert pattern(LARGE_ONES[0]).instructions > LARGE  # as a template's own is
    assert rule({"x": LARGE_ONES[0]}, {}, EvaluationContext(steps=1_000)) == [False]


def test_a_pattern_of_a_million_parts_is_not_compiled(capfd):
    """RE2 would write thousands of lines about it."""
    with pytest.raises(BuiltinError, match="expression too large"):
        pattern("a?" * MAX_TEXT)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("text", [LARGE_ONES[0], TOO_LARGE[0]], ids=["large", "too large"])
def test_cel_looks_at_the_clock_after_it_has_compiled(text):
    looks = []
    meter = Meter(look=lambda: looks.append(text))
    evaluate("'1'.matches(object.x) || true", {"object": {"x": text}}, meter=meter)
    assert looks
