"""Errors and admissions while a replica cannot decide, by the webhook's failurePolicy.

Each fault is met twice through the real API server: by an object whose webhook has failurePolicy
Fail, and by one whose webhook has Ignore. Under Fail there is an error that says what was the
matter; under Ignore the object is admitted, and the API server's audit log says that it was not
reviewed.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
import yaml

from tests.behaviour.serving import SLOW
from tests.cluster import ApiError
from tests.patience import until
from tests.system import planted
from tests.system.conftest import ALL_OPERATIONS
from tests.system.replicas import (
    CONFIG_MAPS,
    WEBHOOKS,
    WORKLOADS,
    Plane,
    Replica,
    config_map,
    constraint,
    review_of,
    template,
)

CONFIGURATION = "error-answers"
POLICIES = ("fail", "ignore")
HELD_BYTES = 50_000
# A tenth of it is kept for the answer: the API server must not give up before.
TIMEOUT_SECONDS = 10


class PlantedReplica(Replica):
    """A replica with a bug."""

    def start(self, command: list[str], environment: Mapping[str, str]) -> None:
        """Run the module with the bug in place of the product's."""
        assert command[1:3] == ["-m", "webhook"]
        super().start([sys.executable, "-m", planted.__name__, *command[3:]], environment)

    def forgive(self) -> list[str]:
        """Returns the logged bugs, and removes them from the events."""
        with self._changed:
            bugs = [event for event in self.events if "stacktrace" in event]
            self.events = [event for event in self.events if event not in bugs]
        return [event["error"] for event in bugs]


@pytest.fixture(scope="module")
def replica(empty_plane: Plane) -> Iterator[PlantedReplica]:
    """A replica that can be brought to each fault but one, which is not being ready."""
    plane = empty_plane
    slow, billions = yaml.safe_load_all(SLOW)
    billions["spec"]["match"]["name"] = "slow-*"
    with ExitStack() as stack:
        stack.callback(plane.delete_pod, "faulty")
        # By its budget a slow policy would have ended long before its deadline.
        limits = (f"--max-waiting-bytes={HELD_BYTES + 1000}", "--evaluation-budget=60s")
        made = stack.enter_context(PlantedReplica(plane, "faulty", *ALL_OPERATIONS, *limits))
        made.wait_ready()
        for document in (template("Answered"), slow):
            plane.put_template(document)
            stack.callback(plane.delete_template, document["metadata"]["name"])
        plane.put_constraint(billions)
        plane.put_constraint(constraint("words", "answered", "Answered"))
        plane.put_constraint(constraint("bug", planted.WORD, "Answered"))
        bug = json.dumps(review_of(config_map(planted.WORD))).encode()
        until(lambda: made.post(bug).status == 500, "it meets its bug")
        until(lambda: bool(made.forgive()), "the log tells of the bug")
        # Each constraint is tried by itself first: this one for as long as a trial may take.
        held = json.dumps(review_of(config_map("x", "slow-first"))).encode()
        path = "/v1/admit?timeout=1s"
        until(lambda: b'"code":422' in made.post(held, path).body, "its slow policy is in force")
        yield made


@dataclass(frozen=True, slots=True)
class Reviewing:
    """Two webhooks at one replica, each with its failurePolicy."""

    plane: Plane

    def once(self, policy: str, word: str = "x", name: str = "one") -> str:
        """The error that a user gets for an object of this policy's webhook; empty for none."""
        body = config_map(word, f"{name}-{policy}")
        try:
            self.plane.api.request("POST", f"{CONFIG_MAPS}?dryRun=All", body)
        except ApiError as error:
            message: str = json.loads(error.body)["message"]
            return message
        return ""

    def twice(self, word: str = "x", name: str = "one") -> tuple[str, str]:
        """Returns the answers under Fail and under Ignore."""
        return self.once("fail", word, name), self.once("ignore", word, name)

    def await_admitted_unseen(self, name: str) -> None:
        """Wait for the API server's word that it did; its audit log may come after its answer."""
        until(lambda: self._is_admitted_unseen(name), f"the audit log says that {name} failed open")

    def _is_admitted_unseen(self, name: str) -> bool:
        """Whether the API server says that it admitted an object for want of an answer."""
        for event in reversed(self.plane.audit_events()):
            if event.get("objectRef", {}).get("name") == name and event["verb"] == "create":
                return any(key.startswith("failed-open") for key in event.get("annotations", ()))
        return False


@contextmanager
def reviewing(plane: Plane, replica: Replica) -> Iterator[Reviewing]:
    """Have ConfigMaps of one namespace reviewed, by the end of their name."""
    webhooks = [
        {
            "name": f"{policy}.validation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"https://127.0.0.1:{replica.ports['admission']}/v1/admit",
                "caBundle": plane.bundle,
            },
            "failurePolicy": policy.capitalize(),
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "matchConditions": [
                {
                    "name": "asked",
                    "expression": f"request.namespace == '{WORKLOADS}'"
                    f" && request.name.endsWith('-{policy}')",
                }
            ],
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ],
        }
        for policy in POLICIES
    ]
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": webhooks,
    }
    plane.api.apply(f"{WEBHOOKS}/{CONFIGURATION}", body)
    try:
        yield Reviewing(plane)
    finally:
        plane.unregister(CONFIGURATION)


@pytest.fixture
def asking(empty_plane: Plane, replica: PlantedReplica) -> Iterator[Reviewing]:
    """The replica, asked by the API server; before and after each fault it decides."""
    with reviewing(empty_plane, replica) as found:
        until(lambda: "" not in found.twice("answered"), "both webhooks are in place")
        yield found
        denial = "denied the request: [words] denied by answered"
        assert all(denial in message for message in found.twice("answered"))


def refusals(replica: Replica, reason: str) -> float:
    """Returns the number of requests that it answered without a decision for a reason."""
    return replica.metric(f'waddle_requests_refused_total{{reason="{reason}"}}') or 0


FAILED = 'failed calling webhook "fail.validation.gatekeeper.sh": failed to call webhook: '


def test_a_replica_that_is_not_ready(empty_plane: Plane, replica: PlantedReplica) -> None:
    """The user is told at once, although the answer asks for a retry: those are spent in no time."""
    plane = empty_plane
    broken = template("Holding", "package holding\nviolation[{")
    plane.put_template(broken)
    try:
        with Replica(plane, "unready", "--readiness-retries=-1") as unready:
            with reviewing(plane, unready) as found:
                until(lambda: found.once("fail") != "", "the webhook is in place")
                failed, ignored = found.twice(name="unready")
            assert f"{FAILED}not ready: policies are not loaded yet" in failed
            assert ignored == ""
            found.await_admitted_unseen("unready-ignore")
            assert refusals(unready, "not_ready") > 2
    finally:
        plane.delete_template("holding")
        plane.delete_pod("unready")
    assert replica.is_ready


def test_a_replica_that_has_too_much_to_do(asking: Reviewing, replica: PlantedReplica) -> None:
    """A client fills it with a body that does not end; others are refused until it is gone."""
    with replica.raw() as held:
        head = b"POST /v1/admit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        held.sendall(head + b"Content-Length: 100000\r\n\r\n" + b" " * HELD_BYTES)
        until(lambda: (replica.metric("waddle_waiting_bytes") or 0) >= HELD_BYTES, "it is full")
        failed, ignored = asking.twice(name="too-much")
        assert f"{FAILED}too many bytes wait for review: try again" in failed
        assert ignored == ""
        asking.await_admitted_unseen("too-much-ignore")
        assert refusals(replica, "overload") >= 2
    until(lambda: replica.metric("waddle_waiting_bytes") == 0, "it has room again")


def test_an_object_that_takes_all_its_time_is_refused_whatever_failure_policy_says(
    asking: Reviewing, replica: PlantedReplica
) -> None:
    """The replica answers a moment before the API server gives up."""

    def answered(policy: str) -> str:
        messages: list[str] = []

        def in_time() -> bool:
            messages.append(asking.once(policy, name="slow"))
            return "denied the request" in messages[-1]

        # A tenth of its time is a second: a machine that stands still for so long is too late.
        until(in_time, "the replica answers before the API server gives up")
        return messages[-1]

    for policy in POLICIES:
        message = answered(policy)
        assert f'admission webhook "{policy}.validation.gatekeeper.sh" denied' in message
        assert "make the object smaller" in message


def test_a_replica_with_a_bug(asking: Reviewing, replica: PlantedReplica) -> None:
    """The user is told where to look, and not what the code was doing."""
    before = refusals(replica, "bug")
    failed, ignored = asking.twice(planted.WORD, "buggy")
    assert failed.endswith(f"{FAILED}internal error: see the webhook's log")
    assert ignored == ""
    asking.await_admitted_unseen("buggy-ignore")
    assert refusals(replica, "bug") == before + 2
    messages: list[str] = []

    def both() -> bool:
        messages.extend(replica.forgive())
        return len(messages) >= 2

    until(both, "the log tells of both")
    assert len(messages) == 2
    assert all("a bug that a test has planted" in error for error in messages)
