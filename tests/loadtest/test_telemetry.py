"""Figures of the tracing benchmark."""

import pytest

from loadtest.telemetry.__main__ import GOALS, compared, interval, page, turned, verdict


def test_an_interval_is_students():
    """Tables have 2.262 for nine degrees of freedom; of these values s is 3.0277, the mean 5.5."""
    low, middle, high = interval([float(number) for number in range(1, 11)])
    assert middle == 5.5
    assert (low, high) == pytest.approx((5.5 - 2.166, 5.5 + 2.166), abs=0.01)


def test_one_set_alone_says_nothing_of_its_error():
    assert interval([0.02]) == (float("-inf"), 0.02, float("inf"))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.02, 0.01, 0.015], "met"),
        ([0.05, 0.04, 0.045], "missed"),
        ([0.05, -0.04, 0.01], "not told: the machine is too busy"),
        ([0.01], "not told: the machine is too busy"),
    ],
)
def test_a_goal_is_met_or_missed_or_is_unknown(shares, expected):
    assert verdict(shares, GOALS["1 in 100"]) == expected
    measured = {"off again": [0.001, -0.002, 0.0], "1 in 100": shares}
    shown = page(measured, dict.fromkeys(["off", *measured], 250.0), {"cores": "2"})
    (row,) = (line for line in shown.splitlines() if line.startswith("| 1 in 100 |"))
    assert row.endswith(f"| at most 3% | {expected} |")
    (again,) = (line for line in shown.splitlines() if line.startswith("| off again |"))
    assert again.endswith("| at most 1% | met |")


def test_each_set_begins_with_another_server():
    names = [("a", []), ("b", []), ("c", [])]
    begun = [turned(names, number)[0][0] for number in range(4)]
    assert begun == ["a", "b", "c", "a"]


def test_servers_are_compared_with_both_that_do_not_trace_by_all_that_they_took():
    taken = {"off": [99.0, 101.0], "off again": [104.0, 100.0], "1 in 100": [100.0, 107.0]}
    assert compared(taken) == pytest.approx({"off again": 0.02, "1 in 100": 207 / 202 - 1})
