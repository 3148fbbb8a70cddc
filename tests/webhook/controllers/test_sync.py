"""Referential data: which kinds are asked for, what of them policies may read, and when."""

from webhook.api.config import excluded_namespaces, synced_kinds
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import Pod
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.sync import SyncController
from webhook.readiness import Tracker

POD = GroupVersionKind("", "v1", "Pod")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")


def config(*kinds, match=()):
    only = [{"group": gvk.group, "version": gvk.version, "kind": gvk.kind} for gvk in kinds]
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": "waddle-system", "uid": "u", "generation": 1},
        "spec": {"sync": {"syncOnly": only}, "match": list(match)},
    }


def sync_set(*kinds):
    gvks = [{"group": gvk.group, "version": gvk.version, "kind": gvk.kind} for gvk in kinds]
    return {"kind": "SyncSet", "metadata": {"name": "s"}, "spec": {"gvks": gvks}}


def thing(kind, name, namespace=""):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def bench():
    client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
    tracker = Tracker(lambda: 0.0)
    return client, tracker, SyncController(client, tracker, Pod("p", "waddle-system", "uid"))


def inventory(client):
    return client.snapshot.inventory


def test_kinds_are_those_of_config_and_all_sync_sets_together():
    _, _, sync = bench()
    sync.config(config(POD))
    sync.sync_set("s", sync_set(NAMESPACE, POD))
    assert sync.kinds == {POD, NAMESPACE}
    sync.config(None)
    sync.sync_set("s", sync_set(NAMESPACE))
    assert sync.kinds == {NAMESPACE}
    sync.sync_set("s", None)
    assert sync.kinds == frozenset()


def test_a_kind_is_synced_once_all_its_objects_are_in_and_its_data_goes_with_it():
    client, tracker, sync = bench()
    sync.config(config(POD))
    sync.data(POD, ("n", "a"), thing("Pod", "a", "n"))
    assert sync.synced == frozenset()
    assert [item.kind for item in tracker.awaited()] == ["v1/Pod"]
    sync.listed(POD)
    assert sync.synced == {POD}
    assert tracker.satisfied
    assert inventory(client)["namespace"]["n"]["v1"]["Pod"].keys() == {"a"}
    sync.config(None)
    assert sync.synced == frozenset()
    assert inventory(client) == {}


def test_an_event_of_a_kind_that_nobody_wants_any_more_is_no_data():
    client, _, sync = bench()
    sync.data(POD, ("n", "a"), thing("Pod", "a", "n"))
    sync.listed(POD)
    assert inventory(client) == {}
    assert sync.synced == frozenset()


def test_objects_of_excluded_namespaces_are_no_data_and_come_back():
    client, _, sync = bench()
    sync.config(config(POD, NAMESPACE))
    sync.data(POD, ("kube-system", "a"), thing("Pod", "a", "kube-system"))
    sync.data(POD, ("n", "b"), thing("Pod", "b", "n"))
    sync.data(NAMESPACE, ("", "kube-system"), thing("Namespace", "kube-system"))
    before = inventory(client)
    match = [{"excludedNamespaces": ["kube-*"], "processes": ["sync"]}]
    sync.config(config(POD, NAMESPACE, match=match))
    assert inventory(client) == {"namespace": {"n": {"v1": {"Pod": {"b": thing("Pod", "b", "n")}}}}}
    assert not sync.exclusions.webhook("kube-system")
    sync.config(config(POD, NAMESPACE))
    assert inventory(client) == before


def test_exclusion_from_the_webhook_is_by_wildcards_for_its_process_or_all():
    _, _, sync = bench()
    match = [
        {"excludedNamespaces": ["kube-*"], "processes": ["webhook"]},
        {"excludedNamespaces": ["mine"], "processes": ["*"]},
        {"excludedNamespaces": ["audited"], "processes": ["audit"]},
    ]
    sync.config(config(match=match))
    assert [sync.exclusions.webhook(name) for name in ("kube-x", "mine", "audited", "other")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_config_has_a_status_of_its_own():
    _, _, sync = bench()
    assert sync.statuses() == {}
    sync.config(config())
    ((name, status),) = sync.statuses().items()
    assert name == "p-waddle--system-config"
    assert status["kind"] == "ConfigPodStatus"
    assert (status["status"]["configUID"], status["status"]["observedGeneration"]) == ("u", 1)


def test_a_config_without_sense_asks_for_nothing():
    for spec in (None, [], {"sync": []}, {"sync": {"syncOnly": [1, {"kind": "Pod"}]}}):
        assert synced_kinds({"kind": "Config", "spec": spec}) == frozenset()
    for match in (1, [1], [{"processes": "webhook", "excludedNamespaces": ["a"]}]):
        assert excluded_namespaces({"spec": {"match": match}}, "webhook") == ()


def versioned(name, version, namespace="a"):
    found = thing("Pod", name, namespace)
    found["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": version}
    return found


def test_the_digest_names_the_data_whatever_the_order_it_came_in():
    first, second, empty = (bench()[2] for _ in range(3))
    for sync in (first, second, empty):
        sync.config(config(POD, match=[{"excludedNamespaces": ["hidden"], "processes": ["sync"]}]))
    first.data(POD, ("a", "one"), versioned("one", "1"))
    first.data(POD, ("a", "two"), versioned("two", "2"))
    second.data(POD, ("a", "two"), versioned("two", "1"))
    second.data(POD, ("hidden", "x"), versioned("x", "1", "hidden"))
    second.data(POD, ("a", "three"), versioned("three", "1"))
    assert first.digest != second.digest
    second.data(POD, ("a", "two"), versioned("two", "2"))
    second.data(POD, ("a", "one"), versioned("one", "1"))
    assert first.digest != second.digest
    second.data(POD, ("a", "three"), None)
    second.data(POD, ("a", "three"), None)
    assert first.digest == second.digest != empty.digest
    for sync in (first, second):
        sync.config(config())
        assert sync.digest == empty.digest


def test_the_digest_follows_what_is_excluded():
    _, _, sync = bench()
    sync.config(config(POD))
    nothing = sync.digest
    sync.data(POD, ("a", "one"), versioned("one", "1"))
    all_of_it = sync.digest
    hiding = [{"excludedNamespaces": ["a"], "processes": ["sync"]}]
    sync.config(config(POD, match=hiding))
    assert sync.digest == nothing
    sync.data(POD, ("a", "one"), versioned("one", "1"))
    sync.config(config(POD))
    assert sync.digest == all_of_it
