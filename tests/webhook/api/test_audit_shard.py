"""The results of several audits as one."""

import random
from typing import Any

import pytest

from webhook.api.audit_shard import members_digest, merged, shard

LIMIT = 5
ALL = members_digest(["a", "b", "c"])


def violation(number: int) -> dict[str, Any]:
    return {
        "group": "",
        "version": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": f"pod-{number:03}",
        "message": "no",
        "enforcementAction": "deny",
    }


def part(numbers: list[int], *, members: str = ALL, timestamp: str = "t1") -> dict[str, Any]:
    """Returns the share of an audit that found these violations."""
    first = [violation(number) for number in sorted(numbers)][:LIMIT]
    return shard(timestamp, members, len(numbers), first[::-1], limit=LIMIT)


@pytest.mark.parametrize("count", [0, 3, LIMIT, 40])
def test_the_sum_of_shards_is_what_one_audit_would_have_found(count: int) -> None:
    """However the objects fall to the members; the order and the limit are those of one."""
    chance = random.Random(count)
    shares: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    for number in range(count):
        shares[chance.choice("abc")].append(number)
    found = merged({uid: part(numbers) for uid, numbers in shares.items()}, shares)
    alone = part(list(range(count)))
    assert found is not None
    assert found["totalViolations"] == count
    assert found["violations"] == alone.get("violations", [])


def test_nothing_is_said_until_all_members_have_spoken_of_the_same_shares() -> None:
    """The old total stays meanwhile."""
    a, b, c = part([1]), part([2]), part([3])
    assert merged({"a": a, "b": b}, ["a", "b", "c"]) is None
    other = part([3], members=members_digest(["c", "d"]))
    assert merged({"a": a, "b": b, "c": other}, ["a", "b", "c"]) is None
    # One is gone: those who stay have not reviewed its share yet.
    assert merged({"a": a, "b": b}, ["a", "b"]) is None
    assert merged({"a": a, "b": b, "c": c, "gone": a}, ["a", "b", "c"]) is not None
    assert merged({}, []) is None


def test_the_time_is_that_of_the_oldest_part() -> None:
    """A part that did not change is not written again, and is no younger for that."""
    parts = {"a": part([], timestamp="t2"), "b": part([]), "c": part([], timestamp="t3")}
    found = merged(parts, parts)
    assert found is not None
    assert found["auditTimestamp"] == "t1"
