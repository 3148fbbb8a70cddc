"""A sweep over given objects: the results that sinks get, and what it reports at its end."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.webhook.admission_policies.making import mutating_binding, mutating_policy
from tests.webhook.audit.made import (
    DEPLOYMENT,
    POD,
    SECRET,
    constraint,
    items,
    snapshot,
    template,
)
from tests.webhook.audit.swept import NAMESPACE, RESOURCES, Given, RecordingSink
from tests.webhook.kyverno import making
from tests.webhook.mutation.documents import assign, known, label
from webhook import log
from webhook.api.gvk import GroupVersionKind
from webhook.audit.namespaces import Namespaces
from webhook.audit.scope import Scope
from webhook.audit.sink import Sinks, SweepEnd, SweepStart
from webhook.audit.source import CacheSource, UnreadableKind
from webhook.audit.sweep import Sweep
from webhook.audit.totals import Totals
from webhook.cluster.errors import ApiError, ApiUnreachable
from webhook.constraint.expansion import Expansion, ExpansionTemplate
from webhook.constraint.isolation import Isolation
from webhook.constraint.limits import UNLIMITED
from webhook.kyverno.validating_policy import read_kyverno
from webhook.mutation.registry import Mutators
from webhook.policy_kinds.parts import read_admission_policy
from webhook.review.admission_policies import AdmissionPolicies
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.policy_set import Exclusions, PolicySet

if TYPE_CHECKING:
    from collections.abc import Callable


ONLY_UPDATES = {**making.PODS, "operations": ["UPDATE"]}


def kyvernos(*documents: dict[str, Any], enforced: bool = True) -> KyvernoPolicies:
    """The stage of some policies of Kyverno."""
    return KyvernoPolicies([read_kyverno(one) for one in documents], enforced=enforced)


def api_servers(*documents: dict[str, Any]) -> AdmissionPolicies:
    """The stage of some policies of the API server's own, and bindings."""
    return AdmissionPolicies([read_admission_policy(one) for one in documents])


def sweep(scope: Scope, source: Given) -> tuple[SweepEnd, RecordingSink]:
    """Returns the end of a sweep, with its results."""
    sink = RecordingSink()
    known = {name: {"metadata": {"name": name}} for name in ("space", "out")}

    class Absent:
        async def get(self, *_: Any) -> Any:
            raise ApiError(404, "no such namespace")

        def kept(self, namespace: Any) -> Any:
            return namespace

    made = Sweep(
        "2026-01-01T00:00:00Z",
        scope,
        source,
        Namespaces(Absent(), known),  # type: ignore[arg-type]
        Sinks([sink, Totals(20, [sink])]),
        log.Log(lambda _: None).logger("test"),
        limits=lambda: UNLIMITED,
    )
    return asyncio.run(made.run()), sink


POLICIES = snapshot(
    template("A"),
    template("B"),
    constraint("A", "pods", POD),
    constraint("A", "secrets", SECRET),
    constraint("B", "all"),
)


def test_every_object_is_reported_once_and_its_totals_are_published() -> None:
    source = Given({POD: items(["a", "b"], "space"), SECRET: items(["s"], "space")})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert [item.identity.name for item in sink.all] == ["a", "b", "s"]
    assert sink.totals == {("A", "pods"): 2, ("A", "secrets"): 1, ("B", "all"): 3}
    assert (end.reviewed, end.violations) == (3, 6)
    assert sink.starts[0].kinds == end.complete == {POD, SECRET}


@pytest.mark.parametrize("in_background", [True, False])
def test_a_policy_of_kyverno_without_background_reviews_is_left_out(in_background: bool) -> None:
    spec = {
        "matchConstraints": {"resourceRules": [making.PODS]},
        "validations": [{"expression": "false"}],
        "evaluation": {"background": {"enabled": in_background}},
    }
    document = {"kind": "ValidatingPolicy", "metadata": {"name": "p"}, "spec": spec}
    source = Given({POD: items(["a"], "space"), SECRET: items(["s"], "space")})
    # A constraint on Pods lists them in any case.
    for documents in ((), (template("A"), constraint("A", "pods", POD))):
        expected = {"A"} if documents else set()
        expected |= {"ValidatingPolicy"} if in_background else set()
        _, sink = sweep(
            Scope(PolicySet(snapshot(*documents), stages=(kyvernos(document),))), source
        )
        assert sink.starts[0].kinds == ({POD} if expected else set())
        found = [result for audited in sink.all for result in audited.responses.results]
        assert {result.constraint.kind for result in found} == expected


def drifts_in(stage: Any, **policies: Any) -> list[tuple[str, str, tuple[str, ...], bool]]:
    """Returns the drifts that mutators report for one Pod."""
    source = Given({POD: items(["a"], "space"), SECRET: items(["s"], "space")})
    scope = Scope(PolicySet(snapshot(), stages=(stage,), **policies), reports_drift=True)
    _, sink = sweep(scope, source)
    assert sink.starts[0].kinds <= {POD}
    return [
        (drift.mutator.kind, drift.mutator.name, drift.paths, drift.is_preview)
        for audited in sink.all
        for drift in audited.drifts
    ]


@pytest.mark.parametrize("enforced", [True, False])
def test_what_mutating_policies_of_kyverno_would_change_is_reported(enforced: bool) -> None:
    labels = making.document(
        making.applied(making.LABEL), matchConstraints={"resourceRules": [ONLY_UPDATES]}
    )
    stage = kyvernos(labels, enforced=enforced)
    paths = ("/metadata/labels",)
    assert drifts_in(stage) == [("MutatingPolicy", "p", paths, not enforced)]
    spared = Exclusions(mutation="space".__eq__)
    assert drifts_in(stage, exclusions=spared) == []


def test_kyvernos_policies_of_creations_alone_are_not_reported() -> None:
    assert drifts_in(kyvernos(making.document(making.applied(making.LABEL)))) == []


def test_what_an_update_leaves_as_it_is_and_what_is_at_fault_is_not_reported() -> None:
    same = "Object{metadata: Object.metadata{name: oldObject.metadata.name}}"
    broken = "Object{metadata: Object.metadata{name: object.spec.nothing}}"
    for expression in (same, broken):
        rules = {"resourceRules": [ONLY_UPDATES]}
        policy = making.document(making.applied(expression), matchConstraints=rules)
        assert drifts_in(kyvernos(policy)) == []


def test_what_mutating_policies_of_the_api_server_would_change_is_reported() -> None:
    rules = {"resourceRules": [ONLY_UPDATES]}
    policy = mutating_policy(making.LABEL, name="labels", matchConstraints=rules)
    other = mutating_policy(making.LABEL, name="unbound", matchConstraints=rules)
    stage = api_servers(policy, other, mutating_binding("b", "labels"))
    expected = [("MutatingAdmissionPolicy", "labels", ("/metadata/labels",), False)]
    assert drifts_in(stage) == expected
    # Config says nothing of what the API server does itself.
    assert drifts_in(stage, exclusions=Exclusions(mutation="space".__eq__)) == expected


def test_what_mutators_would_change_is_reported_for_kinds_that_they_name_and_nothing_is_written() -> (
    None
):
    mutators = known(assign("a", "spec.x", 1), label("l", "k", "v"))
    source = Given({POD: items(["a"], "space"), SECRET: items(["s"], "space")})
    scope = Scope(PolicySet(snapshot(), mutators.snapshot))
    _, sink = sweep(scope, source)
    assert not sink.all
    _, sink = sweep(replace(scope, reports_drift=True), source)
    [audited] = sink.all
    assert [(drift.mutator.name, drift.paths) for drift in audited.drifts] == [
        ("a", ("/spec",)),
        ("l", ("/metadata/labels",)),
    ]
    assert sink.starts[0].kinds == {POD}
    spared = replace(scope.policies, exclusions=Exclusions(mutation="space".__eq__))
    _, sink = sweep(replace(scope, policies=spared, reports_drift=True), source)
    assert [item.drifts for item in sink.all] == [()]


def test_the_review_is_of_the_kind_with_its_plural_namespace_and_source() -> None:
    rego = """
    violation[{"msg": msg}] {
      r := input.review
      msg := sprintf("%v %v %v %v [%v]", [
        r.kind.kind, r.resource.resource, r.namespaceObject.metadata.name, r.name, r.operation])
    }
    """
    policies = snapshot(
        template("R", rego),
        constraint("R", "r", POD, match={"source": "Original", "kinds": []}),
    )
    _, sink = sweep(Scope(PolicySet(policies)), Given({POD: items(["a"], "space")}))
    (found,) = sink.all[0].responses.results
    assert found.msg == "Pod pods space a []"


@pytest.mark.parametrize(
    "error", [ApiUnreachable("gone"), ApiError(500, "broken"), ApiError(410, "expired")]
)
def test_a_list_that_fails_leaves_the_constraints_of_its_kind_undecided(error: Exception) -> None:
    """The partial count of the kind is not published; the other totals are."""
    source = Given({POD: items(["a"], "space"), SECRET: items(["s"], "space")}, {POD: error})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert set(end.failed) == {POD}
    assert end.complete == {SECRET}
    assert end.undecided == {("A", "pods"), ("B", "all")}
    assert sink.totals == {("A", "secrets"): 1}


def test_a_kind_that_may_not_be_read_is_left_out_of_totals() -> None:
    source = Given({POD: items(["a"], "space"), SECRET: []}, {SECRET: UnreadableKind("forbidden")})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert end.unreadable == {SECRET}
    assert not end.failed
    assert not end.undecided
    assert sink.totals == {("A", "pods"): 1, ("A", "secrets"): 0, ("B", "all"): 1}


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_kind_that_went_has_no_objects_and_one_that_is_only_not_found_has_failed(
    *, is_gone: bool
) -> None:
    source = Given(
        {POD: items(["a"], "space"), SECRET: items(["s"], "space")}, {SECRET: ApiError(404, "no")}
    )

    class Going(RecordingSink):
        async def start(self, start: SweepStart) -> None:
            await super().start(start)
            source.gone = {SECRET} if is_gone else set()

    sink = Going()
    made = Sweep(
        "id",
        Scope(PolicySet(POLICIES)),
        source,
        Namespaces(None, {"space": {}}),  # type: ignore[arg-type]
        Sinks([sink, Totals(20, [sink])]),
        log.Log(lambda _: None).logger("test"),
        limits=lambda: UNLIMITED,
    )
    end = asyncio.run(made.run())
    if is_gone:
        assert not end.failed
        assert end.complete == {POD}
        assert sink.totals == {("A", "pods"): 1, ("A", "secrets"): 0, ("B", "all"): 1}
    else:
        assert set(end.failed) == {SECRET}
        assert sink.totals == {("A", "pods"): 1}


def test_objects_of_excluded_namespaces_are_reported_without_results() -> None:
    """A Namespace counts as its own; others are reported, so that their results can go."""
    source = Given(
        {
            NAMESPACE: items(["out", "space"]),
            POD: [*items(["a"], "out"), *items(["b"], "space")],
        }
    )
    scope = Scope(PolicySet(POLICIES, exclusions=Exclusions(audit="out".__eq__)))
    end, sink = sweep(scope, source)
    assert [(item.identity.name, item.excluded) for item in sink.all] == [
        ("out", True),
        ("space", False),
        ("a", True),
        ("b", False),
    ]
    assert all(not item.responses.results for item in sink.all if item.excluded)
    assert (end.reviewed, end.passed_over) == (2, 2)
    assert sink.totals[("B", "all")] == 2


def test_what_is_not_the_share_is_reported_to_nobody() -> None:
    source = Given({POD: [*items(["a"], "out"), *items(["b"], "space")]})
    mine: Callable[[GroupVersionKind, str], bool] = lambda _, namespace: namespace == "space"  # noqa: E731
    _, sink = sweep(Scope(PolicySet(POLICIES), share=mine), source)
    assert [item.identity.name for item in sink.all] == ["b"]


def test_an_object_whose_namespace_is_gone_is_counted_and_totals_say_so() -> None:
    source = Given({POD: [*items(["a"], "space"), *items(["b", "c"], "deleted")]})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert [item.identity.name for item in sink.all] == ["a"]
    assert end.failed == {}
    assert (end.reviewed, end.stranded, end.left_out) == (1, 2, 0)
    assert end.unaudited == {("A", "pods"): 2, ("B", "all"): 2}
    assert sink.totals == {("A", "pods"): 1, ("A", "secrets"): 0, ("B", "all"): 1}


def test_a_constraint_of_which_nothing_is_looked_at_has_no_total() -> None:
    """An audit of synced data where none of its kinds is synced: 0 would be a guess."""
    source = Given({POD: items(["a"], "space")})
    source.left = frozenset({SECRET, DEPLOYMENT})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert end.undecided == {("A", "secrets")}
    assert sink.totals == {("A", "pods"): 1, ("B", "all"): 1}
    nothing = Given({})
    nothing.left = frozenset({POD, SECRET})
    end, sink = sweep(Scope(PolicySet(POLICIES)), nothing)
    assert end.undecided == {("A", "pods"), ("A", "secrets"), ("B", "all")}
    assert sink.totals == {}


def test_a_kind_that_nobody_serves_has_no_objects_in_synced_data_either() -> None:
    end, sink = sweep(Scope(PolicySet(POLICIES)), Given({POD: items(["a"], "space")}))
    assert end.undecided == frozenset()
    assert sink.totals["A", "secrets"] == 0


def test_synced_data_is_looked_at_by_the_kinds_that_are_synced() -> None:
    older = GroupVersionKind("apps", "v1beta1", "Deployment")
    source = CacheSource(RESOURCES.values(), frozenset({older}), frozenset({SECRET}))
    assert source.unseen() == {POD, NAMESPACE}
    kinds = asyncio.run(source.kinds(POLICIES))
    assert [resource.gvk for resource in kinds] == [SECRET, older]


def test_a_constraint_that_cannot_be_decided_on_an_object_keeps_its_total() -> None:
    """Its template fails there, where that is no violation; the others are reported."""
    conflict = """
    x = 1 { true }
    x = 2 { input.review.name == "b" }
    violation[{"msg": "one"}] { x == 1 }
    """
    policies = snapshot(
        template("A"),
        template("F", conflict),
        constraint("A", "fine", POD),
        constraint("F", "broken", POD),
        isolation=Isolation(error_is_violation=False),
    )
    end, sink = sweep(Scope(PolicySet(policies)), Given({POD: items(["a", "b"], "space")}))
    assert end.undecided == {("F", "broken")}
    assert end.complete == {POD}
    assert sink.totals == {("A", "fine"): 2}


def test_what_an_object_implies_is_reviewed_with_it() -> None:
    expansion = Expansion(
        [ExpansionTemplate("web", frozenset({DEPLOYMENT}), ("spec", "template"), POD)]
    )
    deployment = {**items(["d"], "space")[0], "spec": {"template": {"spec": {}}}}
    broken = {**items(["e"], "space")[0], "spec": {}}
    source = Given({DEPLOYMENT: [deployment, broken], POD: []})
    end, sink = sweep(Scope(PolicySet(POLICIES, expansion=expansion)), source)
    messages = [result.msg for result in sink.all[0].responses.results]
    assert messages.count("[Implied by web] always") == 2
    assert [len(item.responses.results) for item in sink.all] == [3, 1], "its own stand"
    assert sink.totals[("A", "pods")] == 1
    assert end.undecided == frozenset()


def test_what_an_object_implies_is_mutated_as_it_would_be_when_it_is_made() -> None:
    expansion = Expansion(
        [ExpansionTemplate("web", frozenset({DEPLOYMENT}), ("spec", "template"), POD)]
    )
    mutators = Mutators()
    mutators.add(label("l", "a", "b", match={"source": "Generated", "name": "d-pod"}))
    deployment = {**items(["d"], "space")[0], "spec": {"template": {"spec": {}}}}
    policies = snapshot(
        template(
            "L",
            'violation[{"msg": "labelled"}] { input.review.object.metadata.labels.a }',
        ),
        constraint("L", "labelled", POD),
    )
    scope = Scope(PolicySet(policies, mutators.snapshot, expansion))
    _, sink = sweep(scope, Given({DEPLOYMENT: [deployment]}))
    messages = [result.msg for item in sink.all for result in item.responses.results]
    assert messages == ["[Implied by web] labelled"]


def test_one_object_does_not_end_an_audit_and_totals_say_that_it_is_left_out() -> None:
    """Invalid objects are named and counted; a deep object is audited as any other."""
    value: Any = "x"
    for _ in range(3_000):
        value = {"a": value}
    (deep,) = items(["deep"], "space")
    deep["metadata"]["annotations"] = {"a": "b"}
    deep["spec"] = value
    pods = [*items(["a"], "space"), {"metadata": 5}, 7, deep, *items(["b"], "space")]
    source = Given({POD: pods, SECRET: items(["s"], "space")})
    end, sink = sweep(Scope(PolicySet(POLICIES)), source)
    assert {item.identity.name for item in sink.all} == {"a", "b", "deep", "s"}
    assert sink.totals == {("A", "pods"): 3, ("A", "secrets"): 1, ("B", "all"): 4}
    assert (end.reviewed, end.left_out) == (4, 2)
    assert end.unaudited == {("A", "pods"): 2, ("B", "all"): 2}
    assert end.complete == {POD, SECRET}
