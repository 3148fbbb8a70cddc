"""Events of admissions on a real API server: made once, counted up, where they are asked for."""

from tests.patience import until
from tests.system.conftest import StartReplica
from tests.system.replicas import NAMESPACE, Plane, constraint, template

EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"


def test_a_denial_is_an_event_that_is_counted_up(plane: Plane, start: StartReplica) -> None:
    plane.put_template(template("Told"))
    try:
        replica = start(
            "waddle-events",
            "--operation=webhook",
            "--operation=generate",
            "--emit-admission-events",
        )
        replica.wait_ready()
        plane.put_constraint(constraint("events", "untold", "Told"))
        until(lambda: replica.denies("untold"), "it denies")
        assert replica.denies("untold")

        def counts() -> list[int]:
            found = plane.api.request("GET", EVENTS)["items"]
            return [item["count"] for item in found if item["reason"] == "FailedAdmission"]

        until(lambda: any(count >= 2 for count in counts()), "the Event is counted up")
        assert len(counts()) == 1
        (event,) = (
            item
            for item in plane.api.request("GET", EVENTS)["items"]
            if item["reason"] == "FailedAdmission"
        )
        assert event["message"] == (
            'Admission webhook "validation.gatekeeper.sh" denied request, Resource Namespace: '
            "workloads, Constraint: events, Message: denied by untold"
        )
        assert event["source"] == {"component": "gatekeeper-webhook"}
    finally:
        plane.delete_template("told")
