"""The goals of `make bench-scale`: each is judged by its own figures."""

import pytest

from loadtest.scale import FULL, Audited, Replicated, page, verdicts

AUDITED = [Audited(1_000, 1.0, 0.1, 100.0), Audited(4_000, 4.0, 0.4, 110.0)]
REPLICATED = [Replicated(10, 20, 0, 5.0, 100.0), Replicated(50, 100, 0, 20.0, 100.0)]


def test_what_grows_in_proportion_is_within_its_goals() -> None:
    judged = verdicts(AUDITED, REPLICATED)
    assert [one.met for one in judged] == [True] * 5
    assert "not met" not in page(FULL, AUDITED, REPLICATED, judged)


@pytest.mark.parametrize(
    ("audited", "replicated", "goal"),
    [
        (Audited(4_000, 4.0, 0.4, 257.0), REPLICATED[1], "peak memory"),
        (Audited(4_000, 4.6, 0.4, 110.0), REPLICATED[1], "CPU for each Pod in the first sweep"),
        (Audited(4_000, 4.0, 0.5, 110.0), REPLICATED[1], "CPU for each Pod in a later sweep"),
        (AUDITED[1], Replicated(50, 120, 0, 20.0, 100.0), "writes of a replica"),
        (AUDITED[1], Replicated(50, 100, 1, 20.0, 100.0), "writes at rest"),
    ],
)
def test_a_missed_goal_is_reported_alone(
    audited: Audited, replicated: Replicated, goal: str
) -> None:
    judged = verdicts([AUDITED[0], audited], [REPLICATED[0], replicated])
    (missed,) = [one.goal for one in judged if not one.met]
    assert missed.startswith(goal)
