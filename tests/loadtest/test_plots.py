"""Plots: what is drawn where, and always the same."""

import xml.etree.ElementTree as ET

from loadtest.plots.flame import flame_graph, tree
from loadtest.plots.scale import Scale, shown
from loadtest.plots.svg import Axes, Series, bars, lines

NS = "{http://www.w3.org/2000/svg}"


def test_a_line_stands_where_its_values_are() -> None:
    """Ten times as much is a step of equal length on a logarithmic scale."""
    axes = Axes("growth <&>", "n", "ms", x_logarithmic=True, y_logarithmic=True)
    drawn = lines(axes, [Series("waddle", [(1, 1), (10, 10), (100, 100)])])
    assert drawn == lines(axes, [Series("waddle", [(1, 1), (10, 10), (100, 100)])])
    marks = ET.fromstring(drawn).findall(f"{NS}circle")
    x, y = ([float(mark.get(name, "")) for mark in marks] for name in ("cx", "cy"))
    assert abs((x[1] - x[0]) - (x[2] - x[1])) < 0.2
    assert abs((y[1] - y[0]) - (y[2] - y[1])) < 0.2
    assert x[0] < x[1] < x[2]
    assert y[0] > y[1] > y[2]


def test_bars_are_as_high_as_their_values() -> None:
    drawn = ET.fromstring(bars(Axes("t", "x", "y"), ["a", "b"], [("waddle", [1, 2])]))
    heights = [
        float(bar.get("height", "")) for bar in drawn.findall(f"{NS}rect") if "px" not in bar.attrib
    ]
    first, second = heights[-2:]
    assert abs(second - 2 * first) < 0.3


def test_a_scale_without_values_can_be_drawn() -> None:
    assert lines(Axes("t", "x", "y"), []).startswith("<svg ")
    assert Scale.of([], 0, 10).place(0) == 0


def test_numbers_are_short() -> None:
    assert [shown(value) for value in (0, 0.123456, 999, 50_000, 2_500_000)] == [
        "0",
        "0.123",
        "999",
        "50k",
        "2.5M",
    ]


def test_a_flame_graph_adds_up_stacks_of_one_caller() -> None:
    root = tree(["start;serve;decode 3", "start;serve;review 1", "idle;serve;decode 2"], below="se")
    assert (root.samples, root.calls["serve"].samples) == (6, 6)
    assert {name: one.samples for name, one in root.calls["serve"].calls.items()} == {
        "decode": 5,
        "review": 1,
    }
    drawn = ET.fromstring(flame_graph("p1", root))
    widths = {
        group.findtext(f"{NS}title", "").partition(":")[0]: float(
            group.find(f"{NS}rect").get("width", "")
        )
        for group in drawn.findall(f"{NS}g")
    }
    assert widths["decode"] == 5 * widths["review"] == widths["serve"] * 5 / 6
