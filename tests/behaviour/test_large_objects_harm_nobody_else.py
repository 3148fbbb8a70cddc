"""Users with large objects cost themselves time, and other users nothing."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.serving import Server, pod, review, write_policies
from webhook.app.slow_reviews import BUDGET_BYTES, BUDGET_GROWTH_MAX, growth

QUADRATIC = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: uniquenames}
spec:
  crd: {spec: {names: {kind: UniqueNames}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package uniquenames
        violation[{"msg": msg}] {
          some i, j
          a := input.review.object.spec.containers[i]
          b := input.review.object.spec.containers[j]
          i < j
          a.image == b.image
          msg := sprintf("image %v is used twice", [a.image])
        }
"""

CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: UniqueNames
metadata: {name: unique}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}
"""


def pod_of(containers: int, **fields: Any) -> dict[str, Any]:
    """A Pod of so many containers, each with an image of its own."""
    found = pod()
    found["spec"] = {
        "containers": [{"name": f"c{n}", "image": f"registry/image-{n}"} for n in range(containers)]
    }
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a policy whose time grows with the square of the containers."""
    policies = write_policies(tmp_path_factory.mktemp("policies"), QUADRATIC, CONSTRAINT)
    with Server(policies) as running:
        yield running.ready()


def test_large_objects_suspend_no_policy_for_small_ones(server: Server) -> None:
    """Three Pods of 5,000 containers had everybody's Pods refused for ten seconds and more."""
    for _ in range(4):
        large = review(pod_of(5_000), userInfo={"username": "mallory"})
        assert server.post(large, "/v1/admit?timeout=30s").status in (200, 504)
    assert server.admit(pod_of(3))["allowed"] is True
    twice = pod_of(3)
    twice["spec"]["containers"][1]["image"] = "registry/image-0"
    assert "is used twice" in server.admit(twice)["status"]["message"]
    assert not [event for event in server.events if event.get("breaker") == "open"]


def test_small_objects_do_not_wait_for_large_ones(server: Server) -> None:
    """Small objects had to wait for a minute, behind the one slow review under way."""
    before = server.metric("waddle_slow_reviews_total") or 0
    large = threading.Thread(
        target=lambda: server.post(review(pod_of(5_000), userInfo={"username": "mallory"}))
    )
    large.start()
    while (server.metric("waddle_slow_reviews_total") or 0) == before:
        assert large.is_alive()
    for _ in range(20):
        assert server.admit(pod_of(3))["allowed"] is True
    assert server.metric("waddle_slow_reviews_total") == before + 1
    large.join()


def test_a_budget_grows_with_the_object() -> None:
    """In proportion to what is usual, up to a bound."""
    assert growth(2_000) == 1
    assert growth(2 * BUDGET_BYTES) == 2
    assert growth(100 * 1024 * 1024) == BUDGET_GROWTH_MAX
