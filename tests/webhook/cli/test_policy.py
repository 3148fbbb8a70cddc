"""waddle policy, and --image: policies that come from a registry."""

from __future__ import annotations

import json

import pytest

from tests.oci_registry import digest_of, serving
from tests.policies import constraint, template
from tests.webhook.cli.in_process import waddle

LABELS = """
package k8srequiredlabels

violation[{"msg": "no owner"}] { not input.review.object.metadata.labels.owner }
"""
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}


@pytest.fixture
def registry():
    with serving() as served:
        yield served


@pytest.fixture
def image(registry, tmp_path):
    """A reference to policies that were pushed, with the options to reach them."""
    folder = tmp_path / "policies"
    (folder / "labels").mkdir(parents=True)
    (folder / "labels" / "template.yaml").write_text(
        json.dumps(template("K8sRequiredLabels", LABELS))
    )
    (folder / "constraint.json").write_text(json.dumps(constraint("K8sRequiredLabels", "owner")))
    (folder / "README.md").write_text("no policy")
    image = f"{registry.host}/team/policies:v1"
    pushed = waddle("policy", "push", image, "-f", folder, *near(registry))
    assert pushed.returncode == 0, pushed.stderr
    return image


def near(registry):
    return "--registry-insecure", registry.host


def test_what_was_pushed_is_pulled_and_has_one_digest(registry, image, tmp_path):
    pulled = waddle("policy", "pull", image, "-d", tmp_path / "out", *near(registry))

    content, _ = registry.manifests["team/policies", "v1"]
    assert pulled.stdout == f"{image}@{digest_of(content)}\n"
    written = sorted(
        str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*")
    )
    assert written == ["constraint.json", "labels", "labels/template.yaml"]
    again = waddle("policy", "push", image, "-f", tmp_path / "policies", *near(registry))
    assert again.stdout == pulled.stdout


def test_a_file_that_differs_is_replaced_only_where_that_is_said(registry, image, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "constraint.json").write_text("mine")

    refused = waddle("policy", "pull", image, "-d", out, *near(registry))
    assert (refused.returncode, (out / "constraint.json").read_text()) == (1, "mine")
    assert "exists and differs" in refused.stderr
    assert (
        waddle("policy", "pull", image, "-d", out, "--overwrite", *near(registry)).returncode == 0
    )
    assert (out / "constraint.json").read_text() != "mine"


def test_policies_that_cannot_be_used_are_not_pushed(registry, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text(json.dumps(template("K8sBroken", "package k8sbroken\nviolation[{")))

    run = waddle("policy", "push", f"{registry.host}/a/b", "-f", broken, *near(registry))

    assert run.returncode == 1
    assert "K8sBroken" in run.stderr or "k8sbroken" in run.stderr
    assert not registry.requests


def test_a_policy_that_is_not_pushed_is_named_with_its_line(registry, tmp_path):
    """Only its name was reported."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("\n\n" + json.dumps(template("K8sBroken", "package k8sbroken\nviolation[{")))

    run = waddle("policy", "push", f"{registry.host}/a/b", "-f", broken, *near(registry))

    assert f"{broken}:3: ConstraintTemplate/k8sbroken: " in run.stderr


def test_files_without_a_policy_are_not_pushed(registry, tmp_path):
    """A folder of manifests was pushed for one of policies."""
    (tmp_path / "pod.json").write_text(json.dumps(POD))

    run = waddle("policy", "push", f"{registry.host}/a/b", "-f", tmp_path, *near(registry))

    assert (run.returncode, run.stderr) == (1, "nothing to push: the files have no policy\n")
    assert not registry.requests
    (tmp_path / "lib.rego").write_text("package lib\n")
    run = waddle("policy", "push", f"{registry.host}/a/b", "-f", tmp_path, *near(registry))
    assert run.returncode == 0


def test_resources_are_tested_against_an_image(registry, image, tmp_path):
    (tmp_path / "pod.json").write_text(json.dumps(POD))

    run = waddle("test", "--image", image, "-f", tmp_path / "pod.json", *near(registry))

    assert run.returncode == 1
    assert "no owner" in run.stdout


def test_an_image_is_checked_and_verified(registry, image):
    checked = waddle("check", "--image", image, *near(registry))
    verified = waddle("verify", "--image", image, *near(registry))

    assert checked.returncode == 0
    assert "2 policies can be used" in checked.stdout
    assert verified.returncode == 2
    assert "no test suite found" in verified.stderr


@pytest.mark.parametrize(("command", "code"), [("test", 1), ("verify", 1), ("check", 2)])
def test_an_image_that_is_not_there_is_named(registry, command, code):
    run = waddle(command, "--image", f"{registry.host}/team/none:v1", *near(registry))

    assert run.returncode == code
    assert "team/none:v1" in run.stderr
    assert "404" in run.stderr


def test_a_registry_without_tls_is_asked_only_by_name(registry, image):
    run = waddle("policy", "pull", image)

    assert run.returncode == 2
    assert "for a registry without TLS give --registry-insecure" in run.stderr


def test_a_secret_for_image_pulls_says_who_asks(registry, image, tmp_path):
    import base64

    registry.users = {"ann": "secret"}
    auths = {"auths": {registry.host: {"username": "ann", "password": "secret"}}}
    data = {".dockerconfigjson": base64.b64encode(json.dumps(auths).encode()).decode()}
    secret = tmp_path / "secret.yaml"
    secret.write_text(json.dumps({"apiVersion": "v1", "kind": "Secret", "data": data}))

    assert waddle("check", "--image", image, *near(registry)).returncode == 2
    run = waddle("check", "--image", image, "--registry-config", secret, *near(registry))
    assert run.returncode == 0, run.stderr


def test_verify_without_paths_and_images_is_a_mistake():
    run = waddle("verify")

    assert run.returncode == 64
    assert "Missing argument" in run.stderr


def test_a_registry_that_cannot_be_reached_takes_nothing(tmp_path):
    (tmp_path / "t.yaml").write_text(json.dumps(template("K8sRequiredLabels", LABELS)))

    near = ("--registry-insecure", "127.0.0.1:9")
    run = waddle("policy", "push", "127.0.0.1:9/a/b", "-f", tmp_path / "t.yaml", *near)

    assert run.returncode == 2
    assert run.stderr == "127.0.0.1:9/a/b: 127.0.0.1:9: Connection refused\n"
