"""`python -m loadtest.reports [--save]`: bytes in etcd for violating Pods, and writes as they roll."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from loadtest.bench.machine import describe
from loadtest.reports import workload
from loadtest.reports.etcd import stored_bytes
from loadtest.reports.page import markdown
from tests.patience import until
from tests.programs import ProgramUnavailableError
from tests.system import reporting
from tests.system.conftest import control_plane
from tests.system.replicas import Plane, Replica
from webhook.reports.report_api import WGPOLICY

RESULTS = Path(__file__).resolve().parent.parent / "results"
PREFIX = "/registry/wgpolicyk8s.io/"
AUDIT = ("--operation=audit,status,generate", "--audit-interval=2", "--reports")
SERVE = ("--operation=webhook,status,generate", "--reports", "--report-debounce=10s")
SECONDS_MAX = 900.0
CHANGES = 4
"""Of each Pod as it rolls: controllers and operators label and annotate what they look after."""

CASES = {
    "only failures (the default)": (),
    "all results": ("--report-results=pass,fail,warn,error",),
    "only failures, by policy and namespace": ("--report-mode=policy-namespace",),
}


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here, 2 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.reports", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write the result to results/")
    parser.add_argument("--pods", type=int, default=1000, help="Pods that violate")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="waddle-reports-") as scratch:
        try:
            result = measure(Path(scratch), options.pods)
        except ProgramUnavailableError as unavailable:
            print(f"cannot be run here: {unavailable}", file=sys.stderr)
            return 1
    result |= {"machine": describe(), "minutes": round((time.monotonic() - began) / 60, 1)}
    page = markdown(result)
    print(page)
    if options.save:
        (RESULTS / "reports.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / "reports.md").write_text(page)
    return 0 if all(aim["met"] for aim in result["aims"]) else 2


def measure(folder: Path, pods: int) -> dict[str, Any]:
    """Storage in each mode, and then a rolling update."""
    with control_plane(folder, install=reporting.install) as plane:
        try:
            workload.make_spaces(plane)
            storage = []
            with Replica(plane, "maker", "--operation=audit,status,generate") as maker:
                workload.enforce(plane)
                workload.create(plane, "old", pods, "registry.example/checkout:1.9.4")
                maker.kill()
            for name, flags in CASES.items():
                storage.append({"case": name, **_stored(plane, flags, pods)})
            rolling = _rolled(plane, pods)
        finally:
            plane.cluster.kill()  # it would wait for watches to end
    return {
        "pods": pods,
        "storage": storage,
        "rolling": rolling,
        "aims": _aims(pods, storage, rolling),
    }


def _stored(plane: Plane, flags: tuple[str, ...], pods: int) -> dict[str, Any]:
    """Returns the storage of an audit's reports, once it has nothing more to write."""
    before = reporting.writes(plane)
    with Replica(plane, "auditor", *AUDIT, *flags) as auditor:
        auditor.wait_ready()
        _settle(plane, auditor, pods)
        began = reporting.writes(plane)
        reporting.await_sweeps(auditor, 2, SECONDS_MAX)
        idle = reporting.writes(plane) - began
        auditor.kill()
    plane.delete_pod("auditor")
    sizes = stored_bytes(plane.cluster.etcd, PREFIX)
    found = [
        item
        for number in range(workload.SPACES)
        for item in reporting.reports(plane, workload.space(number))
    ]
    return {
        "objects": len(sizes),
        "bytes": sum(sizes),
        "largest_bytes": max(sizes),
        "results": sum(len(item["results"]) for item in found),
        "writes": dict(reporting.writes(plane) - before),
        "writes_of_two_more_sweeps": sum(idle.values()),
    }


def _settle(plane: Plane, auditor: Replica, pods: int) -> None:
    """Wait until every Pod has its results, and a sweep has written nothing."""

    def entries() -> int:
        return sum(
            len({_uid(entry, item) for entry in item["results"]})
            for number in range(workload.SPACES)
            for item in reporting.reports(plane, workload.space(number))
        )

    until(lambda: entries() >= pods, "every Pod has results", seconds=SECONDS_MAX)
    while True:
        before = reporting.writes(plane)
        reporting.await_sweeps(auditor, 2, SECONDS_MAX)
        if reporting.writes(plane) == before:
            return


def _uid(entry: dict[str, Any], report: dict[str, Any]) -> str:
    reference = (entry.get("resources") or [report.get("scope") or {}])[0]
    return str(reference.get("uid"))


def _rolled(plane: Plane, pods: int) -> dict[str, Any]:
    """Writes while every Pod is replaced, with reports of admissions alone."""
    for number in range(workload.SPACES):
        reporting.delete_all(plane, WGPOLICY, workload.space(number))
    before = reporting.writes(plane)
    with Replica(plane, "serving", *SERVE) as replica:
        replica.wait_ready()
        workload.register(plane, replica.ports["admission"])
        began = time.monotonic()
        admissions = workload.roll(plane, pods, CHANGES)
        rolled_seconds = time.monotonic() - began

        def reported() -> int:
            return sum(
                len(reporting.reports(plane, workload.space(number)))
                for number in range(workload.SPACES)
            )

        until(lambda: reported() >= pods, "each new Pod has a report", seconds=SECONDS_MAX)
        until(
            lambda: reporting.metric(replica, "waddle_reports_waiting") == 0,
            "no report waits",
            seconds=SECONDS_MAX,
        )
        answered = reporting.metric(replica, "gatekeeper_validation_request_count_total")
        replica.kill()
    return {
        "pods": pods,
        "changes_of_each": CHANGES,
        "admissions": admissions,
        "answered": answered,
        "seconds": round(rolled_seconds, 1),
        "writes": dict(reporting.writes(plane) - before),
    }


def _aims(
    pods: int, storage: list[dict[str, Any]], rolling: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns the goals and the measurements."""
    default, everything, _ = storage
    aims = (
        (
            "only failures: bytes for 1,000 Pods, of the design's 25 MB",
            0.2,
            default["bytes"] / pods / 25_000,
        ),
        ("all 19 results: KB in one report", 6.28, everything["largest_bytes"] / 1000),
        (
            "writes of sweeps that find the same",
            0,
            sum(item["writes_of_two_more_sweeps"] for item in storage),
        ),
        (
            "rolling update: writes for each Pod",
            1.0,
            sum(rolling["writes"].get(verb, 0) for verb in ("create", "update")) / pods,
        ),
    )
    return [
        {"aim": aim, "bound": bound, "measured": measured, "met": measured <= bound}
        for aim, bound, measured in aims
    ]


if __name__ == "__main__":
    sys.exit(main())
