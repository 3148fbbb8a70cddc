"""A replica at an API server: what it holds is enforced, kept, generated and told."""

import asyncio
import contextlib
import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.simulation import control_plane
from tests.simulation.policies import constraint, template
from tests.webhook.controllers.session import (
    ALPHAS,
    BINDINGS,
    EVERYTHING,
    NAMESPACE,
    REVISIONS,
    STATUSES,
    TEMPLATES,
    VAP_GROUP,
    VAPS,
    Session,
    enforced,
    in_cel,
    session,
    state_of,
    until_says,
)
from webhook.api.pod_status import CONSTRAINT, Pod, StatusError, pod_status, status_subject
from webhook.api.shapes import conditions_of
from webhook.controllers.apply import expression_keeper
from webhook.controllers.follow.following import NO_TEMPLATES
from webhook.controllers.generate import keeper as generation_keeper
from webhook.controllers.object_writer import ObjectWriter
from webhook.controllers.revisions import keeper as revision_keeper
from webhook.controllers.status import aggregation, orphans
from webhook.generation.plan import Planner
from webhook.metrics.cluster import OBJECT_FAULTS, OBJECTS_SPOILED
from webhook.policy_kinds.table import TEMPLATES as TEMPLATES_ROW


async def until_none(replica: Session, group: str, plural: str) -> None:
    """Wait until there is not an object of a kind."""
    await replica.until(lambda: not replica.all(group, plural), f"no {plural}")


async def until_kept(replica: Session, number: int, generation: int) -> None:
    """Wait until so many revisions are kept, the newest of this generation."""

    def are_kept() -> bool:
        kept = [one["spec"]["generation"] for one in replica.all(*REVISIONS)]
        return len(kept) == number and max(kept) == generation

    await replica.until(are_kept, f"{number} revisions up to {generation}")


def test_a_replica_says_that_the_kind_of_templates_is_gone_until_it_is_back(tmp_path):
    """The watch of a kind that is gone may be silent for a while; another begins here at once."""

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            assert replica.faults == ()
            replica.storage.drop_kind(control_plane.TEMPLATES)
            replica.following._manager.restart(TEMPLATES_ROW.resource.gvk)
            await replica.until(lambda: replica.faults == (NO_TEMPLATES,), "the kind is gone")
            logged = [line for line in replica.lines if NO_TEMPLATES.encode() in line]
            assert len(logged) == 1
            replica.storage.serve(control_plane.TEMPLATES)
            await replica.until(lambda: replica.faults == (), "the kind is back")

    asyncio.run(run())


def test_what_the_cluster_holds_is_enforced_and_kept_and_every_object_says_so(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            for named in ((*TEMPLATES, "alpha"), (*ALPHAS, "c")):
                await until_says(replica, "Active", *named)
                (entry,) = replica.get(*named)["status"]["byPod"]
                assert entry["id"] == "waddle-1"
            await replica.until(lambda: len(replica.all(*REVISIONS)) == 2, "a revision of each")

            broken = template("Alpha", 3)["spec"]
            replica.change(*TEMPLATES, "alpha", spec=broken)
            await until_says(replica, "Error", *TEMPLATES, "alpha")
            assert replica.serves("Alpha", "c")  # The last good one stays.
            assert replica.following.client is not None
            assert any(b"the earlier version stays in force" in line for line in replica.lines)

            replica.drop(*ALPHAS, "c")
            await replica.until(lambda: not replica.serves("Alpha", "c"))
            await replica.until(lambda: not replica.all(*STATUSES), "no status of what is gone")

    asyncio.run(run())


def test_a_pod_has_one_voice_by_the_name_of_its_status(tmp_path):
    """A user with the right to status objects spoke for a replica under another name."""

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            await until_says(replica, "Active Enforced", *ALPHAS, "c")
            (own,) = [
                one for one in replica.all(*STATUSES) if one["metadata"]["name"].endswith("-c")
            ]
            fault = {"observedGeneration": 1, "errors": [{"code": "x", "message": "forged"}]}
            metadata = {key: own["metadata"][key] for key in ("labels", "ownerReferences")}
            body = {"metadata": {"name": "another", **metadata}, "status": own["status"] | fault}
            replica.make(*STATUSES, body, NAMESPACE)
            await replica.until(
                lambda: any(
                    "another" in one.items for one in replica.following._aggregation._indexes
                )
            )
            # The same under the right name is what the replica writes again.
            name = own["metadata"]["name"]
            served = replica.storage.kinds[STATUSES]
            forged = {**own, "status": own["status"] | fault}
            forged["metadata"] = {**own["metadata"], "resourceVersion": ""}
            replica.storage.replace(served, NAMESPACE, name, forged, "")
            await replica.until(
                lambda: "errors" not in replica.get(*STATUSES, name, NAMESPACE)["status"],
                "the replica says again what it said",
            )
            await until_says(replica, "Active Enforced", *ALPHAS, "c")
            status = replica.get(*ALPHAS, "c")["status"]
            assert [entry["id"] for entry in status["byPod"]] == ["waddle-1"]
            assert "errors" not in status["byPod"][0]

    asyncio.run(run())


def test_a_status_forged_for_a_foreign_pod_counts_as_no_replica(tmp_path):
    """The attacker may write status objects, and names any Pod of the namespace as owner."""

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            body = {"metadata": {"name": "intruder", "labels": {"app": "other"}}, "status": ready}
            uid = replica.make("", "pods", body, NAMESPACE)["metadata"]["uid"]
            pod = Pod("intruder", NAMESPACE, uid, EVERYTHING)
            fault = StatusError("ingest_error", "forged")
            document = replica.get(*ALPHAS, "c")
            forged = pod_status(
                pod, status_subject(CONSTRAINT, document), errors=[fault], enforced=False
            )
            replica.make(*STATUSES, forged, NAMESPACE)
            aggregation = replica.following._aggregation
            await replica.until(lambda: any(uid in item for item in known_owners(aggregation)))
            replica.change(*ALPHAS, "c", spec={**document["spec"], "enforcementAction": "warn"})
            generation = replica.get(*ALPHAS, "c")["metadata"]["generation"]

            def message() -> str:
                held = conditions_of(replica.get(*ALPHAS, "c").get("status", {}))
                return next((item["message"] for item in held if item["type"] == "Active"), "")

            expected = f"1/1 replicas at generation {generation}"
            await replica.until(lambda: message() == expected, expected)
            status = replica.get(*ALPHAS, "c")["status"]
            assert [entry["id"] for entry in status["byPod"]] == ["waddle-1"]
            assert state_of(replica, *ALPHAS, "c") == "Active Enforced"
            assert uid not in aggregation.writers()
            assert replica.get(
                *STATUSES, forged["metadata"]["name"], NAMESPACE
            )  # not ours to delete

    def known_owners(aggregation):
        return [
            {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}
            for index in aggregation._indexes
            for item in index.items.values()
        ]

    asyncio.run(run())


def test_a_template_that_goes_takes_its_constraints_and_its_watch_along(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            replica.drop(*TEMPLATES, "alpha")
            await replica.until(lambda: replica.serves("Alpha", "c") is None)
            await replica.until(lambda: ALPHAS not in replica.storage.kinds, "the CRD collected")
            await enforced(replica, "again")

    asyncio.run(run())


def test_a_status_of_a_pod_that_is_gone_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "ORPHAN_SECONDS", 0.05)

    def left_behind(replica):
        for name, owner in (("gone", "waddle-0"), ("kept", "waddle-1")):
            pods = replica.storage.kinds["", "pods"]
            pod = replica.storage.items(pods).get((NAMESPACE, owner))
            # The collector finds the Namespace's, and leaves it to us.
            uid = (pod or replica.get("", "namespaces", NAMESPACE))["metadata"]["uid"]
            owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid}]
            body = {
                "metadata": {"name": name, "ownerReferences": owners, "labels": {}},
                "status": {"operations": ["webhook"]},
            }
            replica.make(*STATUSES, body, NAMESPACE)

    async def run():
        async with session(tmp_path, "webhook", "status", prepare=left_behind) as replica:
            await replica.until(lambda: not replica.get(*STATUSES, "gone", NAMESPACE))

    asyncio.run(run())


def test_an_orphan_that_cannot_be_deleted_is_reported_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "ORPHAN_SECONDS", 0.05)

    def left_behind(replica):
        uid = replica.get("", "namespaces", NAMESPACE)["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": "waddle-0", "uid": uid}]
        body = {"metadata": {"name": "gone", "ownerReferences": owners}, "status": {}}
        replica.make(*STATUSES, body, NAMESPACE)
        replica.storage.refused["ConstraintPodStatus"] = 403

    async def run():
        async with session(tmp_path, "webhook", "status", prepare=left_behind) as replica:
            await replica.until(
                lambda: any(
                    b"a status without its replica or policy was not deleted" in line
                    for line in replica.lines
                )
            )
            replica.storage.refused.clear()
            await replica.until(lambda: not replica.get(*STATUSES, "gone", NAMESPACE))

    asyncio.run(run())


def test_a_bug_with_one_orphan_is_reported_and_the_session_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "ORPHAN_SECONDS", 0.05)
    is_gone, met = orphans.Orphans._is_gone, []

    async def with_a_bug(self, item):
        met.append(item["metadata"]["name"])
        if len(met) == 1:
            raise ZeroDivisionError("a bug")
        return await is_gone(self, item)

    monkeypatch.setattr(orphans.Orphans, "_is_gone", with_a_bug)

    def left_behind(replica):
        uid = replica.get("", "namespaces", NAMESPACE)["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": "waddle-0", "uid": uid}]
        body = {"metadata": {"name": "gone", "ownerReferences": owners}, "status": {}}
        replica.make(*STATUSES, body, NAMESPACE)

    async def run():
        async with session(tmp_path, "webhook", "status", prepare=left_behind) as replica:
            await replica.until(lambda: not replica.get(*STATUSES, "gone", NAMESPACE))
            (line,) = [json.loads(line) for line in replica.lines if b"stacktrace" in line]
            assert line["error"] == "ZeroDivisionError: a bug"
            assert replica.registry.counters[OBJECT_FAULTS] == {("orphan",): 1}
            await replica.until(lambda: not replica.registry.gauges[OBJECTS_SPOILED])

    asyncio.run(run())


def refused_longer_and_longer(folder, refused, queue_of, is_written, prepare=lambda _: None):
    """Asserts that a refused write waits longer each time, and is forgotten after success."""

    async def run():
        async with session(folder, *EVERYTHING, prepare=prepare) as replica:
            replica.storage.refused[refused] = 500
            replica.make(*TEMPLATES, template("Alpha", 0))
            await replica.until(lambda: replica.following._aggregation is not None)
            failing = queue_of(replica.following)._failing
            await replica.until(
                lambda: any(one.failures > 3 for one in failing.values()), "retries"
            )
            (backoff,) = {(one.initial_seconds, one.max_seconds) for one in failing.values()}
            assert backoff == (0.02, 60.0)
            replica.storage.refused.clear()
            await replica.until(lambda: is_written(replica), "the write")
            await replica.until(lambda: not failing)

    asyncio.run(run())


def test_a_by_pod_that_cannot_be_written_is_tried_less_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(aggregation, "TURN_SECONDS", 0.02)
    refused_longer_and_longer(
        tmp_path,
        "ConstraintTemplate/status",
        lambda following: following._aggregation._keeper.queue,
        lambda replica: replica.get(*TEMPLATES, "alpha").get("status", {}).get("byPod"),
    )


def test_an_orphan_that_cannot_be_deleted_is_tried_less_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "ORPHAN_SECONDS", 0.02)

    def left_behind(replica):
        uid = replica.get("", "namespaces", NAMESPACE)["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": "waddle-0", "uid": uid}]
        body = {"metadata": {"name": "gone", "ownerReferences": owners}, "status": {}}
        replica.make(*STATUSES, body, NAMESPACE)

    refused_longer_and_longer(
        tmp_path,
        "ConstraintPodStatus",
        lambda following: following._aggregation._orphans.keeper.queue,
        lambda replica: not replica.get(*STATUSES, "gone", NAMESPACE),
        left_behind,
    )


def test_a_revision_that_cannot_be_written_is_tried_less_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(revision_keeper, "TURN_SECONDS", 0.02)
    refused_longer_and_longer(
        tmp_path,
        "PolicyRevision",
        lambda following: following._revisions.keeper.queue,
        lambda replica: replica.all(*REVISIONS),
    )


@pytest.mark.parametrize("code", [403, 500])
def test_a_revision_that_is_refused_is_reported_and_kept_later(tmp_path, monkeypatch, code):
    monkeypatch.setattr(revision_keeper, "REFUSED_SECONDS", 0.1)
    monkeypatch.setattr(revision_keeper, "TURN_SECONDS", 0.1)

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.storage.refused["PolicyRevision"] = code
            await enforced(replica)
            await replica.until(
                lambda: any(
                    b"a PolicyRevision was not written; trying again" in line
                    for line in replica.lines
                )
            )
            replica.storage.refused.clear()
            await replica.until(lambda: len(replica.all(*REVISIONS)) == 2)

    asyncio.run(run())


def test_of_each_object_so_many_revisions_are_kept(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make(*TEMPLATES, template("Alpha", 0))
            for variant, kept in ((0, 1), (1, 2), (2, 2)):
                replica.change(*TEMPLATES, "alpha", spec=template("Alpha", variant)["spec"])
                await until_kept(replica, kept, variant + 1)

    asyncio.run(run())


def test_what_the_audit_found_stands_in_our_status_until_it_finds_no_more(tmp_path):
    found = {"auditTimestamp": "2026-01-01T00:00:00Z", "totalViolations": 1}

    def shard(replica):
        statuses = replica.all(*STATUSES)
        return statuses[0]["status"].get("audit") if statuses else None

    async def run():
        async with session(tmp_path, "webhook", "status", "generate", "audit") as replica:
            await enforced(replica)
            replica.following.audited({("Alpha", "c"): found, ("Alpha", "unknown"): found})
            await replica.until(lambda: shard(replica) == found)
            again = {**found, "auditTimestamp": "2026-01-02T00:00:00Z"}
            replica.following.audited({("Alpha", "c"): again})
            replica.following.audited({("Alpha", "c"): None})
            await replica.until(lambda: replica.all(*STATUSES) and shard(replica) is None)

    asyncio.run(run())


def test_a_roll_out_goes_on_by_itself_and_each_step_is_reported(tmp_path):
    annotations = {"waddle.dev/rollout": "dryrun after=1s"}

    def record(replica):
        return replica.get(*ALPHAS, "c").get("status", {}).get("rollout", {})

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica, annotations=annotations)
            await replica.until(
                lambda: record(replica).get("state") == "Complete", "the last stage"
            )
            await replica.until(
                lambda: any(one["reason"] == "RolloutToDeny" for one in replica.all("", "events"))
            )
        assert [details["action"] for _, details in replica.events] == ["dryrun", "deny"]
        assert replica.events[0][1]["message"].startswith("roll-out begins: enforced as dryrun")
        assert "enforced as deny from now on, dryrun before" in replica.events[1][1]["message"]

    asyncio.run(run())


def vap_status(replica: Session) -> Any:
    """Returns the replica's status of the template's policy, and of the constraint's binding."""
    of_template = replica.all("status.gatekeeper.sh", "constrainttemplatepodstatuses")
    of_constraint = replica.all(*STATUSES)
    return (
        of_template[0]["status"].get("vapGenerationStatus", {}) if of_template else {},
        of_constraint[0]["status"].get("enforcementPointsStatus", [{}])[0] if of_constraint else {},
    )


@pytest.mark.parametrize(
    ("owner", "method", "follower"),
    [
        (expression_keeper.ExpressionKeeper, "_check_template", "expressions"),
        (Planner, "plan", "generation"),
    ],
    ids=["expressions", "generation"],
)
def test_a_bug_in_what_is_made_of_expressions_leaves_the_cluster_followed(
    tmp_path, monkeypatch, owner, method, follower
):
    as_it_is, met = getattr(owner, method), []

    def with_a_bug(*arguments):
        met.append(arguments)
        if len(met) <= 2:
            raise ZeroDivisionError("a bug")
        return as_it_is(*arguments)

    monkeypatch.setattr(owner, method, with_a_bug)

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: replica.get(VAP_GROUP, VAPS.plural, "gatekeeper-alpha"))
            await replica.until(
                lambda: len(met) > 2 and not replica.registry.gauges[OBJECTS_SPOILED]
            )
            (line,) = [json.loads(line) for line in replica.lines if b"stacktrace" in line]
            assert (line["follower"], line["error"]) == (follower, "ZeroDivisionError: a bug")
            assert replica.registry.counters[OBJECT_FAULTS] == {(follower,): 2}

    asyncio.run(run())


def test_many_changes_that_follow_one_another_are_one_plan_of_generated_policies(
    tmp_path, monkeypatch
):
    as_it_is, plans = Planner.plan, []

    def counted(*arguments):
        plans.append(arguments)
        return as_it_is(*arguments)

    monkeypatch.setattr(Planner, "plan", counted)
    monkeypatch.setattr(generation_keeper, "GATHER_SECONDS", 0.2)

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.make(*TEMPLATES, in_cel())
            await replica.until(
                lambda: vap_status(replica)[0].get("state") == "generated", "the state"
            )
            keeper = replica.following._generation
            assert keeper is not None
            queue = keeper._keeper.queue
            await asyncio.sleep(0.5)
            far = generation_keeper.COMPARE_SECONDS / 2
            await replica.until(lambda: queue._due.get("plan", 0.0) > time.monotonic() + far)
            before, now = len(plans), time.monotonic()
            # A machine that stands still between two changes does not make them two bursts.
            with monkeypatch.context() as stopped:
                stopped.setattr(queue, "_clock", lambda: now)
                for _ in range(10):
                    keeper._changed()
                    await asyncio.sleep(0.001)
            await replica.until(lambda: len(plans) > before)
            await asyncio.sleep(0.3)
            assert len(plans) == before + 1

    asyncio.run(run())


def test_generated_policies_are_all_compared_again_after_a_while(tmp_path, monkeypatch):
    """Changes by other writers stay only until the next comparison."""
    monkeypatch.setattr(generation_keeper, "COMPARE_SECONDS", 0.05)
    compare_all, compared = ObjectWriter.compare_all, []

    def noted(self):
        compared.append(self._resource.gvk.kind)
        compare_all(self)

    monkeypatch.setattr(ObjectWriter, "compare_all", noted)

    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            await enforced(replica)
            await replica.until(lambda: compared.count("ValidatingAdmissionPolicy") > 4)
            await replica.until(lambda: compared.count("ValidatingAdmissionPolicyBinding") > 4)

    asyncio.run(run())


@pytest.mark.parametrize("alone", [False, True])
def test_policies_and_bindings_are_generated_reported_and_go_when_they_are_not_wanted(
    tmp_path, monkeypatch, alone
):
    monkeypatch.setattr(generation_keeper, "GRACE_SECONDS", 0.1)

    async def run():
        async with session(tmp_path, *EVERYTHING, alone=alone) as replica:
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: ALPHAS in replica.storage.kinds)
            replica.make(*ALPHAS, constraint("Alpha", "c", 0))
            await replica.until(lambda: replica.all(VAP_GROUP, BINDINGS.plural), "a binding")
            assert len(replica.all(VAP_GROUP, VAPS.plural)) == 1
            await replica.until(
                lambda: vap_status(replica)[1].get("state") == "generated", "the state"
            )
            replica.change(*TEMPLATES, "alpha", spec=in_cel(generates=False)["spec"])
            for plural in (BINDINGS.plural, VAPS.plural):
                await until_none(replica, VAP_GROUP, plural)
            assert replica.serves("Alpha", "c")

    asyncio.run(run())


def test_a_policy_of_the_name_that_is_not_ours_is_left_and_reported(tmp_path):
    theirs = {"metadata": {"name": "gatekeeper-alpha"}, "spec": {"validations": []}}

    def before(replica):
        replica.make(VAP_GROUP, VAPS.plural, theirs)

    async def run():
        async with session(tmp_path, *EVERYTHING, prepare=before) as replica:
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: vap_status(replica)[0].get("state") == "error")
            assert "is there, and is not ours" in json.dumps(vap_status(replica)[0])
            assert replica.get(VAP_GROUP, VAPS.plural, "gatekeeper-alpha")["spec"] == theirs["spec"]

    asyncio.run(run())


def test_a_policy_that_is_not_ours_is_bound_by_nothing_of_ours(tmp_path, monkeypatch):
    """A user could make policies without bindings, and have one in force by its name."""
    monkeypatch.setattr(generation_keeper, "GRACE_SECONDS", 0.1)
    theirs = {"metadata": {"name": "gatekeeper-alpha"}, "spec": {"validations": []}}

    async def run():
        async with session(
            tmp_path,
            *EVERYTHING,
            prepare=lambda replica: replica.make(VAP_GROUP, VAPS.plural, theirs),
        ) as replica:
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: ALPHAS in replica.storage.kinds)
            replica.make(*ALPHAS, constraint("Alpha", "c", 0))
            await replica.until(lambda: vap_status(replica)[1].get("state") == "error")
            assert replica.all(VAP_GROUP, BINDINGS.plural) == []
            # Without it both are made; where it comes in the place of ours, our binding goes.
            replica.drop(VAP_GROUP, VAPS.plural, "gatekeeper-alpha")
            await replica.until(lambda: replica.all(VAP_GROUP, BINDINGS.plural), "a binding")
            replica.drop(VAP_GROUP, VAPS.plural, "gatekeeper-alpha")
            replica.make(VAP_GROUP, VAPS.plural, theirs)
            await until_none(replica, VAP_GROUP, BINDINGS.plural)
            assert replica.get(VAP_GROUP, VAPS.plural, "gatekeeper-alpha")["spec"] == theirs["spec"]

    asyncio.run(run())


def test_a_policy_that_the_api_server_refuses_is_reported(tmp_path):
    async def run():
        async with session(tmp_path, *EVERYTHING) as replica:
            replica.storage.refused["ValidatingAdmissionPolicy"] = 422
            replica.make(*TEMPLATES, in_cel())
            await replica.until(lambda: vap_status(replica)[0].get("state") == "error")
            assert "as the test wants it" in vap_status(replica)[0]["warning"]
            replica.storage.refused.clear()
            replica.change(*TEMPLATES, "alpha", spec={**in_cel()["spec"], "a": 1})
            await replica.until(lambda: vap_status(replica)[0].get("state") == "generated")

    asyncio.run(run())


def test_a_session_ends_the_connections_of_clients_that_are_still_there(tmp_path):
    """Else the garbage collector does, and its warning fails another test."""

    async def run():
        async with session(tmp_path, "webhook"):
            config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
            address = urlsplit(config["clusters"][0]["cluster"]["server"])
            client = socket.create_connection((address.hostname, address.port), PATIENCE_SECONDS)
            await asyncio.sleep(0)
            return client

    with asyncio.run(run()) as client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
