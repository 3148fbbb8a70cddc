"""``waddle size``: the model, and the model beside measured points that it was not fitted on."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from loadtest.curves import fit
from loadtest.curves.points import QUICK, Store
from webhook.cli.main import waddle
from webhook.cli.size.model import UTILISATION_MAX, Figures, Load, NoPlan

BUSY = (
    "the points were measured on a machine that had other work: `make bench-curves` on a quiet one"
)
POINTS = Store(Path(fit.__file__).parent.parent / "results" / "curves", QUICK)

MODEL = Figures(
    cpu_ms=((1, 0.1), (10, 0.2), (1000, 20.0)),
    memory_mib=((1, 60.0), (1000, 70.0)),
    p99_alone=2.0,
    p99_waiting=3.0,
    processor="a processor",
)


def test_costs_between_measured_numbers_are_between_their_costs() -> None:
    assert MODEL.request_cpu_ms(1) == pytest.approx(0.1)
    assert MODEL.request_cpu_ms(10) == pytest.approx(0.2)
    assert MODEL.request_cpu_ms(100) == pytest.approx(2.0)
    assert MODEL.request_cpu_ms(10_000) == pytest.approx(200.0)
    assert MODEL.request_cpu_ms(10, speed=0.5) == pytest.approx(0.4)


def test_a_load_that_fits_one_core_needs_one_replica() -> None:
    plan = MODEL.plan(Load(rate=1000, constraints=10, p99_ms=10))
    assert plan.replicas == 1
    assert plan.utilisation == pytest.approx(0.2)
    assert plan.p99_ms == pytest.approx(0.2 * (2 + 3 * 0.25))


def test_no_core_is_planned_to_be_full() -> None:
    plan = MODEL.plan(Load(rate=5000, constraints=10, p99_ms=1000))
    assert plan.replicas == 2  # one would do it at 100 %
    assert plan.utilisation <= UTILISATION_MAX


def test_a_stricter_goal_needs_more_replicas_and_is_kept() -> None:
    goals = [1000.0, 1.0, 0.6, 0.47]
    plans = [MODEL.plan(Load(rate=10_000, constraints=10, p99_ms=goal)) for goal in goals]
    counts = [plan.replicas for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    for goal, plan in zip(goals, plans, strict=True):
        assert plan.p99_ms <= goal + 1e-9
        if plan.replicas > 1:  # one less would not do
            used = 10_000 * 0.2 / 1000 / (plan.replicas - 1)
            assert used > UTILISATION_MAX or MODEL.latency_ms(0.2, used) > goal


def test_what_no_replica_can_do_is_said() -> None:
    with pytest.raises(NoPlan, match=r"no number of replicas answers within 0\.3 ms"):
        MODEL.plan(Load(rate=1, constraints=10, p99_ms=0.3))
    with pytest.raises(NoPlan, match="more than 10000 replicas"):
        MODEL.plan(Load(rate=1e12, constraints=10, p99_ms=100))


def test_the_command_says_how_many_and_why() -> None:
    arguments = ["size", "--rate", "500", "--constraints", "12", "--p99", "100"]
    found = CliRunner().invoke(waddle, arguments)
    assert found.exit_code == 0, found.output
    assert "2 replicas: 1 for the load, 1 to spare" in found.output
    found = CliRunner().invoke(waddle, [*arguments, "--spare", "0", "-o", "json"])
    answer = json.loads(found.output)
    assert (answer["replicas"], answer["spare"]) == (1, 0)
    assert 0 < answer["utilisation"] <= UTILISATION_MAX


def test_the_command_fails_where_nothing_helps() -> None:
    found = CliRunner().invoke(
        waddle, ["size", "--rate", "1", "--constraints", "1000", "--p99", "0.1"]
    )
    assert found.exit_code == 1
    assert "no number of replicas" in found.output


@pytest.fixture
def measured() -> Figures:
    """Returns the figures that `make bench-curves` fitted; on a busy machine skips the test."""
    found = fit.figures(POINTS)
    if found is None:
        pytest.skip(BUSY)
    # It writes both, and neither is changed by hand.
    assert json.loads(fit.FIGURES.read_text()) == found
    return Figures.read(found)


def held(curve: str, at: float) -> dict[str, Any]:
    """A point that was kept from the fit."""
    (found,) = (one for one in POINTS.points(curve) if one["at"] == at)
    return found


def test_a_measured_cost_that_it_was_not_fitted_on_is_foretold(measured: Figures) -> None:
    cost = held("matching", fit.HELD_CONSTRAINTS)["waddle"]["server_cpu_ms_per_request"]
    assert measured.request_cpu_ms(fit.HELD_CONSTRAINTS) == pytest.approx(cost, rel=0.3)


def test_a_measured_latency_that_it_was_not_fitted_on_is_foretold(measured: Figures) -> None:
    """The load of that point needs one replica, with a p99 within twice of what was measured."""
    point = held("load", fit.HELD_LOAD)
    foretold = measured.plan(Load(rate=point["rate"], constraints=12, p99_ms=1000))
    assert foretold.replicas == 1
    assert point["waddle"]["p99_ms"] / 2 <= foretold.p99_ms <= point["waddle"]["p99_ms"] * 2
