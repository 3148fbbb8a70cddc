"""A picture of a cluster, made of objects as anybody may have written them."""

import json
import shlex
from typing import Any

import pytest

from tests.webhook.console.assembled import KIND, pod, policy, report, status_by
from tests.webhook.console.pictures import HOSTILE, SCRIPT
from webhook.api.pod_status import StatusError
from webhook.api.revision import digest_of, revision_object
from webhook.console import pages
from webhook.console.assembly import (
    FROM_STATUSES,
    NOWHERE,
    ClusterObjects,
    kept_report,
    newest,
    picture_of,
)
from webhook.controllers.status.convergence import OVERRUN
from webhook.reports.report_api import WGPOLICY


def shown(*statuses: dict[str, Any], document: dict[str, Any] | None = None) -> Any:
    [found] = picture_of(
        ClusterObjects([document or policy()], statuses, [pod("a"), pod("b")])
    ).policies
    return found


def test_a_policy_is_active_once_every_replica_enforces_it():
    document = policy()
    assert shown().state == "pending"
    found = shown(status_by("a", document), status_by("b", document))
    assert (found.state, found.enforcing, found.counted) == ("active", 2, 2)
    behind = shown(status_by("a", document))
    assert (behind.state, behind.enforcing) == ("degraded", 1)
    assert [one.reason for one in behind.standings] == ["", "no status yet"]


def test_a_policy_that_a_replica_cannot_use_is_an_error_or_degraded_where_an_older_one_is_in_force():
    document = policy()
    errors = [StatusError("", SCRIPT)]
    older = {"activeGeneration": 1}
    bad = status_by("a", document, errors=errors, enforced=False, additions={"activeGeneration": 0})
    kept = status_by("a", document, errors=errors, additions=older)
    good = status_by("b", document)
    assert shown(bad, good).state == "error"
    assert shown(kept, good).state == "degraded"
    assert shown(kept, good).faults == (SCRIPT,)


def test_a_policy_whose_evaluations_exceed_their_budget_is_not_shown_as_if_all_were_well():
    """Replicas enforce it, and refuse the requests that it matches."""
    document = policy()
    breaker = {"state": "closed", "message": SCRIPT}
    additions = {"activeGeneration": 2, "breaker": breaker}
    found = shown(status_by("a", document, additions=additions), status_by("b", document))
    assert (found.state, found.enforcing) == ("degraded", 2)
    assert found.faults == (f"{OVERRUN}: {SCRIPT}",)


@pytest.mark.parametrize(
    "status",
    [
        "text",
        7,
        [],
        {"rollout": "x"},
        {"rollout": {"steps": [1], "state": {}}},
        {"violations": "x"},
        {"totalViolations": 1, "violations": [1, {"name": 7, "kind": []}]},
    ],
)
def test_a_status_of_any_shape_costs_nobody_the_picture(status: Any):
    found = picture_of(ClusterObjects([policy(status=status), policy("other")]))
    assert len(found.policies) == 2
    for view in (pages.policies, pages.rollouts, pages.health, pages.violation_page):
        view(found, {})


def test_a_roll_out_is_shown_with_the_action_of_its_stage():
    annotations = {"waddle.dev/rollout": "dryrun after=24h, warn"}
    record = {
        "observedGeneration": 2,
        "state": "Progressing",
        "action": "dryrun",
        "steps": [{"action": "dryrun", "since": "2026-01-01T00:00:00Z"}],
    }
    document = policy(metadata={"annotations": annotations}, status={"rollout": record})
    picture = picture_of(ClusterObjects([document]))
    assert picture.policies[0].action == "dryrun"
    [row] = pages.rollouts(picture, {})["rollouts"]
    assert (row["stage"], row["rollout"]["steps"]) == ("dryrun: Progressing", record["steps"])
    assert row["toCome"] == ["dryrun after=24h", "warn", "deny"]
    page = pages.policy(picture, {"kind": KIND, "name": "owner"})
    assert "waddle.dev/rollout-pause" in str(page["commands"])


def test_what_was_steered_is_undone_by_a_command_that_is_shown():
    annotations = {
        "waddle.dev/rollout": "dryrun after=24h",
        "waddle.dev/rollout-pause": "true",
        "waddle.dev/rollback-to": "1",
    }
    record = {
        "observedGeneration": 2,
        "state": "Paused",
        "action": "dryrun",
        "steps": [{"action": "dryrun", "since": "2026-01-01T00:00:00Z"}],
    }
    document = policy(metadata={"annotations": annotations}, status={"rollout": record})
    picture = picture_of(ClusterObjects([document]))
    commands = pages.policy(picture, {"kind": KIND, "name": "owner"})["commands"]
    kubectl = "kubectl annotate requiredlabel owner waddle.dev/"
    steering = {one["what"]: one["command"] for one in commands if "annotate" in one["command"]}
    assert steering == {
        "enforce the spec again": f"{kubectl}rollback-to-",
        "go on with the roll-out": f"{kubectl}rollout-pause-",
        "abort the roll-out": f"{kubectl}rollout-abort=true --overwrite",
    }


def test_revisions_are_reported_with_what_is_otherwise_now_and_how_to_go_back():
    before = policy(metadata={"generation": 1}, spec={"parameters": {"label": "old"}})
    kept = [revision_object(item, digest_of(item)) for item in (before, policy())]
    broken = {"metadata": {"name": "broken"}, "spec": {}}
    picture = picture_of(ClusterObjects([policy()], revisions=[*kept, broken]))
    page = pages.policy(picture, {"kind": KIND, "name": "owner"})
    assert [one["generation"] for one in page["revisions"]] == [2, 1]
    assert page["revisions"][0]["difference"] == ""
    assert "-  label: old\n+  label: new" in page["revisions"][1]["difference"]
    back = {
        "what": "roll back to generation 1",
        "command": "kubectl annotate requiredlabel owner waddle.dev/rollback-to=1 --overwrite",
    }
    assert back in page["commands"]
    assert "broken" in picture.faults[0]


def test_what_is_wrong_in_reports_of_ours_is_shown_and_nothing_else_is_kept():
    documents = [
        report(
            text,
            {"result": "fail", "message": text, "properties": {"action": "deny"}},
            {"result": "pass"},
        )
        for text in HOSTILE
    ]
    documents.append(report("other", {"result": "fail"}, source="kyverno"))
    kept = [kept_report(one, WGPOLICY.namespaced) for one in documents]
    assert set(kept[0]["metadata"]) == {"name", "namespace", "uid"}
    picture = picture_of(ClusterObjects([policy()], reports=kept))
    assert picture.violations is not None
    assert {one.name for one in picture.violations} == set(HOSTILE)
    assert {one.policy for one in picture.violations} == {f"{KIND}/owner"}


def test_without_reports_violations_are_those_in_statuses_and_that_is_said():
    item = {
        "enforcementAction": "deny",
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "namespace": "shop",
        "name": "web",
        "message": "no",
    }
    audited = {"auditTimestamp": "2026-01-01T00:00:00Z", "totalViolations": 21}
    document = policy(status={**audited, "violations": [item]})
    picture = picture_of(ClusterObjects([document]))
    (row,) = pages.violation_page(picture, {})["rows"]
    assert (row["firstSeen"], row["lastSeen"]) == ("", "2026-01-01T00:00:00Z")
    assert picture.violations is not None
    assert picture.violations[0].resource == ("apps/v1", "Deployment", "shop", "web")
    assert picture.trouble == (FROM_STATUSES,)
    served = picture_of(ClusterObjects([document], reports=[]))
    assert (served.violations, served.trouble) == (picture.violations, (FROM_STATUSES,))
    nothing = picture_of(ClusterObjects([policy()]))
    assert (nothing.violations, nothing.why_no_violations) == (None, NOWHERE)


def test_the_newest_of_resource_versions_is_named():
    assert newest(["9", "10", ""]) == "10"
    assert newest([]) == ""
    assert newest(["b", "a", "9"]) == "9, a, b"


def test_a_namespace_is_spared_beside_those_that_are_and_names_are_quoted():
    spec = {"match": {"excludedNamespaces": ["kube-system"]}, "enforcementAction": "warn"}
    picture = picture_of(ClusterObjects([policy("o'clock", spec=spec)]))
    commands = pages.policy(picture, {"kind": KIND, "name": "o'clock"})["commands"]
    by_what = {one["what"]: one["command"] for one in commands}
    spared = shlex.split(by_what["spare a namespace"])
    assert spared[:4] == ["kubectl", "patch", "requiredlabel", "o'clock"]
    assert json.loads(spared[-1]) == {
        "spec": {"match": {"excludedNamespaces": ["kube-system", "NAMESPACE"]}}
    }
    assert "deny its violations" in by_what
    assert "only warn of its violations" not in by_what, "it does already"
    assert "roll it out in stages" not in by_what


def test_a_policy_that_nobody_is_asked_about_is_not_asked():
    """By the configurations that are known; where none could be read nothing is said."""
    document = policy()
    spoken = (status_by("a", document), status_by("b", document))

    def state(*around: dict[str, Any], read: tuple[str, ...] = ()) -> Any:
        objects = ClusterObjects(
            [document], spoken, [pod("a"), pod("b")], around=around, around_read=read
        )
        [found] = picture_of(objects).policies
        return found

    kind = "ValidatingWebhookConfiguration"
    webhook = {"clientConfig": {"url": "https://w/v1/admit"}, "rules": []}
    silent = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "ours"},
        "webhooks": [webhook],
    }
    assert state().state == "active"
    assert state(read=(kind,)).state == "not asked"
    found = state(silent, read=(kind,))
    assert found.state == "not asked"
    assert found.faults[0].startswith("NotAsked: no rule of ours sends CREATE, UPDATE of")
