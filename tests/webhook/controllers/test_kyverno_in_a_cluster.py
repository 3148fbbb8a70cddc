"""Kyverno's policies of a cluster: followed at whatever version is served, in force, told."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.properties.doors.doors import review_of
from tests.simulation.api_server import Served
from tests.webhook.controllers.session import (
    CONFIGURATIONS,
    Session,
    configuration,
    enforced,
    session,
)
from tests.webhook.kyverno.making import LABEL, applied, document
from webhook.constraint import enforcement
from webhook.metrics.policies import KYVERNO
from webhook.policy_kinds.table import KYVERNO_KINDS
from webhook.review.loops import review
from webhook.review.mutating import Changes, changes
from webhook.review.subject import Subject, value_of

Json = dict[str, Any]
GROUP = "policies.kyverno.io"
POLICIES = (GROUP, "validatingpolicies")
EXCEPTIONS = (GROUP, "policyexceptions")
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}


def serve_kinds(made: Session, version: str = "v1beta1") -> None:
    """The kinds of an installation of Kyverno."""
    for row in KYVERNO_KINDS:
        served = Served(GROUP, version, row.plural, row.kind, namespaced=row.namespaced)
        made.storage.serve(served)


def prepared(made: Session) -> None:
    """Kyverno's kinds, and a namespace."""
    serve_kinds(made)
    made.make("", "namespaces", {"metadata": {"name": "shop"}})


def policy(expression: str = "object.metadata.name == 'good'", name: str = "p") -> Json:
    spec = {
        "matchConstraints": {"resourceRules": [PODS]},
        "validations": [{"expression": expression, "message": "no"}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def exception(expression: str = "true") -> Json:
    spec = {
        "policyRefs": [{"kind": "ValidatingPolicy", "name": "p"}],
        "matchConditions": [{"name": "c", "expression": expression}],
    }
    return {"metadata": {"name": "e", "namespace": "shop"}, "spec": spec}


def pod(name: str = "bad") -> Json:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def verdicts(made: Session, obj: Json, point: str = enforcement.WEBHOOK) -> list[tuple[str, str]]:
    """What is found of an object, as constraint and message."""
    revision = made.serving.revision
    if revision is None:
        return []
    subject = Subject(value_of(review_of(obj), {}), point=point)
    results = review(revision.policies, subject).responses.results
    return [("/".join(one.constraint.key), one.msg) for one in results]


def counted(made: Session, status: str) -> float | None:
    return made.registry.gauges.get(KYVERNO, {}).get((status,))


def test_a_policy_decides_while_it_is_there_and_an_exception_excuses(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as made:
            made.make(*POLICIES, policy())
            await made.until(lambda: verdicts(made, pod()) == [("ValidatingPolicy/p", "no")])
            assert verdicts(made, pod("good")) == []
            made.make(*EXCEPTIONS, exception(), "shop")
            await made.until(lambda: not verdicts(made, pod()), "the exception")
            made.storage.delete(made.storage.kinds[EXCEPTIONS], "shop", "e")
            await made.until(lambda: verdicts(made, pod()), "the exception's end")
            made.drop(*POLICIES, "p")
            await made.until(lambda: not verdicts(made, pod()), "the policy's end")

    asyncio.run(run())


def test_one_that_is_refused_is_told_and_its_last_good_generation_stays(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as made:
            made.make(*POLICIES, policy())
            await made.until(lambda: verdicts(made, pod()))
            made.change(*POLICIES, "p", spec=policy("objekt == 1")["spec"])
            await made.until(lambda: counted(made, "error") == 1, "the fault counted")
            assert verdicts(made, pod()) == [("ValidatingPolicy/p", "no")]
            message = "ValidatingPolicy p: spec.validations[0].expression"
            await made.until(
                lambda: any(message in one for one in made.following._policies.faults), message
            )

    asyncio.run(run())


def test_an_exception_that_cannot_be_used_excuses_nothing(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as made:
            made.make(*POLICIES, policy())
            made.make(*EXCEPTIONS, exception(), "shop")
            await made.until(lambda: counted(made, "active") == 2 and not verdicts(made, pod()))
            served = made.storage.kinds[EXCEPTIONS]
            before = made.storage.get(served, "shop", "e")
            changed = {**before, "spec": exception("objekt == 1")["spec"]}
            made.storage.replace(served, "shop", "e", changed, "")
            await made.until(lambda: verdicts(made, pod()), "the violation again")

    asyncio.run(run())


def test_those_that_nobody_is_asked_about_are_counted_until_a_rule_sends_what_they_are_for(
    tmp_path,
):
    asks = CONFIGURATIONS.group, CONFIGURATIONS.plural

    async def run() -> None:
        def prepare(made: Session) -> None:
            prepared(made)
            made.make(*asks, configuration(apiGroups=["example.com"]))

        operations = "webhook", "status"
        async with session(
            tmp_path, *operations, prepare=prepare, is_covered=False, kyverno="enforce"
        ) as made:
            made.make(*POLICIES, policy())
            await made.until(lambda: counted(made, "notasked") == 1, "it is not asked")
            assert counted(made, "active") == 0
            made.change(*asks, "asks", webhooks=configuration()["webhooks"])
            await made.until(lambda: counted(made, "notasked") == 0, "it is asked")
            assert counted(made, "active") == 1

    asyncio.run(run())


def test_those_that_audits_alone_ask_let_admissions_be(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="audit") as made:
            made.make(*POLICIES, policy())
            await made.until(lambda: verdicts(made, pod(), enforcement.AUDIT))
            assert verdicts(made, pod()) == []

    asyncio.run(run())


def test_without_the_flag_nobody_follows_them(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", "status", "generate", prepare=prepared) as made:
            made.make(*POLICIES, policy())
            await enforced(made)
            assert verdicts(made, pod()) == []
            assert all(gvk.group != GROUP for gvk in made.following._manager.statistics())

    asyncio.run(run())


def test_where_kyverno_is_not_installed_all_else_is_in_force(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", "status", "generate", kyverno="enforce") as made:
            await enforced(made)
            serve_kinds(made, "v1")
            made.make(*POLICIES, policy())
            await made.until(lambda: verdicts(made, pod()), "kinds that came later")

    asyncio.run(run())


MUTATING = (GROUP, "mutatingpolicies")


def mutated(made: Session) -> list[tuple[str, ...]]:
    """Who changes a Pod at the mutating webhook, and its labels then."""
    revision = made.serving.revision
    if revision is None:
        return []
    subject = Subject(value_of(review_of(pod()), {}))
    done = changes(revision.policies, subject)
    assert isinstance(done, Changes)
    labels = done.mutated.object["metadata"].get("labels", {})
    return [(str(party), *labels.values()) for one in done.mutated.passes for party in one]


def test_a_mutating_policy_changes_objects_while_it_is_there(tmp_path):
    async def run() -> None:
        async with session(
            tmp_path, "mutation-webhook", prepare=prepared, kyverno="enforce"
        ) as made:
            named = {"metadata": {"name": "m"}}
            made.make(*MUTATING, {**document(applied(LABEL)), **named})
            await made.until(lambda: mutated(made) == [("MutatingPolicy//m:1", "a")])
            broken = document(applied(LABEL), evaluation={"mutateExisting": {"enabled": True}})
            made.change(*MUTATING, "m", spec=broken["spec"])
            await made.until(lambda: counted(made, "error") == 1, "the fault counted")
            assert mutated(made) == [("MutatingPolicy//m:1", "a")], "the last good generation"
            message = "MutatingPolicy m: spec.evaluation.mutateExisting"
            await made.until(
                lambda: any(message in one for one in made.following._policies.faults), message
            )
            made.drop(*MUTATING, "m")
            await made.until(lambda: not mutated(made), "the policy's end")

    asyncio.run(run())


def test_a_mutating_policy_that_audits_alone_know_changes_nothing(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "mutation-webhook", prepare=prepared, kyverno="audit") as made:
            made.make(*MUTATING, {**document(applied(LABEL)), "metadata": {"name": "m"}})
            await made.until(lambda: counted(made, "active") == 1)
            assert mutated(made) == []

    asyncio.run(run())
