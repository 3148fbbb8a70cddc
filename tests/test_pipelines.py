"""The action and the template for pipelines: their own commands, run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from tests.webhook.constraint.policies import constraint, pod, template

PIPELINES = ROOT / "manifests" / "pipelines"
PAGE = (ROOT / "docs" / "pipelines.md").read_text()
EXAMPLES = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
]
SUBMODULE = "./waddle"


@pytest.fixture
def repository(tmp_path):
    """A checkout: policies, and a pod that they deny."""
    for name, documents in (
        ("policies", [template(), constraint(match={"kinds": [{"kinds": ["Pod"]}]})]),
        ("apps", [pod()]),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.yaml").write_text(yaml.safe_dump_all(documents))
    return tmp_path


def ran(shell, script, folder, environment):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [shell, "-e", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_the_action_annotates_and_leaves_sarif(repository):
    action = yaml.safe_load((PIPELINES / "github" / "action.yml").read_text())
    install, check = action["runs"]["steps"]
    given = {"policies": "policies", "files": "apps"}
    inputs = {
        f"${{{{ inputs.{name} }}}}": given.get(name, input_.get("default"))
        for name, input_ in action["inputs"].items()
    }
    environment = {name: inputs[value] for name, value in check["env"].items()}

    run = ran("bash", check["run"], repository, environment)

    assert run.returncode == 1, run.stderr
    assert "::error " in run.stdout
    (sarif,) = json.loads((repository / "waddle.sarif").read_text())["runs"]
    assert len(sarif["results"]) == 1
    assert action["outputs"]["sarif"]["value"] == "${{ inputs.sarif }}"
    folder = PIPELINES / "github" / install["run"].split("PATH}/")[1].rstrip('"')
    assert (folder / "pyproject.toml").is_file(), "it installs this repository"


def test_the_template_leaves_junit_and_sarif(repository):
    job = yaml.safe_load((PIPELINES / "gitlab" / "waddle.yml").read_text())[".waddle-test"]
    environment = {**job["variables"], "WADDLE_FILES": "apps"}

    run = ran("sh", "\n".join(job["script"]), repository, environment)

    assert run.returncode == 1, run.stderr
    assert "1 violation " in run.stdout
    report = ET.parse(repository / job["artifacts"]["reports"]["junit"]).getroot()
    assert report.findall(".//failure")
    for path in job["artifacts"]["paths"]:
        assert json.loads((repository / path).read_text())["runs"]
    (repository / "apps" / "all.yaml").write_text(yaml.safe_dump(pod(namespace="spared")))
    (repository / "policies" / "all.yaml").write_text(
        yaml.safe_dump_all([template(), constraint(enforcementAction="warn")])
    )
    assert ran("sh", "\n".join(job["script"]), repository, environment).returncode == 0


def test_the_action_s_paths_are_no_shell(repository):
    action = yaml.safe_load((PIPELINES / "github" / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"], "an input within a script is the script's author"


def test_the_page_has_nothing_to_fill_in():
    """Each line works as it is written, in a repository with Waddle as a submodule."""
    assert not re.findall(r"\b(?:OWNER|REPOSITORY|VERSION)\b|\bURL of\b", PAGE)


def test_the_page_s_action_is_in_the_submodule():
    (steps,) = (one["steps"] for one in EXAMPLES if "steps" in one)
    (action,) = (one for one in steps if str(one["uses"]).startswith(SUBMODULE))
    folder = ROOT / action["uses"].removeprefix(f"{SUBMODULE}/")

    assert set(action["with"]) <= set(yaml.safe_load((folder / "action.yml").read_text())["inputs"])


def test_the_page_s_job_sets_what_the_template_reads():
    (page,) = (one for one in EXAMPLES if "include" in one)
    job = yaml.safe_load((PIPELINES / "gitlab" / "waddle.yml").read_text())[".waddle-test"]
    given = {name for name in page["policies"]["variables"] if name.startswith("WADDLE_")}

    assert given <= set(job["variables"])
    assert job["variables"]["WADDLE_PACKAGE"] == SUBMODULE


def test_the_page_s_hooks_are_there():
    own = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    local, repository = (repo for one in EXAMPLES for repo in one.get("repos", ()))

    assert {hook["id"] for hook in repository["hooks"]} <= {hook["id"] for hook in own}
    assert repository["repo"] == SUBMODULE
    (hook,) = local["hooks"]
    assert hook["entry"].startswith("waddle test ")
