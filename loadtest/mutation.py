"""Mutation and expansion beside Gatekeeper: ``python -m loadtest.mutation``.

The same Pod with 1, 20 and 100 mutators that are about it, to both servers in turn: CPU a request.
Of ours alone, two ratios: a request that no mutator is about beside a review without constraints,
and the review of a Deployment that makes the Pod beside that of the Pod itself. ``--save`` writes
``results/mutation.md``.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import statistics
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loadtest.bench import gatekeeper
from loadtest.bench.gatekeeper import Installation
from loadtest.bench.load import Generator, ask
from loadtest.bench.machine import describe
from loadtest.bench.measurement import make_certificates, say, warm
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, Server, waddle
from loadtest.traces import BODIES
from tests.cluster import Api, Cluster
from tests.json_patch import apply_patch
from tests.programs import ROOT, build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESULTS: Final = ROOT / "loadtest" / "results" / "mutation.md"
CONNECTIONS: Final = 8
ROUNDS: Final = 40
REQUESTS: Final = 200
"""To each in turn: some 30 ms of ours, so that what else the machine does it does to both."""
WARM_UP: Final = 300

GOALS: Final = {1: 0.15, 20: 0.05, 100: 0.03}
"""CPU of a request, of Gatekeeper's, by how many mutators are about it."""
QUIET_GOAL: Final = 1.1
EXPANSION_GOAL: Final = 1.2

_PODS: Final = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]
_MUTATES: Final = ("webhook", "mutation-webhook")


def mutator(number: int) -> dict[str, Any]:
    """A mutator of Pods: every fourth a label, a set, or a name of an image; the others a field."""
    kind, version = "Assign", "v1"
    spec: dict[str, Any] = {"applyTo": _PODS}
    parameters: dict[str, Any] = {"assign": {"value": True}}
    location = f"spec.containers[name: *].securityContext.bench{number}"
    if number % 4 == 1:
        kind, spec = "AssignMetadata", {"match": {"scope": "Namespaced"}}
        location, parameters = f"metadata.labels.bench{number}", {"assign": {"value": "yes"}}
    elif number % 4 == 2:
        kind = "ModifySet"
        location = f"spec.containers[name: *].sets.bench{number}"
        parameters = {"operation": "merge", "values": {"fromList": ["ALL", "SOME"]}}
    elif number == 3:
        kind, version = "AssignImage", "v1alpha1"
        location = "spec.containers[name: *].image"
        parameters = {"assignDomain": "registry.example"}
    return {
        "apiVersion": f"mutations.gatekeeper.sh/{version}",
        "kind": kind,
        "metadata": {"name": f"bench-{number}"},
        "spec": {**spec, "location": location, "parameters": parameters},
    }


def path_of(document: dict[str, Any]) -> str:
    """Returns the path of a mutator at the API server."""
    return (
        f"/apis/{document['apiVersion']}/{document['kind'].lower()}/{document['metadata']['name']}"
    )


EXPANSION: Final = {
    "apiVersion": "expansion.gatekeeper.sh/v1alpha1",
    "kind": "ExpansionTemplate",
    "metadata": {"name": "deployments"},
    "spec": {
        "applyTo": [{"groups": ["apps"], "versions": ["v1"], "kinds": ["Deployment"]}],
        "templateSource": "spec.template",
        "generatedGVK": {"group": "", "version": "v1", "kind": "Pod"},
    },
}


class Compared(NamedTuple):
    """CPU a request in milliseconds, medians of all rounds; and the ratio, the median of theirs."""

    ours: float
    beside: float
    ratio: float
    quartiles: tuple[float, float]


class Run:
    """The folder, cores and results of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cores = Cores.of_this_machine()
        self.generator = Generator(self.cores.client)
        self.certificates = make_certificates(folder / "certificates")

    def ours(
        self, name: str, documents: Sequence[Any], *operations: str
    ) -> contextlib.AbstractContextManager[Server]:
        """Our server with these policies."""
        policies = self.folder / name
        policies.mkdir(exist_ok=True)
        text = "\n---\n".join(one if type(one) is str else json.dumps(one) for one in documents)
        (policies / "all.yaml").write_text(text)
        log = self.folder / "waddle.log"
        flags = [f"--operation={operation}" for operation in operations]
        return waddle(policies, self.certificates, core=self.cores.server, log=log, flags=flags)

    def cpu(self, ours: tuple[Server, Path], other: tuple[Server, Path]) -> Compared:
        """Returns the CPU of a request at our server and at the other."""
        taken = self.generator.compare(
            [ours[0], other[0]],
            [ours[1], other[1]],
            connections=CONNECTIONS,
            requests=REQUESTS,
            rounds=ROUNDS,
            expected="allowed",
        )
        cpu = [tuple(turn["own_cpu_us"] / 1000 for turn in turns) for turns in taken]
        low, middle, high = statistics.quantiles([one / by for one, by in cpu], n=4)
        first, second = (statistics.median(each) for each in zip(*cpu, strict=True))
        return Compared(first, second, middle, (low, high))

    def warm(self, server: Server, body: Path) -> None:
        """Let a server see some requests first."""
        self.generator.count(
            server, body, connections=CONNECTIONS, requests=WARM_UP, expected="allowed"
        )


def mutating(server: Server) -> Server:
    """The server, asked to mutate."""
    return replace(server, url=server.url.replace("/v1/admit", "/v1/mutate"))


def same_object(servers: Sequence[Server], body: Path) -> None:
    """Figures of servers that make different objects would compare nothing."""
    obj = json.loads(body.read_bytes())["request"]["object"]
    made = []
    for server in servers:
        answer = ask(server, body)
        patch = json.loads(base64.b64decode(answer.get("patch", "W10=")))
        made.append(apply_patch(obj, patch))
    if made[0] != made[1] or made[0] == obj:
        raise RuntimeError(f"{body.name}: ours makes {made[0]}, Gatekeeper {made[1]}")


@contextlib.contextmanager
def installed(run: Run) -> Iterator[tuple[Installation, Api]]:
    """A cluster with Gatekeeper's kinds."""
    cluster = Cluster.start(build("testcluster"), run.folder / "cluster")
    try:
        gatekeeper.install(cluster.api)
        log = run.folder / "gatekeeper.log"
        found = Installation(cluster, run.certificates, log, run.cores.server)
        found.pin(run.cores.client)
        yield found, cluster.api
    finally:
        cluster.stop()


def all_enforced(api: Api, documents: Sequence[dict[str, Any]]) -> bool:
    """Whether Gatekeeper says that it applies all mutators."""
    for document in documents:
        status = api.request("GET", path_of(document)).get("status") or {}
        if not any(entry.get("enforced") for entry in status.get("byPod") or []):
            return False
    return True


def beside_gatekeeper(run: Run) -> dict[int, Compared]:
    """CPU a request of both, by how many mutators are about the Pod."""
    found = {}
    body = BODIES / "pod.json"
    operations = (*_MUTATES, "status", "mutation-status")
    with installed(run) as (installation, api):
        applied = 0
        for count in GOALS:
            documents = [mutator(number) for number in range(count)]
            with contextlib.ExitStack() as stack:
                peer = stack.enter_context(installation.gatekeeper(operations=operations))
                for document in documents[applied:]:
                    api.apply(path_of(document), document)
                applied = count
                gatekeeper.await_enforced(partial(all_enforced, api, documents))
                server = stack.enter_context(run.ours(f"m{count}", documents, *_MUTATES))
                both = mutating(server), mutating(peer)
                same_object(both, body)
                for one in both:
                    run.warm(one, body)
                found[count] = run.cpu((both[0], body), (both[1], body))
                say(f"{count} mutators: {found[count]}")
    return found


def quiet(run: Run) -> Compared:
    """A request that none of 100 mutators is about, beside a review without constraints."""
    body = BODIES / "deployment.json"
    documents = [mutator(number) for number in range(100) if number % 4 != 1]
    template = (POLICIES / "p1" / "templates.yaml").read_text()
    with (
        run.ours("quiet", documents, *_MUTATES) as with_mutators,
        run.ours("none", [template], "webhook") as without,
    ):
        mutates, admits = (mutating(with_mutators), body), (without, body)
        for server, _ in (mutates, admits):
            run.warm(server, body)
        return run.cpu(mutates, admits)


def expanding(run: Run) -> Compared:
    """A Deployment whose Pod is reviewed with it, beside the Pod, by the same constraints."""
    pod = json.loads((BODIES / "pod.json").read_bytes())
    deployment = json.loads((BODIES / "deployment.json").read_bytes())
    source = pod["request"]["object"]
    metadata = {name: source["metadata"].get(name) or {} for name in ("labels", "annotations")}
    spec = {"metadata": metadata, "spec": source["spec"]}
    deployment["request"]["object"]["spec"]["template"] = spec
    body = run.folder / "deployment.json"
    # As an API server writes it, and as the Pod's is.
    body.write_text(json.dumps(deployment, separators=(",", ":")))
    texts = [file.read_text() for file in sorted((POLICIES / "p12").glob("*.yaml"))]
    with run.ours("expanding", [*texts, EXPANSION], "webhook") as server:
        for sent in (body, BODIES / "pod.json"):
            warm(run.generator, server, WARM_UP)
            run.warm(server, sent)
        return run.cpu((server, body), (server, BODIES / "pod.json"))


def rows(
    beside: dict[int, Compared], still: Compared, made: Compared
) -> list[tuple[str, Compared, float]]:
    """Returns the measurements with their goals."""
    return [
        *(
            (f"{count} mutators on a Pod, beside Gatekeeper", one, GOALS[count])
            for count, one in beside.items()
        ),
        (
            "a request that no mutator is about, beside `/v1/admit` without constraints",
            still,
            QUIET_GOAL,
        ),
        (
            "a Deployment with the Pod that it makes, beside that Pod (12 constraints)",
            made,
            EXPANSION_GOAL,
        ),
    ]


def main() -> int:
    """Measure, print, and with ``--save`` keep; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waddle-mutation-") as scratch:
        run = Run(Path(scratch))
        still, made = quiet(run), expanding(run)
        say(f"{still} {made}")
        found = rows(beside_gatekeeper(run), still, made)
    how = (
        f"CPU a request over {CONNECTIONS} connections, {REQUESTS} to each of both in turn, "
        f"{ROUNDS} rounds: medians, and of the rounds' ratios the median with its quartiles. "
        "Made by `make bench-mutation`."
    )
    lines = [
        "# Mutation and expansion",
        "",
        how,
        "",
        f"Machine: {describe()}",
        "",
        "| what | ours | beside | ratio | quartiles | goal |",
        "|---|---|---|---|---|---|",
        *(
            f"| {title} | {one.ours:.3f} ms | {one.beside:.3f} ms | {one.ratio:.3f} "
            f"| {one.quartiles[0]:.3f} to {one.quartiles[1]:.3f} | {goal:g} |"
            for title, one, goal in found
        ),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if options.save:
        RESULTS.write_text(text)
    return 1 if any(one.ratio > goal for _, one, goal in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
