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
from typing import TYPE_CHECKING, Any, Final

from loadtest.bench import gatekeeper
from loadtest.bench.gatekeeper import Installation
from loadtest.bench.load import Generator, ask
from loadtest.bench.machine import describe
from loadtest.bench.measurement import BODIES, make_certificates, say, warm
from loadtest.bench.policies import POLICIES
from loadtest.bench.servers import Cores, Server, waddle
from tests.cluster import Api, Cluster
from tests.json_patch import apply_patch
from tests.programs import ROOT, build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESULTS: Final = ROOT / "loadtest" / "results" / "mutation.md"
CONNECTIONS: Final = 8
ROUNDS: Final = 9
SECONDS: Final = 2.0
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
    """Where the API server has a mutator."""
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


class Run:
    """Where things are, and what was found."""

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

    def cpu(self, servers: dict[str, tuple[Server, Path]]) -> dict[str, float]:
        """Milliseconds of CPU a request, the median of rounds in which they take turns."""
        found: dict[str, list[float]] = {name: [] for name in servers}
        for number in range(ROUNDS):
            for name in list(servers)[:: 1 if number % 2 == 0 else -1]:
                server, body = servers[name]
                report = self.generator.closed(
                    server, body, connections=CONNECTIONS, seconds=SECONDS, expected="allowed"
                )
                found[name].append(report["server_cpu_ms_per_request"])
        return {name: statistics.median(values) for name, values in found.items()}

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


def beside_gatekeeper(run: Run) -> dict[int, dict[str, float]]:
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
                both = {"waddle": mutating(server), "gatekeeper": mutating(peer)}
                same_object(list(both.values()), body)
                for one in both.values():
                    run.warm(one, body)
                found[count] = run.cpu({name: (one, body) for name, one in both.items()})
                say(f"{count} mutators: {found[count]}")
    return found


def quiet(run: Run) -> dict[str, float]:
    """A request that none of 100 mutators is about, beside a review without constraints."""
    body = BODIES / "deployment.json"
    documents = [mutator(number) for number in range(100) if number % 4 != 1]
    template = (POLICIES / "p1" / "templates.yaml").read_text()
    with (
        run.ours("quiet", documents, *_MUTATES) as with_mutators,
        run.ours("none", [template], "webhook") as without,
    ):
        asked = {"mutate": (mutating(with_mutators), body), "admit": (without, body)}
        for server, _ in asked.values():
            run.warm(server, body)
        return run.cpu(asked)


def expanding(run: Run) -> dict[str, float]:
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
        asked = {"deployment": (server, body), "pod": (server, BODIES / "pod.json")}
        for one, sent in asked.values():
            warm(run.generator, one, WARM_UP)
            run.warm(one, sent)
        return run.cpu(asked)


def rows(
    beside: dict[int, dict[str, float]], still: dict[str, float], made: dict[str, float]
) -> list[tuple[str, str, str, float, float]]:
    """What was measured, with its ratio and goal."""
    found = [
        (
            f"{count} mutators on a Pod, beside Gatekeeper",
            f"{one['waddle']:.3f} ms",
            f"{one['gatekeeper']:.3f} ms",
            one["waddle"] / one["gatekeeper"],
            GOALS[count],
        )
        for count, one in beside.items()
    ]
    found.append(
        (
            "a request that no mutator is about, beside `/v1/admit` without constraints",
            f"{still['mutate']:.3f} ms",
            f"{still['admit']:.3f} ms",
            still["mutate"] / still["admit"],
            QUIET_GOAL,
        )
    )
    found.append(
        (
            "a Deployment with the Pod that it makes, beside that Pod (12 constraints)",
            f"{made['deployment']:.3f} ms",
            f"{made['pod']:.3f} ms",
            made["deployment"] / made["pod"],
            EXPANSION_GOAL,
        )
    )
    return found


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
        f"CPU a request, median of {ROUNDS} rounds of {SECONDS:g} s over {CONNECTIONS} "
        "connections, in turn. Made by `make bench-mutation`."
    )
    lines = [
        "# Mutation and expansion",
        "",
        how,
        "",
        f"Machine: {describe()}",
        "",
        "| what | ours | beside | ratio | goal |",
        "|---|---|---|---|---|",
        *(f"| {a} | {b} | {c} | {ratio:.3f} | {goal:g} |" for a, b, c, ratio, goal in found),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if options.save:
        RESULTS.write_text(text)
    return 1 if any(ratio > goal for *_, ratio, goal in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
