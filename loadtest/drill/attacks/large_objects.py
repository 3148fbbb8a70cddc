"""Five Pods of 5,000 containers a second beside 200 usual requests."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator

from loadtest.drill.drill import Bystander, Row, elsewhere, server
from tests.behaviour.serving import pod, review, unverified

SECONDS = 15
PER_SECOND = 5
USUAL_PER_SECOND = 200
RATIO_MAX = 3.0

TEMPLATE = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: uniqueimages}
spec:
  crd: {spec: {names: {kind: UniqueImages}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package uniqueimages
        violation[{"msg": "an image is used twice"}] {
          some i, j
          a := input.review.object.spec.containers[i]
          b := input.review.object.spec.containers[j]
          i < j
          a.image == b.image
        }
"""
CONSTRAINT = """
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: UniqueImages
metadata: {name: unique}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}
"""


def large() -> bytes:
    """A Pod of 369 KB."""
    found = pod(owner="me")
    found["spec"] = {
        "containers": [{"name": f"c{n}", "image": f"registry/image-{n}"} for n in range(5_000)]
    }
    return json.dumps(review(found, userInfo={"username": "mallory"})).encode()


def flood(port: int) -> None:
    """Five a second, whatever comes back."""
    raw = large()
    threads = []

    def send() -> None:
        context = unverified()
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        with contextlib.suppress(OSError):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/admit?timeout=3s", raw, headers)
            connection.getresponse().read()
        connection.close()

    for _ in range(SECONDS * PER_SECOND):
        threads.append(threading.Thread(target=send))
        threads[-1].start()
        time.sleep(1 / PER_SECOND)
    for thread in threads:
        thread.join()


def run() -> Iterator[Row]:
    """Quiet, then with the attack."""
    name = "5 Pods of 5,000 containers a second"
    with server(documents=(TEMPLATE, CONSTRAINT)) as running:
        with Bystander(running, USUAL_PER_SECOND) as quiet:
            time.sleep(SECONDS)
        with (
            elsewhere(flood, running.ports["admission"]) as await_end,
            Bystander(running, USUAL_PER_SECOND) as beside,
        ):
            await_end()
        opened = sum(event.get("breaker") == "open" for event in running.events)
    ratio = beside.milliseconds(0.99) / quiet.milliseconds(0.99)
    yield Row(name, "p99 of the others against quiet", ratio, RATIO_MAX, "times")
    yield Row(name, "others answered wrongly", beside.wrong, 0)
    yield Row(name, "breakers opened", opened, 0)
