"""Many violations in a status: Gatekeeper's order, limit and truncation."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.audit.made import DEPLOYMENT, identity, result
from webhook.audit.tally import MESSAGE_BYTES_MAX, Count, StatusViolation, Tally, truncated


def violation(name: str, message: str = "m") -> StatusViolation:
    return StatusViolation("", "v1", "Pod", "space", name, message, "deny")


def test_the_first_violations_in_order_are_kept_and_the_last_of_them_comes_first() -> None:
    """Gatekeeper's queue gives the greatest of the smallest first."""
    names = [f"{number:03}" for number in range(100)]
    random.Random(1).shuffle(names)
    count = Count(limit=3)
    for name in names:
        count.add(violation(name))
    assert count.total == 100
    assert [item["name"] for item in count.documents()] == ["002", "001", "000"]


def test_the_order_is_group_version_kind_namespace_name_message_and_action() -> None:
    count = Count(limit=10)
    found = [
        StatusViolation("", "v1", "Pod", "b", "a", "m", "deny"),
        StatusViolation("apps", "v1", "Deployment", "a", "a", "m", "deny"),
        StatusViolation("", "v1", "Pod", "a", "b", "m", "deny"),
        StatusViolation("", "v1", "ConfigMap", "z", "z", "m", "deny"),
        StatusViolation("", "v1", "Pod", "a", "b", "l", "deny"),
    ]
    for item in found:
        count.add(item)
    assert count.first == [found[3], found[4], found[2], found[0], found[1]]


def test_no_limit_of_zero_keeps_any_and_all_are_counted() -> None:
    count = Count(limit=0)
    count.add(violation("a"))
    assert (count.total, count.documents()) == (1, [])


@given(st.lists(st.lists(st.text("ab", max_size=3), max_size=8), max_size=5), st.integers(0, 4))
def test_counts_of_parts_add_up_to_the_count_of_the_whole(
    parts: list[list[str]], limit: int
) -> None:
    whole, merged = Count(limit), Count(limit)
    for part in parts:
        of_part = Count(limit)
        for name in part:
            whole.add(violation(name))
            of_part.add(violation(name))
        merged.merge(of_part)
    assert merged == whole


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("x" * 256, "x" * 256),
        ("x" * 257, "x" * 253 + "..."),
        ("é" * 128, "é" * 128),
        # 253 bytes are 126 characters and the first byte of the next.
        ("é" * 129, "é" * 126 + "\ufffd..."),
        # And here two bytes of three, which Go's encoder replaces one by one.
        ("a" + "語" * 86, "a" + "語" * 84 + "..."),
        ("aa" + "語" * 86, "aa" + "語" * 83 + "\ufffd\ufffd..."),
        ("", ""),
    ],
)
def test_a_long_message_is_cut_by_bytes_as_go_cuts_it(message: str, shown: str) -> None:
    assert truncated(message) == shown
    assert len(truncated("x" * 1000).encode()) == MESSAGE_BYTES_MAX


def test_optional_fields_are_there_only_with_a_value() -> None:
    """A cluster-scoped object has no namespace, a plain constraint no list of actions."""
    tally = Tally(5)
    tally.add(identity("a", namespace=""), result(action="deny"))
    (plain,) = tally.get(("Kind", "c")).documents()
    assert "namespace" not in plain
    assert "enforcementActions" not in plain
    tally.add(identity("b", DEPLOYMENT), result("s", action="scoped", scoped_actions=("warn",)))
    (scoped,) = tally.get(("Kind", "s")).documents()
    assert scoped["enforcementActions"] == ["warn"]
    assert (scoped["group"], scoped["namespace"]) == ("apps", "space")
    assert tally.get(("Kind", "unknown")).total == 0
