"""Shapes, the open loop's schedule, and the thresholds that set the exit code."""

import pytest

from loadtest.locust.answers import WRONG
from loadtest.locust.arrivals import LATE_SECONDS, Punctuality, schedule
from loadtest.locust.stages import SHAPES, at, stages
from loadtest.locust.thresholds import Thresholds, Totals, percentile, wrong_answers


@pytest.mark.parametrize(
    ("shape", "users"),
    [
        ("average", [8]),
        ("stress", [8, 16, 24, 32, 8]),
        ("spike", [8, 80, 8]),
        ("soak", [8]),
        ("breakpoint", list(range(8, 161, 8))),
    ],
)
def test_a_shape_is_its_stages(shape: str, users: list[int]) -> None:
    """Users follow the shape, and its length is the one asked for, or its usual one."""
    for seconds in (None, 50.0):
        plan = stages(shape, 8, seconds)
        assert [stage.users for stage in plan] == users
        length = SHAPES[shape][1] if seconds is None else seconds
        assert sum(stage.seconds for stage in plan) == pytest.approx(length)


def test_every_shape_is_tested() -> None:
    assert set(SHAPES) == {"average", "stress", "spike", "soak", "breakpoint"}


def test_time_leads_from_stage_to_stage_and_to_an_end() -> None:
    plan = stages("spike", 1, 10)
    assert [at(plan, seconds) for seconds in (0, 3.9, 4, 5.9, 6, 9.9, 10, 99)] == [
        *(0, 0, 1, 1, 2, 2),
        *(None, None),
    ]


@pytest.mark.parametrize(
    ("shape", "users", "seconds", "complaint"),
    [("wave", 1, 1, "no shape 'wave'"), ("soak", 0, 1, "0 users"), ("soak", 1, 0, "0 seconds")],
)
def test_a_shape_of_no_size_is_refused(
    shape: str, users: int, seconds: float, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        stages(shape, users, seconds)


def test_users_share_the_schedule_evenly() -> None:
    """Four users at 20 requests a second: one request every 50 ms, of each user one in 200 ms."""
    due = []
    for number in range(4):
        mine = schedule(number, 4, 20.0, now=100.0)
        for _ in range(3):
            due.append(mine.due)
            mine.advance()
    assert sorted(due) == pytest.approx([100 + 0.05 * number for number in range(12)])


def test_a_late_request_does_not_put_off_the_next() -> None:
    """The schedule is fixed: it does not know when requests were sent."""
    mine = schedule(0, 1, 10.0, now=0.0)
    dues = [mine.due]
    for _ in range(3):
        mine.advance()
        dues.append(mine.due)
    assert dues == pytest.approx([0, 0.1, 0.2, 0.3])


def test_lateness_is_the_server_s_while_the_user_waits_and_locust_s_when_it_is_free() -> None:
    late = LATE_SECONDS * 2
    kept = Punctuality()
    for _ in range(50):
        kept.began(due=1.0, free=5.0, now=5.0)  # the server took until 5: not Locust's fault
        kept.began(due=1.0, free=0.5, now=1.0)
    assert (kept.scheduled, kept.late, kept.complaints()) == (100, 0, [])
    kept.began(due=1.0, free=0.5, now=1.0 + late)
    assert kept.complaints() == []  # one in a hundred does not reach the p99
    kept.began(due=1.0, free=5.0, now=5.0 + late)
    (complaint,) = kept.complaints()
    assert "2 of 102" in complaint
    assert "loadtest/loadgen" in complaint


def test_requests_that_are_due_and_never_begin_are_reported() -> None:
    """A server that hangs to the end does not hide what it kept waiting."""
    mine = schedule(0, 1, 10.0, now=0.0)
    assert [mine.missed(now) for now in (-0.01, 0, 0.05, 0.15, 1.05)] == [0, 1, 1, 2, 11]
    (complaint,) = Punctuality(scheduled=90, missed=11).complaints()
    assert "11 requests were due" in complaint


def test_workers_counts_add_up() -> None:
    """Each report takes what came since the last, so that nothing is counted twice."""
    worker, master = Punctuality(10, 1, 2), Punctuality()
    master.add(*worker.take())
    master.add(*worker.take())
    worker.add(5, 0, 0)
    master.add(*worker.take())
    assert master == Punctuality(15, 1, 2)


def test_percentiles_are_times_that_were_seen() -> None:
    counts = {1: 98, 7: 1, 900: 1}
    assert [percentile(counts, share) for share in (0.5, 0.98, 0.99, 1.0)] == [1, 1, 7, 900]
    assert percentile({}, 0.99) == 0
    assert percentile({5: 0, 6: 2}, 0.5) == 6


@pytest.mark.parametrize(
    ("failures", "slow", "broken"), [(0, 0, 0), (1, 0, 0), (2, 0, 1), (0, 2, 1), (5, 5, 2)]
)
def test_thresholds_hold_up_to_their_bounds(failures: int, slow: int, broken: int) -> None:
    """A failure in a hundred and a p99 of 100 ms are accepted, and no more of either."""
    totals = Totals(100, failures, {100: 100 - slow, 101: slow})
    limits = Thresholds(failure_ratio_max=0.01, p99_milliseconds_max=100)
    assert len(limits.broken(totals)) == broken


def test_a_run_without_answers_breaks_the_thresholds() -> None:
    assert Thresholds(1.0, 0).broken(Totals(0, 0, {})) != []


def test_no_limit_of_p99_is_no_limit() -> None:
    assert Thresholds(0.0, 0).broken(Totals(1, 0, {60_000: 1})) == []


def test_a_part_of_a_run_is_the_difference_of_two_readings() -> None:
    before, after = Totals(10, 1, {1: 10}), Totals(30, 1, {1: 12, 500: 18})
    part = after.since(before)
    assert (part.requests, part.failures) == (20, 0)
    assert percentile(part.milliseconds, 0.5) == 500


def test_wrong_answers_are_distinguished_from_other_failures() -> None:
    errors = [(f"{WRONG}verdict: allowed, not denied", 3), ("status 503", 4)]
    assert wrong_answers(errors) == [f"3 x {WRONG}verdict: allowed, not denied"]
