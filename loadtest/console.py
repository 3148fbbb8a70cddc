"""What the console takes with 500 policies and 50,000 policy reports, 20,000 of them with a violation.

``python -m loadtest.console [REPORTS]`` prints its memory, and how long each page takes as a client
on the same machine sees it; an API server that only lists and watches stands in for a cluster.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.behaviour.test_the_console_follows import template
from tests.patience import until
from tests.webhook.console.listing import Listing
from tests.webhook.console.running import RunningConsole
from tests.webhook.console.test_assembly import KIND, policy
from webhook.cli.cluster_access import TEMPLATES, constraints_of
from webhook.reports.report_api import WGPOLICY

POLICIES = 500
REPORTS = 50_000
ROUNDS = 20
PATHS = (
    "/",
    "/policies",
    f"/policy?kind={KIND}&name=rule-1",
    "/violations",
    "/violations?q=app-499",
    "/violations?group=resource",
    "/health",
)


def report(number: int) -> dict[str, Any]:
    """A Pod's report; two of five have a violation."""
    namespace = f"team-{number % 200}"
    uid = f"{number:08x}-1111-2222-3333-444455556666"
    message = (
        f"container app-{number}: spec.containers[0].securityContext.privileged must not be true"
    )
    result = {
        "policy": KIND,
        "rule": f"rule-{number % POLICIES}",
        "result": "fail" if number % 5 < 2 else "pass",
        "source": "waddle",
        "severity": "high",
        "message": message,
        "properties": {"action": "deny"},
    }
    return {
        "metadata": {"name": uid, "namespace": namespace, "uid": f"u-{uid}"},
        "scope": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": namespace,
            "name": f"web-{number}-7d8f9c",
            "uid": uid,
        },
        "results": [result],
    }


def resident_mib(process: int) -> float:
    """The memory of a process, at most so far."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("the system does not tell")


def main() -> None:
    """Measure, and print."""
    reports = int(sys.argv[1]) if len(sys.argv) > 1 else REPORTS
    with tempfile.TemporaryDirectory() as folder, Listing(Path(folder), KIND) as listing:
        listing.put(TEMPLATES, template())
        listing.put(constraints_of(KIND), *(policy(f"rule-{i}") for i in range(POLICIES)))
        listing.put(WGPOLICY.namespaced, *map(report, range(reports)))
        with RunningConsole("--kubeconfig", str(listing.kubeconfig)) as console:
            console.ready()
            until(lambda: console.json("/violations")["violations"] >= reports * 2 // 5, "all")
            for path in PATHS:
                took = sorted(_milliseconds(console, path) for _ in range(ROUNDS))
                median, late = took[ROUNDS // 2], took[ROUNDS * 95 // 100]
                print(f"{path}: median {median:.0f} ms, p95 {late:.0f} ms")
            print(f"memory: {resident_mib(console.process.pid):.0f} MiB at most")
    print(f"load: {Path('/proc/loadavg').read_text().strip()}")


def _milliseconds(console: RunningConsole, path: str) -> float:
    began = time.perf_counter()
    assert console.get(path).status == 200
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
