"""docs/groups.md: what it shows is typed, and says what the page says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.behaviour.serving import Server
from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "groups.md").read_text()
FILES = dict(re.findall(r"`(groups/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
TYPED = re.findall(r"^\$ waddle (.*)$", PAGE, re.MULTILINE)
LIBRARY = ("allowed-registries", "image-digests", "replicas")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name in LIBRARY:
        path = tmp_path / "policies" / "general" / name
        path.mkdir(parents=True)
        template = ROOT / "policies" / "general" / name / "template.yaml"
        (path / "template.yaml").write_text(template.read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed() -> list[str]:
    return [*TYPED[0].split(), "-f", "policies/general/replicas/template.yaml"]


def test_only_the_pod_that_is_neither_is_denied(folder: Path) -> None:
    done = waddle(*typed())
    assert done.returncode == 1, done.stderr
    message = "Use an image of registry.example.com, or name its digest."
    assert re.findall(r"Pod (\S+)\n  (\w+) +(\S+) +(.*)", done.stdout) == [
        ("shop/neither", "deny", "ConstraintGroup/images-we-trust", message)
    ]


def test_parameters_by_case_can_be_used(folder: Path) -> None:
    _, check = TYPED
    done = waddle(*check.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 policies can be used" in done.stdout


def test_the_details_are_those_of_the_page(folder: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (one,) = json.loads(waddle(*typed(), "-o", "json").stdout)
    members = one["metadata"]["details"]["members"]
    assert members["ours"] == json.loads(shown)["members"]["ours"]
    assert members.keys() == {"ours", "pinned"}


def test_the_suite_of_the_page_passes(folder: Path) -> None:
    (suite,) = (
        text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kind: Suite" in text
    )
    tried = folder / "tried"
    tried.mkdir()
    (tried / "suite.yaml").write_text(suite)
    (tried / "images.yaml").write_text(FILES["groups/images.yaml"])
    templates = [
        (folder / "policies" / "general" / name / "template.yaml").read_text() for name in LIBRARY
    ]
    (tried / "templates.yaml").write_text("\n---\n".join(templates))
    (tried / "neither.yaml").write_text(FILES["groups/pods.yaml"].split("\n---\n")[2])
    done = waddle("verify", tried)
    assert done.returncode == 0, done.stdout


def deployment(namespace: str, replicas: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "labels": labels},
        "spec": {"replicas": replicas},
    }


def test_a_server_decides_by_groups_of_files(folder: Path) -> None:
    with Server(folder).ready() as server:

        def answer(obj: dict[str, Any]) -> dict[str, Any]:
            return server.admit(obj, namespace=obj["metadata"]["namespace"])

        pods = list(yaml.safe_load_all(FILES["groups/pods.yaml"]))
        assert [answer(pod)["allowed"] for pod in pods] == [True, True, False]
        assert answer(deployment("shop", 1))["allowed"]
        assert not answer(deployment("prod-eu", 1))["allowed"]
        assert answer(deployment("prod-eu", 3))["allowed"]
        assert answer(deployment("prod-eu", 1, tier="batch"))["allowed"]
        refused = answer(deployment("shop", 9))
        assert "[replicas-by-stage]" in refused["status"]["message"]
