"""Policies of a registry at a real API server: installed at dryrun, raised, upgraded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests import policies
from tests.oci_registry import OciRegistry, serving
from tests.patience import until
from tests.system.conftest import ALL_OPERATIONS, StartReplica
from tests.system.replicas import CONFIG_MAPS, WORKLOADS, Plane, config_map
from tests.webhook.cli.in_process import Run, waddle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIND = "PackagedLabels"
REGO = """package packagedlabels
violation[{"msg": "no owner"}] { not input.review.object.metadata.labels.owner }
"""
CONSTRAINT = f"/apis/constraints.gatekeeper.sh/v1beta1/{KIND.lower()}/owner"
TEMPLATE = f"/apis/templates.gatekeeper.sh/v1/constrainttemplates/{KIND.lower()}"


@pytest.fixture
def registry() -> Iterator[OciRegistry]:
    with serving() as served:
        yield served


@pytest.fixture
def removed(plane: Plane) -> Iterator[None]:
    """Deletes the installed policies: other tests list the constraints of an audit."""
    yield
    plane.delete_template(KIND.lower())
    plane.api.request("DELETE", CONFIG_MAPS)


def push(registry: OciRegistry, folder: Path, version: str, rego: str, *names: str) -> str:
    """Policies under a version; their reference."""
    folder.mkdir()
    (folder / "template.json").write_text(json.dumps(policies.template(KIND, rego)))
    for name in names:
        made = policies.constraint(KIND, name, kinds=["ConfigMap"])
        made["spec"]["match"]["namespaces"] = [WORKLOADS]
        (folder / f"{name}.json").write_text(json.dumps(made))
    image = f"{registry.host}/team/policies:{version}"
    run = waddle("policy", "push", image, "-f", folder, "--registry-insecure", registry.host)
    assert run.returncode == 0, run.stderr
    return image


@pytest.mark.usefixtures("removed")
def test_policies_are_installed_at_dryrun_raised_and_upgraded(
    plane: Plane, start: StartReplica, registry: OciRegistry, tmp_path: Path
) -> None:
    start("packaged-0", *ALL_OPERATIONS).wait_ready()
    plane.api.apply(f"{CONFIG_MAPS}/ownerless", config_map("", "ownerless"))
    first = push(registry, tmp_path / "v1", "v1", REGO, "owner")
    second = push(
        registry, tmp_path / "v2", "v2", REGO.replace("no owner", "nobody"), "owner", "new"
    )

    def policy(command: str, image: str, *more: str) -> Run:
        kubeconfig = f"--kubeconfig={plane.cluster.kubeconfig}"
        near = ("--registry-insecure", registry.host)
        return waddle("policy", command, image, kubeconfig, *near, *more)

    early = policy("upgrade", second)
    assert early.returncode == 1
    assert "is not installed here: install it first" in early.stderr
    dry = policy("install", first, "--dry-run")
    assert (dry.returncode, "not applied" in dry.stdout) == (0, True), dry.stderr

    for command in ("install", "upgrade"):
        assert policy(command, f"{registry.host}/team/none").returncode == 2

    installed = policy("install", first)

    assert installed.returncode == 0, installed.stderr
    assert "ownerless" in installed.stdout
    assert f"{KIND}/owner: applied, dryrun" in installed.stdout
    assert policy("install", first).returncode == 0  # one that was cut short is done again
    plane.api.request(
        "PATCH",
        CONSTRAINT,
        {"spec": {"enforcementAction": "warn"}},
        content_type="application/merge-patch+json",
    )
    again = policy("install", first)
    assert again.returncode == 1
    assert "beyond dryrun" in again.stderr

    upgraded = policy("upgrade", second)

    assert upgraded.returncode == 0, upgraded.stderr
    assert f"{KIND}/owner: applied, warn" in upgraded.stdout
    assert f"{KIND}/new: applied, dryrun" in upgraded.stdout
    until(
        lambda: "nobody" in json.dumps(plane.api.request("GET", TEMPLATE)["spec"]),
        "the template is that of the second version",
    )
    back = policy("upgrade", first, "--prune")
    assert f"{KIND}/new: deleted" in back.stdout, back.stderr
