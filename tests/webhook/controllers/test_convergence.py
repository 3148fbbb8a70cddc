"""Replicas that count, and the moment when all of them enforce an object."""

from dataclasses import replace

import pytest

from webhook.api import pod_status
from webhook.api.pod_status import Pod, StatusError
from webhook.api.revision import PolicyRevision
from webhook.api.revision_outcome import TrialOutcome
from webhook.controllers.status.convergence import by_subject, converge, status_kind_of, subject_for
from webhook.replicas.pods import replica

TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "k", "uid": "template-uid", "generation": 3},
}
CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "K",
    "metadata": {"name": "c", "uid": "constraint-uid", "generation": 2},
}


def pod(name, *, ready=True, phase="Running", deleted=False):
    metadata = {"name": name, "uid": f"{name}-uid"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}


def status(pod_name, document, *, uid=None, since="2026-01-01T00:00:00Z", **options):
    owner = Pod(pod_name, "ns", uid or f"{pod_name}-uid", options.pop("operations", ("webhook",)))
    if document["kind"] == "ConstraintTemplate":
        subject = pod_status.status_subject(pod_status.TEMPLATE, document)
    else:
        subject = pod_status.status_subject(pod_status.CONSTRAINT, document)
        options.setdefault("enforced", True)
    return pod_status.pod_status(owner, subject, additions={"since": since}, **options)


def changed(document, **metadata):
    return document | {"metadata": document["metadata"] | metadata}


def states(document, statuses, *pods):
    found = converge(document, statuses, [replica(item) for item in pods])
    return found.enforced, [standing.state for standing in found.standings]


@pytest.mark.parametrize("document", [TEMPLATE, CONSTRAINT], ids=["template", "constraint"])
def test_enforced_by_every_replica_that_is_ready(document):
    statuses = [status(name, document) for name in ("a", "b")]
    both = [pod("a"), pod("b")]

    assert states(document, statuses, *both) == (True, ["enforced", "enforced"])
    assert states(document, statuses[:1], *both) == (False, ["enforced", "missing"])


@pytest.mark.parametrize(
    ("other", "enforced"),
    [
        (pod("b", ready=False), True),
        (pod("b", ready=False, deleted=True), False),
        (pod("b", deleted=True), False),
        (pod("b", phase="Failed"), True),
        (pod("b", ready=False, phase="Succeeded", deleted=True), True),
    ],
    ids=["starting", "draining", "just deleted", "failed", "ended"],
)
def test_counted_is_who_may_answer(other, enforced):
    """Neither a replica that starts nor one that has ended is waited for; one that drains is."""
    found, _ = states(CONSTRAINT, [status("a", CONSTRAINT)], pod("a"), other)

    assert found is enforced


def test_a_terminating_replica_never_counts_as_enforcing():
    found = states(CONSTRAINT, [status("a", CONSTRAINT)], pod("a", deleted=True))

    assert found == (False, ["terminating"])


def test_nobody_enforces_without_replicas():
    assert states(CONSTRAINT, []) == (False, [])
    assert states(CONSTRAINT, [status("a", CONSTRAINT)], pod("a", ready=False))[0] is False


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        (status("a", changed(CONSTRAINT, generation=1)), "behind"),
        (status("a", changed(CONSTRAINT, generation=3)), "behind"),
        (status("a", changed(CONSTRAINT, uid="earlier")), "missing"),
        (status("a", CONSTRAINT, uid="an earlier pod's"), "missing"),
        (status("a", CONSTRAINT, enforced=False), "unenforced"),
        (status("a", CONSTRAINT, enforced=None), "unenforced"),
        (status("a", CONSTRAINT, errors=[StatusError("code", "message")]), "error"),
        (status("a", CONSTRAINT, operations=("audit", "status")), "missing"),
    ],
)
def test_each_part_of_an_entry_matters(entry, state):
    assert states(CONSTRAINT, [entry], pod("a")) == (False, [state])


def test_a_template_needs_no_enforced_field():
    assert "enforced" not in status("a", TEMPLATE)["status"]
    assert states(TEMPLATE, [status("a", TEMPLATE)], pod("a"))[0] is True


def test_errors_are_reported_with_their_place():
    error = StatusError("ingest_error", "unexpected token", "foo.rego:3:1")
    found = converge(CONSTRAINT, [status("a", CONSTRAINT, errors=[error])], [replica(pod("a"))])

    assert found.standings[0].reason == "ingest_error: unexpected token (foo.rego:3:1)"


def test_warnings_about_code_are_reported_with_their_place():
    warning = {"fieldRef": "spec.targets", "warning": "5 violations without a message"}
    entry = status("a", TEMPLATE)
    entry["status"]["expressionWarnings"] = [warning, "no object"]
    found = converge(TEMPLATE, [entry], [replica(pod("a"))])

    assert found.standings[0].warnings == ("spec.targets: 5 violations without a message",)
    assert found.enforced


def test_enforced_since_the_last_replica_began():
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"
    replicas = [replica(pod("a")), replica(pod("b"))]
    statuses = [status("a", CONSTRAINT, since=late), status("b", CONSTRAINT, since=early)]

    assert converge(CONSTRAINT, statuses, replicas).since == late
    assert converge(CONSTRAINT, statuses[:1], replicas).since == ""


def test_statuses_are_found_by_what_they_are_about():
    entries = [status("a", TEMPLATE), status("a", CONSTRAINT), status("b", CONSTRAINT)]

    assert by_subject(entries) == {
        subject_for(TEMPLATE): entries[:1],
        subject_for(CONSTRAINT): entries[1:],
    }


def test_a_mutator_and_a_constraint_of_the_same_kind_and_name_are_two():
    mutator = {**CONSTRAINT, "apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign"}

    assert subject_for(mutator) != subject_for({**CONSTRAINT, "kind": "Assign"})
    assert status_kind_of(mutator) is pod_status.MUTATOR


def test_a_previewed_mutator_is_not_enforced_and_says_why():
    mutator = {**CONSTRAINT, "apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign"}
    owner = Pod("a", "ns", "a-uid", ("webhook",))
    status = pod_status.pod_status(
        owner,
        pod_status.status_subject(pod_status.MUTATOR, mutator),
        enforced=False,
        additions={"preview": True},
    )
    found = converge(mutator, [status], [replica(pod("a"))])

    assert not found.enforced
    assert found.standings[0].reason == "only previewed, as its annotation says"


def test_an_object_that_is_being_deleted_is_not_enforced():
    ending = changed(CONSTRAINT, deletionTimestamp="2026-01-01T00:00:00Z")

    enforced, _ = states(ending, [status("a", CONSTRAINT)], pod("a"))

    assert not enforced


@pytest.mark.parametrize("statuses", [(), (1,)], ids=["new", "changed"])
def test_a_policy_under_trial_says_so_and_who_tries_it(statuses):
    """It was missing, as where a replica has no right to see it."""
    claim = TrialOutcome("trying", "a", "a-uid", "1", "2026-01-01T00:00:00Z")
    document = changed(CONSTRAINT, generation=2)
    seen = [status("b", changed(CONSTRAINT, generation=old)) for old in statuses]
    kept = PolicyRevision("r", "constraint-uid", 2, "", "", "", "", outcome=claim)
    for revision, state in ((kept, "trying"), (passed(kept), "behind" if statuses else "missing")):
        found = converge(document, seen, [replica(pod("b"))], [revision])
        (standing,) = found.standings
        assert (found.enforced, standing.state) == (False, state)
        assert ("a tries it first, since 2026-01-01T00:00:00Z" in standing.reason) == (
            state == "trying"
        )
    other = replace(kept, generation=1)
    assert converge(document, seen, [replica(pod("b"))], [other]).standings[0].state != "trying"


def passed(revision):
    return replace(revision, outcome=replace(revision.outcome, verdict="passed"))
