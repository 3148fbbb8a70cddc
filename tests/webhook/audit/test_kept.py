"""Sweeps report the same with and without kept results, whatever changes between them."""

from __future__ import annotations

import asyncio
import copy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests import policies
from tests.webhook.audit.made import (
    DEPLOYMENT,
    POD,
    SECRET,
    constraint,
    template,
)
from tests.webhook.audit.swept import Given, RecordingSink
from tests.webhook.kyverno import making
from webhook import log
from webhook.api.gvk import GroupVersionKind
from webhook.audit.digest_table import ENTRY_BYTES
from webhook.audit.kept import KeptKind, KeptResults, is_of_the_api_server
from webhook.audit.namespaces import Namespaces
from webhook.audit.pages import PartialObject
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks, SweepEnd
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.expansion import Expansion, ExpansionTemplate
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.kyverno.validating_policy import read_kyverno
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.constraint.snapshot import Snapshot

LABEL = """
violation[{"msg": msg, "details": {"has": input.review.object.metadata.labels}}] {
  input.review.object.metadata.labels.app != input.parameters.app
  msg := sprintf("%v is %v", [input.review.name, input.review.object.metadata.labels.app])
}
"""
SPACE = """
violation[{"msg": msg}] {
  msg := sprintf("in %v", [input.review.namespaceObject.metadata.labels.team])
}
"""
DATA = """
violation[{"msg": "there is another"}] {
  data.inventory.namespace[_][_].Secret[name]
  name != input.review.name
}
"""
CLOCK = 'violation[{"msg": sprintf("%v", [time.now_ns()])}] { true }'
SPACES = {name: {"metadata": {"name": name, "labels": {"team": name}}} for name in ("one", "two")}


def labels(rego: str) -> Any:
    """The template L, with a parameter."""
    schema = {"type": "object", "properties": {"app": {"type": "string"}}}
    return policies.template("L", f"package l\n{rego}", schema=schema)


PODS = [constraint("L", "l", POD, parameters={"app": "a"}), constraint("S", "s", POD)]
TEMPLATES = [labels(LABEL), template("S", SPACE), template("D", DATA), template("C", CLOCK)]


def client(*documents: Any, spaces: Any = SPACES) -> Client:
    """Policies in force, with the Namespaces that there are."""
    made = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()])
    for document in TEMPLATES:
        made.add_template(document)
    for document in documents:
        made.add_constraint(document)
    for space in spaces.values():
        made.add_data({"apiVersion": "v1", "kind": "Namespace", **space})
    return made


def pod(name: str, app: str = "a", space: str = "one", version: str = "1") -> dict[str, Any]:
    """A Pod."""
    metadata = {
        "name": name,
        "namespace": space,
        "uid": f"uid-{name}",
        "resourceVersion": version,
        "labels": {"app": app},
    }
    return {"metadata": metadata, "spec": {"hostname": app}}


def generation(number: int, document: Any) -> Any:
    """A constraint that was changed so often."""
    document["metadata"]["generation"] = number
    return document


class Lists(Given):
    """Gives the metadata alone of what is known, as the API server's lists do."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.partial = 0
        self.version = "9"

    async def pages(self, _: Any, resource: Any, kept: Any = None) -> Any:
        page: list[Any] = []
        if kept is not None:
            kept.listed(self.version)
        for item in reversed(self.objects[resource.gvk]):
            alone = {"kind": "PartialObjectMetadata", "metadata": item["metadata"]}
            digest = None if kept is None else kept.known(alone)
            if digest is not None:
                self.partial += 1
                page.append(PartialObject(alone, digest))
            else:
                page.append(copy.deepcopy(item))
        yield page
        if resource.gvk in self.failures:
            raise self.failures[resource.gvk]


def sweep(
    in_force: Snapshot | PolicySet,
    objects: Any,
    kept: KeptResults | None = None,
    *,
    lists: Lists | None = None,
) -> tuple[SweepEnd, RecordingSink]:
    """Returns the end of a sweep, with its results."""
    sink = RecordingSink()
    scope = Scope(in_force if isinstance(in_force, PolicySet) else PolicySet(in_force))
    made = Sweep(
        "2026-01-01T00:00:00Z",
        scope,
        lists or Lists(objects),
        Namespaces(None, scope.snapshot.namespaces),  # type: ignore[arg-type]
        Sinks([sink, Totals(20, [sink])]),
        log.Log(lambda _: None).logger("test"),
        limits=lambda: UNLIMITED,
        kept=kept,
    )
    return asyncio.run(made.run()), sink


def keeping(bytes_max: int = 1 << 20, *, by_version: bool = True) -> KeptResults:
    """Returns empty kept results."""
    return KeptResults(bytes_max, lambda: by_version)


def shown(sink: RecordingSink) -> Any:
    """Returns the results of each object, and the totals."""
    return [
        (one.identity, one.responses._replace(recalled=0), one.excluded) for one in sink.all
    ], sink.totals


@pytest.mark.parametrize("by_version", [True, False])
def test_an_object_that_is_as_it_was_is_reported_without_a_review(by_version: bool) -> None:
    in_force = client(*PODS).snapshot
    objects = {POD: [pod("a"), pod("b", "b"), pod("c", "b", "two")]}
    kept, lists = keeping(by_version=by_version), Lists(objects)
    first, before = sweep(in_force, objects, kept, lists=lists)
    assert (first.recalled, first.reviewed, kept.objects, lists.partial) == (0, 3, 3, 0)
    second, after = sweep(in_force, objects, kept, lists=lists)
    assert (second.recalled, second.reviewed, second.violations) == (3, 3, first.violations)
    assert lists.partial == (3 if by_version else 0)
    assert shown(after) == shown(before)
    assert {one.object["kind"] for one in after.all} == {"Pod"}
    assert [one.responses.recalled for one in after.all] == [2, 2, 2]


def test_an_object_that_is_known_by_its_metadata_is_digested_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digested: list[str] = []
    digest = KeptKind.digest

    def counted(self: KeptKind, item: Any) -> bytes | None:
        digested.append(item["metadata"]["name"])
        return digest(self, item)

    in_force, objects, kept = client(*PODS).snapshot, {POD: [pod("a"), pod("b")]}, keeping()
    sweep(in_force, objects, kept)
    monkeypatch.setattr(KeptKind, "digest", counted)
    end, _ = sweep(in_force, objects, kept)
    assert end.recalled == 2
    assert sorted(digested) == ["a", "b"]


def test_what_changed_is_reviewed_and_what_is_gone_is_forgotten() -> None:
    in_force = client(*PODS).snapshot
    kept = keeping()
    sweep(in_force, {POD: [pod("a"), pod("b"), pod("c")]}, kept)
    objects = {POD: [pod("a"), pod("b", "b", version="2")]}
    end, sink = sweep(in_force, objects, kept)
    assert (end.recalled, kept.objects) == (1, 2)
    assert shown(sink) == shown(sweep(in_force, objects)[1])


def test_an_object_is_reviewed_again_when_its_namespace_is_another() -> None:
    kept = keeping()
    objects = {POD: [pod("a"), pod("b", space="two")]}
    sweep(client(*PODS).snapshot, objects, kept)
    moved = {**SPACES, "two": {"metadata": {"name": "two", "labels": {"team": "moved"}}}}
    made = client(*PODS)
    sweep(made.snapshot, objects, kept)
    made.add_data({"apiVersion": "v1", "kind": "Namespace", **moved["two"]})
    end, sink = sweep(made.snapshot, objects, kept)
    assert end.recalled == 1
    assert [one.msg for one in sink.all[1].responses.results] == ["in moved"]


def test_a_kind_is_reviewed_again_when_a_policy_about_it_is_another_and_others_are_not() -> None:
    made = client(*PODS, constraint("L", "secrets", SECRET, parameters={"app": "a"}))
    objects = {POD: [pod("a")], SECRET: [pod("s")]}
    kept = keeping()
    sweep(made.snapshot, objects, kept)
    made.add_constraint(generation(2, constraint("L", "l", POD, parameters={"app": "x"})))
    end, sink = sweep(made.snapshot, objects, kept)
    assert end.recalled == 1
    assert [one.msg for one in sink.all[0].responses.results] == ["a is a", "in one"]


def test_nothing_is_known_by_its_version_after_a_restore_of_etcd() -> None:
    """The same versions come again, and an object may be another under one."""
    in_force = client(*PODS).snapshot
    lists, kept = Lists({POD: [pod("a"), pod("b")]}), keeping()
    for version, recalled in (("9", 0), ("9", 2), ("10", 2), ("8", 0), ("8", 2)):
        lists.version = version
        if version == "8":
            lists.objects = {POD: [pod("a", "b"), pod("b")]}
        end, sink = sweep(in_force, {}, kept, lists=lists)
        assert (end.recalled, kept.objects) == (recalled, 2)
        assert shown(sink) == shown(sweep(in_force, lists.objects)[1])


def test_policies_that_read_synced_data_are_asked_again_when_it_is_other_data() -> None:
    made = client(constraint("D", "d", POD))
    objects = {POD: [pod("a")]}
    kept = keeping()
    sweep(made.snapshot, objects, kept)
    assert sweep(made.snapshot, objects, kept)[0].recalled == 1
    made.add_data({"apiVersion": "v1", "kind": "Secret", **pod("s")})
    end, sink = sweep(made.snapshot, objects, kept)
    assert (end.recalled, end.violations) == (0, 1)
    assert [one.msg for one in sink.all[0].responses.results] == ["there is another"]


def test_nothing_is_kept_of_kinds_about_which_a_policy_goes_by_more_than_what_it_is_given() -> None:
    made = client(*PODS, constraint("C", "c", POD), constraint("L", "s", SECRET))
    objects = {POD: [pod("a")], SECRET: [pod("s")]}
    kept = keeping()
    sweep(made.snapshot, objects, kept)
    end, sink = sweep(made.snapshot, objects, kept)
    assert (end.recalled, kept.objects) == (1, 1)
    assert len(sink.all) == 2


def test_nothing_is_kept_of_what_implies_others() -> None:
    expands = ExpansionTemplate("web", frozenset({DEPLOYMENT}), ("spec", "template"), POD)
    in_force = PolicySet(client(*PODS).snapshot, expansion=Expansion([expands]))
    deployment = pod("d") | {"spec": {"template": {"metadata": {"labels": {"app": "b"}}}}}
    objects = {DEPLOYMENT: [deployment], POD: [pod("a")]}
    kept = keeping()
    _, before = sweep(in_force, objects, kept)
    end, after = sweep(in_force, objects, kept)
    assert end.recalled == 1
    assert shown(after) == shown(before)


def test_violations_are_not_kept_while_something_may_excuse_them_and_conforming_objects_are() -> (
    None
):
    excuses = [False]

    def stage(_: Any, responses: Any) -> Any:
        return responses._replace(results=()) if excuses[0] else responses

    in_force = PolicySet(client(PODS[0]).snapshot, stages=(stage,))
    objects = {POD: [pod("good"), pod("bad", "b")]}
    kept = keeping()
    assert sweep(in_force, objects, kept)[0].violations == 1
    excuses[0] = True
    end, _ = sweep(in_force, objects, kept)
    assert (end.recalled, end.violations) == (1, 0)


KYVERNO_SPEC = {
    "matchConstraints": {"resourceRules": [making.PODS]},
    "validations": [{"expression": "object.spec.hostname == 'a'"}],
}


@pytest.mark.parametrize(
    ("spec", "recalled"),
    [
        ({}, 1),
        ({"matchConditions": [{"name": "all", "expression": "object.spec.hostname != ''"}]}, 1),
        ({"validations": [{"expression": "time.now() > timestamp('2026-01-01T00:00:00Z')"}]}, 0),
        ({"validations": [{"expression": "request.userInfo.username != 'x'"}]}, 0),
        ({"auditAnnotations": [{"key": "host", "valueExpression": "'x'"}]}, 0),
    ],
)
def test_objects_that_conform_to_policies_of_kyverno_about_objects_alone_are_kept(
    spec: dict[str, Any], recalled: int
) -> None:
    policy = {"kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": KYVERNO_SPEC | spec}
    stage = KyvernoPolicies([read_kyverno(policy)])
    in_force = PolicySet(client(PODS[0]).snapshot, stages=(stage,))
    objects, kept = {POD: [pod("good"), pod("bad", "b")]}, keeping()
    sweep(in_force, objects, kept)
    end, sink = sweep(in_force, objects, kept)
    assert end.recalled == recalled
    assert shown(sink) == shown(sweep(in_force, objects)[1])


def test_objects_are_reviewed_again_when_a_policy_of_kyverno_changes_or_has_an_exception() -> None:
    policy = {"kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": KYVERNO_SPEC}
    exception = {
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "one"},
        "spec": {"policyRefs": [{"kind": "ValidatingPolicy", "name": "p"}]},
    }
    objects, kept = {POD: [pod("good")]}, keeping()
    for documents, recalled in (([policy], 0), ([policy], 0), ([policy, exception], 0)):
        stage = KyvernoPolicies(list(map(read_kyverno, documents)))
        in_force = PolicySet(client(PODS[0]).snapshot, stages=(stage,))
        assert sweep(in_force, objects, kept)[0].recalled == recalled
    assert sweep(in_force, objects, kept)[0].recalled == 0


def test_objects_whose_results_differ_by_their_names_share_them() -> None:
    in_force = client(*PODS).snapshot
    kept = keeping()
    sweep(in_force, {POD: [pod("web-0", "b")]}, kept)
    of_one = kept.bytes
    sweep(in_force, {POD: [pod(f"web-{number}", "b") for number in range(10)]}, kept)
    assert kept.bytes == of_one + 9 * ENTRY_BYTES


@pytest.mark.parametrize("name", ["0", "1", "a", "in", "is a", '"', "\\", "null", "[[0", "\0", "ü"])
def test_results_come_back_whatever_an_object_is_called(name: str) -> None:
    in_force = client(*PODS).snapshot
    objects, kept = {POD: [pod(name, "b"), pod("other", "b")]}, keeping()
    sweep(in_force, objects, kept)
    end, sink = sweep(in_force, objects, kept)
    assert end.recalled == 2
    assert shown(sink) == shown(sweep(in_force, objects)[1])


def test_what_has_no_room_is_reviewed_in_each_sweep() -> None:
    in_force = client(*PODS).snapshot
    objects = {POD: [pod(f"p{number}", "b") for number in range(20)]}
    kept = keeping(600)
    sweep(in_force, objects, kept)
    end, sink = sweep(in_force, objects, kept)
    assert 0 < end.recalled < 20
    assert kept.bytes <= 600
    assert shown(sink) == shown(sweep(in_force, objects)[1])
    end, _ = sweep(in_force, {POD: []}, kept)
    assert (kept.bytes, kept.objects) == (0, 0)


def test_an_object_without_a_version_or_in_a_namespace_that_nobody_knows_is_not_kept() -> None:
    nameless = pod("a")
    del nameless["metadata"]["resourceVersion"]
    made = keeping()
    in_force = client(*PODS).snapshot
    sweep(in_force, {POD: [nameless]}, made)
    assert made.objects == 0


def test_what_was_kept_of_a_kind_stands_when_its_list_breaks_off() -> None:
    in_force = client(*PODS).snapshot
    objects = {POD: [pod("a"), pod("b")]}
    kept = keeping()
    sweep(in_force, objects, kept)
    broken = Lists(objects, {POD: RuntimeError("a bug")})
    with pytest.raises(RuntimeError):
        sweep(in_force, objects, kept, lists=broken)
    assert sweep(in_force, objects, kept)[0].recalled == 2


def test_kinds_that_a_crd_defines_are_known_by_all_that_they_hold() -> None:
    assert is_of_the_api_server(POD)
    assert is_of_the_api_server(GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role"))
    for group in ("gateway.networking.k8s.io", "example.com", "wgpolicyk8s.io", "waddle.dev"):
        assert not is_of_the_api_server(GroupVersionKind(group, "v1", "Gateway"))
    assert not is_of_the_api_server(
        GroupVersionKind("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport")
    )


@pytest.mark.parametrize("seed", range(25))
def test_with_and_without_it_the_same_is_reported_whatever_changes(seed: int) -> None:
    random = Random(seed)
    made = client()
    kept = keeping(random.choice([500, 1 << 20]), by_version=random.random() < 0.5)
    objects: dict[GroupVersionKind, list[Any]] = {POD: [], SECRET: [], DEPLOYMENT: []}
    version = recalled = 0
    for _ in range(40):
        for _ in range(random.randrange(4)):
            version += 1
            _change(random, made, objects, version)
        end, sink = sweep(made.snapshot, objects, kept)
        plain_end, plain = sweep(made.snapshot, objects)
        recalled += end.recalled
        assert shown(sink) == shown(plain)
        assert (end.reviewed, end.violations, end.stranded, end.undecided) == (
            plain_end.reviewed,
            plain_end.violations,
            plain_end.stranded,
            plain_end.undecided,
        )
        assert kept.bytes <= kept.bytes_max
    assert recalled


def _change(random: Random, made: Client, objects: Any, version: int) -> None:
    """Something is made, changed or goes: an object, a policy, a Namespace, synced data."""
    gvk = random.choice([POD, SECRET])
    item = pod(f"p{random.randrange(8)}", random.choice("ab"), random.choice(["one", "two"]))
    item["metadata"]["resourceVersion"] = str(version)
    match random.randrange(8):
        case 0:
            kind, name = random.choice("LSD"), random.choice("xyz")
            kinds = random.sample([POD, SECRET], random.randrange(1, 3))
            made.add_constraint(
                generation(
                    version,
                    constraint(
                        kind,
                        name,
                        *kinds,
                        **({"parameters": {"app": random.choice("ab")}} if kind == "L" else {}),
                        enforcementAction=random.choice(["deny", "warn"]),
                    ),
                )
            )
        case 1:
            space = random.choice(["one", "two"])
            metadata = {"name": space, "labels": {"team": random.choice("abc")}}
            made.add_data({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        case 2:
            made.add_data({"apiVersion": "v1", "kind": "Secret", **item})
        case 3:
            made.add_template(labels(LABEL.replace("is", random.choice(["is", "was"]))))
        case 4 if objects[gvk]:
            objects[gvk].pop(random.randrange(len(objects[gvk])))
        case _:
            objects[gvk] = [
                one for one in objects[gvk] if one["metadata"]["name"] != item["metadata"]["name"]
            ] + [item]
