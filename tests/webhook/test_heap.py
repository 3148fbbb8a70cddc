"""What is large is freed so that no other thread waits for all of it."""

import weakref
from typing import Any

import orjson

from webhook import heap
from webhook.api.json_decoder import decode_in_pieces


class Part:
    """Of what is freed, one that tells when it is."""


def document() -> tuple[Any, list[Any]]:
    """One whose large arrays and objects are known."""
    made = {"a": {"b": [[]] * 300_000, "c": {f"k{number}": [number] for number in range(40_000)}}}
    large: list[Any] = []
    found = decode_in_pieces(orjson.dumps(made), large=large)
    assert found == made
    return found, large


def test_the_large_arrays_and_objects_of_a_document_are_told_and_emptied() -> None:
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
