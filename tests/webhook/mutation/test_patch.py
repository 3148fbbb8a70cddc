"""JSON Patches: exact, deterministic and small."""

import copy
import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.json_patch import apply_patch
from webhook.api.encoding import encode, is_same_json
from webhook.mutation.patch import Operation, Patch, make_patch, packed


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}]),
        ({"a/b~c": 1}, {}, [{"op": "remove", "path": "/a~1b~0c"}]),
        ({"": {"x": 1}}, {"": {"x": 2}}, [{"op": "replace", "path": "//x", "value": 2}]),
        ({"l": [1, 2]}, {"l": [1, 2, 3]}, [{"op": "add", "path": "/l/2", "value": 3}]),
        ({"l": [1, 2, 3]}, {"l": [0, 1, 2, 3]}, [{"op": "add", "path": "/l/0", "value": 0}]),
        (
            {"l": [1, 2, 3, 4]},
            {"l": [2, 4]},
            [{"op": "remove", "path": "/l/2"}, {"op": "remove", "path": "/l/0"}],
        ),
        (
            {"l": [{"n": 1}, 5]},
            {"l": [{"n": 2}]},
            [{"op": "replace", "path": "/l/0/n", "value": 2}, {"op": "remove", "path": "/l/1"}],
        ),
        ({"l": []}, {"l": {}}, [{"op": "replace", "path": "/l", "value": {}}]),
    ],
)
def test_the_patch_is_what_changed(
    old: dict[str, Any], new: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    assert make_patch(old, new) == operations
    assert is_same_json(apply_patch(old, operations), new)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("a/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("a/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("ab/~", max_size=2), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_any_object_is_made_of_any_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)
    assert is_same_json(apply_patch(old, make_patch(old, new)), new)
    assert old == before


def test_pieces_of_any_length_in_base64_are_one_document_together() -> None:
    """Go's decoder takes no padding before the end: pieces must fill their last three bytes."""
    operations: list[Operation] = [
        {"op": "add", "path": f"/{'x' * length}", "value": "é"} for length in range(7)
    ]
    for count in range(1, len(operations) + 1):
        some = operations[:count]
        together = packed(b",".join(map(encode, some)))
        patch = Patch.of_pieces([*(packed(encode(one)) for one in some), together])
        assert json.loads(b64decode(patch.base64, validate=True)) == some + some
        assert patch.operations == some + some
        assert b"=" not in patch.base64
