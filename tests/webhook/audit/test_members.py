"""The members of an audit, and the share of each."""

from typing import Any

from webhook.api.gvk import GroupVersionKind
from webhook.audit.members import Members, members

POD = GroupVersionKind("", "v1", "Pod")


def pod(uid: str, *, ready: bool = True, **metadata: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": {"uid": uid, **metadata},
        "status": {"phase": "Running", "conditions": [condition]},
    }


def test_everything_falls_to_exactly_one_member() -> None:
    """Each member has a part of many namespaces."""
    uids = frozenset({"a", "b", "c"})
    all_ = [Members(uids, uid) for uid in sorted(uids)]
    taken = dict.fromkeys(uids, 0)
    for number in range(300):
        owners = [item.uid for item in all_ if item.share(POD, f"namespace-{number}")]
        assert len(owners) == 1
        taken[owners[0]] += 1
    assert min(taken.values()) > 60  # a hundred each, give or take


def test_when_a_member_goes_only_its_share_moves() -> None:
    """To those who stay."""
    before = Members(frozenset({"a", "b", "c"}), "a")
    after = Members(frozenset({"a", "b"}), "a")
    for number in range(100):
        name = f"namespace-{number}"
        assert after.share(POD, name) or not before.share(POD, name)
    assert before.digest != after.digest


def test_versions_of_a_kind_fall_to_the_same_member() -> None:
    """Members that are upgraded one by one may prefer different ones."""
    beta = GroupVersionKind("", "v1beta1", "Pod")
    one = Members(frozenset({"a", "b"}), "a")
    assert all(one.share(POD, str(n)) == one.share(beta, str(n)) for n in range(50))


def test_one_alone_has_everything() -> None:
    """Unready and terminating Pods do not count."""
    found = members(
        [
            pod("own", ready=False),
            pod("unready", ready=False),
            pod("ending", deletionTimestamp="2026-01-01T00:00:00Z"),
            {"metadata": {"uid": "new"}},
            {**pod("finished"), "status": {**pod("x")["status"], "phase": "Failed"}},
        ],
        "own",
    )
    assert found.is_alone
    assert found.share(POD, "anything")
    assert members([pod("own"), pod("other")], "own").uids == {"own", "other"}
