"""Pods that count, and the Pod that may write for all."""

from functools import partial

from webhook.replicas.pods import (
    AUDIT_PODS,
    WEBHOOK_PODS,
    is_ours,
    is_webhook,
    live,
    status_writers_of,
    working,
)
from webhook.replicas.rendezvous import chosen, rank


def pod(uid, phase="Running", *, ready="", ending=False):
    metadata = {"uid": uid} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if ending else {})
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}


def status(uid, *operations):
    owner = {"kind": "Pod", "uid": uid}
    return {
        "metadata": {"ownerReferences": [owner]},
        "status": {"operations": list(operations)},
    }


def test_a_pod_counts_until_it_has_finished_and_writes_until_it_ends_or_is_unready():
    pods = [
        pod("a"),
        pod("b", ready="True"),
        pod("c", ready="False"),
        pod("d", ending=True),
        pod("e", "Failed"),
        pod("f", "Succeeded"),
    ]
    assert live(pods) == {"a", "b", "c", "d"}
    assert working(pods) == {"a", "b"}


def test_a_pod_is_known_by_its_labels():
    webhook, audit = (
        {"metadata": {"labels": dict(item.split("=") for item in selector.split(","))}}
        for selector in (WEBHOOK_PODS, AUDIT_PODS)
    )
    assert is_webhook(webhook)
    assert is_ours(webhook)
    assert not is_webhook(audit)
    assert is_ours(audit)
    for labels in (None, {}, [], {"app.kubernetes.io/name": "waddle"}):
        foreign = {"metadata": {"labels": labels}}
        assert not is_webhook(foreign)
        assert not is_ours(foreign)


def test_writers_are_those_whose_statuses_name_the_operation():
    assert status_writers_of(status("a", "status", "webhook")) == {"a"}
    assert status_writers_of(status("b", "webhook")) == frozenset()


def test_ranks_are_one_order_that_all_replicas_agree_on():
    replicas = ["a", "b", "c"]
    for key in ("x", "y", "z"):
        order = sorted(replicas, key=partial(rank, key, replicas))
        assert [rank(key, replicas, replica) for replica in order] == [0, 1, 2]
        assert chosen(key, replicas) == order[0]
        assert chosen(key, order[1:]) == order[1]
