"""``/v1/mutate`` and the walk, with Kyverno's MutatingPolicies beside mutators."""

import asyncio
import json
import time
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from tests.webhook.kyverno.making import LABEL, applied, document, patch, pod
from tests.webhook.mutation.documents import known, label
from tests.webhook.server.lanes import Endless
from tests.webhook.server.mutating import Mutating
from webhook.api.admission import read_request
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.limits import ELSEWHERE
from webhook.constraint.review import AugmentedObject, AugmentedReview
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.kyverno.validating_policy import read_kyverno
from webhook.metrics.mutation import MUTATORS_SKIPPED
from webhook.mutation.snapshot import MutationSnapshot
from webhook.review.kyverno_policies import KyvernoPolicies
from webhook.review.mutating import Changes, changes, mutate
from webhook.review.outcome import Needs
from webhook.review.policy_set import Exclusions, PolicySet
from webhook.review.subject import Subject
from webhook.server.mutation import NOT_MUTATED

Json = dict[str, Any]
ERROR = applied(LABEL.replace('"a"', "object.none"))
COUNT = applied(
    "Object{metadata: Object.metadata{labels: {"
    '"n": string(has(object.metadata.labels) ? object.metadata.labels.size() : 0)}}}'
)
SNAPSHOT = Client(targets=[AdmissionTarget()], drivers=[RegoDriver()]).snapshot
OWNER = known(label("owner", "owner", "me")).snapshot


def named(name: str, *mutations: Json, **spec: Any) -> Json:
    made = document(*mutations, **spec)
    return {**made, "metadata": {"name": name, "generation": 3}}


def stage(*documents: Json, enforced: bool = True) -> KyvernoPolicies:
    return KyvernoPolicies([read_kyverno(one) for one in documents], enforced=enforced)


def request(operation: str = "CREATE", **more: Any) -> Any:
    return read_request(
        {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": operation,
            "name": "web",
            "namespace": "shop",
            "object": pod(),
            **more,
        }
    )


def serving(
    *documents: Json,
    mutations: MutationSnapshot | None = None,
    enforced: bool = True,
    **options: Any,
) -> Mutating:
    made = Mutating(mutations or MutationSnapshot(), **options)
    before = made.serving.revision
    assert before is not None
    policies = replace(before.policies, stages=(stage(*documents, enforced=enforced),))
    made.serving.revision = replace(before, policies=policies)
    return made


def answer(made: Mutating, **more: Any) -> Any:
    return made.mutation(request(**more), b"", time.monotonic())


def operations(found: Any) -> Any:
    return json.loads(b64decode(found.patch)) if found.patch else []


def test_policies_come_before_mutators_in_the_order_of_their_names() -> None:
    last = named("b", patch('[JSONPatch{op: "add", path: "/metadata/labels/b", value: "2"}]'))
    made = serving(last, named("a", applied(LABEL)), mutations=OWNER, annotations=True)
    found = answer(made)
    assert found.allowed
    values = {one["path"]: one["value"] for one in operations(found)}
    assert values["/metadata/labels"] == {"team": "a", "b": "2", "owner": "me"}
    annotation = values["/metadata/annotations"]["gatekeeper.sh/mutations"]
    assert annotation == "AssignMetadata//owner:0, MutatingPolicy//a:3, MutatingPolicy//b:3"
    series = made.registry.mutators.series
    assert series["MutatingPolicy", "a", "applied"] == 1


def test_what_no_rule_names_is_let_be() -> None:
    made = serving(named("a", applied(LABEL)))
    kind = {"group": "", "version": "v1", "kind": "Secret"}
    found = answer(made, kind=kind, resource={**kind, "resource": "secrets"})
    assert (found.message, found.patch) == (NOT_MUTATED, None)
    # CREATE alone is in the rule.
    found = answer(made, operation="UPDATE", oldObject=pod())
    assert (found.message, found.patch) == (NOT_MUTATED, None)


def test_one_that_cannot_be_applied_refuses_or_is_passed_over() -> None:
    made = serving(named("a", ERROR))
    found = answer(made)
    assert (found.allowed, found.code) == (False, 500)
    assert any(b'"answer":"reject"' in line for line in made.lines)
    assert found.message == "MutatingPolicy/a no such key: none"
    made = serving(named("a", ERROR, failurePolicy="Ignore"), named("b", applied(LABEL)))
    found = answer(made)
    assert found.allowed
    assert any(b'"answer":"skip"' in line for line in made.lines)
    assert operations(found)[0]["value"] == {"team": "a"}
    assert "MutatingPolicy/a no such key: none" in str(found.warnings)
    assert made.registry.counters[MUTATORS_SKIPPED][("MutatingPolicy",)] == 1


def test_what_is_asked_of_a_cluster_and_not_synced_leaves_it_undecided() -> None:
    lookup = LABEL.replace('"a"', 'resource.Get("v1", "secrets", "shop", "s").metadata.name')
    found = answer(serving(named("a", applied(lookup))))
    assert not found.allowed
    assert "MutatingPolicy/a is not decided: " in found.message


def test_those_that_audits_alone_are_by_change_nothing() -> None:
    found = answer(serving(named("a", applied(LABEL)), enforced=False))
    assert (found.allowed, found.patch, found.message) == (True, None, NOT_MUTATED)


@pytest.mark.parametrize(("policy", "count"), [("Never", "0"), ("IfNeeded", "2")])
def test_one_that_wants_it_is_asked_again_after_mutators(policy: str, count: str) -> None:
    made = serving(named("a", COUNT, reinvocationPolicy=policy), mutations=OWNER)
    (added,) = operations(answer(made))
    assert added["value"] == {"n": count, "owner": "me"}


def test_what_takes_too_long_goes_on_beside_the_thread() -> None:
    policies = PolicySet(SNAPSHOT, stages=(stage(named("a", applied(LABEL))),))
    subject = Subject(AugmentedReview(request(), {"metadata": {"name": "shop"}}))
    limits = subject.limits._replace(budget=ELSEWHERE)
    held = Subject(subject.value, limits=limits)
    assert changes(policies, held) == Needs(time=True)
    done = changes(policies, subject)
    assert isinstance(done, Changes)
    assert done.patch


@pytest.mark.parametrize(("policy", "is_allowed"), [("Fail", False), ("Ignore", True)])
def test_without_any_time_failure_policy_says_what_becomes_of_a_request(
    policy: str, is_allowed: bool
) -> None:
    async def run() -> None:
        reviewer = Endless(worked_seconds=1.0)
        one = named("a", applied(LABEL), failurePolicy=policy)
        found = answer(serving(one, reviewer=reviewer, budget=ELSEWHERE)).resume()
        assert (found.allowed, found.patch) == (is_allowed, None)

    asyncio.run(run())


def test_the_walk_of_files_changes_by_them_and_spares_what_config_excludes() -> None:
    policies = PolicySet(SNAPSHOT, OWNER, stages=(stage(named("a", COUNT)),))
    obj = pod()
    del obj["metadata"]["namespace"]
    stored = mutate(policies, Subject(AugmentedObject(obj)))
    assert stored.names == "MutatingPolicy/a, AssignMetadata//owner:0"
    assert stored.value.object["metadata"] == {"name": "web", "labels": {"n": "0", "owner": "me"}}
    spared = PolicySet(
        SNAPSHOT, stages=policies.stages, exclusions=Exclusions(mutation=lambda _: True)
    )
    stored = mutate(spared, Subject(AugmentedObject(pod())))
    assert stored.names == ""


def test_policies_of_the_webhook_are_what_its_rules_need() -> None:
    made = stage(named("a", applied(LABEL)))
    assert [one["metadata"]["name"] for one in made.enforced] == ["a"]
    assert stage(named("a", applied(LABEL)), enforced=False).enforced == ()
    assert made.keys == []


@pytest.mark.parametrize("odd", [[], "text", 3, None])
def test_an_object_of_an_odd_shape_is_an_error_at_most(odd: Any) -> None:
    made = serving(named("a", applied(LABEL)))
    found = answer(made, object={**pod(), "metadata": odd})
    assert found.allowed in {True, False}
    assert answer(made).allowed
