"""Memory of reviews: dense objects, and policies that make large values of small ones."""

import json
from collections.abc import Iterator
from functools import partial

from loadtest.drill.attacks.bytes_in_flight import MIB, body
from loadtest.drill.drill import Row, library, limited, server
from loadtest.drill.floods import Flood, beside
from tests.behaviour.serving import pod, review

CONNECTIONS = 4
TIMES = 3

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


BODIES = {
    "4 reviews of empty lists": partial(dense, b"[]"),
    "4 reviews of maps in maps": partial(dense, b'{"":{}}'),
    "4 reviews of small members": partial(dense, b'{"name":"container","v":[1,2]}'),
    "4 reviews that make ranges": partial(trying, "ranges"),
    "4 reviews that make pairs": partial(trying, "pairs"),
}


def run() -> Iterator[Row]:
    """Each flood in turn, to one server after the other."""
    for name, make in BODIES.items():
        flood = Flood(make, CONNECTIONS, times=TIMES, path="/v1/admit?timeout=10s")
        with server(documents=policies()) as running, limited(running):
            yield from beside(name, running, flood, kept=True)
