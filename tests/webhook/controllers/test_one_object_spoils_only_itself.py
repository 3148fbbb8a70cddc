"""Any content of a cluster's object costs that object alone: all others are followed."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import policies
from tests.webhook.controllers.pod_statuses import pod, says
from tests.webhook.controllers.requested_kinds import CONFIG_MAP, RequestedKinds
from tests.webhook.controllers.signing import keys_of, rollouts_of
from webhook.api import pod_status
from webhook.api.config import CONFIG, SYNC_SET
from webhook.api.pod_status import CONSTRAINT, Pod
from webhook.cluster.store import Key
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import Limits
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.extensions import ExtensionController
from webhook.controllers.apply.policies import PolicyController
from webhook.controllers.apply.reconciler import Reconciler
from webhook.controllers.apply.sync import SyncController
from webhook.controllers.object_faults import ObjectFaults
from webhook.controllers.status import audit_results, by_pod
from webhook.controllers.status.condition_keeper import ConditionKeeper
from webhook.controllers.status.rollout_keeper import RolloutKeeper
from webhook.controllers.status.statuses import signed
from webhook.controllers.status_kinds import LabelledSubject
from webhook.events.policies import EventWriter
from webhook.log import Log
from webhook.metrics.cluster import OBJECT_FAULTS, OBJECTS_SPOILED
from webhook.metrics.registry import Registry
from webhook.policy_kinds.known import TEMPLATE, constraint_gvk
from webhook.readiness import Tracker
from webhook.watch.queue import Event

NOBODY: Any = None
"""For what is never asked here."""


POD = Pod("p", "waddle-system", "p-uid", ("webhook", "status"))


def nested(levels):
    value: Any = "end"
    for _ in range(levels):
        value = {"a": value}
    return value


def deep_schema(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def template(kind="Canary", schema=None, **spec):
    rego = 'package canary\nviolation[{"msg": "no"}] { input.review.object.data.x == "no" }'
    metadata = {"uid": f"t-{kind}", "generation": 1}
    return policies.template(kind, rego, schema=schema or policies.FREE, metadata=metadata, **spec)


def constraint(name="canary", kind="Canary", parameters=None, status=None, annotations=None):
    metadata = {"uid": name, "generation": 1}
    made = policies.constraint(kind, name, kinds=["ConfigMap"], metadata=metadata)
    if parameters is not None:
        made["spec"]["parameters"] = parameters
    if status is not None:
        made["status"] = status
    if annotations is not None:
        made["metadata"]["annotations"] = annotations
    return made


class Bench:
    """The followers of one replica, with their log and metrics."""

    def __init__(self):
        self.lines = []
        self.registry = Registry()
        object_faults = ObjectFaults(Log(self.lines.append).logger("cluster"), self.registry)
        self.client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
        tracker = Tracker(lambda: 0.0)
        self.policy = PolicyController(
            self.client, tracker, POD, lambda: "2026-01-01T00:00:00Z", object_faults=object_faults
        )
        self.data = SyncController(self.client, tracker, POD)
        self.reconciler = Reconciler(
            self.client,
            tracker,
            self.policy,
            self.data,
            ExtensionController(tracker, POD, object_faults=object_faults),
            namespace="waddle-system",
            policy_watches=RequestedKinds(),
            data_watches=RequestedKinds(),
            object_faults=object_faults,
        )
        self.reconciler.begin()
        self.conditions = ConditionKeeper(EventWriter(NOBODY, NOBODY), POD, NOBODY)
        self.rollouts = RolloutKeeper(
            EventWriter(NOBODY, NOBODY),
            POD,
            lambda event, **details: None,
            rollouts_of(keys_of(NOBODY)),
        )

    def take(self, gvk, document, namespace=""):
        key = Key(namespace, document["metadata"]["name"])
        self.reconciler.take_policy(Event("set", gvk, key, document))

    def take_constraint(self, document):
        self.take(constraint_gvk(document["kind"]), document)

    def status(self, *parts):
        document = self.reconciler.statuses().get(pod_status.pack_name("p", *parts))
        return None if document is None else document["status"]

    def aggregated(self, document):
        """The status that the object should have, as the status operation makes it."""
        subject = LabelledSubject(CONSTRAINT.kind, document["kind"], document["metadata"]["name"])
        foreign = says("a", of=document, enforced=True, enforcementAction="dryrun")
        statuses = [signed(foreign, keys_of(NOBODY).sign)]
        status = by_pod.merged_status(document, statuses, CONSTRAINT, frozenset({"a-uid"}))
        pods = [pod("a", ready=True)]
        self.conditions.seen(subject, document)
        status = self.conditions.merged(subject, document, status, statuses, pods)
        status = audit_results.merged(subject, document, status, statuses, pods)
        return self.rollouts.merged(subject, document, status, statuses, pods)

    def denied(self, name="canary", kind="Canary"):
        """Whether a ConfigMap is refused by this constraint."""
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "ns"},
            "data": {"x": "no"},
        }
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
        found = self.client.snapshot.review(
            AugmentedObject(obj, namespace, "CREATE"),
            enforcement_point="validation.gatekeeper.sh",
            limits=Limits(),
        )
        return (kind, name) in {result.constraint.key for result in found.results}

    def follows(self):
        """Whether a canary that comes now is enforced, and said to be."""
        self.take(TEMPLATE, template())
        self.take_constraint(constraint())
        self.reconciler.published()
        assert "errors" not in self.status("canary")
        assert self.status("canary", "canary")["enforced"] is True
        return self.denied()


@pytest.fixture
def bench():
    return Bench()


@pytest.mark.parametrize(
    "schema",
    [
        deep_schema(150),
        deep_schema(3_000),
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": "a"}}},
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 0}}},
        {"type": "object", "properties": {"a": {"type": ["string"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": 5}}},
        {"type": "object", "required": 5},
    ],
    ids=["150 levels", "3000 levels", "maxLength", "multipleOf", "types", "enum", "required"],
)
def test_a_template_whose_schema_is_strange_ends_in_its_own_status(bench, schema):
    bench.take(TEMPLATE, template("Strange", schema))
    bench.take_constraint(constraint("of-it", "Strange", {"a": 4}))
    bench.take_constraint(constraint("text-of-it", "Strange", {"a": "text"}))
    bench.reconciler.published()

    assert bench.status("strange") is not None
    assert bench.follows()


@pytest.mark.parametrize("levels", [300, 1_100, 9_000])
def test_a_constraint_with_deep_parameters_ends_in_its_own_status(bench, levels):
    bench.take(TEMPLATE, template())
    for generation in (1, 2):
        document = constraint("deep", parameters=nested(levels))
        document["metadata"]["generation"] = generation
        bench.take_constraint(document)
        bench.take_constraint(copy_deeply(document))
        bench.reconciler.published()

    found = bench.status("canary", "deep")
    assert found["observedGeneration"] == 2
    assert found["enforced"] is (not found.get("errors"))
    bench.aggregated(document)
    assert bench.follows()


def copy_deeply(document):
    """An equal document of other objects, however deep."""
    pickled = copy.copy(document)
    pickled["metadata"] = {**document["metadata"], "resourceVersion": "2"}
    pickled["status"] = {"totalViolations": 1}
    value, levels = document["spec"]["parameters"], 0
    while type(value) is dict:
        value, levels = value["a"], levels + 1
    pickled["spec"] = {**document["spec"], "parameters": nested(levels)}
    return pickled


@pytest.mark.parametrize(
    "annotation",
    [
        "dryrun quiet=9999999999h",
        "dryrun after=9999999999h, warn quiet=999999999999999999999999h",
        "dryrun quiet=" + "9" * 400 + "h",
        ", ".join(["dryrun"] * 500),
        "dryrun quiet=1h quiet=1h",
    ],
)
def test_a_roll_out_without_bound_is_refused_and_its_violations_harm_nobody(bench, annotation):
    bench.take(TEMPLATE, template())
    document = constraint("staged", annotations={"waddle.dev/rollout": annotation})
    bench.take_constraint(document)
    bench.reconciler.published()
    bench.policy.violated("Canary", "staged", 1_800_000_000.0)
    bench.aggregated(document)

    assert "waddle.dev/rollout" in bench.status("canary", "staged")["errors"][0]["message"]
    assert bench.follows()


STRANGE_STATUSES = [
    "a text",
    5,
    ["x"],
    {"conditions": "x"},
    {"conditions": ["x"]},
    {"conditions": 5},
    {"conditions": [{"type": {}}]},
    {"conditions": [{"type": "Active", "status": {}, "observedGeneration": "x"}]},
    {"conditions": [{"status": "True"}]},
    {"rollout": {"steps": [{"action": {}, "since": "2026-01-01T00:00:00Z"}], "state": "x"}},
    {
        "rollout": {
            "steps": [{"action": {}, "since": "2026-01-01T00:00:00Z"}],
            "state": "Progressing",
            "observedGeneration": 1,
        }
    },
    {"rollout": "x"},
    {"rollout": {"steps": 5}},
    {"byPod": "x", "auditTimestamp": 5, "totalViolations": "x", "violations": {}},
    {"byPod": [5, {"id": {}}]},
]


@pytest.mark.parametrize("status", STRANGE_STATUSES, ids=str)
def test_a_status_of_any_shape_is_written_over_and_harms_nobody(bench, status):
    bench.take(TEMPLATE, template())
    document = constraint(
        "strange", status=status, annotations={"waddle.dev/rollout": "dryrun after=1h"}
    )
    bench.take_constraint(document)
    bench.reconciler.published()
    expected = bench.aggregated(document)

    assert [item["type"] for item in expected["conditions"]][-4:] == [
        "Active",
        "Degraded",
        "Error",
        "Enforced",
    ]
    assert expected["byPod"][0]["id"] == "a"
    assert expected["rollout"]["steps"][0]["action"] == "dryrun"
    assert bench.aggregated(document | {"status": expected}) is None
    assert bench.status("canary", "strange")["enforced"] is True
    assert bench.follows()


@pytest.mark.parametrize(
    "kind", ["ConstraintTemplate", "CONSTRAINTTEMPLATE", "X" * 60, "1a", "a_b"]
)
def test_a_template_of_a_kind_that_cannot_be_ends_in_its_own_status(bench, kind):
    bench.take(TEMPLATE, template(kind))
    bench.take_constraint(constraint("of-it", kind))
    bench.reconciler.published()

    assert bench.status(kind.lower())["errors"][0]["code"] == "create_error"
    assert bench.follows()


def test_what_nobody_foresaw_is_in_the_status_in_one_line_of_the_log_and_counted(bench):
    bench.take(TEMPLATE, template())
    document = constraint("deep")
    document["spec"]["match"] = {"labelSelector": nested(2_000)}
    bench.take_constraint(document)
    bench.take_constraint(document | {"metadata": {**document["metadata"], "generation": 2}})
    bench.reconciler.published()

    assert "nested" in bench.status("canary", "deep")["errors"][0]["message"]
    assert bench.follows()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["deny", "warn", "dryrun", "scoped", "*", "True", "Active", "x" * 300]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "status", "properties", "items", "spec", "match", "kinds", "conditions"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
        | st.integers(0, 1_500).map(nested)
    ),
    max_leaves=12,
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            "waddle.dev/rollout",
            "waddle.dev/on-error",
            "waddle.dev/rollout-pause",
            "waddle.dev/rollback-to",
            "metadata.gatekeeper.sh/requires-sync-data",
        ]
    ),
    st.text(max_size=20)
    | st.sampled_from(["dryrun quiet=1h", "dryrun after=1h, warn quiet=2h", "true", "1", "[[]]"])
    | JSON.map(lambda value: json.dumps(value) if levels_of(value) < 100 else "deep"),
)


def levels_of(value):
    deepest, waiting = 0, [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        deepest = max(deepest, depth)
        below = item.values() if type(item) is dict else item if type(item) is list else ()
        waiting += [(part, depth + 1) for part in below]
    return deepest


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_replica_follows_a_canary_whatever_is_written_around_it(data):
    bench = Bench()
    schema = data.draw(JSON | st.dictionaries(st.sampled_from(["a", "type"]), JSON))
    strange = template("Strange", schema={"type": "object", "properties": {"a": schema}})
    if data.draw(st.booleans()):
        strange["spec"] = data.draw(JSON)
    strange["metadata"]["annotations"] = data.draw(ANNOTATIONS)
    bench.take(TEMPLATE, template())
    bench.take(TEMPLATE, strange)
    for kind in ("Strange", "Canary"):
        document = constraint("strange", kind, parameters={"a": data.draw(JSON)})
        document["metadata"]["annotations"] = data.draw(ANNOTATIONS)
        document["status"] = data.draw(JSON)
        if data.draw(st.booleans()):
            document["spec"] = data.draw(JSON)
        bench.take_constraint(document)
        bench.policy.violated(kind, "strange", 1_800_000_000.0)
        bench.aggregated(document)
    for gvk, namespace, name in ((CONFIG, "waddle-system", "config"), (SYNC_SET, "", "s")):
        document = {
            "apiVersion": f"{gvk.group}/{gvk.version}",
            "kind": gvk.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": "u", "generation": 1},
            "spec": data.draw(JSON),
        }
        bench.take(gvk, document, namespace)
    sets = {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}
    bench.take(SYNC_SET, {"kind": "SyncSet", "metadata": {"name": "t"}, "spec": sets})
    thing = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ns"},
        "data": data.draw(JSON),
    }
    event = Event("set", CONFIG_MAP, Key("ns", "a"), thing)
    bench.reconciler.take_data(event)
    bench.reconciler.published()

    assert bench.follows()


def test_the_boundary_tells_of_an_object_once_and_forgets_it_when_it_is_well():
    lines, registry = [], Registry()
    object_faults = ObjectFaults(Log(lines.append).logger("x"), registry)
    for _ in range(3):
        with object_faults.object("data", "v1/Pod", "ns", "bad"):
            raise KeyError("metadata")
    with object_faults.object("data", "v1/Pod", "ns", "good"):
        pass
    assert len(lines) == 1
    assert b'"object":"v1/Pod/ns/bad"' in lines[0]
    assert registry.counters[OBJECT_FAULTS] == {("data",): 3}
    assert registry.gauges[OBJECTS_SPOILED] == {("data",): 1}
    with object_faults.object("data", "v1/Pod", "ns", "bad"):
        pass
    assert registry.gauges[OBJECTS_SPOILED] == {}
