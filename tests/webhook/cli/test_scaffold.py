"""``waddle init`` and ``waddle new``: what they write can be used as it stands."""

import re

import pytest
import yaml

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle
from webhook import __version__


def test_a_new_folder_is_verified_tested_and_denies(tmp_path):
    made = waddle("init", "shop", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    verify, test = re.findall(r"^  (waddle .*)", made.stdout, re.MULTILINE)

    verified = waddle(*verify.split()[1:], cwd=tmp_path)
    assert "2 passed, 0 failed" in verified.stdout
    tested = waddle(*test.split()[1:], cwd=tmp_path)
    assert "the label owner is missing" in tested.stdout
    assert tested.returncode == 1
    assert waddle("check", "shop/policies", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("pipeline", "file"),
    [("github", ".github/workflows/policies.yaml"), ("gitlab", ".gitlab-ci.yml"), ("none", "")],
)
def test_the_pipeline_s_commands_run_as_they_stand(pipeline, file, tmp_path):
    assert waddle("init", "--pipeline", pipeline, cwd=tmp_path).returncode == 0
    if not file:
        assert {one.name for one in tmp_path.iterdir()} == {"policies", "manifests"}
        return
    document = yaml.safe_load((tmp_path / file).read_text())
    job = document["jobs"]["policies"] if pipeline == "github" else document["policies"]
    lines = job["script"] if pipeline == "gitlab" else [one.get("run", "") for one in job["steps"]]
    commands = [line.partition(" <")[0].split()[1:] for line in lines if line.startswith("waddle ")]

    assert [command[0] for command in commands] == ["verify", "test"]
    assert [waddle(*command, cwd=tmp_path).returncode for command in commands] == [0, 1]


def test_the_pipeline_installs_a_wheel_of_this_checkout(tmp_path):
    """From an index it would install what is published there; this was installed from a folder."""
    made = waddle("init", cwd=tmp_path)
    wheel = f"waddle_admission-{__version__}-py3-none-any.whl"

    text = (tmp_path / ".github" / "workflows" / "policies.yaml").read_text()
    assert f'pip install "./{wheel}"' in text
    assert made.stdout.endswith(f"  pip wheel --no-deps --wheel-dir . {ROOT}\n")
    assert wheel in made.stdout
    assert "wheel" not in waddle("init", "x", "--pipeline=none", cwd=tmp_path).stdout


def test_nothing_that_is_there_is_overwritten(tmp_path):
    waddle("init", cwd=tmp_path)
    template = tmp_path / "policies" / "required-owner" / "template.yaml"
    template.write_text("mine")
    (tmp_path / "manifests" / "deployment.yaml").unlink()

    again = waddle("init", cwd=tmp_path)

    assert again.returncode == 1
    assert "exists already: nothing was written" in again.stderr
    assert template.read_text() == "mine"
    assert not (tmp_path / "manifests" / "deployment.yaml").exists()


def test_each_new_thing_can_be_used(tmp_path):
    for given in (
        "template NoLatestTag",
        "constraint NoLatestTag",
        "constraint NoLatestTag only-in-shop",
        "suite NoLatestTag",
        "mutator no-token",
    ):
        made = waddle("new", *given.split(), cwd=tmp_path)
        assert (made.returncode, made.stderr) == (0, ""), given

    assert "2 passed, 0 failed" in waddle("verify", "policies", cwd=tmp_path).stdout
    checked = waddle("check", "policies", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    names = {file.name for file in (tmp_path / "policies" / "no-latest-tag").iterdir()}
    assert names == {
        "template.yaml",
        "constraint.yaml",
        "only-in-shop.yaml",
        "suite.yaml",
        "samples",
    }
    pod = tmp_path / "pod.yaml"
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {}\n")
    mutated = waddle("mutate", "policies", "pod.yaml", cwd=tmp_path).stdout
    assert "automountServiceAccountToken: false" in mutated


@pytest.mark.parametrize(
    "given", ["template noLatest", "template ../Up", "mutator No", "constraint Kind ../up"]
)
def test_names_that_no_object_has_are_refused(given, tmp_path):
    refused = waddle("new", *given.split(), cwd=tmp_path)

    assert refused.returncode == 64
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "policies").write_text("a file")

    finished = waddle("init", cwd=tmp_path)

    assert finished.returncode == 1
    assert "policies" in finished.stderr
