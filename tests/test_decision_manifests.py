"""The decision log's manifests: what they configure is accepted, what they alert on exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import ROOT
from webhook import metrics
from webhook.decisions import configuration, settings
from webhook.decisions.sidecar import settings as sidecar_settings

MANIFESTS = ROOT / "manifests" / "decisions"
FOLDERS = ("sidecar", "persistent", "exporter", "vector")


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def configurations() -> list[tuple[str, str, str]]:
    """Each file of each ConfigMap."""
    return [
        (folder, name, text)
        for folder in FOLDERS
        for path in sorted((MANIFESTS / folder).glob("*.yaml"))
        for document in documents(path)
        if document["kind"] == "ConfigMap"
        for name, text in document["data"].items()
    ]


@pytest.mark.parametrize(("folder", "name", "text"), configurations())
def test_each_configuration_is_accepted(
    folder: str, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_UID", "uid")
    section = configuration.parse(text.encode(), f"{folder}/{name}")
    if name == "exporter.yaml":
        found = settings.read_settings(section)
        assert found.acknowledged is (folder != "vector")
        assert found.address.scheme == ("grpc" if folder == "exporter" else "unix")
    elif name == "sidecar.yaml":
        found_sidecar = sidecar_settings.read_settings(section)
        assert (found_sidecar.adopt_after_seconds is not None) is (folder == "persistent")
    else:
        assert name == "vector.yaml"


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_names_files_that_exist_and_patches_what_the_base_has(folder: str) -> None:
    (kustomization,) = documents(MANIFESTS / folder / "kustomization.yaml")
    for name in kustomization["resources"]:
        assert (MANIFESTS / folder / name).exists(), name
    deployment = yaml.safe_load((ROOT / "manifests" / "base" / "deployment.yaml").read_text())
    assert deployment["metadata"]["name"] == "waddle-webhook"
    containers = deployment["spec"]["template"]["spec"]["containers"]
    assert containers[0]["name"] == "webhook"
    assert containers[0]["args"][0] == "serve"
    for patch in kustomization["patches"]:
        if "path" not in patch:
            assert patch["target"] == {"kind": "Deployment", "name": "waddle-webhook"}
            continue
        for document in documents(MANIFESTS / folder / patch["path"]):
            if document["kind"] == "Deployment":
                assert document["metadata"]["name"] == "waddle-webhook"


@pytest.mark.parametrize("folder", ["sidecar", "vector"])
def test_a_sidecar_outlives_the_server(folder: str) -> None:
    """A native sidecar: restartPolicy Always, and every mount is a volume."""
    (document,) = documents(MANIFESTS / folder / "container.yaml")
    spec = document["spec"]["template"]["spec"]
    (sidecar,) = spec["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in (sidecar, *spec["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True


def test_alerts_are_about_metrics_that_exist() -> None:
    text = (ROOT / "webhook" / "decisions" / "sidecar" / "metrics.py").read_text()
    known = {
        f"waddle_decisions_{name}"
        for name in re.findall(r'^\s+\(?"([a-z_]+)"[,:]', text, re.MULTILINE)
    }
    known |= {f"waddle_decisions_{name}" for name in re.findall(r'PREFIX \+ "([a-z_]+)"', text)}
    known |= {
        f"waddle_decisions_sink_{name}"
        for name in re.findall(r'^\s+"([a-z_]+)": "', text, re.MULTILINE)
    }
    known |= {metric.name for metric in metrics.METRICS}
    (document,) = documents(MANIFESTS / "alerts.yaml")
    used = set()
    for group in document["spec"]["groups"]:
        for rule in group["rules"]:
            used |= set(re.findall(r"waddle_\w+", rule["expr"]))
    assert used
    assert {name.removesuffix("_total") for name in used} <= known


def test_the_base_exports_nothing() -> None:
    """The decision log is off unless it is chosen."""
    for path in (ROOT / "manifests" / "base").glob("*.yaml"):
        assert "decision-log" not in path.read_text()
