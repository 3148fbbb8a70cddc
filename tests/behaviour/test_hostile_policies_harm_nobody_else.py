"""Policies that want all of a replica's time or memory, and what becomes of others meanwhile."""

import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtest.hostile.policies import REGO, documents
from tests.behaviour.serving import (
    REQUIRED_LABELS,
    Server,
    await_true,
    constraint,
    pod,
    review,
    thing,
    write_policies,
)
from tests.repeating import Repeating
from webhook.app.fault_injection import BLAME_NOBODY, VARIABLE
from webhook.app.slow_reviews import WAITING_MAX
from webhook.constraint.breaker import OVERRUNS_MAX


@pytest.fixture(scope="module")
def beset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a good policy and five hostile ones, which match by label."""
    policies = write_policies(
        tmp_path_factory.mktemp("policies"),
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        *(yaml.safe_dump(document) for document in documents()),
    )
    with Server(policies) as running:
        yield running.ready()


def victim(name: str) -> dict[str, Any]:
    """Returns an object that the hostile policy of this name matches."""
    found = thing("ConfigMap")
    found["metadata"]["labels"] = {"hostile": name}
    return found


SLOW_ON_DEMAND = yaml.safe_load("""
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: slowondemand}
spec:
  crd: {spec: {names: {kind: SlowOnDemand}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package slowondemand
        violation[{"msg": "bad"}] { input.review.object.data.bad }
        violation[{"msg": "slow"}] {
          input.review.object.data.slow
          numbers := numbers.range(1, 1000)
          some i, j, k
          numbers[i] + numbers[j] + numbers[k] == -1
        }
""")
SLOW_CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "SlowOnDemand",
    "metadata": {"name": "slow"},
    "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]}},
}
"""Slow for objects that ask for it, and fast for all others."""


class Others(Repeating):
    """Requests that no hostile policy matches, one after the other until stopped."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.answered = 0
        self.wrong: list[Any] = []
        super().__init__(self._ask)

    def _ask(self) -> None:
        for document, is_allowed in ((pod(owner="me"), True), (pod(), False)):
            answer = self.server.admit(document)
            self.answered += 1
            if answer["allowed"] is not is_allowed:
                self.wrong.append(answer)


def openings(server: Server, name: str) -> list[dict[str, Any]]:
    """Returns the log events about an opened breaker of a constraint."""
    return [
        event
        for event in list(server.events)
        if event.get("breaker") == "open" and event["constraint_name"] == name
    ]


def suspended(server: Server, name: str) -> bool:
    """Whether a policy's breaker is open."""
    kind = f"Hostile{name.title()}"
    series = f'constraint_kind="{kind}",constraint_name="{name}"'
    return server.metric(f"waddle_constraint_suspended{{{series}}}") == 1


@pytest.mark.parametrize("name", REGO)
def test_a_hostile_policy_is_refused_and_suspended_while_others_are_decided(
    beset: Server, name: str
) -> None:
    def admit_from_another_user() -> dict[str, Any]:
        """A policy is suspended for everybody where it overran for several users."""
        return beset.admit(victim(name), userInfo={"username": f"user-{next(numbers)}"})

    numbers = itertools.count()
    with Others(beset) as others:
        first = admit_from_another_user()
        await_true(lambda: not admit_from_another_user()["allowed"] and suspended(beset, name))
        last = beset.admit(victim(name))
        before = others.answered
        await_true(
            lambda: (
                beset.metric('waddle_ready{process="admission"}') == 1 and others.answered > before
            )
        )
    assert others.wrong == []
    for answer in (first, last):
        assert answer["allowed"] is False
        assert (answer["status"]["code"], answer["status"]["reason"]) == (500, "PolicyFault")
        assert answer["status"]["message"].startswith(f"[{name}] Hostile{name.title()} could not")
    assert "(overrun)" in first["status"]["message"]
    await_true(lambda: bool(openings(beset, name)))
    assert "eval_cancel_error" in openings(beset, name)[0]["error"]
    assert not [event for event in beset.events if "stacktrace" in event]


def test_a_user_whose_objects_overrun_suspends_a_policy_for_nobody_else(tmp_path: Path) -> None:
    """Three of one user's own had turned it off for all, and Ignore or onError let others' in."""
    policies = write_policies(
        tmp_path, yaml.safe_dump(SLOW_ON_DEMAND), yaml.safe_dump(SLOW_CONSTRAINT)
    )
    with Server(policies) as server:
        server.ready()
        for _ in range(OVERRUNS_MAX + 1):
            answer = server.admit({**thing("ConfigMap"), "data": {"slow": "yes"}})
            assert not answer["allowed"]
            last = answer["status"]["message"]
        assert "evaluation is suspended for this user" in last
        quick = {**thing("ConfigMap"), "data": {"bad": "yes"}}
        theirs = server.admit(quick, userInfo={"username": "bob"})
        assert (theirs["allowed"], theirs["status"]["code"]) == (False, 403)
        assert server.admit(thing("ConfigMap"), userInfo={"username": "bob"})["allowed"]
        own = server.admit(quick)
        assert (own["allowed"], own["status"]["reason"]) == (False, "PolicyFault")


def test_slow_pods_of_one_namespace_suspend_a_policy_for_controllers_there_alone(
    tmp_path: Path,
) -> None:
    """Controllers create the Pods of all namespaces: one Deployment had stopped all others."""
    policies = write_policies(
        tmp_path, yaml.safe_dump(SLOW_ON_DEMAND), yaml.safe_dump(SLOW_CONSTRAINT)
    )
    controller = {"username": "system:serviceaccount:kube-system:replicaset-controller"}

    def created(namespace: str, **data: str) -> dict[str, Any]:
        document = {**thing("ConfigMap"), "data": data}
        document["metadata"] = {**document["metadata"], "namespace": namespace}
        return server.admit(document, userInfo=controller, namespace=namespace)

    with Server(policies) as server:
        server.ready()
        for _ in range(OVERRUNS_MAX + 1):
            answer = created("shop", slow="yes")
            assert not answer["allowed"]
        assert "evaluation is suspended for this user" in answer["status"]["message"]
        assert created("bank")["allowed"]
        assert created("bank", bad="yes")["status"]["code"] == 403


@pytest.mark.parametrize("guarded", [True, False])
def test_what_is_slow_by_its_own_doing_gets_in_where_nobody_is_blamed_and_else_does_not(
    tmp_path: Path, guarded: bool
) -> None:
    """The failurePolicy Ignore lets such a request in: without the guard it would be admitted."""
    policies = write_policies(
        tmp_path, yaml.safe_dump(SLOW_ON_DEMAND), yaml.safe_dump(SLOW_CONSTRAINT)
    )
    environment = {**os.environ} | ({} if guarded else {VARIABLE: BLAME_NOBODY})
    with Server(policies, "--evaluation-budget=1m", environment=environment) as server:
        server.ready()
        document = review({**thing("ConfigMap"), "data": {"slow": "yes"}})
        answer = server.post(document, "/v1/admit?timeout=10s")
    if guarded:
        assert answer.status == 200
        assert not answer.verdict["allowed"]
        assert answer.verdict["status"]["code"] == 422
    else:
        assert answer.status == 504


def test_a_slow_review_goes_on_beside_the_admission_thread(tmp_path: Path) -> None:
    """Other requests are answered while it runs, and it ends at its own deadline."""
    policies = write_policies(
        tmp_path,
        REQUIRED_LABELS,
        constraint("needs-owner", "owner"),
        *(yaml.safe_dump(document) for document in documents()),
    )
    with Server(policies, "--evaluation-budget=1m") as server:
        server.ready()
        answers: list[int] = []

        def ask() -> None:
            answer = server.post(review(victim("recursion")), "/v1/admit?timeout=15s").json()
            answers.append(answer["response"]["status"]["code"])

        slow = threading.Thread(target=ask)
        slow.start()
        await_true(lambda: server.metric("waddle_slow_reviews_total") == 1)
        assert server.admit(pod(owner="me"))["allowed"] is True
        assert server.admit(pod())["allowed"] is False
        assert answers == []
        slow.join()
        assert answers == [422]


def test_slow_reviews_beyond_a_bound_have_to_try_again(tmp_path: Path) -> None:
    policies = write_policies(tmp_path, *(yaml.safe_dump(item) for item in documents()))
    head = b"POST /v1/admit?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with (
        Server(policies, "--evaluation-budget=1m", "--shutdown-grace=0") as server,
        ExitStack() as stack,
    ):
        server.ready()
        connections = [stack.enter_context(server.raw()) for _ in range(WAITING_MAX + 1)]
        for number, connection in enumerate(connections):
            user = {"username": f"user-{number}"}
            body = json.dumps(review(victim("recursion"), userInfo=user)).encode()
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        refused = 'waddle_requests_refused_total{reason="overload"}'
        await_true(lambda: server.metric(refused) == 1)
        assert server.metric("waddle_requests_in_flight") == WAITING_MAX
        assert server.admit(thing("Service"))["allowed"] is True
