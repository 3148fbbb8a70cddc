"""Conditions: what all replicas together do about an object, from what each says of itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.controllers.pod_statuses import FAULT, LABELS, pod, says, template
from webhook.api import pod_status as kinds
from webhook.api.pod_status import (
    Pod,
    StatusError,
    pod_status,
)
from webhook.controllers.status.condition_keeper import is_reportable
from webhook.controllers.status.conditions import (
    FAULT_CHARACTERS_MAX,
    TYPES,
    judge,
    merged,
    state_of,
)


def constraint():
    return {"kind": "K8sAlways", "metadata": {"name": "c", "uid": "c-uid", "generation": 2}}


def verdict(*statuses, pods=None, overdue=False, document=None):
    pods = [pod(item["status"]["id"]) for item in statuses] if pods is None else pods
    return judge(document or template(), statuses, pods, overdue=overdue)


def test_all_enforce_the_generation():
    found = verdict(says("a"), says("b"))

    assert (found.state, found.reason) == ("Active", "EnforcedByAll")
    assert found.message == "2/2 replicas at generation 2"
    held = {item["type"]: item["status"] for item in found.documents("now")}
    assert held == {"Active": "True", "Degraded": "False", "Error": "False", "Enforced": "True"}
    assert {item["observedGeneration"] for item in found.documents("now")} == {2}


def test_some_cannot_and_which_and_why():
    found = verdict(says("a"), says("b", active=1, errors=[FAULT]), says("c", active=1))

    assert (found.state, found.reason) == ("Degraded", "NotEnforceable")
    assert found.message == (
        "2/3 replicas at generation 2, 67% of requests; 1/3 enforce generation 1 (d1) meanwhile. "
        "b: ingest_error: does not compile (x:1)"
    )


def test_none_can():
    names = [f"r{number}" for number in range(7)]
    found = verdict(*(says(name, active=0, errors=[FAULT]) for name in names))

    assert found.state == "Error"
    assert found.message == (
        "0/7 replicas at generation 2. r0, r1, r2, r3, r4 and 2 more: "
        "ingest_error: does not compile (x:1)"
    )


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        (["missing_data"], "DataMissing"),
        (["suspended"], "Suspended"),
        (["other_target"], "OtherTarget"),
        (["missing_data", "suspended"], "NotEnforceable"),
        (["missing_data", "ingest_error"], "NotEnforceable"),
        ([""], "NotEnforceable"),
    ],
)
def test_the_reason_is_that_of_the_fault(codes, reason):
    statuses = [
        says(f"r{number}", active=0, errors=[StatusError(code, "why")])
        for number, code in enumerate(codes)
    ]

    assert verdict(*statuses).reason == reason


def test_those_behind_are_trouble_only_when_they_have_been_for_long():
    statuses = [says("a"), says("b", observed=1, active=1)]

    assert verdict(*statuses).state == "Progressing"
    found = verdict(*statuses, overdue=True)
    assert (found.state, found.reason) == ("Degraded", "ReplicasBehind")
    assert found.message.endswith(". b: at generation 1")


def test_a_fault_and_somebody_behind_are_no_error_of_all():
    statuses = [says("a", errors=[FAULT]), says("b", observed=1, active=1)]

    assert verdict(*statuses, overdue=True).state == "Degraded"


def test_a_constraint_that_is_not_enforced_is_not_active():
    of = constraint()
    statuses = [says("a", of=of, enforced=True), says("b", of=of, active=0, enforced=False)]
    found = verdict(*statuses, document=of)

    assert found.state == "Degraded"
    assert found.message.endswith(". b: not enforced")


def test_a_roll_back_is_neither_active_nor_trouble():
    found = verdict(says("a", active=1, rolledBackTo="1"), says("b", active=1, rolledBackTo="1"))

    assert (found.state, found.reason) == ("RolledBack", "RolledBack")
    assert {item["status"] for item in found.documents("now")} == {"False"}
    assert found.message == (
        "0/2 replicas at generation 2; 2/2 enforce generation 1 (d1) meanwhile. "
        "a, b: rolled back to generation 1 by annotation"
    )


def test_what_a_replica_enforces_despite_its_error_is_named_and_nothing_of_a_suspended_constraint():
    """A roll-back to a generation that is not kept leaves the spec in force."""
    of, lost = constraint(), StatusError("missing_revision", "there is no revision '1'")
    kept = says("a", of=of, enforced=True, errors=[lost])
    suspended = says("b", of=of, enforced=False, errors=[StatusError("suspended", "too long")])

    message = verdict(kept, suspended, document=of).message
    assert message.startswith("0/2 replicas at generation 2; 1/2 enforce generation 2 (d2) mean")


def test_one_that_cannot_roll_back_is_named():
    found = verdict(says("a", active=1, rolledBackTo="1"), says("b", errors=[FAULT]))

    assert found.state == "Degraded"
    assert "b: ingest_error" in found.message


def test_a_ready_replica_that_says_nothing_is_missed_and_others_are_not():
    pods = [
        pod("a"),
        pod("ready", ready=True),
        pod("starting", ready=False),
        pod("ending", ready=True, ending=True),
        pod("finished", ready=True, phase="Failed"),
        pod("of-another-product", ready=True, labels={"app": "other"}),
    ]
    found = verdict(says("a"), pods=pods, overdue=True)

    assert found.message == "1/2 replicas at generation 2, 50% of requests. ready: no status yet"


@pytest.mark.parametrize(
    "labels", [{}, {"app": "other"}, {**LABELS, "gatekeeper.sh/operation": "audit"}]
)
def test_a_status_owned_by_a_pod_without_the_webhook_s_labels_is_no_replica(labels):
    """A user with the right to status objects can name any Pod of the namespace as the owner."""
    pods = [pod("a"), pod("forged", ready=True, labels=labels)]
    for forged in (says("forged"), says("forged", errors=[FAULT]), says("forged", observed=1)):
        found = verdict(says("a"), forged, pods=pods, overdue=True)

        assert (found.state, found.enforced) == ("Active", "1/1 replicas at generation 2")

    # Nor does it stand in for a replica that has said nothing yet.
    assert verdict(says("forged"), pods=pods, overdue=True) is None


def test_a_pod_that_is_ending_is_believed_and_one_that_is_gone_is_not():
    statuses = [says("a"), says("b", errors=[FAULT])]

    assert verdict(*statuses, pods=[pod("a"), pod("b", ending=True)]).state == "Degraded"
    assert verdict(*statuses, pods=[pod("a")]).state == "Active"
    assert verdict(*statuses, pods=[pod("a"), pod("b", phase="Failed")]).state == "Active"


def test_a_replica_that_is_not_ready_counts_only_where_it_enforces():
    """A start with its half-read policy is no trouble, a probe that fails once no write."""
    statuses = [says("a"), says("b", active=0, errors=[FAULT])]

    assert verdict(*statuses, pods=[pod("a"), pod("b", ready=False)]).state == "Active"
    assert verdict(*statuses, pods=[pod("a"), pod("b", ready=True)]).state == "Degraded"
    ending = pod("b", ready=False, ending=True)
    assert verdict(*statuses, pods=[pod("a"), ending]).state == "Degraded"
    good = [says("a"), says("b")]
    steady, shaken = (
        verdict(*good, pods=[pod("a"), pod("b", ready=ready)]) for ready in (True, False)
    )
    assert steady == shaken


def test_where_nobody_is_ready_all_count():
    """As with --readiness-retries=-1 after a restart of everything."""
    statuses = [says(name, active=0, errors=[FAULT]) for name in ("a", "b")]
    pods = [pod("a", ready=False), pod("b", ready=False)]

    assert verdict(*statuses, pods=pods).state == "Error"


def test_a_process_that_answers_no_admission_does_not_count():
    found = verdict(says("a"), says("audit", errors=[FAULT], operations=("audit", "status")))

    assert found.message == "1/1 replicas at generation 2"


def test_nobody_who_says_anything_is_no_verdict():
    assert verdict(pods=[pod("a", ready=True)], overdue=True) is None
    earlier = says("a", of={**template(), "metadata": {"name": "t", "uid": "u", "generation": 1}})
    assert verdict(earlier, overdue=True) is None


def test_a_long_fault_is_shortened():
    text = "x" * 5000
    found = verdict(says("a", errors=[StatusError("e", text)]))

    assert len(found.faults) < FAULT_CHARACTERS_MAX + 10


def test_nothing_changes_but_the_time_leaves_the_conditions_as_they_are():
    first = merged((), verdict(says("a")), "09:00")

    assert merged(first, verdict(says("a")), "10:00") == first


def test_the_time_is_that_of_the_status_change_alone():
    first = merged((), verdict(says("a"), says("b")), "09:00")
    later = merged(first, verdict(says("a"), says("b", errors=[FAULT])), "10:00")
    times = {item["type"]: item["lastTransitionTime"] for item in later}

    assert times == {"Active": "10:00", "Degraded": "10:00", "Error": "09:00", "Enforced": "10:00"}
    scaled = merged(first, verdict(says("a")), "10:00")
    assert {item["lastTransitionTime"] for item in scaled} == {"09:00"}
    assert scaled != first


def test_conditions_of_others_stay_behind_ours():
    foreign = {"type": "Foreign", "status": "True", "reason": "x"}

    found = merged([foreign], verdict(says("a")), "now")
    assert [item["type"] for item in found] == [*TYPES, "Foreign"]
    assert found[-1] == foreign


MUTATOR = {
    "apiVersion": "mutations.gatekeeper.sh/v1",
    "kind": "Assign",
    "metadata": {"name": "m", "uid": "m-uid", "generation": 2},
}


def of_mutator(name, **fields):
    """Returns a replica's status of the mutator."""
    owner = Pod(name, "waddle-system", f"{name}-uid", ("webhook", "mutation-webhook"))
    return pod_status(owner, kinds.status_subject(kinds.MUTATOR, MUTATOR), **fields)


def test_a_previewed_mutator_holds_no_condition_and_that_is_its_reason():
    found = verdict(of_mutator("a", enforced=False, additions={"preview": True}), document=MUTATOR)

    assert (found.state, found.reason) == ("Previewed", "Previewed")
    assert {item["status"] for item in found.documents("now")} == {"False"}


def test_a_fight_at_any_replica_is_a_condition_until_it_is_over():
    quiet = of_mutator("a", enforced=True)
    fighting = of_mutator("b", enforced=True, additions={"fighting": "Pod shop/web"})

    found = merged([], verdict(quiet, fighting, document=MUTATOR), "1")
    assert [item["type"] for item in found] == [*TYPES, "Fighting"]
    assert (found[-1]["status"], found[-1]["reason"]) == ("True", "UndoneEachTime")
    assert found[-1]["message"].endswith("undone each time: Pod shop/web")
    assert state_of(found) == ("Active", 2)

    over = merged(found, verdict(quiet, document=MUTATOR), "2")
    assert (over[-1]["status"], over[-1]["lastTransitionTime"]) == ("False", "2")
    never = merged([], verdict(quiet, document=MUTATOR), "1")
    assert [item["type"] for item in never] == list(TYPES)


STATES = ["Active", "Degraded", "Error", "RolledBack"]
STATUSES = {
    "Active": [says("a")],
    "Degraded": [says("a"), says("b", errors=[FAULT])],
    "Error": [says("a", errors=[FAULT])],
    "RolledBack": [says("a", active=1, rolledBackTo="1")],
}


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=6))
def test_the_state_can_be_read_back_whatever_came_before(states):
    conditions = []
    for number, state in enumerate(states):
        conditions = merged(conditions, verdict(*STATUSES[state]), f"{number:02}")
        assert state_of(conditions) == (state, 2)
        assert [item["type"] for item in conditions] == list(TYPES)


def test_conditions_that_are_not_ours_tell_no_state():
    assert state_of([{"type": "Ready", "status": "True"}]) == ("", 0)


@pytest.mark.parametrize(
    ("old", "new", "reportable"),
    [
        (("", 0), ("Active", 1), False),
        (("Active", 1), ("Active", 2), False),
        (("", 0), ("Error", 1), True),
        (("Active", 1), ("Degraded", 1), True),
        (("Degraded", 1), ("Degraded", 1), False),
        (("Error", 1), ("Error", 2), True),
        (("Error", 2), ("Active", 3), True),
        (("Active", 2), ("RolledBack", 2), True),
        (("RolledBack", 2), ("RolledBack", 3), False),
        (("RolledBack", 2), ("Active", 2), True),
    ],
)
def test_trouble_is_news_and_so_is_its_end(old, new, reportable):
    assert is_reportable(old, new) is reportable


def test_an_object_that_is_being_deleted_is_enforced_by_nobody():
    """Statuses of replicas do not count: the rule is to assume the worst."""
    ending = template()
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    for statuses in ([says("a"), says("b")], []):
        found = verdict(*statuses, document=ending, pods=[pod("a", ready=True)])

        assert found is not None
        conditions = merged([], found, "now")
        assert {item["type"]: item["status"] for item in conditions} == dict.fromkeys(
            TYPES, "False"
        )
        assert {item["reason"] for item in conditions} == {"Terminating"}
        assert state_of(conditions) == ("Terminating", 2)
