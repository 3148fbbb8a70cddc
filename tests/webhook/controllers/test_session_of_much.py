"""A replica's session with all that a cluster may hold: Config, data, mutators, expansion, trials."""

import asyncio
from typing import Any

import pytest

from tests.policies import expansion_template
from tests.simulation.policies import constraint, template
from tests.webhook.controllers.session import (
    ALPHAS,
    EVERYTHING,
    NAMESPACE,
    REVISIONS,
    TEMPLATES,
    VAP_GROUP,
    VAPS,
    Session,
    enforced,
    in_cel,
    session,
    until_says,
)
from tests.webhook.mutation.documents import assign, label
from webhook.api.gvk import GroupVersionKind
from webhook.controllers.apply.prevalidation import Trier
from webhook.metrics.mutation import MUTATORS
from webhook.serving.revision import NamespaceAnswer
from webhook.trials.trials import Trials

CONFIGS = ("config.gatekeeper.sh", "configs")
SYNC_SETS = ("syncset.gatekeeper.sh", "syncsets")
ASSIGN = ("mutations.gatekeeper.sh", "assign")
ASSIGN_METADATA = ("mutations.gatekeeper.sh", "assignmetadata")
EXPANSIONS = ("expansion.gatekeeper.sh", "expansiontemplate")
DATA = ("", "configmaps")
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
ALPHA = GroupVersionKind("constraints.gatekeeper.sh", "v1beta1", "Alpha")


def crd_of(plural: str) -> dict[str, Any]:
    """The CRD of a constraint kind, as somebody may make it by hand."""
    group = "constraints.gatekeeper.sh"
    return {
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {"gatekeeper.sh/constraint": "yes"},
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [{"name": "v1beta1", "served": True, "storage": True}],
        },
    }


def config(*excluded: str, process: str = "*") -> dict[str, Any]:
    """A Config that excludes namespaces, and wants ConfigMaps."""
    match = [{"excludedNamespaces": list(excluded), "processes": [process]}] if excluded else []
    sync = {"syncOnly": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}
    return {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config", "namespace": NAMESPACE},
        "spec": {"match": match, "sync": sync},
    }


def data(replica: Session) -> set[str]:
    """The names of the ConfigMaps that policies may read."""
    revision = replica.serving.revision
    found: set[str] = set()
    if revision is not None:
        for names in revision.snapshot.inventory.get("namespace", {}).values():
            found |= set(names.get("v1", {}).get("ConfigMap", {}))
    return found


def test_constraints_of_a_crd_made_anew_are_enforced_while_they_are_listed_again(tmp_path):
    """As where both are heard of late, and at once: it is the new one's constraints that are known."""

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make(*TEMPLATES, template("Alpha", 0))
            await replica.until(lambda: ALPHAS in replica.storage.kinds, "the kind")
            replica.make(*ALPHAS, constraint("Alpha", "c0", 0))
            await replica.until(lambda: replica.serves("Alpha", "c0"), "it is enforced")
            manager = replica.following._manager
            before = manager.statistics()[ALPHA]
            manager.restart(ALPHA)
            while (now := manager.statistics()[ALPHA]) is before or not now.lists:
                assert manager.get(ALPHA, "", "c0") is not None
                assert replica.serves("Alpha", "c0") is not None
                await asyncio.sleep(0.001)
            replica.make(*ALPHAS, constraint("Alpha", "c1", 1))
            await replica.until(lambda: replica.serves("Alpha", "c1"), "what is made then")
            assert replica.serves("Alpha", "c0") is not None

    asyncio.run(run())


def test_constraints_of_a_crd_that_nobody_makes_anew_are_enforced_no_more(tmp_path):
    async def run():
        async with session(tmp_path, "webhook", "status") as replica:
            replica.make(*TEMPLATES, template("Alpha", 0))
            replica.make(*CRDS, crd_of("alpha"))
            await replica.until(lambda: ALPHAS in replica.storage.kinds, "the kind")
            replica.make(*ALPHAS, constraint("Alpha", "c0", 0))
            await replica.until(lambda: replica.serves("Alpha", "c0"), "it is enforced")
            replica.storage.kinds.pop(ALPHAS)  # and its watch hears of nothing
            replica.drop(*CRDS, "alpha.constraints.gatekeeper.sh")
            await replica.until(lambda: replica.serves("Alpha", "c0") is None, "it is not")

    asyncio.run(run())


def test_data_is_synced_and_what_config_excludes_is_not(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            for namespace in ("shop", "spared"):
                replica.make("", "namespaces", {"metadata": {"name": namespace}})
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": namespace}}
                replica.make(*DATA, body, namespace)
            replica.make(*CONFIGS, config(), NAMESPACE)
            await replica.until(lambda: data(replica) == {"shop", "spared"}, "all data")
            await replica.until(lambda: replica.get(*CONFIGS, "config", NAMESPACE).get("status"))

            served = replica.storage.kinds[CONFIGS]
            before = replica.get(*CONFIGS, "config", NAMESPACE)
            spec = config("spared", process="sync")["spec"]
            replica.storage.replace(served, NAMESPACE, "config", {**before, "spec": spec}, "")
            await replica.until(lambda: data(replica) == {"shop"}, "what is not excluded")

            kinds = {"gvks": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}
            replica.make(*SYNC_SETS, {"metadata": {"name": "s"}, "spec": kinds})
            replica.storage.delete(served, NAMESPACE, "config")
            await replica.until(lambda: data(replica) == {"shop", "spared"}, "all data again")
            replica.drop(*SYNC_SETS, "s")
            await replica.until(lambda: data(replica) == set(), "no data")

    asyncio.run(run())


def test_mutators_and_expansion_are_followed_and_each_says_what_becomes_of_it(tmp_path):
    expansion = expansion_template("pods")

    def gauge(replica, state):
        return replica.registry.gauges.get(MUTATORS, {}).get((state,))

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make(*ASSIGN, assign("a", "spec.l[name: x].b", 1))
            replica.make(*ASSIGN_METADATA, label("l", "owner", "nobody"))
            replica.make(*EXPANSIONS, expansion)
            for named in ((*ASSIGN, "a"), (*ASSIGN_METADATA, "l"), (*EXPANSIONS, "pods")):
                await until_says(replica, "Active", *named)
            await replica.until(lambda: gauge(replica, "active") == 2)
            assert replica.serving.revision.expansion.names == {"pods"}

            replica.make(*ASSIGN, assign("b", "spec.l.b", 1))  # the same place, another shape
            for name in ("a", "b"):
                await until_says(replica, "Error", *ASSIGN, name)
            replica.drop(*ASSIGN, "b")
            await until_says(replica, "Active", *ASSIGN, "a")

            broken = label("l", "owner", "x")["spec"] | {"location": "metadata..labels"}
            replica.change(*ASSIGN_METADATA, "l", spec=broken)
            await until_says(replica, "Error", *ASSIGN_METADATA, "l")
            assert len(replica.serving.revision.mutations.mutators) == 2  # The last good one stays.
            replica.drop(*EXPANSIONS, "pods")
            await replica.until(lambda: not replica.serving.revision.expansion.names)

    asyncio.run(run())


def test_where_kinds_are_not_installed_nothing_waits_for_them(tmp_path):
    async def run():
        left_out = ("mutations.gatekeeper.sh", "expansion.gatekeeper.sh")
        async with session(tmp_path, *EVERYTHING, left_out=left_out) as replica:
            await replica.until(lambda: replica.serving.revision is not None)
            assert any("waiting for" in state for state in replica.states)
            await enforced(replica)

    asyncio.run(run())


@pytest.fixture
def trier():
    """Yields a replica's trials of policies."""
    trials = Trials(notify=lambda message, *, error: None, tries_all=lambda: True)
    yield Trier(trials, 1.0)
    trials.stop()


def test_what_is_new_is_tried_and_its_outcome_stands_before_it_is_enforced(tmp_path, trier):
    def outcomes(replica):
        return [
            one.get("status", {}).get("outcome", {}).get("verdict")
            for one in replica.all(*REVISIONS)
        ]

    async def run():
        async with session(tmp_path, *EVERYTHING, trier=trier) as replica:
            await replica.until(lambda: replica.serving.revision is not None)
            await enforced(replica)
            assert outcomes(replica) == ["passed", "passed"]
            replica.change(*TEMPLATES, "alpha", spec=template("Alpha", 3)["spec"])
            await until_says(replica, "Error", *TEMPLATES, "alpha")
            assert sorted(outcomes(replica)) == ["passed", "passed", "refused"]
            assert replica.serves("Alpha", "c")

    asyncio.run(run())


class _Listening(Trials):
    """Notes which templates are announced."""

    def __init__(self):
        super().__init__(notify=lambda message, *, error: None)
        self.announced = []

    def announce(self, documents):
        self.announced += [one["metadata"]["name"] for one in documents]


def test_templates_are_announced_once_at_a_start_and_not_later(tmp_path):
    trials = _Listening()

    def prepare(replica):
        for kind in ("Beta", "Gamma"):
            replica.make(*TEMPLATES, template(kind, 0))

    async def run():
        async with session(
            tmp_path, *EVERYTHING, prepare=prepare, trier=Trier(trials, 1.0)
        ) as replica:
            await replica.until(lambda: replica.serving.revision is not None)
            assert sorted(trials.announced) == ["beta", "gamma"]
            await enforced(replica)
            assert len(trials.announced) == 2

    asyncio.run(run())
    trials.stop()


def test_a_status_that_is_refused_is_reported_and_written_later(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.storage.refused["ConstraintTemplate/status"] = 403
            replica.make(*TEMPLATES, template("Alpha", 0))
            await replica.until(
                lambda: any(
                    b"status.byPod was not written; trying again" in line for line in replica.lines
                )
            )
            replica.storage.refused["ConstraintTemplate/status"] = 409
            await asyncio.sleep(0)
            replica.storage.refused.clear()
            replica.change(*TEMPLATES, "alpha", spec=template("Alpha", 1)["spec"])
            await until_says(replica, "Active", *TEMPLATES, "alpha")

    asyncio.run(run())


def test_a_constraint_that_is_made_anew_begins_anew(tmp_path):
    """Under another UID nothing of the old one counts."""

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            first = replica.serves("Alpha", "c").document["metadata"]["uid"]
            replica.drop(*ALPHAS, "c")
            replica.make(*ALPHAS, constraint("Alpha", "c", 1))
            await replica.until(
                lambda: (
                    replica.serves("Alpha", "c")
                    and replica.serves("Alpha", "c").document["metadata"]["uid"] != first
                )
            )
            await until_says(replica, "Active", *ALPHAS, "c")

    asyncio.run(run())


def test_a_namespace_that_the_watch_has_reported_is_not_asked_for(tmp_path):
    async def run():
        async with session(tmp_path, "webhook") as replica:
            await replica.until(lambda: replica.serving.revision is not None)
            found = await replica.following.read_namespace(NAMESPACE, 60.0)
            assert found.document["metadata"]["name"] == NAMESPACE
            assert await replica.following.read_namespace("none", 60.0) == NamespaceAnswer(None)

    asyncio.run(run())


def test_generated_policies_have_the_scope_of_the_webhook_s_own_configuration(tmp_path):
    selector = {"matchLabels": {"reviewed": "yes"}}
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    webhook = {
        "name": "validation.gatekeeper.sh",
        "namespaceSelector": selector,
        "rules": [rule],
    }

    def configured(replica):
        replica.make(
            VAP_GROUP,
            "validatingwebhookconfigurations",
            {"metadata": {"name": "waddle"}, "webhooks": [webhook]},
        )

    async def run():
        async with session(tmp_path, *EVERYTHING, prepare=configured, synced=True) as replica:
            replica.make(*CONFIGS, config("spared"), NAMESPACE)
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: replica.all(VAP_GROUP, VAPS.plural), "a policy")
            (policy,) = replica.all(VAP_GROUP, VAPS.plural)
            text = str(policy["spec"])
            assert "reviewed" in text
            await replica.until(
                lambda: "spared" in str(replica.all(VAP_GROUP, VAPS.plural)[0]["spec"])
            )

    asyncio.run(run())


def test_a_crd_that_somebody_deletes_is_made_anew_and_begins_with_nothing(tmp_path):
    """Its constraints went with it: none is enforced, and those that are made again are."""
    crds = ("apiextensions.k8s.io", "customresourcedefinitions")
    name = "alpha.constraints.gatekeeper.sh"

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            first = replica.get(*crds, name)["metadata"]["uid"]
            replica.drop(*crds, name)
            await replica.until(lambda: replica.serves("Alpha", "c") is None, "nothing in force")
            await replica.until(
                lambda: replica.get(*crds, name).get("metadata", {}).get("uid", first) != first
            )
            await replica.until(lambda: ALPHAS in replica.storage.kinds, "the kind again")
            replica.make(*ALPHAS, constraint("Alpha", "again", 1))
            await replica.until(lambda: replica.serves("Alpha", "again"), "the new one in force")

    asyncio.run(run())
