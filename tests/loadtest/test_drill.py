"""Rows of `make drill`: what holds, what is broken, and where the machine is at fault."""

import math
from collections.abc import Iterator
from contextvars import copy_context

import pytest

from loadtest.drill import __main__ as command
from loadtest.drill.drill import Attack, Bystander, Row, Sent, elsewhere, is_chosen
from loadtest.drill.floods import RATIO_MAX, rates, waits


def bystander(milliseconds: float) -> Bystander:
    """Returns a bystander whose requests took so long."""
    found = Bystander(good=b"", bad=b"")
    found.seconds = [milliseconds / 1000] * 100
    return found


@pytest.mark.parametrize(
    ("result", "floor", "verdict"),
    [
        (2.9, 0.0, "holds"),
        (2.9, 9.0, "holds"),
        (3.1, 0.0, "broken"),
        (3.1, 2.9, "broken"),
        (3.1, 3.1, "machine"),
    ],
)
def test_a_bound_is_checked_where_the_floor_holds_it(
    result: float, floor: float, verdict: str
) -> None:
    assert Row("flood", "p99", result, RATIO_MAX, floor=floor).verdict == verdict


def test_a_flood_prints_quiet_flood_and_floor() -> None:
    rows = list(waits("flood", bystander(2), bystander(10), bystander(8)))
    assert [(row.result, row.unit) for row in rows] == [
        (2, "ms"),
        (10, "ms"),
        (8, "ms"),
        (5, "times"),
        (1.25, "times"),
    ]
    (bounded,) = (row for row in rows if row.bound == RATIO_MAX)
    assert (bounded.floor, bounded.verdict) == (4, "machine")


def test_a_flood_prints_its_rate_here_and_at_the_floor() -> None:
    others, floor, uncounted = bystander(1), bystander(1), bystander(1)
    others.attack, floor.attack = Sent(3_000, 10.0), Sent(9_000, 10.0)
    assert [row.result for row in rates("flood", others, floor)] == [300, 900]
    assert list(rates("flood", uncounted, uncounted)) == []
    assert Sent(0, 0.0).per_second == 0


def test_what_is_carried_out_elsewhere_comes_back() -> None:
    with elsewhere(math.sqrt, 9.0) as await_result:
        assert await_result() == 3
    with pytest.raises(EOFError), elsewhere(math.sqrt, "nine") as await_result:
        await_result()


@pytest.mark.parametrize(
    ("floors", "code"),
    [((0.0, 9.0), 1), ((9.0, 9.0), 3), ((), 0)],
    ids=["broken", "machine", "holds"],
)
def test_a_row_of_the_machine_is_no_pass(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    floors: tuple[float, ...],
    code: int,
) -> None:
    def run() -> Iterator[Row]:
        yield Row("flood", "p99", 1.0, RATIO_MAX, "times")
        for floor in floors:
            yield Row("flood", "p99", 5.0, RATIO_MAX, "times", floor=floor)

    monkeypatch.setattr(command, "ATTACKS", (Attack("flood", run),))
    monkeypatch.setattr("sys.argv", ["drill"])
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    assert command.main() == code
    printed = capsys.readouterr().out
    assert ("**BROKEN**" in printed) is (code == 1)
    assert ("the machine: the floor is 9 times" in printed) is (code != 0)


def test_one_row_is_printed_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> Iterator[Row]:
        for name in ("Pods of 60 KB", "Pods of 60 KB, open connections"):
            if is_chosen(name):
                yield Row(name, "p99", 1.0)

    monkeypatch.setattr(command, "ATTACKS", (Attack("flood", run),))
    monkeypatch.setattr("sys.argv", ["drill", "--row", "60 KB$"])
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    assert copy_context().run(command.main) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| Pods of 60 KB | p99 | 1 |  |  |"]
