"""The policies that come with the project: their suites, their default set, their shared modules."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api, ApiError, Cluster
from tests.patience import PATIENCE_SECONDS
from tests.policy_library import POLICIES, copied_modules, shared_modules, templates
from tests.programs import Programs
from webhook.cli.clients import new_client
from webhook.constraint.client import Client
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.review import AugmentedObject
from webhook.policies.directory import PolicyDirectory

SUITES = sorted(POLICIES.glob("*/*/suite.yaml"))


def policy_name(template: Path) -> str:
    """Topic and name, as the folders have them."""
    return str(template.parent.relative_to(POLICIES))


@pytest.fixture(scope="module")
def default_set() -> Client:
    """What `waddle serve --policies policies` enforces."""
    client = new_client()
    report = PolicyDirectory(client, [POLICIES]).load()
    assert report.faults == ()
    assert report.templates == len(SUITES)
    return client


def findings(client: Client, manifest: dict[str, Any]) -> dict[str, list[str]]:
    """The messages about an object, by enforcement action."""
    responses = client.snapshot.review(AugmentedObject(manifest), enforcement_point=WEBHOOK)
    assert responses.faults == ()
    found: dict[str, list[str]] = {}
    for result in responses.results:
        found.setdefault(result.enforcement_action, []).append(result.msg)
    return found


@pytest.mark.parametrize("template", templates(), ids=policy_name)
def test_a_template_carries_the_shared_modules_as_they_are(template: Path) -> None:
    """The copies in templates are those of policies/lib (`python -m tests.policy_library`)."""
    shared = shared_modules()
    for package, text in copied_modules(template).items():
        assert text == shared[package]


@pytest.mark.parametrize("template", templates(), ids=policy_name)
def test_a_policy_has_a_suite_that_allows_and_denies(template: Path) -> None:
    """A suite that only allows, or only denies, would pass with a policy that decides nothing."""
    suite = yaml.safe_load((template.parent / "suite.yaml").read_text())
    wanted = {
        case["assertions"][0]["violations"] != "no"
        for test in suite["tests"]
        for case in test["cases"]
    }
    assert wanted == {True, False}


def test_every_suite_passes_in_waddle() -> None:
    """`waddle verify policies` finds every suite and no failure."""
    finished = subprocess.run(
        [sys.executable, "-m", "webhook", "verify", str(POLICIES)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.splitlines()[-1].startswith(f"{len(SUITES)} suites, ")


def test_every_suite_passes_in_gatekeeper(program: Programs) -> None:
    """The policies are Gatekeeper's too: the real gator agrees with every case."""
    finished = subprocess.run(
        [program("gator"), "verify", f"{POLICIES}/..."],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    assert sum(line.startswith("ok\t") for line in finished.stdout.splitlines()) == len(SUITES)


@pytest.mark.parametrize("namespace", ["kube-system", "waddle-system", "gatekeeper-system"])
def test_system_namespaces_are_left_out_of_the_default_set(
    default_set: Client, namespace: str
) -> None:
    """No policy of the default set can stop what a recovery of the cluster needs."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "a"}]},
    }
    assert findings(default_set, pod) == {}
    elsewhere = {**pod, "metadata": {"name": "a", "namespace": "shop"}}
    assert findings(default_set, elsewhere)["deny"] == ["pod: spec.hostNetwork must not be true"]


def sample_pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods among the samples of the Pod Security Standards' policies."""
    for file in sorted(POLICIES.glob("pod-security-*/*/samples/*/*.yaml")):
        manifest = yaml.safe_load(file.read_text())
        if manifest["kind"] == "Pod":
            yield str(file.relative_to(POLICIES)), manifest


def refused_by_kubernetes(api: Api, pod: dict[str, Any], level: str) -> bool | None:
    """What the API server's own Pod Security admission says; None for a pod it finds invalid."""
    here = {**pod, "metadata": {**pod["metadata"], "namespace": level}}
    try:
        api.request("POST", f"/api/v1/namespaces/{level}/pods?dryRun=All", here)
    except ApiError as error:
        if error.status == 403 and "PodSecurity" in error.body:
            return True
        if error.status == 422:
            return None
        raise
    return False


def test_the_pod_security_policies_agree_with_the_api_server(
    default_set: Client, cluster: Cluster
) -> None:
    """Each sample pod is judged by the default set and by Kubernetes at both levels."""
    api = cluster.api
    for level in ("baseline", "restricted"):
        labels = {"pod-security.kubernetes.io/enforce": level}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": level}}
        namespace["metadata"]["labels"] = labels
        api.apply(f"/api/v1/namespaces/{level}", namespace)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        api.apply(f"/api/v1/namespaces/{level}/serviceaccounts/default", account)
    compared = 0
    for name, pod in sample_pods():
        responses = default_set.snapshot.review(AugmentedObject(pod), enforcement_point=WEBHOOK)
        violated = {result.constraint.name.partition("-")[0] for result in responses.results}
        baseline, restricted = "baseline" in violated, bool(violated & {"baseline", "restricted"})
        for level, ours in (("baseline", baseline), ("restricted", restricted)):
            theirs = refused_by_kubernetes(api, pod, level)
            if theirs is not None:
                assert (name, level, ours) == (name, level, theirs)
                compared += 1
    assert compared >= 100


def test_the_page_of_policies_names_every_kind_and_parameter() -> None:
    """A reader finds each policy, and what it can be told, in policies/README.md."""
    page = (POLICIES / "README.md").read_text().splitlines()
    for file in templates():
        definition = yaml.safe_load(file.read_text())["spec"]["crd"]["spec"]
        schema = definition["validation"]["openAPIV3Schema"]
        parameters = ", ".join(f"`{name}`" for name in schema.get("properties", {})) or "—"
        row = (
            f"| [{file.parent.name}]({policy_name(file)}/template.yaml) "
            f"| `{definition['names']['kind']}` | {parameters} | "
        )
        assert any(line.startswith(row) for line in page), row
