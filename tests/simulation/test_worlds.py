"""Worlds by fixed seeds hold; a seed tells the same story each time; faults put in are found."""

import pytest

from tests.simulation.faults import FAULTS
from tests.simulation.simulated import simulate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "count"),
    [
        *(("log", 60), ("certificates", 12), ("cluster", 10)),
        *(("trials", 10), ("extensions", 10), ("generated", 10)),
        *(("exceptions", 10), ("forged", 20), ("groups", 20)),
        *(("projected", 20), ("providers", 20)),
    ],
)
def test_worlds_by_fixed_seeds_hold(world: str, count: int) -> None:
    code, output = simulate(world, "--count", str(count))
    assert code == 0, output[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["log", "certificates", "cluster", "trials"])
def test_a_seed_tells_the_same_story_each_time(world: str) -> None:
    one = simulate(world, "--first", "5", "--count", "1", "--digest")
    other = simulate(world, "--first", "3", "--count", "3", "--digest")
    assert one[0] == other[0] == 0, other[1][-5000:]
    assert one[1].splitlines()[0] == other[1].splitlines()[2]


@pytest.mark.slow(10)
@pytest.mark.parametrize("world", sorted({fault.world for fault in FAULTS.values()}))
def test_each_fault_that_is_put_in_is_found(world: str) -> None:
    code, output = simulate(world, "--each-fault")
    assert code == 0, output[-5000:]
    found = {line.split(": ")[1] for line in output.splitlines() if line.startswith("found by ")}
    assert found == {name for name, fault in FAULTS.items() if fault.world == world}
