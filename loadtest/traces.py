"""Requests as a cluster sends them, none of them twice.

- ``rollout``: 50 Deployments are rolled out one after the other, ten Pods each. Pods of one differ in
  their names and in that of their token's volume, Deployments in images and labels.
- ``updates``: changes of an annotation or of the status of Pods that exist already.
- ``mix``: Pods of roll-outs, and 30 % of shapes that nobody has seen, as those of CI jobs.
- ``cold``: no two ask for the same resources, either.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

BODIES: Final = Path(__file__).resolve().parent / "bodies"
DEPLOYMENTS: Final = 50
PODS: Final = 10
UNSEEN: Final = 0.3

Json = dict[str, Any]

Trace = Literal["rollout", "updates", "mix", "cold"]
TRACES: Final[tuple[Trace, ...]] = get_args(Trace)


def write(name: Trace, path: Path, count: int) -> Path:
    """Writes so many bodies of a trace as lines of a file, which the load generator reads."""
    bodies: Iterator[bytes] = getattr(Traces(), name)()
    path.write_bytes(b"\n".join(islice(bodies, count)) + b"\n")
    return path


class Traces:
    """Bodies, none of them twice."""

    def __init__(self) -> None:
        self._random = random.Random(0)
        self._pod = json.loads((BODIES / "pod.json").read_bytes())
        self._number = 0

    def rollout(self) -> Iterator[bytes]:
        """Deployment by Deployment, each anew with another image once all had their turn."""
        turn = 0
        while True:
            for deployment in range(DEPLOYMENTS):
                shape = self._shape(f"app-{deployment}", f"{turn}.{deployment}")
                for _ in range(PODS):
                    yield self._body(shape)
            turn += 1

    def updates(self) -> Iterator[bytes]:
        """An annotation and the status of one of 50 Pods."""
        shapes = [self._shape(f"app-{number}", "1") for number in range(DEPLOYMENTS)]
        for number, one in enumerate(shapes):
            one["spec"] = _with_token(one["spec"], f"kube-api-access-{number}")
        while True:
            old = self._random.choice(shapes)
            new = copy.deepcopy(old)
            new["metadata"]["annotations"] = {"seen": str(self._number)}
            new["status"] = {"phase": "Running", "podIP": f"10.0.0.{self._number % 250}"}
            yield self._body(new, old)

    def mix(self) -> Iterator[bytes]:
        """Of roll-outs, and others."""
        rollout = self.rollout()
        while True:
            yield self._body(self._job()) if self._random.random() < UNSEEN else next(rollout)

    def cold(self) -> Iterator[bytes]:
        """Each of a shape of its own, about which nothing is known."""
        while True:
            job = self._job()
            for container in job["spec"]["containers"]:
                container["resources"]["limits"]["cpu"] = f"{200 + self._number % 100_000 / 1000}m"
            yield self._body(job)

    def _job(self) -> Json:
        """A Pod with labels and images of its own."""
        return self._shape(f"job-{self._number}", str(self._number))

    def _shape(self, app: str, version: str) -> Json:
        """A Pod of a Deployment and its version."""
        pod: Json = copy.deepcopy(self._pod["request"]["object"])
        pod["metadata"]["labels"] |= {
            "app": app,
            "pod-template-hash": f"{zlib.crc32(version.encode()):x}",
        }
        for container in pod["spec"]["containers"]:
            container["image"] = f"{container['image'].rpartition(':')[0]}:{version}"
        return pod

    def _body(self, pod: Json, old: Json | None = None) -> bytes:
        self._number += 1
        name = f"{pod['metadata']['labels']['app']}-{self._number:x}"
        objects = [pod] if old is None else [pod, old]
        request = {**self._pod["request"], "uid": f"uid-{self._number}", "name": name}
        if old is None:
            token = f"kube-api-access-{self._number:x}"
            pod["spec"] = _with_token(pod["spec"], token)
        for one in objects:
            one["metadata"]["name"] = name
        request |= {"object": pod, "oldObject": old, "operation": "UPDATE" if old else "CREATE"}
        return json.dumps({**self._pod, "request": request}).encode()


def _with_token(spec: Json, name: str) -> Json:
    """Returns the spec with the API server's addition to each Pod: a volume of a random name."""
    mount = {"name": name, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    others = [one for one in spec.get("volumes", ()) if "projected" not in one]
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    containers = [
        {
            **one,
            "volumeMounts": [
                *(
                    at
                    for at in one.get("volumeMounts", ())
                    if at["mountPath"] != mount["mountPath"]
                ),
                mount,
            ],
        }
        for one in spec["containers"]
    ]
    volume = {"name": name, "projected": {"defaultMode": 420, "sources": [token]}}
    return {**spec, "containers": containers, "volumes": [*others, volume]}
