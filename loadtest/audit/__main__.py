"""`python -m loadtest.audit [--save]`: Waddle's and Gatekeeper's audit of the same cluster."""

import argparse
import datetime as dt
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from loadtest import readme
from loadtest.audit import pods
from loadtest.audit.auditor import Auditor, auditing, results
from loadtest.audit.report import markdown, verdicts
from loadtest.bench import gatekeeper
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores
from tests.cluster import Api, Cluster
from tests.decisions.process import Sidecar
from tests.ports import free_ports
from tests.programs import ProgramUnavailableError, build
from webhook.certificates.pairs import self_signed

LOADTEST = Path(__file__).resolve().parent.parent
POLICIES = LOADTEST / "policies" / "p12"
NAMESPACE = "waddle-system"
POD = "waddle-audit"
CONSTRAINTS = "/apis/constraints.gatekeeper.sh/v1beta1"
SWEEP_SECONDS_MAX = 1200.0
INTERVAL = "--audit-interval=2"
"""Seconds: the next sweep begins soon after one has ended."""

SWEEPS = 4
"""Ours that are measured; the first is told apart, since it fills caches."""


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.audit", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write the result to results/")
    parser.add_argument("--pods", type=int, default=10_000, help="Pods in the large cluster")
    parser.add_argument("--kept", action="store_true", help="only what keeping results saves")
    parser.add_argument("--few", type=int, default=1_000, help="Pods in the small one")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="waddle-audit-") as scratch:
        try:
            few = None if options.kept else options.few
            result = measure(Path(scratch), few, options.pods)
        except ProgramUnavailableError as unavailable:
            print(f"cannot be run here: {unavailable}", file=sys.stderr)
            return 1
    if options.kept:
        print(json.dumps(result["kept"], indent=1))
        return 0
    result |= {
        "machine": describe(),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "goals": verdicts(result),
    }
    page = markdown(result)
    print(page)
    if options.save:
        folder = LOADTEST / "results"
        (folder / "audit.json").write_text(json.dumps(result, indent=1) + "\n")
        (folder / "audit.md").write_text(page)
        readme.write()
    return 0 if all(goal["met"] for goal in result["goals"]) else 2


def measure(folder: Path, few: int | None, many: int) -> dict[str, Any]:
    """Measures both products at both sizes, and compares them with the decision log.

    Without ``few`` only what keeping results saves in the large cluster.
    """
    cores = Cores.of_this_machine()
    cluster = Cluster.start(build("testcluster"), folder / "cluster")
    try:
        api = cluster.api
        install(api)
        (folder / "api-cache").mkdir()
        pair = self_signed(["localhost"], dt.datetime.now(tz=dt.UTC))
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        with auditing(*_gatekeeper(cluster, folder, "generate", "status", "audit"), cores.server):
            gatekeeper.apply_policies(api, POLICIES)
        points: list[dict[str, Any]] = []
        made = 0
        if few is None:
            pods.fill(cluster.kubeconfig, made, many)
            return {"kept": _kept(cluster, many, cores.server)}
        for number in (few, many):
            pods.fill(cluster.kubeconfig, made, number)
            made = number
            points.append(_point(cluster, folder, number, cores.server))
        return {
            "points": points,
            "kept": _kept(cluster, many, cores.server),
            "decisions": _decisions(cluster, folder, cores.server),
        }
    finally:
        cluster.kill()


def _point(cluster: Cluster, folder: Path, number: int, core: int) -> dict[str, Any]:
    """Measures one size: ours, then Gatekeeper, and the statuses after each."""
    found: dict[str, Any] = {"pods": number}
    with auditing(*waddle(cluster), core) as ours:
        ours.wait_started(SWEEPS + 1, SWEEP_SECONDS_MAX)
        found["waddle"] = figures_of(ours, skip=1)
    statuses = _statuses(cluster.api)
    with auditing(*_gatekeeper(cluster, folder, "audit"), core) as theirs:
        theirs.wait_started(2, SWEEP_SECONDS_MAX)
        found["gatekeeper"] = figures_of(theirs, skip=0)
    peer = _statuses(cluster.api)
    found["equal"] = peer == statuses
    found["totals"] = {name: total for name, (total, _) in sorted(statuses.items())}
    return found


def _kept(cluster: Cluster, number: int, core: int) -> dict[str, Any]:
    """A sweep's processor time: as if nothing were kept, with nothing changed, and with 1 % of Pods."""
    found: dict[str, Any] = {}
    for name, flags, changed in (
        ("without", ["--audit-kept-bytes=0"], 0),
        ("unchanged", [], 0),
        ("changed", [], number // 100),
    ):
        with auditing(*waddle(cluster, *flags), core) as ours:
            for sweep in range(SWEEPS + 1):
                ours.wait_finished(sweep + 1, SWEEP_SECONDS_MAX)
                # Apart from each other: those of one stretch of the list would be one page.
                touched = [
                    one * 97 % number for one in range(changed * sweep, changed * (sweep + 1))
                ]
                pods.change(cluster.kubeconfig, touched, str(sweep))
            ours.wait_started(SWEEPS + 1, SWEEP_SECONDS_MAX)
            found[name] = figures_of(ours, skip=1)
    return found


def figures_of(auditor: Auditor, *, skip: int) -> dict[str, Any]:
    """Returns the medians of the sweeps after the first ``skip``, and the peak of memory."""
    sweeps = auditor.sweeps()
    kept = sweeps[skip:]
    return {
        "seconds": statistics.median(sweep["seconds"] for sweep in kept),
        "cpu_seconds": statistics.median(sweep["cpu_seconds"] for sweep in kept),
        "first_cpu_seconds": sweeps[0]["cpu_seconds"],
        "peak_mib": auditor.peak_mib(),
        "sweeps": sweeps,
    }


def _statuses(api: Api) -> dict[str, Any]:
    """Returns the statuses once all of them are of one sweep: some may still be written."""
    documents = [
        document
        for document in yaml.safe_load_all((POLICIES / "constraints.yaml").read_text())
        if document
    ]
    end = time.monotonic() + SWEEP_SECONDS_MAX
    while True:
        items = [
            api.request("GET", f"{CONSTRAINTS}/{one['kind'].lower()}/{one['metadata']['name']}")
            for one in documents
        ]
        moments = {(item.get("status") or {}).get("auditTimestamp") for item in items}
        if len(moments) == 1 and None not in moments:
            return results(items)
        if time.monotonic() > end:
            raise RuntimeError(f"statuses of several sweeps: {moments}")
        time.sleep(0.5)


def _decisions(cluster: Cluster, folder: Path, core: int) -> dict[str, Any]:
    """Whether the decision log has the violations that the statuses count."""
    target = folder / "decisions.ndjson"
    sink = {"name": "file", "type": "file", "settings": {"path": str(target), "maxBytes": 2**31}}
    with Sidecar(folder / "sidecar", [sink]) as sidecar:
        configuration = folder / "decisions.yaml"
        configuration.write_text(yaml.safe_dump({"sidecarURL": sidecar.url}))
        with auditing(*waddle(cluster, f"--decision-log-config={configuration}"), core) as auditor:
            auditor.wait_started(2, SWEEP_SECONDS_MAX)
            figures = figures_of(auditor, skip=0)
        sidecar.stop()
    records = [json.loads(line) for line in target.read_text().splitlines()]
    sweep = next(one["auditID"] for one in records if one["eventType"] == "audit_started")
    violations = [
        (result["constraint"]["kind"], one["resourceNamespace"], one["resourceName"])
        for one in records
        if one.get("auditID") == sweep and one["eventType"] == "decision"
        for result in one["results"]
    ]
    finished = next(
        one for one in records if one["eventType"] == "audit_finished" and one["auditID"] == sweep
    )
    return {
        "violations": len(violations),
        "objects": len({violation[1:] for violation in violations}),
        "said": finished["violations"],
        **figures,
    }


def install(api: Api) -> None:
    """Gatekeeper's CRDs and Pod, and a Pod of ours."""
    gatekeeper.install(api)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}", space)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default", account)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD},
        "spec": {"containers": [{"name": "audit", "image": "waddle"}]},
    }
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}", pod)


Command = tuple[str, list[str | Path], dict[str, str]]


def waddle(cluster: Cluster, *flags: str) -> Command:
    """Returns the command and environment of our audit."""
    command: list[str | Path] = [
        *(sys.executable, "-m", "webhook", "serve"),
        f"--kubeconfig={cluster.kubeconfig}",
        "--operation=audit",
        *("--health-addr=127.0.0.1:0", "--prometheus-host=127.0.0.1", "--prometheus-port=0"),
        INTERVAL,
        *flags,
    ]
    return "waddle", command, {"POD_NAME": POD, "POD_NAMESPACE": NAMESPACE}


def _gatekeeper(cluster: Cluster, folder: Path, *operations: str) -> Command:
    port, health, metrics = free_ports(3)
    command: list[str | Path] = [
        build("gatekeeper"),
        *(f"--operation={name}" for name in operations),
        f"--kubeconfig={cluster.kubeconfig}",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--health-addr=127.0.0.1:{health}",
        f"--prometheus-port={metrics}",
        f"--cert-dir={folder}",
        f"--api-cache-dir={folder / 'api-cache'}",
        "--disable-cert-rotation",
        "--audit-match-kind-only",
        INTERVAL,
        "--shutdown-delay=0",
    ]
    environment = {
        "GOMAXPROCS": "1",
        "POD_NAME": gatekeeper.POD,
        "POD_NAMESPACE": gatekeeper.NAMESPACE,
    }
    return "gatekeeper", command, environment


if __name__ == "__main__":
    sys.exit(main())
