"""What synced objects take in memory: ``python -m loadtest.projection [--quick] [--save]``.

Each case is a process of its own with a replica's own watch, controllers and client; only HTTP is
left out. It takes a list of objects page by page, as JSON, and then counts what its memory grew by.

- ``nodes``: Pods of 8 KB, of which a template reads ``spec.nodeName``; 1,000 Nodes.
- ``labels``: Pods of 5 KB, of which templates read labels, images, name and namespace.
- ``whole``: Pods of 8 KB without projection, a fifth as many.

Exit code 1 where a Pod of ``nodes`` takes more than 400 bytes, all that knows of it counted, or the
process of ``labels`` ever took more than 512 MiB.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import orjson

from loadtest.bench.machine import describe
from loadtest.bench.measurement import BODIES
from tests import policies
from tests.programs import ROOT
from webhook.api.encoding import decode
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import Pod
from webhook.api.resource import Resource
from webhook.cluster.reflector import Reflector
from webhook.cluster.store import IdentityStore, Key, Store, slim
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.controllers.apply.publication import ClusterPolicies
from webhook.log import Log
from webhook.metrics.registry import Registry
from webhook.policy_kinds.known import TEMPLATE
from webhook.serving.revision import Serving
from webhook.watch.manager import Manager
from webhook.watch.queue import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS: Final = ROOT / "loadtest" / "results" / "projection.md"
OBJECT_BYTES_MAX: Final = 400
PROCESS_BYTES_MAX: Final = 512 << 20
PODS, QUICK = 100_000, 10_000
PAGE: Final = 500
NODES: Final = 1_000
NAMESPACES: Final = 100
KIND: Final = GroupVersionKind("", "v1", "Pod")

_POD: Final = "pod := data.inventory.namespace[_].v1.Pod[_]"
CASES: Final[dict[str, tuple[int, str, bool]]] = {
    "nodes": (8_192, f'{_POD}; pod.spec.nodeName == "x"', True),
    "labels": (
        5_120,
        f"{_POD}; pod.metadata.labels == input.review.object.metadata.labels; "
        "pod.metadata.name != input.review.name; pod.metadata.namespace == input.review.namespace; "
        "pod.spec.containers[_].image == input.review.object.spec.containers[_].image",
        True,
    ),
    "whole": (8_192, f'{_POD}; pod.spec.nodeName == "x"', False),
}
"""The bytes of an object, what a template does with each, and whether it is projected."""

Json = dict[str, Any]


def pages(number: int, size: int) -> Iterator[bytes]:
    """Lists of Pods, each of about so many bytes, as an API server sends them."""
    body = json.loads((BODIES / "pod.json").read_bytes())["request"]["object"]
    body["metadata"]["annotations"] = {"filling": ""}
    body["metadata"]["annotations"]["filling"] = "x" * (size - len(orjson.dumps(body)) - 150)
    for first in range(0, number, PAGE):
        items = []
        for at in range(first, min(first + PAGE, number)):
            pod = copy.deepcopy(body)
            pod["metadata"] |= {
                "name": f"web-frontend-7d9c6b8f5-{at:05x}",
                "namespace": f"team-{at % NAMESPACES}",
                "uid": f"6f1d6b2e-0000-4000-8000-{at:012x}",
                "resourceVersion": str(100_000_000 + at),
            }
            pod["spec"]["nodeName"] = f"node-{at * 7 % NODES}.cluster.internal"
            items.append(pod)
        yield orjson.dumps({"items": items})


class Replica:
    """A replica's watch of Pods, and the controllers that take what it brings."""

    def __init__(self, rego: str, *, projects: bool) -> None:
        self.cluster: Any = SimpleNamespace(kept=slim, log=None, answered={})
        self.manager = Manager(self.cluster, SimpleNamespace(forget=lambda _: None))  # type: ignore[arg-type]
        self.watches = self.manager.registrar("sync")
        client = Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),))
        self.policies = ClusterPolicies(
            client,
            Serving(),
            Pod("p", "waddle", "uid", ("webhook",)),
            (self.manager.registrar("policy"), self.watches),
            registry=Registry(),
            log=Log(lambda _: None).logger("loadtest"),
            wait_for_broken=False,
            projects=projects,
        )
        reconciler = self.policies.reconciler
        module = f'package reader\nviolation[{{"msg": "no"}}] {{ {rego} }}'
        template = policies.template("Reader", module, metadata={"uid": "t", "generation": 1})
        reconciler.take_policy(Event("set", TEMPLATE, Key("", "reader"), template))
        reconciler.take_policy(Event("synced", TEMPLATE))
        kinds = {"kind": "SyncSet", "metadata": {"name": "s"}, "spec": {"gvks": [KIND._asdict()]}}
        self.policies.reconciler._take_sync_set(Key("", "s"), kinds)

    def take(self, lists: Iterator[bytes]) -> int:
        """Take a list as the watch does; how many objects policies see then."""
        watch = self.manager._watches[KIND]
        store = Store() if watch.projection is None else IdentityStore()
        reflector = Reflector(
            self.cluster,
            Resource(KIND, "pods", namespaced=True),
            watch,
            transform=lambda one: watch.kept_of(slim(one)),
            store=store,
        )
        watch.reflector = reflector
        objects: list[Json] = []
        for page in lists:
            objects += reflector._items(decode(page)["items"])
        reflector._take_list(objects, "1")
        objects.clear()
        queue = self.watches.queue
        while len(queue):
            self.policies.reconciler.take_data(queue._pop())
        (kept,) = self.policies.data_counts.values()
        return kept


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(case: str, number: int, *, traced: bool) -> Json:
    """What one case takes, in this process."""
    size, rego, projects = CASES[case]
    replica = Replica(rego, projects=projects)
    replica.take(pages(PAGE, size))  # what is allocated once
    gc.collect()
    if traced:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    count = replica.take(pages(number, size))
    gc.collect()
    return {
        "objects": count,
        "size": size,
        "each": (tracemalloc.get_traced_memory()[0] - before) / count,
        "process": resident(),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def line(case: str, found: Json) -> str:
    """A row of the page."""
    return (
        f"| {case} | {found['objects']:,} of {found['size'] / 1024:.0f} KB | {found['each']:,.0f} bytes "
        f"| {found['process'] / (1 << 20):.0f} MiB | {found['peak'] / (1 << 20):.0f} MiB |"
    )


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the objects")
    parser.add_argument("--save", action="store_true", help="write results/projection.md")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    number = QUICK if arguments.quick else PODS
    if arguments.case:
        print(json.dumps(measure(arguments.case, number, traced=arguments.traced)))
        return 0
    found: dict[str, Json] = {}
    lines = ["| case | objects | each takes | the process | at its peak |", "|---|---|---|---|---|"]
    for case in CASES:
        quick = ["--quick"] if arguments.quick or case == "whole" else []
        command = [sys.executable, "-m", "loadtest.projection", "--case", case, *quick]
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        found[case] = json.loads(told.stdout)
        lines.append(line(case, found[case]))
        print(lines[-1], flush=True)
    if arguments.save:
        what = (
            "Memory of synced objects in a replica's watch, controllers and client: what each adds to "
            "the process, with all that knows of it, and the process. Made by `make bench-projection`; "
            "`loadtest/projection.py` says what each case is."
        )
        text = [
            "# Synced objects in memory",
            "",
            what,
            "",
            f"Machine: {describe()}",
            "",
            *lines,
            "",
        ]
        RESULTS.write_text("\n".join(text))
    is_held = (
        found["nodes"]["each"] <= OBJECT_BYTES_MAX and found["labels"]["peak"] <= PROCESS_BYTES_MAX
    )
    print("the goals hold" if is_held else "a goal does not hold")
    return 0 if is_held else 1


if __name__ == "__main__":
    raise SystemExit(main())
