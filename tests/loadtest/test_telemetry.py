"""What the benchmark of tracing makes of its figures."""

import pytest

from loadtest.telemetry.__main__ import GOALS, compared, interval, missed, page, turned


def test_an_interval_is_students():
    """Tables have 2.262 for nine degrees of freedom; of these values s is 3.0277, the mean 5.5."""
    low, middle, high = interval([float(number) for number in range(1, 11)])
    assert middle == 5.5
    assert (low, high) == pytest.approx((5.5 - 2.166, 5.5 + 2.166), abs=0.01)


def test_one_set_alone_says_nothing_of_its_error():
    assert interval([0.02]) == (float("-inf"), 0.02, float("inf"))


def test_a_goal_that_is_missed_is_told():
    fine = {"off again": [0.001, -0.002], "1 in 100": [0.02, 0.01]}
    slow = fine | {"1 in 100": [0.05, 0.04]}
    assert missed(fine) == []
    assert missed(slow) == ["1 in 100"]
    assert set(GOALS) <= set(fine)
    absolute = dict.fromkeys(["off", *fine], 250.0)
    assert "missed" not in page(fine, absolute, {"cores": "2"})
    (row,) = (line for line in page(slow, absolute, {}).splitlines() if "missed" in line)
    assert row.startswith("| 1 in 100 | 250 | +4.50% |")


def test_each_set_begins_with_another_server():
    names = [("a", []), ("b", []), ("c", [])]
    begun = [turned(names, number)[0][0] for number in range(4)]
    assert begun == ["a", "b", "c", "a"]


def test_servers_are_compared_with_both_that_do_not_trace_round_by_round():
    taken = {
        "off": [100.0, 200.0, 1.0],
        "off again": [102.0, 204.0, 9.0],
        "1 in 100": [101.0, 202.0, 5.0],
    }
    assert compared(taken) == pytest.approx({"off again": 0.02, "1 in 100": 0.0})
