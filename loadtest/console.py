"""What the console takes with 500 policies and 50,000 policy reports, 20,000 of them with a violation.

``python -m loadtest.console [REPORTS] [--login]`` prints its memory, and how long each page takes as a
client on the same machine sees it; an API server that only lists and watches stands in for a
cluster. With ``--login`` the client is signed in, and may see the reports of half of the namespaces.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.behaviour.consoles import template
from tests.behaviour.serving import Answer
from tests.patience import until
from tests.webhook.console.assembled import KIND, policy
from tests.webhook.console.identity import RunningProvider
from tests.webhook.console.listing import Listing
from tests.webhook.console.person import Person
from tests.webhook.console.running import RunningConsole
from tests.webhook.console.signing import signing
from webhook.cli.cluster_access import TEMPLATES
from webhook.policy_kinds.known import constraints_of
from webhook.reports.report_api import WGPOLICY

POLICIES = 500
REPORTS = 50_000
ROUNDS = 20
NAMESPACES = 200
GOAL_MS = 300
"""Of each page at the 95th percentile: what a person takes for at once. Told, and fails nothing."""
PATHS = (
    "/",
    "/policies",
    f"/policy?kind={KIND}&name=rule-1",
    "/violations",
    "/violations?q=app-499",
    "/violations?group=resource",
    "/violations?sort=namespace",
    "/health",
)


def report(number: int) -> dict[str, Any]:
    """A Pod's report; two of five have a violation."""
    namespace = f"team-{number % NAMESPACES}"
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


def granted(user: str) -> set[tuple[str, str, str, str]]:
    """All policies and replicas, and the reports of half of the namespaces."""
    group = constraints_of(KIND)
    return {
        (user, TEMPLATES.gvk.group, TEMPLATES.plural, ""),
        (user, group.gvk.group, group.plural, ""),
        (user, "", "pods", ""),
        *(
            (user, WGPOLICY.namespaced.gvk.group, WGPOLICY.namespaced.plural, f"team-{i}")
            for i in range(0, NAMESPACES, 2)
        ),
    }


def main(reports: int, *, login: bool) -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        listing = stack.enter_context(Listing(folder, KIND))
        listing.put(TEMPLATES, template())
        listing.put(constraints_of(KIND), *(policy(f"rule-{i}") for i in range(POLICIES)))
        listing.put(WGPOLICY.namespaced, *map(report, range(reports)))
        flags = ("--kubeconfig", str(listing.kubeconfig))
        ask: Callable[[str], Answer]
        if login:
            provider = stack.enter_context(RunningProvider(ada={}))
            listing.granted = granted(f"{provider.issuer}#ada")
            console = stack.enter_context(signing(folder, provider, flags))
            person = Person(console.address)
            person.sign_in("ada")
            ask = person.go
        else:
            console = stack.enter_context(RunningConsole(*flags))
            ask = console.get
        console.ready()
        seen = reports * 2 // 5 // (2 if login else 1)
        until(lambda: f"{seen} violations" in ask("/violations").body.decode(), "all")
        for path in PATHS:
            took = sorted(_milliseconds(ask, path) for _ in range(ROUNDS))
            median, late = took[ROUNDS // 2], took[ROUNDS * 95 // 100]
            print(f"{path}: median {median:.0f} ms, p95 {late:.0f} ms (goal {GOAL_MS})")
        print(f"memory: {resident_mib(console.process.pid):.0f} MiB at most")
    print(f"load: {Path('/proc/loadavg').read_text().strip()}")


def _milliseconds(ask: Callable[[str], Answer], path: str) -> float:
    began = time.perf_counter()
    assert ask(path).status == 200
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="?", type=int, default=REPORTS)
    parser.add_argument("--login", action="store_true")
    chosen = parser.parse_args()
    main(chosen.reports, login=chosen.login)
