"""The policies that come with the project: their suites, their default set, their shared modules."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Api, ApiError, Cluster
from tests.patience import PATIENCE_SECONDS
from tests.policy_library import (
    POLICIES,
    copied_modules,
    copied_variables,
    shared_modules,
    shared_variables,
    templates,
)
from tests.programs import Programs
from tests.webhook.cli.in_process import waddle
from webhook.cli.clients import new_client
from webhook.constraint.client import Client
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.review import AugmentedObject, Document
from webhook.constraint.targets.declared import read_target
from webhook.constraint.targets.known import ADMISSION_ALONE
from webhook.policies.directory import PolicyDirectory
from webhook.policies.manifests import read_values

SUITES = sorted(POLICIES.glob("*/*/suite.yaml"))
DOCKERFILE = POLICIES / "dockerfile" / "target.yaml"
FOR_CLUSTERS = ("general", "pod-security-baseline", "pod-security-restricted")
WITH_PROVIDER = "supply-chain"
"""Gatekeeper's gator has no providers to ask: of these it runs what asks none."""
FOR_FILES = [
    one for one in templates() if one.parent.parent.name not in (*FOR_CLUSTERS, WITH_PROVIDER)
]


def policy_name(template: Path) -> str:
    """Topic and name, as the folders have them."""
    return str(template.parent.relative_to(POLICIES))


@pytest.fixture(scope="module")
def default_set() -> Client:
    """Returns the policies of `waddle serve --policies policies`."""
    client = new_client()
    report = PolicyDirectory(client, [POLICIES]).load()
    assert report.faults == ()
    assert report.templates == len(templates())
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
    variables = shared_variables()
    for name, text in copied_variables(template).items():
        assert text == variables[name]


@pytest.mark.parametrize("template", templates(), ids=policy_name)
def test_a_policy_has_a_suite_that_allows_and_denies(template: Path) -> None:
    """A suite that only allows, or only denies, would pass with a policy that decides nothing."""
    suite = yaml.safe_load((template.parent / "suite.yaml").read_text())
    expected = {
        case["assertions"][0]["violations"] != "no"
        for test in suite["tests"]
        for case in test["cases"]
    }
    assert expected == {True, False}


BY_EACH_ENGINE = pytest.mark.parametrize("native", ["true", "false"], ids=["cel", "rego"])
"""Templates that have both languages are decided by CEL, or by Rego; all others by Rego."""


@BY_EACH_ENGINE
def test_every_suite_passes_in_waddle(native: str) -> None:
    """`waddle verify policies` finds every suite and no failure."""
    flag = f"--enable-k8s-native-validation={native}"
    finished = subprocess.run(
        [sys.executable, "-m", "webhook", "verify", flag, str(POLICIES)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.splitlines()[-1].startswith(f"{len(SUITES)} suites, ")


def of_both_engines() -> list[Path]:
    """The templates that have code in both languages."""
    return [
        one
        for one in templates()
        if len(yaml.load(one.read_text(), yaml.CSafeLoader)["spec"]["targets"][0]["code"]) > 1
    ]


def with_a_field_less(value: Any) -> Iterator[Any]:
    """A manifest without each of its fields and items in turn."""
    if isinstance(value, dict):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
            for item in with_a_field_less(value[name]):
                yield {**value, name: item}
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            yield [*value, one]
            for item in with_a_field_less(one):
                yield [*value[:index], item, *value[index + 1 :]]


@pytest.mark.parametrize("template", of_both_engines(), ids=policy_name)
def test_both_engines_say_the_same_of_samples_and_of_samples_without_any_field(
    template: Path,
) -> None:
    """Several messages of Rego are one message in CEL."""
    clients = [new_client(native_validation=native) for native in (True, False)]
    for client in clients:
        client.add_template(yaml.safe_load(template.read_text()))
    denied = 0
    for samples in sorted((template.parent / "samples").iterdir()):
        for client in clients:
            client.add_constraint(yaml.safe_load((samples / "constraint.yaml").read_text()))
        for file in sorted(samples.glob("*.yaml")):
            sample = yaml.safe_load(file.read_text())
            if file.name == "constraint.yaml" or sample["kind"] == "AdmissionReview":
                continue
            for manifest in (sample, *with_a_field_less(sample)):
                if not {"apiVersion", "kind", "metadata"} <= manifest.keys():
                    continue
                messages = [
                    sorted(
                        part
                        for text in messages_about(client, manifest)
                        for part in text.split("; ")
                    )
                    for client in clients
                ]
                assert messages[0] == messages[1], manifest
                denied += bool(messages[0])
    assert denied


def messages_about(client: Client, manifest: dict[str, Any]) -> list[str]:
    """Every message about an object."""
    return [text for found in findings(client, manifest).values() for text in found]


def test_at_least_these_templates_have_both_engines() -> None:
    assert {policy_name(one) for one in of_both_engines()} >= {
        "general/replicas",
        "general/required-labels",
        "pod-security-baseline/host-namespaces",
        "pod-security-baseline/host-path-volumes",
        "pod-security-baseline/privileged-containers",
        "pod-security-restricted/privilege-escalation",
    }


@BY_EACH_ENGINE
@pytest.mark.parametrize("folder", [*FOR_CLUSTERS, f"{WITH_PROVIDER}/vulnerability-reports"])
def test_every_suite_for_clusters_passes_in_gatekeeper(
    program: Programs, folder: str, native: str
) -> None:
    """The policies are Gatekeeper's too: the real gator agrees with every case."""
    flag = f"--enable-k8s-native-validation={native}"
    finished = subprocess.run(
        [program("gator"), "verify", flag, f"{POLICIES / folder}/..."],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    passed = sum(line.startswith("ok\t") for line in finished.stdout.splitlines())
    assert passed == len(list((POLICIES / folder).rglob("suite.yaml")))


def reviews(template: Path) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Each sample of a policy for files: its name, its constraint and what is reviewed of it."""
    (samples,) = (template.parent / "samples").iterdir()
    constraint = yaml.safe_load((samples / "constraint.yaml").read_text())
    for file in sorted(samples.iterdir()):
        if file.name != "constraint.yaml":
            for document in read_values(file):
                value = document.value
                for one in value["resource_changes"] if isinstance(value, dict) else [value]:
                    yield file.name, constraint, one


@pytest.mark.parametrize("template", FOR_FILES, ids=policy_name)
def test_every_policy_for_files_says_in_opa_what_it_says_here(
    program: Programs, tmp_path: Path, template: Path
) -> None:
    """The real OPA evaluates the same code about the same samples."""
    target = yaml.safe_load(template.read_text())["spec"]["targets"][0]
    source = target["code"][0]["source"]
    for number, text in enumerate([source["rego"], *source.get("libs", [])]):
        (tmp_path / f"{number}.rego").write_text(text)
    inputs = [
        {"review": value, "parameters": constraint.get("spec", {}).get("parameters", {})}
        for _, constraint, value in reviews(template)
    ]
    (tmp_path / "asked.json").write_text(json.dumps({"asked": inputs}))
    package = yaml.safe_load(template.read_text())["metadata"]["name"]
    query = f"[found | some one in data.asked; found := data.{package}.violation with input as one]"

    finished = subprocess.run(
        [program("opa"), "eval", "--data", str(tmp_path), "--format", "raw", query],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )

    client = new_client(targets=[read_target(yaml.safe_load(DOCKERFILE.read_text()))])
    client.add_template(yaml.safe_load(template.read_text()))
    ours: list[list[str]] = []
    for name, constraint, value in reviews(template):
        client.add_constraint(constraint)
        found = client.snapshot.review(Document(value, name, target["target"], name))
        assert not found.faults
        ours.append(sorted(result.msg for result in found.results))
    assert [sorted(one["msg"] for one in found) for found in json.loads(finished.stdout)] == ours
    assert any(ours)


@pytest.mark.parametrize("template", FOR_FILES, ids=policy_name)
def test_a_policy_for_files_names_the_source_of_its_rule(template: Path) -> None:
    """A number of a CIS benchmark or the vendor's page, in the template and on the page."""
    annotations = yaml.safe_load(template.read_text())["metadata"]["annotations"]
    source = annotations["metadata.waddle.dev/source"].strip().splitlines()
    assert source[-1].startswith("https://")
    page = (POLICIES / "README.md").read_text()
    row = next(line for line in page.splitlines() if f"({policy_name(template)}/" in line)
    assert all(line in row for line in source)


def test_the_sets_for_files_are_used_as_their_page_says(tmp_path: Path) -> None:
    """Each with the constraints beside it, from the command line."""
    plan = POLICIES / "terraform-aws/open-security-groups/samples/open-security-groups"
    dockerfile = POLICIES / "dockerfile/root-user/samples/root-user/Dockerfile.disallowed_root"
    for target, folder, file, message in (
        (
            "terraform",
            "terraform-aws",
            plan / "disallowed_ssh.json",
            "port 22 is open to 0.0.0.0/0",
        ),
        ("dockerfile.waddle.dev", "dockerfile", dockerfile, "USER root is root"),
    ):
        run = waddle(
            "test", f"--target={target}", "-f", POLICIES / folder, "-f", file, cwd=tmp_path
        )
        assert run.returncode == 1, run.stderr
        assert message in run.stdout


def test_a_server_checks_the_sets_for_files_and_asks_none_of_them() -> None:
    """`make run` serves all of policies/."""
    client = new_client(reviewed_targets=ADMISSION_ALONE)
    report = PolicyDirectory(client, [POLICIES]).load()
    assert report.faults == ()
    assert report.templates == len(templates()) - len(FOR_FILES)


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
    """Returns Pod Security admission's verdict; None if the API server finds the Pod invalid."""
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
