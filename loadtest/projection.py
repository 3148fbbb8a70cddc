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
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tracemalloc
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from loadtest.bench.machine import describe
from loadtest.traces import BODIES
from tests import policies
from tests.programs import ROOT
from webhook.api.config import SYNC_SET
from webhook.api.encoding import decode
from webhook.api.gvk import GroupVersionKind
from webhook.api.pod_status import Pod
from webhook.api.resource import Resource
from webhook.cluster.discovery import UnknownKind
from webhook.cluster.errors import ApiError
from webhook.cluster.store import Key, slim
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
    from collections.abc import AsyncIterator, Mapping

RESULTS: Final = ROOT / "loadtest" / "results" / "projection.md"
OBJECT_BYTES_MAX: Final = 400
PROCESS_BYTES_MAX: Final = 512 << 20
PODS, QUICK = 100_000, 20_000
PAGE: Final = 500
"""Objects of a first list, with which what is made once is there."""
NODES: Final = 1_000
NAMESPACES: Final = 100
KIND: Final = GroupVersionKind("", "v1", "Pod")

_POD: Final = "pod := data.inventory.namespace[_].v1.Pod[_]"
_LABELS: Final = (
    f"{_POD}; review := input.review; pod.metadata.labels == review.object.metadata.labels; "
    "pod.metadata.name != review.name; pod.metadata.namespace == review.namespace; "
    "pod.spec.containers[_].image == review.object.spec.containers[_].image"
)
CASES: Final[dict[str, tuple[int, str, bool]]] = {
    "nodes": (8_192, f'{_POD}; pod.spec.nodeName == "x"', True),
    "labels": (5_120, _LABELS, True),
    "whole": (8_192, f'{_POD}; pod.spec.nodeName == "x"', False),
}
"""The bytes of an object, what a template does with each, and whether it is projected."""

Json = dict[str, Any]


class Api:
    """An API server's list of so many Pods, each of about so many bytes; nothing ever changes."""

    log: Final = None
    answered: Final[dict[str, str]] = {}
    kept: Final = staticmethod(slim)

    def __init__(self, number: int, size: int) -> None:
        self._number = number
        self._pod = json.loads((BODIES / "pod.json").read_bytes())["request"]["object"]
        self._pod["metadata"]["annotations"] = {"filling": ""}
        filling = "x" * (size - len(orjson.dumps(self._pod)) - 150)
        self._pod["metadata"]["annotations"]["filling"] = filling

    async def page(self, _path: str, query: Mapping[str, str], **_: Any) -> tuple[Json, int]:
        """A page of the list, decoded as the cluster's client does it."""
        await asyncio.sleep(0)  # others have a turn while an answer comes
        first = int(query.get("continue", "0"))
        last = min(first + int(query["limit"]), self._number)
        metadata = {"resourceVersion": "1"} | (
            {"continue": str(last)} if last < self._number else {}
        )
        body = orjson.dumps({"metadata": metadata, "items": [*map(self._made, range(first, last))]})
        return decode(body), len(body)

    def _made(self, at: int) -> Json:
        metadata = {
            **self._pod["metadata"],
            "name": f"web-frontend-7d9c6b8f5-{at:05x}",
            "namespace": f"team-{at % NAMESPACES}",
            "uid": f"6f1d6b2e-0000-4000-8000-{at:012x}",
            "resourceVersion": str(100_000_000 + at),
        }
        node = f"node-{at * 7 % NODES}.cluster.internal"
        spec = {**self._pod["spec"], "nodeName": node}
        return {**self._pod, "metadata": metadata, "spec": spec}

    @asynccontextmanager
    async def stream(
        self, _path: str, query: Mapping[str, str], **_: Any
    ) -> AsyncIterator[asyncio.StreamReader]:
        """A watch that is silent; lists are served as pages alone."""
        if "sendInitialEvents" in query:
            raise ApiError(400, "no watch lists")
        await asyncio.Event().wait()
        yield asyncio.StreamReader()


class Known:
    """Knows the resource of Pods."""

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Returns the resource of Pods."""
        if gvk != KIND:
            raise UnknownKind(str(gvk))
        return Resource(gvk, "pods", namespaced=True)


async def take(rego: str, api: Any, *, projects: bool) -> ClusterPolicies:
    """Follow Pods with a template that reads them, until all of them have come."""
    discovery: Any = Known()
    manager = Manager(api, discovery)
    policy, data = map(manager.registrar, ("policy", "sync"))
    replica = ClusterPolicies(
        Client(targets=(AdmissionTarget(),), drivers=(RegoDriver(),)),
        Serving(),
        Pod("p", "waddle", "uid", ("webhook",)),
        (policy, data),
        registry=Registry(),
        log=Log(lambda _: None).logger("loadtest"),
        wait_for_broken=False,
        projects=projects,
    )
    module = f'package reader\nviolation[{{"msg": "no"}}] {{ {rego} }}'
    template = policies.template("Reader", module, metadata={"uid": "t", "generation": 1})
    kinds = {"kind": "SyncSet", "metadata": {"name": "s"}, "spec": {"gvks": [KIND._asdict()]}}
    reconciler = replica.reconciler
    for event in (
        Event("set", TEMPLATE, Key("", "reader"), template),
        Event("synced", TEMPLATE),
        Event("set", SYNC_SET, Key("", "s"), kinds),
    ):
        reconciler.take_policy(event)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(manager.run())
        while True:
            event = await data.next()
            reconciler.take_data(event)
            if event.kind == "synced":
                break
        running.cancel()
    return replica


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(case: str, number: int, *, traced: bool) -> Json:
    """Measures one case in this process."""
    size, rego, projects = CASES[case]
    if traced:
        asyncio.run(take(rego, Api(PAGE, size), projects=projects))  # fills the caches
        gc.collect()
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    replica = asyncio.run(take(rego, Api(number, size), projects=projects))
    (count,) = replica.data.counts.values()
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
    parser.add_argument("--quick", action="store_true", help="a fifth of the objects")
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
        # Traced by itself: what traces takes memory, too.
        plain, traced = (
            json.loads(subprocess.run(one, check=True, capture_output=True, cwd=ROOT).stdout)
            for one in (command, [*command, "--traced"])
        )
        found[case] = plain | {"each": traced["each"]}
        lines.append(line(case, found[case]))
        print(lines[-1], flush=True)
    if arguments.save:
        title = (
            "Memory of synced objects in a replica's watch, controllers and client: what each adds to "
            "the process, with all that knows of it, and the process. Made by `make bench-projection`; "
            "`loadtest/projection.py` says what each case is."
        )
        text = [
            "# Synced objects in memory",
            "",
            title,
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
