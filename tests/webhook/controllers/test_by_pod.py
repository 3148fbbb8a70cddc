"""byPod: one writer for each object, and no write without a difference."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from webhook.api import pod_status as kinds
from webhook.api.pod_status import (
    CONSTRAINT,
    TEMPLATE,
    Pod,
    StatusError,
    pod_status,
)
from webhook.controllers.status.by_pod import merged_status, orphans
from webhook.replicas.rendezvous import chosen

REPLICAS = st.sets(st.text("abcdef0123456789", min_size=1, max_size=8), min_size=1, max_size=8)


def template(**fields):
    return {"kind": "ConstraintTemplate", "metadata": {"name": "t", "uid": "t-uid"}} | fields


def template_status(pod, errors=()):
    return pod_status(
        Pod(pod, "waddle-system", f"{pod}-uid"),
        kinds.status_subject(kinds.TEMPLATE, template()),
        errors=errors,
    )


def test_there_is_no_writer_without_replicas():
    assert chosen("key", []) is None


@given(REPLICAS, st.text())
def test_every_replica_chooses_the_same_chosen(replicas, key):
    assert chosen(key, sorted(replicas)) == chosen(key, sorted(replicas, reverse=True))
    assert chosen(key, replicas) in replicas


@given(REPLICAS, st.text(), st.data())
def test_only_the_share_of_a_replica_that_goes_moves(replicas, key, data):
    gone = data.draw(st.sampled_from(sorted(replicas)))
    before = chosen(key, replicas)
    after = chosen(key, replicas - {gone})

    assert before in {after, gone}


def test_the_shares_are_about_equal():
    counts = Counter(chosen(f"constraint-{number}", ["a", "b", "c"]) for number in range(3000))

    assert all(800 < count < 1200 for count in counts.values())


def test_entries_are_copied_sorted_and_only_when_they_differ():
    statuses = [template_status("b"), template_status("a")]
    status = merged_status(template(), statuses, TEMPLATE)

    assert [entry["id"] for entry in status["byPod"]] == ["a", "b"]
    assert status["created"] is True
    assert merged_status(template(status=status), statuses, TEMPLATE) is None


def test_what_others_write_into_the_status_stays():
    """Audit's totals stand beside byPod in a constraint's status."""
    document = {
        "kind": "K8sAlways",
        "metadata": {"name": "all", "uid": "c-uid"},
        "status": {"totalViolations": 3},
    }
    statuses = [
        pod_status(
            Pod("a", "waddle-system", "u"),
            kinds.status_subject(kinds.CONSTRAINT, document),
            enforced=True,
        )
    ]
    status = merged_status(document, statuses, CONSTRAINT)

    assert status["totalViolations"] == 3
    assert status is not None
    assert status["byPod"][0]["enforced"] is True
    assert "created" not in status


def test_a_template_is_created_once_the_api_server_has_established_its_crd():
    statuses = [template_status("a")]
    waiting = merged_status(template(), statuses, TEMPLATE, has_crd=False)
    assert waiting is not None
    assert "created" not in waiting
    created = merged_status(template(), statuses, TEMPLATE)
    assert created is not None
    assert created["created"] is True
    before = template(status={"created": True})
    kept = merged_status(before, statuses, TEMPLATE, has_crd=False)
    assert kept is not None
    assert kept["created"] is True


def test_a_template_that_no_replica_could_use_is_not_created_and_stays_created():
    broken = [template_status("a", [StatusError("ingest_error", "no")])]

    status = merged_status(template(), broken, TEMPLATE)
    assert status is not None
    assert "created" not in status
    assert merged_status(template(status={"created": True}), broken, TEMPLATE)["created"] is True


def test_statuses_of_pods_that_are_gone_do_not_count():
    statuses = [template_status("a"), template_status("b")]
    status = merged_status(template(), statuses, TEMPLATE, live=frozenset({"a-uid"}))

    assert [entry["id"] for entry in status["byPod"]] == ["a"]
    assert orphans(statuses, frozenset({"a-uid"})) == [statuses[1]]


def test_the_last_entry_to_go_leaves_no_empty_list():
    document = template(status={"byPod": [{"id": "a"}], "created": True})

    assert merged_status(document, [], TEMPLATE) == {"created": True}
