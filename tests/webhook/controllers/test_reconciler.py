"""Events in order: which kinds are wanted after each, and that nothing stale is applied."""

import json

import pytest

from tests import policies
from tests.webhook.controllers.requested_kinds import CONFIG_MAP, RequestedKinds, template
from webhook.api.config import CONFIG, SYNC_SET
from webhook.api.pod_status import Pod
from webhook.cluster.kinds import NAMESPACE
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.extensions import ExtensionController
from webhook.controllers.apply.policies import PolicyController
from webhook.controllers.apply.reconciler import Reconciler
from webhook.controllers.apply.sync import SyncController
from webhook.policy_kinds.known import EXTENSIONS, TEMPLATE, constraint_gvk
from webhook.policy_kinds.table import CONSTRAINT_GROUPS
from webhook.readiness import Tracker
from webhook.watch.queue import Event

POD = Pod("p", "waddle-system", "uid", ("webhook",))
KIND = constraint_gvk("Always")


class Bench:
    """A reconciler with real controllers."""

    def __init__(self, **options):
        self.client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
        self.tracker = Tracker(lambda: 0.0)
        self.policy_watches, self.data_watches = RequestedKinds(), RequestedKinds()
        self.policy = PolicyController(self.client, self.tracker, POD, lambda: "now", **options)
        self.reconciler = Reconciler(
            self.client,
            self.tracker,
            self.policy,
            SyncController(self.client, self.tracker, POD),
            ExtensionController(self.tracker, POD),
            namespace="waddle-system",
            policy_watches=self.policy_watches,
            data_watches=self.data_watches,
        )
        self.reconciler.begin()
        self.synced(CONSTRAINT_GROUPS.gvk, *(row.gvk for row in EXTENSIONS))

    def set(self, gvk, document, namespace=""):
        key = Key(namespace, document["metadata"]["name"])
        self.reconciler.take_policy(Event("set", gvk, key, document))

    def delete(self, gvk, name, namespace=""):
        self.reconciler.take_policy(Event("delete", gvk, Key(namespace, name), {}))

    def synced(self, *gvks):
        for gvk in gvks:
            self.reconciler.take_policy(Event("synced", gvk))

    def awaited(self):
        return [str(item).partition(", for")[0] for item in self.tracker.awaited()]


def constraint(name="all"):
    return policies.constraint("Always", name, metadata={"uid": name, "generation": 1})


def config(*kinds):
    only = [{"group": gvk.group, "version": gvk.version, "kind": gvk.kind} for gvk in kinds]
    return {"kind": "Config", "metadata": {"name": "config"}, "spec": {"sync": {"syncOnly": only}}}


def test_readiness_waits_for_every_list_and_for_the_kinds_that_lists_bring():
    bench = Bench()
    fixed = {TEMPLATE, NAMESPACE, CONFIG, SYNC_SET, CONSTRAINT_GROUPS.gvk}
    assert bench.policy_watches.requested == fixed | {row.gvk for row in EXTENSIONS}
    bench.set(TEMPLATE, template())
    bench.set(CONFIG, config(CONFIG_MAP), "waddle-system")
    bench.synced(TEMPLATE, NAMESPACE, CONFIG, SYNC_SET)
    bench.reconciler.published()
    assert bench.awaited() == [
        "the list of Always.constraints.gatekeeper.sh",
        "the list of v1/ConfigMap",
    ]
    assert bench.policy_watches.requested >= {KIND}
    assert bench.data_watches.requested == {CONFIG_MAP}
    bench.set(KIND, constraint())
    bench.synced(KIND)
    assert "Always.constraints.gatekeeper.sh all" in bench.awaited()
    bench.reconciler.take_data(Event("synced", CONFIG_MAP))
    assert bench.reconciler.published()
    assert bench.tracker.satisfied
    assert not bench.reconciler.published()


def test_a_kind_without_a_crd_is_not_waited_for():
    bench = Bench()
    bench.set(TEMPLATE, template())
    bench.synced(TEMPLATE, NAMESPACE, CONFIG, SYNC_SET)
    bench.reconciler.published()
    assert bench.reconciler.awaited_kinds == {KIND}
    bench.reconciler.absent(KIND)
    assert bench.tracker.satisfied


def test_templates_that_are_not_served_are_waited_for_and_other_kinds_are_not():
    bench = Bench()
    for gvk in (TEMPLATE, CONFIG, SYNC_SET, NAMESPACE):
        bench.reconciler.absent(gvk)
    assert bench.awaited() == ["the list of ConstraintTemplate"]


def test_a_synced_kind_that_is_not_served_is_no_data_and_not_in_sync():
    bench = Bench()
    annotation = '[[{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}]]'
    key = "metadata.gatekeeper.sh/requires-sync-data"
    bench.set(TEMPLATE, template(annotations={key: annotation}))
    bench.set(CONFIG, config(CONFIG_MAP), "waddle-system")
    bench.reconciler.absent(CONFIG_MAP)
    assert bench.client.snapshot.entries == ()
    bench.reconciler.take_data(Event("synced", CONFIG_MAP))
    assert [entry.template.name for entry in bench.client.snapshot.entries] == ["always"]


def test_a_template_that_goes_takes_its_kind_s_watch_with_it_so_that_a_new_one_gets_all():
    bench = Bench()
    bench.set(TEMPLATE, template("one"))
    bench.set(KIND, constraint())
    bench.delete(TEMPLATE, "always")
    assert KIND not in bench.policy_watches.requested
    bench.set(TEMPLATE, template("two"))
    assert bench.client.snapshot.constraints == ()
    assert bench.policy_watches.history[-3:] == [
        ("add", "Always"),
        ("remove", "Always"),
        ("add", "Always"),
    ]


def test_an_object_that_is_being_deleted_is_gone_whatever_finalizer_keeps_it():
    """As in Gatekeeper: what somebody has deleted decides no more, and no readiness waits for it."""
    bench = Bench()
    bench.set(TEMPLATE, template())
    bench.set(KIND, constraint("kept"))
    bench.set(KIND, constraint("gone"))
    bench.synced(TEMPLATE, NAMESPACE, CONFIG, SYNC_SET, KIND)
    bench.reconciler.published()
    assert len(bench.client.snapshot.constraints) == 2

    bench.set(KIND, deleted(constraint("gone")))
    bench.reconciler.published()

    assert [one.name for one in bench.client.snapshot.constraints] == ["kept"]
    assert bench.tracker.satisfied
    bench.set(TEMPLATE, deleted(template()))
    bench.reconciler.published()
    assert not bench.client.snapshot.constraints
    assert bench.reconciler.statuses() == {}


def deleted(document):
    return document | {
        "metadata": document["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    }


def test_a_config_elsewhere_or_of_another_name_has_no_effect():
    bench = Bench()
    bench.set(CONFIG, config(CONFIG_MAP), "elsewhere")
    other = config(CONFIG_MAP)
    other["metadata"]["name"] = "other"
    bench.set(CONFIG, other, "waddle-system")
    assert bench.data_watches.requested == set()


def test_namespaces_serve_selectors_without_being_data():
    bench = Bench()
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    bench.set(NAMESPACE, document)
    snapshot = bench.client.snapshot
    assert snapshot.namespaces == {"n": document}
    assert snapshot.inventory == {}
    bench.delete(NAMESPACE, "n")
    assert bench.client.snapshot.namespaces == {}
    assert snapshot.namespaces == {"n": document}


def test_a_list_that_fails_is_awaited_with_its_error():
    bench = Bench()
    bench.set(TEMPLATE, template())
    bench.set(CONFIG, config(CONFIG_MAP), "waddle-system")
    for gvk in (TEMPLATE, KIND, CONFIG_MAP):
        bench.reconciler.trouble(gvk, "403 Forbidden")
    failed = [item.kind for item in bench.tracker.awaited() if item.error == "403 Forbidden"]
    assert failed == ["Always.constraints.gatekeeper.sh", "ConstraintTemplate", "v1/ConfigMap"]


def requiring(*kinds):
    clauses = [{"groups": [k.group], "versions": [k.version], "kinds": [k.kind]} for k in kinds]
    return {"metadata.gatekeeper.sh/requires-sync-data": json.dumps([clauses])}


@pytest.mark.parametrize("wait_for_broken", [False, True])
def test_a_template_whose_data_nobody_syncs_does_not_hold_readiness_back(wait_for_broken):
    bench = Bench(wait_for_broken=wait_for_broken)
    bench.set(TEMPLATE, template(annotations=requiring(CONFIG_MAP)))
    bench.synced(TEMPLATE, NAMESPACE)
    bench.set(KIND, constraint())
    bench.synced(KIND)
    bench.reconciler.published()
    assert bench.awaited() == ["the list of Config", "the list of SyncSet"]

    bench.synced(CONFIG, SYNC_SET)
    bench.reconciler.published()
    assert bench.tracker.satisfied
    statuses = {document["kind"]: document["status"] for document in bench.policy.statuses.values()}
    assert statuses["ConstraintTemplatePodStatus"]["missingData"] == [
        {"group": "", "version": "v1", "kind": "ConfigMap"}
    ]
    assert statuses["ConstraintPodStatus"]["enforced"] is False


def test_a_template_whose_data_is_on_its_way_is_in_force_before_the_replica_is_ready():
    bench = Bench()
    bench.set(TEMPLATE, template(annotations=requiring(CONFIG_MAP)))
    bench.synced(TEMPLATE, NAMESPACE)
    bench.set(KIND, constraint())
    bench.synced(KIND)
    bench.set(CONFIG, config(CONFIG_MAP), "waddle-system")
    bench.synced(CONFIG, SYNC_SET)
    bench.reconciler.published()
    assert bench.awaited() == ["the list of v1/ConfigMap"]

    bench.reconciler.take_data(Event("synced", CONFIG_MAP))
    bench.reconciler.published()
    assert bench.tracker.satisfied
    assert [item.name for item in bench.client.snapshot.constraints] == ["all"]
