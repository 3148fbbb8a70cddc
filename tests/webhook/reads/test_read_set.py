"""A read set: what it says of a value, and what is left of one."""

import pytest

from webhook.reads.read_set import EVERY_KEY, WHOLE, PolicyReads, ReadRecorder


def recorded(*paths, whole=()):
    recorder = ReadRecorder()
    for path in paths:
        recorder.shallow(path)
    for path in whole:
        recorder.whole(path)
    return recorder.frozen()


def test_a_projection_has_what_is_read_and_nothing_else() -> None:
    reads = recorded(("spec", "containers", EVERY_KEY, "image"), whole=[("metadata", "labels")])
    value = {
        "metadata": {"labels": {"a": "b"}, "name": "n"},
        "spec": {"containers": [{"image": "i", "name": "c"}, "none"], "nodeName": "x"},
        "status": {},
    }
    assert reads.project(value) == {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"image": "i"}, True]},  # a text has no image, whichever it is
    }
    assert WHOLE.project(value) is value


def test_of_what_is_only_asked_for_it_shows_that_it_is_there_and_whether_it_is_false() -> None:
    recorder = ReadRecorder()
    for name in ("none", "text", "list", "false"):
        recorder.present((name,))
    recorder.shallow(("scalar",))
    reads = recorder.frozen()
    value = {"text": "t", "list": [1], "false": False, "scalar": "s", "other": 1}
    shown = {"text": True, "list": True, "false": False, "scalar": "s"}
    assert reads.project(value) == shown
    assert (reads | recorded(("text",))).project(value) == shown | {"text": "t"}


def test_what_every_key_shows_is_not_reported_for_one() -> None:
    reads = recorded(("a", EVERY_KEY, "x"), ("a", "b", "x"), ("a", "b", "y"))
    assert list(reads.paths()) == [("a", EVERY_KEY, "x"), ("a", "b", "x"), ("a", "b", "y")]
    assert list(recorded(("a", EVERY_KEY, "x"), ("a", "b", "x")).paths()) == [("a", EVERY_KEY, "x")]


def test_a_key_shows_what_every_key_does() -> None:
    reads = recorded(("a", EVERY_KEY, "x"), ("a", "b", "y"))
    assert reads.project({"a": {"b": {"x": 1, "y": 2, "z": 3}, "c": {"x": 1, "y": 2}}}) == {
        "a": {"b": {"x": 1, "y": 2}, "c": {"x": 1}}
    }


def test_either_of_two_sets() -> None:
    either = recorded(("a", "b")) | recorded(("a", "c"), whole=[("d",)])
    assert list(either.paths()) == [("a", "b"), ("a", "c"), ("d",)]
    assert (either | WHOLE) == WHOLE


@pytest.mark.parametrize(
    ("path", "beside", "at"),
    [
        (("a", EVERY_KEY, "x"), [("a", EVERY_KEY, "y"), ("b",)], [("a", EVERY_KEY, "x")]),
        (("a", EVERY_KEY), [("a",), ("b",)], [("a", EVERY_KEY, "x"), ("a", EVERY_KEY, "y")]),
        (("b", "c"), [("a", EVERY_KEY, "x"), ("a", EVERY_KEY, "y")], [("b",)]),
    ],
)
def test_a_set_is_split_at_a_path_and_loses_nothing(path, beside, at) -> None:
    reads = recorded(("a", EVERY_KEY, "x"), ("a", EVERY_KEY, "y"), whole=[("b",)])
    parts = reads.split(*path)
    assert [list(part.paths()) for part in parts] == [beside, at]
    assert parts[0] | parts[1] == reads


def test_what_is_not_read_is_split_from_nothing() -> None:
    reads = recorded(("a", EVERY_KEY, "x"))
    for path in (("c",), ("a", EVERY_KEY, "y")):
        assert reads.split(*path) == (reads, None)
    assert WHOLE.split("a") == (None, WHOLE)


def test_paths_are_reported_as_policies_write_them() -> None:
    reads = recorded(
        ("input", "review", "object", "metadata", "labels", "app.kubernetes.io/name"),
        ("input", "parameters", "labels", EVERY_KEY),
        ("data", "inventory", "cluster"),
    )
    assert PolicyReads(reads, reads).paths == [
        "data.inventory.cluster",
        "parameters.labels[*]",
        'review.object.metadata.labels["app.kubernetes.io/name"]',
    ]
    assert PolicyReads(WHOLE, WHOLE).paths == ["*"]
