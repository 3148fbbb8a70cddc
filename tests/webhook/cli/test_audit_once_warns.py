"""``waddle audit --once`` warns of foreign policies that have no effect, as ``test`` and ``check`` do."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.api_server import Served
from tests.webhook.cli.in_process import Run, waddle
from tests.webhook.controllers.session import NAMESPACE, Session, session
from webhook.policy_kinds.table import KYVERNO_KINDS

Json = dict[str, Any]
GONE = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1beta2"],
    "operations": ["CREATE"],
    "resources": ["deployments"],
}


def policy(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": name},
        "spec": {"validations": [{"expression": "true"}], **spec},
    }


LOST = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "PolicyException",
    "metadata": {"name": "lost", "namespace": "shop"},
    "spec": {"policyRefs": [{"kind": "ValidatingPolicy", "name": "none"}]},
}
UNSERVED = policy("unserved", matchConstraints={"resourceRules": [GONE]})


def prepared(replica: Session) -> None:
    for row in KYVERNO_KINDS:
        replica.storage.serve(
            Served("policies.kyverno.io", "v1", row.plural, row.kind, namespaced=row.namespaced)
        )
    replica.make("policies.kyverno.io", "validatingpolicies", policy("nothing"))


def audited(folder: Path, *arguments: str) -> Run:
    """Runs the command in a cluster with one policy of Kyverno, which matches nothing."""

    async def run() -> Run:
        async with session(folder, "webhook", prepare=prepared):
            kubeconfig = str(folder / "kubeconfig")
            given = "audit", "--once", "-n", NAMESPACE, "--kubeconfig", kubeconfig, *arguments
            return await asyncio.to_thread(waddle, *given)

    return asyncio.run(run())


def test_policies_of_files_without_effect_are_named_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "policies" / "p.yaml"
    file.parent.mkdir()
    file.write_text("\n---\n".join(map(json.dumps, [policy("nothing"), UNSERVED, LOST])))
    run = audited(tmp_path, "--policies", str(file))
    no_rule, no_policy, gone = run.stderr.splitlines()
    assert no_rule.startswith(f"WARNING - {file}:1: ValidatingPolicy/nothing: it has no matchC")
    assert no_policy.startswith(f"WARNING - {file}:5: PolicyException/shop/lost: none of the pol")
    assert gone.startswith(f"WARNING - {file}:3: ValidatingPolicy/unserved: its matchConstraints.")
    assert gone.endswith("since Kubernetes 1.16: name a version that it serves, or *")
    assert run.returncode == 0


@pytest.mark.parametrize(("mode", "is_named"), [("audit", True), ("off", False)])
def test_policies_of_the_cluster_without_effect_are_named(
    tmp_path: Path, mode: str, is_named: bool
) -> None:
    run = audited(tmp_path, f"--kyverno-policies={mode}")
    expected = (
        "WARNING - ValidatingPolicy/nothing: it has no matchConstraints, so it is about nothing"
    )
    assert (expected in run.stderr.splitlines()) is is_named


def test_check_names_the_place_of_an_object_of_a_namespace(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps(LOST))
    run = waddle("check", "-f", str(file))
    assert f"warning: {file}:1: PolicyException/shop/lost: none of the policies" in run.stdout
