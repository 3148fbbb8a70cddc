"""Large values are freed in parts, so that no other thread waits for all of them."""

import weakref
from collections import Counter
from functools import partial
from typing import Any

import orjson
import pytest

from webhook import heap
from webhook.api.json_decoder import decode_in_pieces


class Part:
    """Of what is freed, one that tells when it is."""


def document() -> tuple[Any, list[Any]]:
    """Returns a document with its large arrays and objects."""
    made = {"a": {"b": [[]] * 300_000, "c": {f"k{number}": [number] for number in range(40_000)}}}
    large: list[Any] = []
    found = decode_in_pieces(orjson.dumps(made), large=large)
    assert found == made
    return found, large


def test_the_large_arrays_and_objects_of_a_document_are_reported_and_emptied() -> None:
    found, large = document()
    assert large[0] is found
    assert {id(one) for one in (found["a"], found["a"]["b"], found["a"]["c"])} <= set(
        map(id, large)
    )
    last, part = found["a"]["b"], Part()
    last.append(part)
    seen = weakref.ref(part)
    del found, last, part
    assert not heap.is_held(large)
    heap.free_in_slices(large)
    assert large == []
    assert seen() is None


def test_a_thread_rests_while_it_frees_a_large_array_or_object() -> None:
    for large in ([[[] for _ in range(300_000)]], [{number: [number] for number in range(40_000)}]):
        rests = Counter[str]()
        heap.free_in_slices(large, partial(rests.update, ["rests"]))
        assert rests


def test_what_somebody_holds_is_known() -> None:
    for path in ((), ("a",), ("a", "b"), ("a", "c")):
        found, large = document()
        held = found
        for name in path:
            held = held[name]
        del found
        assert heap.is_held(large), path
        del held
        assert not heap.is_held(large), path


def failing(shared: list[object]) -> None:
    """Fail with a list of its own, and one that is its caller's."""
    own = [Part() for _ in range(20_000)]
    part = own[0]
    shared.append(weakref.ref(part))
    again = shared
    del part
    raise ValueError(len(own), len(again))


def test_what_a_failed_call_held_is_freed_in_slices_and_what_others_hold_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An evaluation that overran let go of all its pairs at once: 91 ms."""
    shared: list[object] = [None] * 20_000
    try:
        try:
            failing(shared)
        except ValueError as error:
            raise RuntimeError from error
    except RuntimeError as error:
        failed = error
    sliced: list[int] = []
    free_in_slices = heap.free_in_slices

    def free(large: list[Any]) -> None:
        sliced.append(len(large[0]))
        free_in_slices(large)

    monkeypatch.setattr(heap, "free_in_slices", free)
    heap.free_what_failed(failed)
    assert sliced == [20_000]
    assert failed.__traceback__ is None
    assert failed.__context__ is None
    assert len(shared) == 20_001
    seen = shared[-1]
    assert isinstance(seen, weakref.ref)
    assert seen() is None
