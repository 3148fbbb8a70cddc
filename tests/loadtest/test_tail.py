"""Causes of the slowest answers."""

import gc
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest

from loadtest.tail import (
    COLLECTION,
    COLOURS,
    NOTED,
    REST,
    REVIEW,
    Note,
    causes,
    drawing,
    install,
    slowest,
    table,
)
from webhook.constraint.errors import InvalidTemplate


def test_time_counts_once_and_for_what_is_no_review() -> None:
    notes = [
        Note(REVIEW, 0.0, 2.0),
        Note(COLLECTION, 1.0, 3.0),
        Note("scrapes", 3.5, 9.0),
        Note(REVIEW, 9.5, 9.6),
    ]
    (one,) = causes([(0.5, 4.5)], notes)
    assert one.seconds == pytest.approx({REVIEW: 0.5, COLLECTION: 2.0, "scrapes": 1.0, REST: 0.5})
    assert sum(one.seconds.values()) == pytest.approx(4.0)
    assert table([one]) == [
        "garbage collection: 50%",
        "scrapes: 25%",
        "reviews: 12%",
        "the rest: 12%",
    ]


def test_the_slowest_of_a_generators_samples_are_found_with_their_moments(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.write_text("".join(f"{1000 * at} 5 {at % 500}\n" for at in range(2000)))
    found = slowest(samples, 100.0)
    assert len(found) == 2
    assert all(answered - due == pytest.approx(499e-6) for due, answered in found)
    assert {round(due, 3) for due, _ in found} <= {100.499, 100.999, 101.499, 101.999}


def test_a_request_is_a_row_and_what_happened_stands_on_it() -> None:
    found = causes([(0.0, 1.0), (2.0, 2.5)], [Note(COLLECTION, 0.5, 1.5)])
    drawn = ET.fromstring(drawing("a <title>", found))
    rows = drawn.findall("{http://www.w3.org/2000/svg}g")
    first, second = (row.findall("{http://www.w3.org/2000/svg}rect") for row in rows)
    assert [one.get("fill") for one in first] == [COLOURS[REST], COLOURS[COLLECTION]]
    assert float(first[1].get("width", "")) == pytest.approx(
        float(first[0].get("width", "")) / 2, abs=0.2
    )
    assert [one.get("fill") for one in second] == [COLOURS[REST]]


def test_functions_are_noted_and_do_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name stands for a function there is: else the picture would lack a cause."""
    for places in NOTED.values():
        for place in places:
            module, _, path = place.partition(":")
            owner_name, _, name = path.partition(".")
            owner = getattr(import_module(module), owner_name)
            monkeypatch.setattr(owner, name, getattr(owner, name))
    callbacks = list(gc.callbacks)
    notes: list[Note] = []
    try:
        install(notes)
        gc.collect()
        rego = import_module("webhook.constraint.drivers.rego").RegoDriver
        with pytest.raises(InvalidTemplate, match="rego source missing"):
            rego()._specialise({}, {})
    finally:
        gc.callbacks[:] = callbacks
    assert COLLECTION in {one.cause for one in notes}
    assert "compilation" in {one.cause for one in notes}
    assert all(one.ended >= one.began for one in notes)
