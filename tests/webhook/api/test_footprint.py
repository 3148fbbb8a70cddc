"""The memory of a document is estimated well enough before it is decoded."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from webhook.api.encoding import decode
from webhook.api.footprint import footprint

UNITS = (
    b"[],",
    b"{},",
    b'{"":0},',
    b'{"":{}},',
    b"[0],",
    b"0,",
    b"1.5,",
    b'"",',
    b'"ab",',
    b'"abcdefghijklmnopqrstuvwxyz",',
    b'{"a":1000,"b":1000,"c":1,"d":1,"e":1,"f":1},',
    b'{"name":"aaaa","image":"b","resources":{},"imagePullPolicy":"Always"},',
    b'"{\\"a\\":[[[[[[[[[[[{}]]]]]]]]]]],}",',
)


@pytest.mark.parametrize("unit", UNITS)
def test_the_estimate_is_near_what_is_taken(unit: bytes) -> None:
    raw = b"[" + unit * (300_000 // len(unit)) + b"0]"
    gc.collect()
    tracemalloc.start()
    try:
        value = decode(raw)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value
    estimate = footprint(raw)
    assert taken * 0.75 < estimate < taken * 2.2 + 20 * len(raw)


def test_what_stands_in_texts_is_no_structure() -> None:
    raw = b'{"a":"' + b"{[,:" * 100_000 + b'"}'
    assert footprint(raw) < 3 * len(raw)
    assert footprint(raw, bound=10**9) > 10 * len(raw)


def test_what_stands_in_a_long_text_is_no_structure() -> None:
    text = b'"' + rb"{[,\"" * 400_000 + b'"'
    raw = b'{"a": [' + text + b', "b", ' + text + b"], " + text + b": 1}"
    assert footprint(raw, bound=1024 * 1024) < 3 * len(raw)
    assert footprint(raw, bound=1024 * 1024 * 1024) > 10 * len(raw)
