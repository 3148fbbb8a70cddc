"""Curves: points that are kept, what is drawn of them, and what `waddle size` is fitted to."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadtest.curves import fit, page
from loadtest.curves.admission import padded
from loadtest.curves.points import FULL, QUICK, Store
from webhook.cli.size.model import Figures

FIGURES = {
    "requests_per_second": 100.0,
    "server_cpu_ms_per_request": 1.0,
    "p50_ms": 1.0,
    "p99_ms": 2.0,
    "server_rss_mib": 60.0,
    "server_cores": 0.95,
}


def point(**changed: float) -> dict[str, Any]:
    """Figures of both."""
    return {name: {**FIGURES, **changed} for name in page.PROGRAMS}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path, QUICK)
    assert store.lacks("matching", 10)
    store.keep("matching", 10, point())
    assert not store.lacks("matching", 10)
    assert not Store(tmp_path, QUICK).lacks("matching", 10)
    assert Store(tmp_path, QUICK).lacks("matching", 100)


def test_a_quick_point_is_measured_again_by_a_whole_run_and_once_only(tmp_path: Path) -> None:
    Store(tmp_path, QUICK).keep("matching", 10, point())
    store = Store(tmp_path, FULL)
    assert store.lacks("matching", 10)
    store.keep("matching", 10, point())
    assert not store.lacks("matching", 10)
    assert not Store(tmp_path, QUICK).lacks("matching", 10)
    again = Store(tmp_path, FULL, again=True)
    assert again.lacks("matching", 10)
    again.keep("matching", 10, point())
    assert not again.lacks("matching", 10)


def test_points_are_drawn_in_order_of_size(tmp_path: Path) -> None:
    """Names of files sort otherwise: 10 stands before 9 there."""
    store = Store(tmp_path, QUICK)
    for at in (1000, 9, 10, 0.5):
        store.keep("matching", at, point())
    assert [one["at"] for one in store.points("matching")] == [0.5, 9, 10, 1000]
    text = page.markdown(store)
    assert text.index("| 9 ") < text.index("| 10 ") < text.index("| 1k ")
    assert "*quick*" in text
    assert "## Size" not in text
    drawn = page.plots(store)
    assert sorted(drawn) == [
        "curves-matching-requests_per_second.svg",
        "curves-matching-server_cpu_ms_per_request.svg",
        "curves-matching-server_rss_mib.svg",
    ]


@pytest.mark.parametrize("kib", [1, 4, 16, 256, 1024])
def test_a_padded_review_is_as_large_as_asked_for(kib: int) -> None:
    size = len(json.dumps(padded(kib * 1024), separators=(",", ":")))
    smallest = len(json.dumps(padded(0), separators=(",", ":")))
    assert size == pytest.approx(max(kib * 1024, smallest), abs=60)


def test_the_fit_finds_what_the_points_were_made_of(tmp_path: Path) -> None:
    """A queue's latencies give back its two factors, without the points that are held back."""
    store = Store(tmp_path, QUICK)
    for count in (1, 10, 30, 100):
        cost = 1000.0 if count == fit.HELD_CONSTRAINTS else 0.1 * count
        store.keep("matching", count, point(server_cpu_ms_per_request=cost))
    assert fit.figures(store) is None
    for part in (0.2, 0.4, 0.6, 0.8):
        waited = 1000.0 if part == fit.HELD_LOAD else 1.5 + 2.5 * part / (1 - part)
        peak = {"server_cpu_ms_per_request": 2.0, "server_cores": 0.95}
        figures = {"peak": peak, "waddle": {**FIGURES, "p99_ms": 2.0 * waited}}
        store.keep("load", part, figures)
    found = fit.figures(store)
    assert found is not None
    assert found["p99_alone"] == pytest.approx(1.5, abs=0.01)
    assert found["p99_waiting"] == pytest.approx(2.5, abs=0.01)
    assert Figures.read(found).request_cpu_ms(30) == pytest.approx(3.0)
    busy = {"peak": {**peak, "server_cores": 0.5}, "waddle": FIGURES}
    store.keep("load", 0.9, busy)
    assert fit.figures(store) is None
