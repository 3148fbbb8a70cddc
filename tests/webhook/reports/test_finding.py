"""Findings as they are stored: bounded, each once, in an order."""

import itertools

import pytest

from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupKind
from webhook.reports.finding import (
    MESSAGE_BYTES_MAX,
    RESULTS_MAX,
    bounded,
    digest,
    is_reportable,
    settled,
)


def test_the_order_in_which_results_were_found_does_not_show():
    found = [finding(rule, verdict=verdict) for rule in "ba" for verdict in ("warn", "fail")]
    assert len({settled(order) for order in itertools.permutations(found)}) == 1


def test_results_that_a_viewer_cannot_tell_apart_are_one():
    twice = [finding(action="deny"), finding(action="dryrun"), finding(message="another")]
    assert len(settled(twice)) == 2


@pytest.mark.parametrize("text", ["x" * 2000, "ä" * 1000, "😀" * 400, "a😀" * 300])
def test_a_long_message_ends_with_an_ellipsis_at_a_whole_character(text):
    short = bounded(text)
    assert len(short.encode()) <= MESSAGE_BYTES_MAX
    assert short.endswith("…")
    assert text.startswith(short[:-1])
    assert len(short.encode()) > MESSAGE_BYTES_MAX - 7


@pytest.mark.parametrize("text", ["", "short", "x" * MESSAGE_BYTES_MAX, "ä" * 512])
def test_a_message_that_fits_is_left_as_it_is(text):
    assert bounded(text) == text


def test_messages_that_are_equal_once_they_are_cut_are_one_result():
    assert len(settled([finding(message="x" * 3000 + end) for end in "ab"])) == 1


def test_results_beyond_the_limit_are_counted_by_one_more_that_is_an_error():
    found = settled(finding(message=f"{number:04}") for number in range(RESULTS_MAX + 10))
    assert len(found) == RESULTS_MAX
    assert found[-1].verdict == "error"
    assert found[-1].message.startswith("11 more results cannot be shown")
    assert found[0].message == "0000"


def test_as_many_results_as_the_limit_are_all_shown():
    found = settled(finding(message=f"{number:04}") for number in range(RESULTS_MAX))
    assert {item.verdict for item in found} == {"fail"}


def test_a_digest_tells_every_field_apart():
    variants = [
        finding(),
        finding(policy="x"),
        finding(rule="x"),
        finding(verdict="warn"),
        finding(message="x"),
        finding(severity="high"),
        finding(category="x"),
        finding(action="dryrun"),
    ]
    assert len({digest([item]) for item in variants}) == len(variants)
    assert digest([]) == b""
    assert digest([finding()]) == digest([finding()])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (("", "Pod"), True),
        (("example.com", "Event"), True),
        (("", "Event"), False),
        (("events.k8s.io", "Event"), False),
        (("coordination.k8s.io", "Lease"), False),
        (("wgpolicyk8s.io", "PolicyReport"), False),
        (("openreports.io", "Report"), False),
    ],
)
def test_reports_have_no_reports_and_nor_have_events_and_leases(kind, expected):
    assert is_reportable(GroupKind(*kind)) is expected
