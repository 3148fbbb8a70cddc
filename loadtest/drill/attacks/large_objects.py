"""Five Pods of 5,000 containers a second beside 200 usual requests."""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator

from loadtest.drill.drill import Bystander, Row, server
from loadtest.drill.floods import flooded, waits
from loadtest.drill.floor import apart, bare
from tests.behaviour.serving import pod, review, unverified

SECONDS = 15
PER_SECOND = 5
USUAL_PER_SECOND = 200

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
    """Quiet, then with the attack; and the same attack on a bare server."""
    name = "5 Pods of 5,000 containers a second"
    good, bad = (json.dumps(review(one)).encode() for one in (pod(owner="me"), pod()))
    with server(documents=(TEMPLATE, CONSTRAINT)) as running:
        with apart(running):
            with Bystander(
                running=running, per_second=USUAL_PER_SECOND, good=good, bad=bad
            ) as quiet:
                time.sleep(SECONDS)
            others = flooded(running, flood, USUAL_PER_SECOND, good, bad)
        opened = sum(event.get("breaker") == "open" for event in running.events)
    with bare() as at_once, apart(at_once):
        floor = flooded(at_once, flood, USUAL_PER_SECOND, good, bad)
    yield from waits(name, quiet, others, floor)
    yield Row(name, "others answered wrongly", others.wrong, 0)
    yield Row(name, "breakers opened", opened, 0)
