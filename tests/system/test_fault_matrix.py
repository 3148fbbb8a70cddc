"""The table of docs/isolation.md on three replicas at the real API server.

For each kind of broken policy, each onError and each action: what a request got,
what status, metrics and decision records say, and that the others' verdicts
stayed right and no replica ended.
"""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import pytest

from tests.cluster import ApiError
from tests.decisions.process import Sidecar
from tests.decisions.receiver import Receiver
from tests.patience import until
from tests.system import faulty
from tests.system.conftest import ALL_OPERATIONS, control_plane
from tests.system.faulty import (
    BROKEN,
    BROKEN_TRIES,
    ERROR_TRIES,
    LASTING,
    OVERRUN_TRIES,
    SUSPENDED_TRIES,
    Try,
)
from tests.system.replicas import (
    CONFIG_MAPS,
    NAMESPACE,
    STATUSES,
    TEMPLATES,
    Plane,
    Replica,
    config_map,
)

KINDS = [*BROKEN, *LASTING, "Errs", "Overruns"]
TEMPLATES_AT_FAULT = {
    kind: stage for kind, stage in {**BROKEN, **LASTING}.items() if stage != "constraint"
}
PARAMETERS = ("--validate-templates=schema", "--kept-revisions=0", "--evaluation-budget=20ms")


class Matrix:
    """Three replicas with every faulty policy, and what they decided."""

    def __init__(self, plane: Plane, receiver: Receiver) -> None:
        self.plane = plane
        self.receiver = receiver
        self.replicas: list[Replica] = []
        self.wrong: list[str] = []
        self._stop = threading.Event()
        self._asking = threading.Thread(target=self._ask_others)

    def statuses(self, plural: str) -> dict[tuple[str, str, str], dict[str, Any]]:
        """The replicas' statuses by pod, template and constraint."""
        found = {}
        for item in self.plane.api.request("GET", f"{STATUSES}/{plural}")["items"]:
            labels = item["metadata"]["labels"]
            prefix = "internal.gatekeeper.sh/"
            key = (
                labels[f"{prefix}pod"],
                labels[f"{prefix}constrainttemplate-name"],
                labels.get(f"{prefix}constraint-name", ""),
            )
            found[key] = item["status"]
        return found

    def _ask_others(self) -> None:
        """A policy without a fault decides right throughout, on every replica."""
        while not self._stop.wait(0.05):
            for replica in self.replicas:
                for steady in ("yes", "no"):
                    document = config_map("")
                    document["metadata"]["labels"] = {"steady": steady}
                    answer = replica.admit(document)
                    message = answer["status"].get("message", "")
                    if answer["allowed"] is not (steady == "yes") or (
                        not answer["allowed"] and message != "[steady] not steady"
                    ):
                        self.wrong.append(f"{replica.name}: {answer}")

    def __enter__(self) -> Self:
        self._asking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._asking.join()

    def records(self, label: str, cause: str = "") -> list[dict[str, Any]]:
        """The records of a cell's decisions that have arrived, or of those of one cause."""
        with self.receiver.changed:
            found = [
                record
                for record in self.receiver.records
                if record["eventType"] == "decision"
                and record["resourceLabels"].get("cell") == label
            ]
        if not cause:
            return found
        return [
            record
            for record in found
            if any(item["cause"] == cause for item in record.get("undecided", ()))
        ]


def bring_in(plane: Plane) -> None:
    """Applies the good policies, and then the edits that no webhook prevented."""
    with Replica(plane, "maker", *ALL_OPERATIONS, *PARAMETERS) as maker:
        maker.wait_ready()
        for kind in (*KINDS, "Steady"):
            plane.put_template(faulty.good(kind))
        plane.put_constraint(faulty.steady_constraint())
        for one in (*BROKEN_TRIES, *ERROR_TRIES, *OVERRUN_TRIES):
            plane.put_constraint(one.constraint())
    plane.delete_pod("maker")
    for kind, stage in BROKEN.items():
        plane.put_template(faulty.broken(kind, stage))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """Three replicas that started with some policies broken, and met the others' breaking."""
    folder = tmp_path_factory.mktemp("matrix")
    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}}
        sidecar = stack.enter_context(Sidecar(folder / "sidecar", [sink])).ready()
        plane = stack.enter_context(control_plane(folder))
        bring_in(plane)
        config = folder / "decisions.yaml"
        config.write_text(json.dumps({"sidecarURL": sidecar.url, "flushSeconds": 0.01}))
        log = f"--decision-log-config={config}"
        found = Matrix(plane, receiver)
        for number in range(3):
            replica = Replica(plane, f"matrix-{number}", *ALL_OPERATIONS, *PARAMETERS, log)
            found.replicas.append(stack.enter_context(replica))
        for replica in found.replicas:
            replica.wait_ready()
        stack.enter_context(found)
        for kind, stage in LASTING.items():
            plane.put_template(faulty.broken(kind, stage))
        until(lambda: _all_broken(found), "every replica says what is broken")
        yield found


def _all_broken(matrix: Matrix) -> bool:
    """Whether each replica's statuses of templates and constraints speak of the fault."""
    templates = matrix.statuses("constrainttemplatepodstatuses")
    found = matrix.statuses("constraintpodstatuses")
    return (
        all(
            templates.get((replica.name, kind.lower(), ""), {}).get("observedGeneration") == 2
            for replica in matrix.replicas
            for kind in (*BROKEN, *LASTING)
        )
        and all(
            templates[replica.name, kind.lower(), ""].get("fault", {}).get("cause") == stage
            for replica in matrix.replicas
            for kind, stage in TEMPLATES_AT_FAULT.items()
        )
        and all(
            found.get((replica.name, one.kind.lower(), one.name), {}).get("fault", {}).get("cause")
            == one.cause
            for replica in matrix.replicas
            for one in BROKEN_TRIES
        )
    )


def check_answer(one: Try, answer: dict[str, Any]) -> None:
    """Asserts that an answer is the one of the table."""
    status = answer["status"]
    message = status.get("message", "")
    word = one.row.admission
    if word == "denied":
        assert (answer["allowed"], status["code"]) == (False, 403), one
        assert message.startswith(f"[{one.name}] "), one
    elif word == "reject":
        assert (answer["allowed"], status["code"]) == (False, 500), one
        assert status["reason"] == "PolicyFault", one
        assert message.startswith(
            f"[{one.name}] {one.kind} could not be decided ({one.cause}): "
        ), one
    else:
        assert answer["allowed"], one
        warnings = answer.get("warnings", [])
        assert bool(warnings) is (word in ("warn", "warned")), one
        assert all(text.startswith(f"[{one.name}] ") for text in warnings), one


def check_records(matrix: Matrix, one: Try, count: int) -> None:
    """The decision log says the same."""
    is_fault = one.row.metric != "—"

    def found() -> list[dict[str, Any]]:
        if is_fault:
            return matrix.records(one.label, one.cause)
        return [record for record in matrix.records(one.label) if "undecided" not in record]

    until(lambda: len(found()) >= count, f"the records of {one.label}")
    for record in found():
        if is_fault:
            (item,) = record["undecided"]
            assert item["constraint"]["name"] == one.name
            assert (item["cause"], item["answer"]) == (one.cause, one.row.metric)
            assert "results" not in record
        else:
            (result,) = record["results"]
            assert result["constraint"]["name"] == one.name
        assert record["allowed"] is (one.row.admission not in ("denied", "reject"))


def ask(matrix: Matrix, tries: list[Try]) -> None:
    """Ask every replica about each cell, and compare answers, metrics and records."""
    for replica in matrix.replicas:
        ask_one(replica, tries)
    for one in tries:
        check_records(matrix, one, len(matrix.replicas))


def ask_one(replica: Replica, tries: list[Try]) -> None:
    """Ask a replica about each cell, and compare answers and metrics."""
    before = faults_counted(replica)
    for one in tries:
        before = ask_about(replica, one, before)


def ask_about(
    replica: Replica, one: Try, before: Counter[tuple[str, str, str]]
) -> Counter[tuple[str, str, str]]:
    """Ask a replica about a cell, and compare; returns the counters after, ``before`` those before.

    Where the machine stood still, the question is asked again: until the deadline of the review, or
    until the time when a suspended constraint is evaluated for a trial, which overruns.
    """
    expected = Counter([(one.kind, one.cause, one.row.metric)] * (one.row.metric != "—"))

    def is_answered() -> bool:
        nonlocal before
        answer, earlier = replica.admit(one.subject()), before
        before = faults_counted(replica)
        counted = before - earlier
        if {cause for _, cause, _ in counted} & {"deadline", "overrun"} - {one.cause}:
            return False
        check_answer(one, answer)
        assert counted == expected, one
        return True

    until(is_answered, f"{one.label} is answered for {one.cause}")
    return before


def suspend(replica: Replica, one: Try) -> None:
    """Have a constraint overrun until it is suspended."""
    series = f'constraint_kind="{one.kind}",constraint_name="{one.name}"'

    users = itertools.count()

    def is_suspended() -> bool:
        # Of one user alone it would be suspended for that one.
        replica.admit(one.subject(), userInfo={"username": f"user-{next(users)}"})
        return replica.metric(f"waddle_constraint_suspended{{{series}}}") == 1

    until(is_suspended, f"{one.name} is suspended")


def faults_counted(replica: Replica) -> Counter[tuple[str, str, str]]:
    """``waddle_policy_faults_total`` by kind, cause and answer."""
    found: Counter[tuple[str, str, str]] = Counter()
    for line in replica.get("metrics", "/metrics").body.decode().splitlines():
        if line.startswith("waddle_policy_faults_total{"):
            labels, _, value = line.partition("{")[2].partition("} ")
            fields = dict(part.split("=") for part in labels.split(","))
            key = tuple(fields[name].strip('"') for name in ("constraint_kind", "cause", "answer"))
            found[key] = round(float(value))
    return found


def test_broken_policies_answer_by_the_table_and_statuses_say_so(matrix: Matrix) -> None:
    ask(matrix, BROKEN_TRIES)
    until(lambda: _all_broken(matrix), "every replica says what is broken")
    statuses = matrix.statuses("constraintpodstatuses")
    for replica in matrix.replicas:
        for one in BROKEN_TRIES:
            status = statuses[replica.name, one.kind.lower(), one.name]
            assert status["observedGeneration"] == 1, one
            assert status["enforced"] is (one.row.enforced == "true"), one
            assert status["fault"] == {
                "cause": one.cause,
                "onError": one.row.on_error,
                "answer": one.answer,
                "retry": "permanent",
            }, one
            if one.row.enforced == "false":
                assert len(status["errors"]) == 1, one
                assert status["activeGeneration"] == 0, one


def test_statuses_of_broken_templates_say_which_generation_is_active(matrix: Matrix) -> None:
    statuses = matrix.statuses("constrainttemplatepodstatuses")
    for replica in matrix.replicas:
        for kind, stage in TEMPLATES_AT_FAULT.items():
            status = statuses[replica.name, kind.lower(), ""]
            assert status["observedGeneration"] == 2, kind
            assert status["activeGeneration"] == (1 if kind in LASTING else 0), kind
            assert len(status["errors"]) == 1, kind
            assert status["fault"]["cause"] == stage, kind


def test_a_broken_template_has_an_event_and_a_condition(matrix: Matrix) -> None:
    def has_error() -> bool:
        found = matrix.plane.api.request("GET", f"{TEMPLATES}/parsenone")
        conditions = found.get("status", {}).get("conditions", [])
        return any(item["type"] == "Error" and item["status"] == "True" for item in conditions)

    until(has_error, "the condition Error")

    def has_event() -> bool:
        events = [
            event
            for path in (
                "/api/v1/namespaces/default/events",
                f"/api/v1/namespaces/{NAMESPACE}/events",
            )
            for event in matrix.plane.api.request("GET", path)["items"]
        ]
        return any(event["involvedObject"].get("name") == "parsenone" for event in events)

    until(has_event, "an Event about the template")


def test_evaluations_that_fail_answer_by_the_table(matrix: Matrix) -> None:
    ask(matrix, ERROR_TRIES)
    for replica in matrix.replicas:
        assert (replica.metric('waddle_evaluation_errors_total{constraint_kind="Errs"}') or 0) > 0


@pytest.mark.slow(40)
def test_overruns_answer_by_the_table_and_then_suspend(matrix: Matrix) -> None:
    """A suspended constraint's status, metric and log name it."""
    ask(matrix, OVERRUN_TRIES)
    for replica in matrix.replicas:
        counted = replica.metric('waddle_evaluation_overruns_total{constraint_kind="Overruns"}')
        assert counted == len(OVERRUN_TRIES)
        for one in SUSPENDED_TRIES:
            suspend(replica, one)
            # At once: it will be tried again in some seconds.
            ask_one(replica, [one])
    for one in SUSPENDED_TRIES:
        check_records(matrix, one, len(matrix.replicas))

    def are_suspended() -> bool:
        found = matrix.statuses("constraintpodstatuses")
        return all(
            found[replica.name, one.kind.lower(), one.name].get("breaker", {}).get("state")
            in ("open", "half-open")
            for replica in matrix.replicas
            for one in SUSPENDED_TRIES
        )

    until(are_suspended, "statuses tell of the breakers")
    statuses = matrix.statuses("constraintpodstatuses")
    for replica in matrix.replicas:
        for one in SUSPENDED_TRIES:
            status = statuses[replica.name, one.kind.lower(), one.name]
            assert status["enforced"] is (one.row.enforced == "true"), one
            assert [error["code"] for error in status["errors"]] == ["suspended"], one
            series = f'constraint_kind="Overruns",constraint_name="{one.name}"'
            assert replica.metric(f"waddle_constraint_suspended{{{series}}}") == 1, one
        until(lambda replica=replica: len(named_by(replica)) >= len(SUSPENDED_TRIES), "the log")
        assert named_by(replica) == {one.name for one in SUSPENDED_TRIES}


def named_by(replica: Replica) -> set[str]:
    """The constraints that a replica's log says are suspended."""
    suspended = [event for event in list(replica.events) if event.get("breaker") == "open"]
    return {event["constraint_name"] for event in suspended}


def test_a_user_reads_which_policy_could_not_decide(matrix: Matrix) -> None:
    """Through the API server, with the stable code and reason."""
    (one,) = [
        one for one in BROKEN_TRIES if one.kind == "CompileNone" and one.name == "reject-deny"
    ]
    matrix.plane.register(matrix.replicas[0].ports["admission"], "matrix")
    try:

        def refusal() -> dict[str, Any]:
            try:
                matrix.plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", one.subject())
            except ApiError as error:
                found: dict[str, Any] = json.loads(error.body)
                return found
            return {}

        until(lambda: refusal().get("reason") == "PolicyFault", "the webhook is asked")
        message = refusal()
    finally:
        matrix.plane.unregister("matrix")
    assert message["code"] == 500
    assert "[reject-deny] CompileNone could not be decided (compile)" in message["message"]


def test_the_others_went_on_deciding_and_no_replica_ended(matrix: Matrix) -> None:
    assert matrix.wrong == []
    for replica in matrix.replicas:
        assert replica.process.poll() is None
        assert replica.is_ready
        assert not [event for event in replica.events if "stacktrace" in event]
