"""Changes of a kind's objects."""

import json
from typing import Any

import pytest

from webhook.cluster.store import EncodedStore, IdentityStore, Key, Store, shared, slim


@pytest.fixture(params=[Store, EncodedStore])
def store(request):
    return request.param()


def obj(name, version="1", uid="u", namespace=""):
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version}
    }


def kinds_and_names(changes):
    return [(change.kind, change.key.name) for change in changes]


def test_an_object_seen_twice_at_one_version_is_one_change(store):
    assert kinds_and_names(store.set(obj("a"))) == [("set", "a")]
    assert store.set(obj("a")) == []
    assert kinds_and_names(store.set(obj("a", "2"))) == [("set", "a")]


def test_a_new_object_of_an_old_name_deletes_the_old_one_first(store):
    store.set(obj("a", uid="one"))
    assert kinds_and_names(store.set(obj("a", "2", uid="two"))) == [("delete", "a"), ("set", "a")]


def test_a_deletion_that_comes_late_leaves_the_new_object(store):
    store.set(obj("a", "5", uid="two"))
    assert store.delete(obj("a", "3", uid="one")) == []
    assert store.get("", "a") is not None


def test_what_a_list_lacks_has_been_deleted(store):
    for name in "abc":
        store.set(obj(name))
    changes = store.replace([obj("b"), obj("c", "2"), obj("d")])
    assert kinds_and_names(changes) == [("delete", "a"), ("set", "c"), ("set", "d")]
    assert len(store) == 3


def test_objects_of_one_name_in_two_namespaces_are_two(store):
    store.set(obj("a", namespace="x"))
    assert kinds_and_names(store.set(obj("a", namespace="y"))) == [("set", "a")]
    assert store.delete(obj("a", namespace="y"))[0].key == Key("y", "a")
    assert store.get("x", "a") is not None


def test_the_history_of_an_objects_writers_is_dropped():
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    found = slim({"metadata": {"managedFields": [1], "annotations": {applied: "{}", "a": "b"}}})
    assert found == {"metadata": {"annotations": {"a": "b"}}}


def test_an_answer_to_a_write_is_known_before_the_watch_tells_it(store):
    store.take_answer(store.mark("", "a"), obj("a", "5"))
    assert store.get("", "a") == obj("a", "5")
    assert store.set(obj("a", "5")) == []
    store.take_answer(store.mark("", "a"), obj("a", "6"))
    assert store.get("", "a") == obj("a", "6")


def test_a_late_answer_never_replaces_what_the_watch_has_reported():
    """As of a CRD: made, and told to be established before the answer to its creation is read."""
    store = Store()
    mark = store.mark("", "a")
    established = obj("a", "6") | {"status": {"conditions": ["Established"]}}
    store.set(obj("a", "5"))
    store.set(established)
    store.take_answer(mark, obj("a", "5"))
    assert store.get("", "a") is established


def test_a_late_answer_brings_no_deleted_object_back(store):
    for forget in (lambda: store.delete(obj("a", "5")), lambda: store.replace([])):
        mark = store.mark("", "a")
        store.set(obj("a", "5"))
        forget()
        store.take_answer(mark, obj("a", "5"))
        assert store.get("", "a") is None
    store.set(obj("a", "7"))
    mark = store.mark("", "a")
    store.delete(obj("a", "7"))
    store.take_answer(mark, obj("a", "8"))
    assert store.get("", "a") is None


def test_of_an_object_whose_state_is_unknown_each_state_is_a_change(store):
    store.expect([Key("", name) for name in "abc"])
    assert len(store) == 3
    assert list(store) == []
    assert store.get("", "a") is None
    assert kinds_and_names(store.replace([obj("a"), obj("b")])) == [
        ("delete", "c"),
        ("set", "a"),
        ("set", "b"),
    ]
    assert store.set(obj("a")) == []
    store.expect([Key("", "a"), Key("", "d")])
    assert store.set(obj("a")) == []
    assert kinds_and_names(store.delete(obj("d"))) == [("delete", "d")]


def test_a_store_of_identities_tells_the_same_changes_and_holds_no_object():
    store = IdentityStore()
    assert kinds_and_names(store.set(obj("a"))) == [("set", "a")]
    assert store.set(obj("a")) == []
    assert kinds_and_names(store.set(obj("a"), by_content=True)) == [("set", "a")]
    assert kinds_and_names(store.set(obj("a", "2"))) == [("set", "a")]
    assert kinds_and_names(store.set(obj("a", "3", uid="two"))) == [("delete", "a"), ("set", "a")]
    assert store.delete(obj("a", "2", uid="u")) == []
    assert kinds_and_names(store.replace([obj("b", namespace="x")])) == [
        ("delete", "a"),
        ("set", "b"),
    ]
    (change,) = store.replace([])
    assert change.object == {"metadata": {"namespace": "x", "name": "b"}}
    assert list(store) == []
    assert store.get("x", "b") is None


def test_equal_texts_of_objects_are_one_and_those_of_one_object_stay_its_own():
    one, other = (
        json.loads(json.dumps(obj("an-object") | {"spec": {"of": ["many", {"k": "objects"}]}}))
        for _ in range(2)
    )
    before = json.dumps(one)
    assert json.dumps(shared(one)) == before
    shared(other)
    assert one["spec"]["of"][0] is other["spec"]["of"][0]
    assert one["spec"]["of"][1]["k"] is other["spec"]["of"][1]["k"]
    assert one["metadata"]["name"] is not other["metadata"]["name"]


def test_a_reader_that_changes_an_encoded_object_changes_nothing_in_the_store():
    store = EncodedStore()
    store.set(obj("a"))
    store.get("", "a")["metadata"]["name"] = "b"
    assert store.get("", "a") == obj("a") == next(iter(store))


def test_texts_of_an_object_of_any_depth_are_shared():
    deep: Any = {"metadata": {"name": "a"}, "spec": {}}
    value = deep
    for _ in range(5000):
        value["spec"] = {"kind": "Pod", "spec": {}}
        value = value["spec"]
    assert shared(deep) is deep
    assert value["kind"] is deep["spec"]["kind"]
