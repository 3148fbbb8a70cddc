"""Statuses of faulty policies: the generation in force, onError, retry, breakers."""

import errno

import pytest

from tests.isolation_table import CEL, UNSAFE
from tests.webhook.controllers.bench import (
    BROKEN,
    CONSTRAINT_STATUS,
    KIND,
    REGO,
    TEMPLATE_STATUS,
    Bench,
    constraint,
    template,
)
from webhook.api import timestamp
from webhook.constraint.breaker import BreakerView
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.isolation import ANNOTATION
from webhook.constraint.targets.known import ADMISSION_ALONE, TARGETS
from webhook.constraint.targets.terraform import TerraformTarget
from webhook.controllers.follow.crd_waits import WAIT_SECONDS, CrdWaits
from webhook.controllers.retries import FIRST_SECONDS, MAX_SECONDS, Retries
from webhook.rego.write.generate import compile_parts

CRD = "k8salways.constraints.gatekeeper.sh"


@pytest.fixture
def bench():
    return Bench()


def on_error(value):
    return {ANNOTATION: value}


def fault(cause, on_error, answer):
    return {"cause": cause, "onError": on_error, "answer": answer, "retry": "permanent"}


def test_the_last_good_generation_in_force_is_said_to_be(bench):
    bench.apply([template()], [constraint()])
    bench.apply([template(BROKEN, generation=2)])

    found = bench.status(TEMPLATE_STATUS)
    assert (found["observedGeneration"], found["activeGeneration"]) == (2, 1)
    assert found["fault"] == fault("parse", "lastGood", "lastGood")
    assert len(found["errors"]) == 1
    theirs = bench.status(CONSTRAINT_STATUS)
    assert theirs["enforced"] is True
    assert theirs["fault"] == fault("parse", "lastGood", "lastGood")


@pytest.mark.parametrize(("value", "answer"), [("reject", "reject"), ("allow", "warn")])
def test_a_template_that_wants_no_last_good_generation_has_none_in_force(bench, value, answer):
    bench.apply([template()], [constraint()])
    bench.apply([template(UNSAFE, generation=2, annotations=on_error(value))])

    found = bench.status(TEMPLATE_STATUS)
    assert found["activeGeneration"] == 0
    assert "activeDigest" not in found
    assert found["fault"] == fault("compile", value, answer)
    theirs = bench.status(CONSTRAINT_STATUS)
    assert (theirs["enforced"], theirs["activeGeneration"]) == (False, 0)
    assert theirs["fault"] == fault("compile", value, answer)
    assert [error["code"] for error in theirs["errors"]] == ["compile"]


def test_without_a_good_generation_the_action_says_what_requests_get(bench):
    bench.apply([template(BROKEN)], [constraint(action="warn")])

    found = bench.status(CONSTRAINT_STATUS)
    assert found["enforced"] is False
    assert found["fault"] == fault("parse", "lastGood", "warn")


def test_a_repaired_policy_has_no_fault(bench):
    bench.apply([template(BROKEN)], [constraint()])
    bench.apply([template(generation=2)])

    assert "fault" not in bench.status(TEMPLATE_STATUS)
    assert "fault" not in bench.status(CONSTRAINT_STATUS)
    assert bench.enforced == ["all"]


def test_a_permanent_fault_is_not_tried_again_until_the_object_changes(bench):
    """Other applied objects do not compile it anew."""
    bench.apply([template(BROKEN)], [constraint()])
    tried = []
    add = bench.client.add_template

    def counted(document):
        tried.append(document)
        return add(document)

    bench.client.add_template = counted

    bench.apply(constraints=[constraint(generation=2)])
    bench.controller.synced([])
    bench.apply([template(BROKEN)])
    assert tried == []

    bench.apply([template(generation=2)])
    assert len(tried) == 1


class Machine:
    """A driver's compiler that lacks memory for a while, as a test says; and a clock."""

    def __init__(self):
        self.lacks_memory = False
        self.now = 1_700_000_000.0
        self.attempts = 0

    def __call__(self, parts):
        self.attempts += 1
        if self.lacks_memory:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return compile_parts(parts)


def bench_of(machine):
    driver = RegoDriver(compile_parts=machine)
    return Bench(drivers=(driver,), retries=Retries(lambda: machine.now))


@pytest.mark.parametrize("before", [[], [template()]], ids=["first", "last good"])
def test_what_the_machine_could_not_compile_is_tried_again_and_its_status_says_when(before):
    machine = Machine()
    bench = bench_of(machine)
    bench.apply(before, [constraint()])
    machine.lacks_memory = True
    bench.apply([template(REGO + " # new", generation=2)])
    waits = []
    for _ in range(12):
        for name in (TEMPLATE_STATUS, CONSTRAINT_STATUS):
            found = bench.status(name)["fault"]
            assert (found["cause"], found["retry"]) == ("environment", "transient")
        at = timestamp.seconds_of(bench.status(TEMPLATE_STATUS)["fault"]["nextRetry"])
        waits.append(at - machine.now)
        attempts = machine.attempts
        machine.now = at - 1
        bench.retry()
        assert machine.attempts == attempts
        machine.now = at + 1
        bench.retry()
        assert machine.attempts > attempts
    assert max(waits) <= MAX_SECONDS
    assert max(waits[6:]) > FIRST_SECONDS, "later after each failure"
    assert bench.enforced == (["all"] if before else [])

    machine.lacks_memory = False
    machine.now += MAX_SECONDS
    bench.retry()
    assert bench.enforced == ["all"]
    assert bench.status(TEMPLATE_STATUS)["activeGeneration"] == 2
    assert "fault" not in bench.status(TEMPLATE_STATUS)
    attempts = machine.attempts
    machine.now += 10 * MAX_SECONDS
    bench.retry()
    assert machine.attempts == attempts


def test_a_template_that_changes_while_it_waits_is_tried_at_once_and_waits_no_more():
    machine = Machine()
    bench = bench_of(machine)
    machine.lacks_memory = True
    bench.apply([template()], [constraint()])
    machine.lacks_memory = False
    bench.apply([template(BROKEN, generation=2)])
    assert bench.status(TEMPLATE_STATUS)["fault"] == fault("parse", "lastGood", "reject")
    bench.apply([None])
    attempts = machine.attempts
    machine.now += MAX_SECONDS
    bench.retry()
    assert machine.attempts == attempts


def test_a_suspended_constraint_says_so(bench):
    bench.apply([template()], [constraint()])
    view = BreakerView(KIND, "all", "open", 3, "too long")

    bench.controller.take_breakers({view_key(view): view})
    assert bench.controller.published()

    found = bench.status(CONSTRAINT_STATUS)
    assert found["enforced"] is False
    assert found["breaker"] == {"state": "open", "message": "too long"}
    assert found["errors"] == [{"code": "suspended", "message": "too long"}]

    bench.controller.take_breakers({})
    assert bench.controller.published()
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True
    assert "breaker" not in bench.status(CONSTRAINT_STATUS)


def view_key(view):
    return view.kind, view.name


def test_a_crd_that_is_not_established_is_awaited(bench):
    bench.apply([template()])
    bench.controller.take_unestablished({CRD: "names are taken"})
    assert bench.controller.published()

    found = bench.status(TEMPLATE_STATUS)
    assert found["fault"] == {"cause": "crd", "retry": "transient"}
    assert found["errors"] == [
        {"code": "crd_not_established", "message": "its constraints' CRD: names are taken"}
    ]

    bench.controller.take_unestablished({})
    assert bench.controller.published()
    assert "fault" not in bench.status(TEMPLATE_STATUS)


def crd(**conditions):
    """A CRD as the API server has it."""
    listed = [
        {"type": name, "status": status, "message": f"{name} is {status}"}
        for name, status in conditions.items()
    ]
    return {"metadata": {"name": CRD}, "status": {"conditions": listed}}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([], "no replica with --operation=generate has made it"),
        ([crd()], "has not established it yet"),
        ([crd(NamesAccepted="False", Established="False")], "NamesAccepted is False"),
    ],
)
def test_a_crd_is_awaited_once_it_has_been_wanted_for_a_while(found, reason):
    now = [100.0]
    waits = CrdWaits(lambda: now[0])

    assert waits.look({CRD}, found) == {}
    now[0] += WAIT_SECONDS
    assert reason in waits.look({CRD}, found)[CRD]
    assert waits.look({CRD}, [crd(NamesAccepted="True", Established="True")]) == {}
    assert waits.look({CRD}, found) == {}
    assert waits.look((), found) == {}


def test_a_crd_that_is_being_deleted_is_not_established_any_more():
    now = [100.0]
    waits = CrdWaits(lambda: now[0])
    ending = crd(NamesAccepted="True", Established="True")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    waits.look({CRD}, [ending])
    now[0] += WAIT_SECONDS

    assert "is being deleted" in waits.look({CRD}, [ending])[CRD]


@pytest.mark.parametrize("wait_for_broken", [False, True])
def test_a_template_without_its_engine_says_so_and_so_do_its_constraints(wait_for_broken):
    """Its constraints have their CRD, and readiness does not wait for what cannot come."""
    bench = Bench(wait_for_broken=wait_for_broken)
    document = template()
    document["spec"]["targets"] = [{"target": "admission.k8s.gatekeeper.sh", "code": [CEL]}]
    bench.apply([document], [constraint()])
    bench.controller.listed("ConstraintTemplate")
    bench.controller.listed(KIND)

    found = bench.status(TEMPLATE_STATUS)
    assert [error["code"] for error in found["errors"]] == ["engine"]
    assert "K8sNativeValidation (CEL)" in found["errors"][0]["message"]
    assert found["fault"] == fault("engine", "lastGood", "warn")
    theirs = bench.status(CONSTRAINT_STATUS)
    assert theirs["enforced"] is False
    assert [error["code"] for error in theirs["errors"]] == ["engine"]
    assert "K8sNativeValidation (CEL)" in theirs["errors"][0]["message"]
    assert CRD in bench.controller.crds
    assert bench.tracker.satisfied


def test_a_template_for_plans_alone_says_that_a_cluster_enforces_nothing_of_it():
    bench = Bench(targets=TARGETS, reviewed_targets=ADMISSION_ALONE)
    document = template()
    document["spec"]["targets"][0]["target"] = TerraformTarget.name
    bench.apply([document], [constraint()])

    found, theirs = bench.status(TEMPLATE_STATUS), bench.status(CONSTRAINT_STATUS)
    why = f"enforces nothing here: it is for {TerraformTarget.name} alone"
    assert found["errors"] == [{"code": "other_target", "message": why}]
    assert found["activeGeneration"] == 0
    assert theirs["errors"] == [{"code": "other_target", "message": f"its template {why}"}]
    assert theirs["enforced"] is False
    assert theirs["activeGeneration"] == 0


def test_a_template_for_plans_and_clusters_has_no_fault():
    bench = Bench(targets=TARGETS, reviewed_targets=ADMISSION_ALONE)
    document = template()
    document["spec"]["targets"].append({"target": TerraformTarget.name, "rego": REGO})
    bench.apply([document], [constraint()])

    assert "errors" not in bench.status(TEMPLATE_STATUS)
    assert bench.status(CONSTRAINT_STATUS)["enforced"] is True
