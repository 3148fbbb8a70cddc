"""Kyverno's policies of a cluster: followed at whatever version is served, in force, told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.properties.doors.doors import review_of
from tests.simulation.api_server import Served
from tests.webhook.controllers.session import (
    CONFIGURATIONS,
    NAMESPACE,
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


def serve_kinds(replica: Session, version: str = "v1beta1") -> None:
    """The kinds of an installation of Kyverno."""
    for row in KYVERNO_KINDS:
        served = Served(GROUP, version, row.plural, row.kind, namespaced=row.namespaced)
        replica.storage.serve(served)


def prepared(replica: Session) -> None:
    """Kyverno's kinds, and a namespace."""
    serve_kinds(replica)
    replica.make("", "namespaces", {"metadata": {"name": "shop"}})


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


def verdicts(
    replica: Session, obj: Json, point: str = enforcement.WEBHOOK
) -> list[tuple[str, str]]:
    """Returns the findings about an object, as constraint and message."""
    revision = replica.serving.revision
    if revision is None:
        return []
    subject = Subject(value_of(review_of(obj), {}), point=point)
    results = review(revision.policies, subject).responses.results
    return [("/".join(one.constraint.key), one.msg) for one in results]


def counted(replica: Session, status: str) -> float | None:
    return replica.registry.gauges.get(KYVERNO, {}).get((status,))


def test_a_policy_decides_while_it_is_there_and_an_exception_excuses(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as replica:
            replica.make(*POLICIES, policy())
            await replica.until(lambda: verdicts(replica, pod()) == [("ValidatingPolicy/p", "no")])
            assert verdicts(replica, pod("good")) == []
            replica.make(*EXCEPTIONS, exception(), "shop")
            await replica.until(lambda: not verdicts(replica, pod()), "the exception")
            replica.storage.delete(replica.storage.kinds[EXCEPTIONS], "shop", "e")
            await replica.until(lambda: verdicts(replica, pod()), "the exception's end")
            replica.drop(*POLICIES, "p")
            await replica.until(lambda: not verdicts(replica, pod()), "the policy's end")

    asyncio.run(run())


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_policy_of_a_namespace_decides_there_alone_at_each_version(tmp_path, version):
    async def run() -> None:
        def prepare(replica: Session) -> None:
            serve_kinds(replica, version)
            for name in ("shop", "other"):
                replica.make("", "namespaces", {"metadata": {"name": name}})

        async with session(tmp_path, "webhook", prepare=prepare, kyverno="enforce") as replica:
            replica.make(GROUP, "namespacedvalidatingpolicies", policy(), "shop")
            named = "NamespacedValidatingPolicy/shop/p"
            await replica.until(lambda: [one for one, _ in verdicts(replica, pod())] == [named])
            elsewhere = pod()
            elsewhere["metadata"]["namespace"] = "other"
            assert verdicts(replica, elsewhere) == []

    asyncio.run(run())


def test_one_that_is_refused_is_reported_and_its_last_good_generation_stays(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as replica:
            replica.make(*POLICIES, policy())
            await replica.until(lambda: verdicts(replica, pod()))
            replica.change(*POLICIES, "p", spec=policy("objekt == 1")["spec"])
            await replica.until(lambda: counted(replica, "error") == 1, "the fault counted")
            assert verdicts(replica, pod()) == [("ValidatingPolicy/p", "no")]
            message = "ValidatingPolicy p: spec.validations[0].expression"
            await replica.until(
                lambda: any(message in one for one in replica.following._policies.faults), message
            )

    asyncio.run(run())


def test_an_exception_that_cannot_be_used_excuses_nothing(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as replica:
            replica.make(*POLICIES, policy())
            replica.make(*EXCEPTIONS, exception(), "shop")
            await replica.until(
                lambda: counted(replica, "active") == 2 and not verdicts(replica, pod())
            )
            served = replica.storage.kinds[EXCEPTIONS]
            before = replica.storage.get(served, "shop", "e")
            changed = {**before, "spec": exception("objekt == 1")["spec"]}
            replica.storage.replace(served, "shop", "e", changed, "")
            await replica.until(lambda: verdicts(replica, pod()), "the violation again")

    asyncio.run(run())


def test_those_that_nobody_is_asked_about_are_counted_until_a_rule_sends_what_they_are_for(
    tmp_path,
):
    asks = CONFIGURATIONS.group, CONFIGURATIONS.plural

    async def run() -> None:
        def prepare(replica: Session) -> None:
            prepared(replica)
            replica.make(*asks, configuration(apiGroups=["example.com"]))

        operations = "webhook", "status"
        async with session(
            tmp_path, *operations, prepare=prepare, is_covered=False, kyverno="enforce"
        ) as replica:
            replica.make(*POLICIES, policy())
            await replica.until(lambda: counted(replica, "notasked") == 1, "it is not asked")
            assert counted(replica, "active") == 0
            replica.change(*asks, "asks", webhooks=configuration()["webhooks"])
            await replica.until(lambda: counted(replica, "notasked") == 0, "it is asked")
            assert counted(replica, "active") == 1

    asyncio.run(run())


def test_those_that_audits_alone_ask_let_admissions_be(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="audit") as replica:
            replica.make(*POLICIES, policy())
            await replica.until(lambda: verdicts(replica, pod(), enforcement.AUDIT))
            assert verdicts(replica, pod()) == []

    asyncio.run(run())


def test_without_the_flag_nobody_follows_them(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", "status", "generate", prepare=prepared) as replica:
            replica.make(*POLICIES, policy())
            await enforced(replica)
            assert verdicts(replica, pod()) == []
            assert all(gvk.group != GROUP for gvk in replica.following._manager.statistics())

    asyncio.run(run())


def test_where_kyverno_is_not_installed_all_else_is_in_force(tmp_path):
    async def run() -> None:
        async with session(tmp_path, "webhook", "status", "generate", kyverno="enforce") as replica:
            await enforced(replica)
            serve_kinds(replica, "v1")
            replica.make(*POLICIES, policy())
            await replica.until(lambda: verdicts(replica, pod()), "kinds that came later")

    asyncio.run(run())


MUTATING = (GROUP, "mutatingpolicies")


def mutated(replica: Session) -> list[tuple[str, ...]]:
    """Returns the mutators of a Pod at the mutating webhook, and its labels afterwards."""
    revision = replica.serving.revision
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
        ) as replica:
            named = {"metadata": {"name": "m"}}
            replica.make(*MUTATING, {**document(applied(LABEL)), **named})
            await replica.until(lambda: mutated(replica) == [("MutatingPolicy//m:1", "a")])
            broken = document(applied(LABEL), evaluation={"mutateExisting": {"enabled": True}})
            replica.change(*MUTATING, "m", spec=broken["spec"])
            await replica.until(lambda: counted(replica, "error") == 1, "the fault counted")
            assert mutated(replica) == [("MutatingPolicy//m:1", "a")], "the last good generation"
            message = "MutatingPolicy m: spec.evaluation.mutateExisting"
            await replica.until(
                lambda: any(message in one for one in replica.following._policies.faults), message
            )
            replica.drop(*MUTATING, "m")
            await replica.until(lambda: not mutated(replica), "the policy's end")

    asyncio.run(run())


def test_a_mutating_policy_that_audits_alone_know_changes_nothing(tmp_path):
    async def run() -> None:
        async with session(
            tmp_path, "mutation-webhook", prepare=prepared, kyverno="audit"
        ) as replica:
            replica.make(*MUTATING, {**document(applied(LABEL)), "metadata": {"name": "m"}})
            await replica.until(lambda: counted(replica, "active") == 1)
            assert mutated(replica) == []

    asyncio.run(run())


CONFIG_MAPS = [{"group": "", "version": "v1", "kind": "ConfigMap"}]
SYNCED = (
    ("config.gatekeeper.sh", "configs", "config", {"sync": {"syncOnly": CONFIG_MAPS}}),
    ("syncset.gatekeeper.sh", "syncsets", "s", {"gvks": CONFIG_MAPS}),
)


@pytest.mark.parametrize(("group", "plural", "name", "spec"), SYNCED)
def test_a_policy_reads_what_is_synced(tmp_path, group, plural, name, spec):
    """Without its data it is undecided: it finds nothing, and is not taken to allow."""
    expression = (
        "object.metadata.name == resource.Get('v1', 'configmaps', 'shop', 'names').data.name"
    )

    def undecided(replica: Session) -> bool:
        if (revision := replica.serving.revision) is None:
            return False
        found = review(revision.policies, Subject(value_of(review_of(pod()), {})))
        return bool(found.responses.undecided)

    async def run() -> None:
        async with session(tmp_path, "webhook", prepare=prepared, kyverno="enforce") as replica:
            named = {"metadata": {"name": "names"}, "data": {"name": "good"}}
            replica.make("", "configmaps", named, "shop")
            replica.make(*POLICIES, policy(expression))
            await replica.until(lambda: undecided(replica))
            place = NAMESPACE if plural == "configs" else ""
            replica.make(group, plural, {"metadata": {"name": name}, "spec": spec}, place)
            await replica.until(lambda: verdicts(replica, pod()) == [("ValidatingPolicy/p", "no")])
            assert verdicts(replica, pod("good")) == []
            assert not undecided(replica)

    asyncio.run(run())
