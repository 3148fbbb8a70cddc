"""What reviews make of memory: objects that are dense, and policies that make much of little."""

import json
import threading
import time
from collections.abc import Callable, Iterator

from loadtest.drill.attacks.bytes_in_flight import MIB, body, send, whole
from loadtest.drill.drill import (
    LIMIT_MIB,
    Bystander,
    Row,
    elsewhere,
    library,
    limited,
    rss_mib,
    server,
)
from tests.behaviour.serving import pod, review

CONNECTIONS = 4
TIMES = 3
RATIO_MAX = 3.0
PER_SECOND = 20
SECONDS = 10
REST_SECONDS = 5
KEPT_MIB_MAX = 128

POLICY = """
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {{name: {name}}}
spec:
  crd: {{spec: {{names: {{kind: {kind}}}}}}}
  targets:
    - target: admission.k8s.gatekeeper.sh
      rego: |
        package {name}
        violation[{{"msg": "never"}}] {{
          {rule}
        }}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: {kind}
metadata: {{name: x}}
spec:
  match:
    kinds: [{{apiGroups: [""], kinds: [Pod]}}]
    labelSelector: {{matchLabels: {{tries: {name}}}}}
"""

RULES = {
    "paths": "count({concat('/', [sprintf('%v', [s]) | s := p[_]]) | "
    "walk(input.review.object, [p, v]); not is_object(v)}) < 0",
    "ranges": "a := numbers.range(1, 5000000); b := numbers.range(5000000, 9000000); "
    "count([[x, y] | x := a[_]; y := b[_]]) < 0",
    "pairs": "n := numbers.range(1, 3000); "
    "count([{'a': x, 'b': [y], 'c': {'d': x}} | x := n[_]; y := n[_]]) < 0",
}


def policies() -> tuple[str, ...]:
    """The default set, and a policy of each rule."""
    made = [
        POLICY.format(name=name, kind=name.title(), rule=rule.replace("'", '"'))
        for name, rule in RULES.items()
    ]
    return (*library(), *made)


def dense(member: bytes) -> bytes:
    """2.9 MB of the same."""
    text = b"[" + (member + b",") * (29 * MIB // 10 // len(member)) + b"1]"
    return body(text).replace(b'"labels":{}', b'"labels":{"tries":"paths"}', 1)


def trying(rule: str) -> bytes:
    """A Pod of a MiB that a policy is about: an evaluation has thirty times the budget for it."""
    found = pod(owner="me", tries=rule)
    found["metadata"]["annotations"] = {"notes": "x" * MIB}
    return json.dumps(review(found)).encode()


BODIES: dict[str, Callable[[], bytes]] = {
    "4 reviews of empty lists": lambda: dense(b"[]"),
    "4 reviews of maps in maps": lambda: dense(b'{"":{}}'),
    "4 reviews of small members": lambda: dense(b'{"name":"container","v":[1,2]}'),
    "4 reviews that make ranges": lambda: trying("ranges"),
    "4 reviews that make pairs": lambda: trying("pairs"),
}


def flood(port: int, name: str) -> None:
    """The same from each connection, some times."""
    raw = whole(BODIES[name]()).replace(b"/v1/admit ", b"/v1/admit?timeout=10s ", 1)

    def repeat() -> None:
        for _ in range(TIMES):
            send(port, raw)

    threads = [threading.Thread(target=repeat) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def usual(**security: bool) -> bytes:
    """A review as most are."""
    found = pod(owner="me")
    found["spec"] = {"containers": [{"name": "a", "image": "a", "securityContext": security}]}
    return json.dumps(review(found)).encode()


def run() -> Iterator[Row]:
    """Each flood in turn, to one server after the other."""
    bodies = usual(), usual(privileged=True)
    for name in BODIES:
        with server(documents=policies()) as running, limited(running):
            with Bystander(running, PER_SECOND, *bodies) as quiet:
                time.sleep(SECONDS)
            with (
                elsewhere(flood, running.ports["admission"], name) as await_end,
                Bystander(running, PER_SECOND, *bodies) as beside,
            ):
                await_end()
            time.sleep(REST_SECONDS)
            kept = rss_mib(running) - quiet.rest_mib
        ratio = beside.milliseconds(0.99) / quiet.milliseconds(0.99)
        yield Row(name, "p99 of the others against quiet", ratio, RATIO_MAX, "times")
        yield Row(name, "others answered wrongly", beside.wrong, 0)
        yield Row(name, "violations let through", beside.let_in, 0)
        yield Row(name, "memory", beside.peak_mib, LIMIT_MIB, "MiB")
        yield Row(name, "memory that stays", kept, KEPT_MIB_MAX, "MiB")
