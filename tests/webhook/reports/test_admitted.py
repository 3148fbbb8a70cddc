"""Findings that only an admission has: taken from its review, and kept for the same resource."""

import copy

import pytest

from tests.webhook.constraint.policies import client, constraint, pod, template
from tests.webhook.reports.made import finding
from webhook.api.gvk import GroupKind
from webhook.constraint.review import AugmentedObject
from webhook.reports.admitted import AdmissionResults, admission_only, state_of, whole
from webhook.reports.finding import Admitted, Policy, digest

POD = GroupKind("", "Pod")


def scoped(name, *points, action="warn"):
    return constraint(
        name=name,
        enforcementAction="scoped",
        scopedEnforcementActions=[
            {"action": action, "enforcementPoints": [{"name": point} for point in points]}
        ],
    )


def reviewed(snapshot, obj):
    """Returns the findings of an admission."""
    return snapshot.review(AugmentedObject(obj), enforcement_point="validation.gatekeeper.sh")


@pytest.fixture(scope="module")
def snapshot():
    return client(
        template(),
        constraint(name="everywhere", enforcementAction="warn"),
        scoped("asked", "validation.gatekeeper.sh"),
        scoped("tried", "validation.gatekeeper.sh", "gator.gatekeeper.sh", action="dryrun"),
        scoped("both", "validation.gatekeeper.sh", "audit.gatekeeper.sh"),
        scoped("all", "*"),
        scoped("audited", "audit.gatekeeper.sh"),
    ).snapshot


def test_only_what_no_audit_enforces_is_an_admissions_own(snapshot):
    found = admission_only(snapshot, POD)
    assert found == {Policy("K8sDeny", "asked"), Policy("K8sDeny", "tried")}


def test_of_a_review_the_admissions_own_results_are_taken(snapshot):
    obj = pod(uid="u1")
    responses = reviewed(snapshot, obj)
    admitted = AdmissionResults(frozenset({"fail", "warn"})).of(responses, snapshot, obj, POD)
    assert [(item.rule, item.verdict, item.action) for item in admitted.findings] == [
        ("asked", "warn", "warn"),
        ("tried", "fail", "dryrun"),
    ]
    assert {(item.point, item.state) for item in admitted.findings} == {
        ("validation.gatekeeper.sh", state_of(obj))
    }
    assert digest(admitted.findings) == b"", (
        "no audit finds them: they are no part of what it knows"
    )


def test_without_such_a_constraint_nothing_is_looked_at():
    snapshot = client(template(), constraint()).snapshot
    results = AdmissionResults(frozenset({"fail"}))
    assert results.of(reviewed(snapshot, pod()), snapshot, pod(), POD) is None


STORED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "uid": "u", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c"}]},
}


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"phase": "Running"}},
        {"metadata": {"resourceVersion": "7", "managedFields": [{"manager": "kubelet"}]}},
        {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}},
        {"metadata": {"labels": {"app": "web", "topology.kubernetes.io/zone": "a"}}},
        {"spec": {"containers": [{"name": "c"}], "nodeName": "node-1"}},
        {"apiVersion": "v1beta1"},
    ],
    ids=["status", "bookkeeping", "annotations", "labels of a node", "node", "version"],
)
def test_what_changes_without_an_admission_leaves_the_state(change):
    assert state_of(merged(STORED, change)) == state_of(STORED)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"app": "other"}}},
        {"metadata": {"generation": 2}},
        {"spec": {"containers": []}},
        {"data": {"a": "b"}},
    ],
    ids=["labels", "generation", "spec", "data"],
)
def test_what_an_admission_sees_is_another_state(change):
    assert state_of(merged(STORED, change)) != state_of(STORED)


def test_of_what_has_a_generation_that_tells():
    """Another version of the kind may have the same contents under other names."""
    one = merged(STORED, {"metadata": {"generation": 3}})
    assert state_of({**one, "spec": {"otherwise": True}}) == state_of(one)


def merged(one, other):
    found = copy.deepcopy(one)
    for name, value in other.items():
        found[name] = {**found[name], **value} if name == "metadata" else value
    return found


AUDITED = (finding("always"),)
NOW = finding("asked", point="validation.gatekeeper.sh", state="now")
BEFORE = finding("asked", point="validation.gatekeeper.sh", state="before")
ONLY = frozenset({Policy(NOW.policy, NOW.rule)})


@pytest.mark.parametrize(
    ("stored", "admitted", "only", "expected"),
    [
        ([], Admitted((NOW,), "now"), ONLY, [NOW]),
        ([NOW], Admitted((), "now"), ONLY, []),
        ([NOW], None, ONLY, [NOW]),
        ([BEFORE], None, ONLY, []),
        ([NOW], Admitted((BEFORE,), "before"), ONLY, [NOW]),
        ([], Admitted((BEFORE,), "before"), ONLY, []),
        ([NOW], None, frozenset(), []),
        ([finding("gone")], None, ONLY, []),
    ],
    ids=[
        "found by this admission",
        "no longer found",
        "found by an earlier one, of the same resource",
        "the resource has changed since",
        "another replica admitted a later state",
        "changed again, by nobody who asked",
        "no policy of admission alone any more",
        "what an audit found before",
    ],
)
def test_a_report_says_what_the_last_admission_of_the_resource_found(
    stored, admitted, only, expected
):
    assert list(whole(AUDITED, stored, admitted, "now", only)) == [*AUDITED, *expected]
