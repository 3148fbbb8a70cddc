"""An audit of a cluster in which one object nests as deep as the API server keeps it."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from loadtest.drill.drill import Row
from tests.conformance.gatekeeper import waddle
from tests.system.conftest import control_plane
from tests.system.replicas import WORKLOADS, Plane, constraint, template
from tests.system.strange import deep_config_map

LEVELS = 9_000
OTHERS = 20
SECONDS_MAX = 60
"""The bound of an audit, in seconds. Earlier such an audit did not end; now it takes some seconds,
most of them for other objects."""

NAME = f"an audit beside {LEVELS:,} levels"


def run() -> Iterator[Row]:
    """Audit once, with a constraint that every ConfigMap violates."""
    with (
        tempfile.TemporaryDirectory(prefix="waddle-drill-") as folder,
        control_plane(Path(folder) / "plane") as plane,
    ):
        policies = Path(folder) / "policies.yaml"
        every = constraint("every", "x", "Every")
        every["spec"]["match"] = {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]}
        rego = 'package every\nviolation[{"msg": "no"}] { true }'
        policies.write_text(yaml.safe_dump_all([template("Every", rego), every]))
        names = _write(plane)
        began = time.monotonic()
        found = waddle(
            *("audit", "--once", "-o", "json", "--policies", str(policies)),
            f"--kubeconfig={plane.cluster.kubeconfig}",
        )
        seconds = time.monotonic() - began
        document = json.loads(found.stdout)
        named = {item["resource"]["name"] for item in document["violations"]}
        unreported = {"deep"} - named if "deep" not in found.stderr else set()
        yield Row(NAME, "time", seconds, SECONDS_MAX, "s")
        yield Row(NAME, "other objects that were not audited", len(names - named), 0)
        yield Row(NAME, "objects of which nothing was said", len(unreported), 0)


def _write(plane: Plane) -> set[str]:
    """The deep one, and the names of others."""
    path = f"/api/v1/namespaces/{WORKLOADS}/configmaps"
    names = {f"other-{number}" for number in range(OTHERS)}
    for name in names:
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        plane.api.request("POST", path, document)
    plane.api.request("POST", path, deep_config_map("deep", LEVELS))
    return names
