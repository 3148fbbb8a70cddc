"""Objects that make their reviews long, and ordinary ones that are large.

`python -m loadtest.slow_objects` says what the library's policies take for them.
"""

import json
import math
import time
from pathlib import Path
from typing import Any

from tests.behaviour.serving import review, thing
from webhook import garbage
from webhook.api.admission import decode_review
from webhook.app.process import GC_THRESHOLDS
from webhook.constraint import enforcement
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.review import AugmentedReview
from webhook.constraint.targets.known import TARGETS
from webhook.policies.policy_files import PolicyFiles

LIBRARY = Path(__file__).parents[1] / "policies"

Json = dict[str, Any]

GOOD: Json = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str, **fields: Any) -> Json:
    """Returns a container to which no policy objects."""
    image = "registry.example/app@sha256:" + "a" * 64
    resources = {
        "limits": {"cpu": "1", "memory": "64Mi"},
        "requests": {"cpu": "1", "memory": "64Mi"},
    }
    return {
        "name": name,
        "image": image,
        "securityContext": GOOD,
        "resources": resources,
        **fields,
    }


def pod(*containers: Json, init: list[Json] | None = None, namespace: str = "default") -> Json:
    """A Pod."""
    spec: Json = {"containers": list(containers)}
    if init is not None:
        spec["initContainers"] = init
    return {**thing("Pod", "web", namespace=namespace), "spec": spec}


def many_containers(count: int, *, privileged: bool = True, namespace: str = "default") -> Json:
    """A Pod of many small init containers, the first of them privileged."""
    init: list[Json] = [{"name": f"i{number}", "image": "b"} for number in range(count)]
    if privileged:
        init[0]["securityContext"] = {"privileged": True}
    return pod({"name": "a", "image": "b"}, init=init, namespace=namespace)


def many_capabilities(count: int) -> Json:
    """A privileged Pod whose list of capabilities repeats an entry."""
    added = {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"] * count}}
    return pod({"name": "a", "image": "b", "securityContext": added})


def ordinary() -> dict[str, Json]:
    """The largest objects that people have, none of which violates anything."""
    properties = {
        f"field{number}": {
            "type": "object",
            "description": "What this field is for, in as many words as an operator needs. " * 3,
            "properties": {
                name: {"type": "string", "description": "A setting of it."}
                for name in ("name", "namespace", "key", "mode", "path")
            },
        }
        for number in range(2_000)
    }
    definition = thing("CustomResourceDefinition", "widgets.example.com", "apiextensions.k8s.io/v1")
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    definition["spec"] = {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    data = {f"file{number}.conf": "key = value\n" * 850 for number in range(100)}
    config = {**thing("ConfigMap", "files", namespace="default"), "data": data}
    whole = pod(*(container(f"c{number}") for number in range(300)))
    return {"CRD of 1.2 MB": definition, "ConfigMap of 1 MB": config, "Pod of 300": whole}


ROUNDS = 7


def main() -> None:
    """Print what reviews of these take of a processor, decoding included, the best of some rounds."""
    client = Client(targets=TARGETS, drivers=(CelDriver(), RegoDriver()))
    snapshot = PolicyFiles(client, [LIBRARY]).load()[0].snapshot
    garbage.running(GC_THRESHOLDS)  # as a server does whose policies are loaded
    objects = {**ordinary(), "Pod of 3,000 init containers": many_containers(3_000)}
    for name, obj in objects.items():
        body, best, found = json.dumps(review(obj)).encode(), math.inf, 0
        for _ in range(ROUNDS):
            began = time.thread_time()
            request = decode_review(body)
            responses = snapshot.review(
                AugmentedReview(request), enforcement_point=enforcement.WEBHOOK
            )
            best, found = min(best, time.thread_time() - began), len(responses.results)
        print(f"{name}: {1000 * best:.1f} ms of a processor, {found} findings, {len(body)} bytes")


if __name__ == "__main__":
    main()
