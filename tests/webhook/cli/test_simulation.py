"""The formula for N replicas is compared with a simulation."""

import json
import random
from pathlib import Path

import pytest

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle
from webhook.cli.simulate.run import (
    LogNormal,
    Measured,
    all_quantile,
    all_within,
    availability,
    compare,
)

DRAWS = 20_000
ENFORCEMENT = ROOT / "loadtest/results/enforcement.json"

ERROR_MAX, LATE_ERROR_MAX = 0.35, 0.1
"""Of P(t)^N, at any t and at the 95th percentile, as docs/sizing.md says it."""

TOLERANCE = 0.02  # five standard errors of a share of 20,000 draws: 5 * 0.5 / sqrt(20,000)


def test_all_are_unavailable_as_often_as_draws_have_it() -> None:
    """P^N, for each number of replicas."""
    chance = random.Random(1)
    drawn = [[chance.random() < 0.3 for _ in range(3)] for _ in range(DRAWS)]
    for item in availability(0.3, 3):
        share = sum(all(round_[: item.replicas]) for round_ in drawn) / DRAWS
        assert item.unavailable == pytest.approx(share, abs=TOLERANCE)
    assert availability(0.01, 3)[2].seconds_a_year == pytest.approx(31.6, abs=0.1)


def test_the_last_of_three_is_done_as_often_as_draws_have_it() -> None:
    """P(t)^N over the whole curve, and its quantiles."""
    one = LogNormal(median=20, p95=40)
    chance = random.Random(2)
    last = Measured([max(one.quantile(chance.random()) for _ in range(3)) for _ in range(DRAWS)])
    for t in map(float, range(5, 100, 5)):
        assert all_within(one, 3, t) == pytest.approx(last.within(t), abs=TOLERANCE)
    for probability in (0.5, 0.9, 0.95):
        t = all_quantile(one, 3, probability)
        assert all_within(one, 3, t) == pytest.approx(probability)
        assert last.within(t) == pytest.approx(probability, abs=TOLERANCE)


def test_a_distribution_is_what_it_was_given_as() -> None:
    """Its median and 95th percentile; without a tail, a step."""
    one = LogNormal(median=20, p95=40)
    assert [one.within(20), one.within(40)] == pytest.approx([0.5, 0.95])
    step = LogNormal(median=20, p95=20)
    assert (step.within(19.9), step.within(20), step.quantile(0.99)) == (0, 1, 20)


def test_independent_replicas_agree_with_the_formula_and_tied_ones_do_not() -> None:
    """The stated error is small for what the formula assumes, and large for what it does not."""
    one, chance = LogNormal(median=20, p95=40), random.Random(3)
    free = [[one.quantile(chance.random()) for _ in range(3)] for _ in range(2000)]
    assert compare(free).error < 0.05
    tied = [[one.quantile(chance.random())] * 3 for _ in range(2000)]
    found = compare(tied)
    assert found.error > 0.3
    assert found.late_error > 0.1  # replicas that are late together are all done sooner


@pytest.mark.parametrize("rounds", [[], [[]], [[1.0], [1.0, 2.0]]])
def test_rounds_that_cannot_be_compared_are_refused(rounds: list[list[float]]) -> None:
    """None, or of different replicas."""
    with pytest.raises(ValueError, match="one time for each replica, of the same replicas"):
        compare(rounds)


def test_the_command_shows_curves_and_what_was_measured(tmp_path: Path) -> None:
    """As a table with a plot, and as JSON."""
    file = tmp_path / "enforcement.json"
    rounds = [[10.0, 12.0, 11.0], [14.0, 20.0, 16.0], [9.0, 9.5, 30.0]]
    file.write_text(json.dumps({"constraint": {"waddle": {"rounds_ms": rounds}}}))
    shown = waddle("simulate", "--replicas", "3", "--p-fail", "0.01", "--measured", str(file))
    assert shown.returncode == 0
    assert "99.9999 %" in shown.stdout
    assert "█" in shown.stdout
    assert "Measured on 3 replicas, 3 changes: last one by 20.0 ms (0.5)" in shown.stdout
    answer = json.loads(waddle("simulate", "--measured", str(file), "-o", "json").stdout)
    assert answer["measured"]["quantilesMs"]["0.5"] == 20.0
    assert answer["measured"]["error"] == pytest.approx(compare(rounds).error)


def test_the_share_of_requests_that_meet_a_change_stands_beside_what_was_measured(
    tmp_path: Path,
) -> None:
    """The curve is that of the times given, the share beside it that of the rounds."""
    file = tmp_path / "enforcement.json"
    rounds = [[10.0, 12.0, 11.0], [14.0, 20.0, 16.0], [9.0, 9.5, 30.0]]
    file.write_text(json.dumps({"rounds_ms": rounds}))
    options = ("--measured", str(file), "--ingest-ms", "20,40")
    answer = json.loads(waddle("simulate", *options, "-o", "json").stdout)
    one, found = LogNormal(median=20, p95=40), compare(rounds)
    for row in answer["enforced"]:
        assert row["one"] == pytest.approx(one.within(row["ms"]))
        assert row["measuredOne"] == found.single.within(row["ms"])
        assert row["measuredAll"] == found.all.within(row["ms"])
    shown = waddle("simulate", *options).stdout
    assert "requests measured all measured" in " ".join(shown.split())
    fewer = waddle("simulate", "--measured", str(file), "--replicas=2").stdout
    assert "requests  measured     all\n" in fewer


def test_the_formula_is_as_near_to_what_was_measured_as_is_said() -> None:
    """Three replicas of one machine are late together: the measurement is on the careful side."""
    results = json.loads(ENFORCEMENT.read_text())
    found = compare(results["rounds_ms"])
    assert found.replicas == 3
    assert found.error <= ERROR_MAX
    assert 0 <= found.late_error <= LATE_ERROR_MAX


@pytest.mark.parametrize("text", ["x", "1,2,3", "20,10", "0"])
def test_times_that_make_no_sense_are_refused(text: str) -> None:
    """With what was expected."""
    refused = waddle("simulate", "--ingest-ms", text)
    assert refused.returncode == 2
    assert "expected" in refused.stderr
    assert "--ingest-ms" in refused.stderr
