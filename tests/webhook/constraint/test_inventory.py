"""The tree of referential data: published trees never change, and are in order of their names."""

import itertools

import pytest

from webhook.constraint.inventory import Inventory

PATHS = (
    ("cluster", "v1", "Namespace", "b"),
    ("cluster", "v1", "Namespace", "a"),
    ("namespace", "shop", "v1", "Pod", "one"),
    ("namespace", "shop", "apps/v1", "Deployment", "web"),
    ("namespace", "bank", "v1", "Pod", "two"),
)


def in_order(tree, depth=4):
    """Whether each level is in order of its names; objects are left as they are."""
    if depth == 0 or not isinstance(tree, dict):
        return True
    return list(tree) == sorted(tree) and all(in_order(one, depth - 1) for one in tree.values())


@pytest.mark.parametrize("paths", list(itertools.permutations(PATHS)))
def test_every_order_of_events_publishes_the_same_order_of_names(paths):
    """CEL iterates a map as it stands: replicas that saw events in another order say the same."""
    at_once, one_by_one = Inventory(), Inventory()
    for path in paths:
        at_once.put(path, {"z": 1, "a": 2})
        one_by_one.put(path, {"z": 1, "a": 2})
        one_by_one.publish()
    assert in_order(at_once.publish())
    assert repr(one_by_one.publish()) == repr(at_once.publish())
    assert list(at_once.get(PATHS[0]) or ()) == ["z", "a"]


def test_a_published_tree_stays_as_it_is():
    inventory = Inventory()
    inventory.put(PATHS[0], {"value": 1})
    before = inventory.publish()
    shown = repr(before)
    inventory.put(PATHS[1], {"value": 2})
    inventory.put(PATHS[0], None)
    assert repr(before) == shown
    assert "a" in inventory.publish()["cluster"]["v1"]["Namespace"]


def test_a_removed_name_that_comes_back_is_in_its_place():
    inventory = Inventory()
    for name in ("a", "b", "c"):
        inventory.put(("cluster", "v1", "Node", name), {})
    inventory.publish()
    inventory.put(("cluster", "v1", "Node", "a"), None)
    inventory.put(("cluster", "v1", "Node", "a"), {})
    assert list(inventory.publish()["cluster"]["v1"]["Node"]) == ["a", "b", "c"]
