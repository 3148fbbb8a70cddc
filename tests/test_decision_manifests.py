"""The decision log's manifests: what they configure is accepted, what they alert on exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import ROOT
from webhook.decisions import configuration
from webhook.decisions.exporter import settings
from webhook.decisions.sidecar import settings as sidecar_settings

MANIFESTS = ROOT / "manifests" / "decisions"
FOLDERS = (
    *("sidecar", "persistent", "exporter", "vector"),
    *("audit-report", "gatekeeper-format", "exporter-gatekeeper-format", "alerts"),
)


def documents(path: Path) -> list[dict[str, Any]]:
    found = yaml.load_all(path.read_text(), yaml.CSafeLoader)
    return [document for document in found if document]


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
    monkeypatch.setenv("DECISIONS_OF", "webhook")
    section = configuration.parse(text.encode(), f"{folder}/{name}")
    if name == "exporter.yaml":
        found = settings.read_settings(section)
        assert found.acknowledged is (folder != "vector")
        assert found.address.scheme == ("grpc" if folder == "exporter" else "unix")
    elif name == "sidecar.yaml":
        if folder == "audit-report":  # a sink more, read after the sidecar's own file
            section = with_sidecar(section)
        found_sidecar = sidecar_settings.read_settings(section)
        adopts = not folder.startswith("exporter")
        assert (found_sidecar.adopt_after_seconds is not None) is adopts
        formats = {"gatekeeper-format": ["gatekeeper"], "audit-report": ["decision", "gatekeeper"]}
        formats["exporter-gatekeeper-format"] = ["gatekeeper"]
        assert [sink.format for sink in found_sidecar.sinks] == formats.get(folder, ["decision"])
    else:
        assert name == "vector.yaml"


def with_sidecar(section: configuration.Section) -> configuration.Section:
    (own,) = documents(MANIFESTS / "sidecar" / "configuration.yaml")
    values = yaml.safe_load(own["data"]["sidecar.yaml"])
    values["sinks"] += section.values["sinks"]
    return configuration.Section(values, "both")


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_names_files_that_exist_and_patches_what_the_base_has(folder: str) -> None:
    (kustomization,) = documents(MANIFESTS / folder / "kustomization.yaml")
    for name in kustomization.get("resources", ()):
        assert (MANIFESTS / folder / name).exists(), name
    for patch in kustomization.get("patches", ()):
        if "path" not in patch:
            target = patch.get("target") or yaml.safe_load(patch["patch"])["metadata"]
            assert target.get("kind", "Deployment") == "Deployment"
            assert re.match(r"waddle-(\(webhook\|audit\)|webhook|audit|exporter)$", target["name"])
            continue
        for document in documents(MANIFESTS / folder / patch["path"]):
            if document["kind"] == "Deployment":
                assert document["metadata"]["name"] in ("waddle-webhook", "waddle-audit")


@pytest.mark.parametrize("of", ["webhook", "audit"])
@pytest.mark.parametrize("folder", ["sidecar", "vector"])
def test_a_sidecar_outlives_the_server(folder: str, of: str) -> None:
    """A native sidecar: restartPolicy Always, and every mount is a volume."""
    (document,) = documents(MANIFESTS / folder / f"{of}.yaml")
    spec = document["spec"]["template"]["spec"]
    (sidecar,) = spec["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    if folder == "sidecar":  # a mistake in its configuration must not keep the server from starting
        assert sidecar["args"][:2] == ["sidecar", "--wait"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in (sidecar, *spec["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    assert sidecar["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    "path", sorted(MANIFESTS.glob("*/webhook.yaml")), ids=lambda p: p.parent.name
)
def test_no_missing_secret_of_the_decision_log_keeps_a_replica_from_starting(path: Path) -> None:
    """A server without a certificate decides, and tries again until there is one."""
    (document,) = documents(path)
    for volume in document["spec"]["template"]["spec"]["volumes"]:
        assert volume.get("secret", {"optional": True})["optional"] is True, volume["name"]


def test_the_base_exports_nothing() -> None:
    """The decision log is off unless it is chosen."""
    for path in (ROOT / "manifests" / "base").glob("*.yaml"):
        assert "decision-log" not in path.read_text()


@pytest.mark.parametrize(
    ("of", "format_"),
    [("sidecar", "gatekeeper-format"), ("exporter", "exporter-gatekeeper-format")],
)
def test_gatekeeper_s_format_changes_the_format_and_nothing_else(of: str, format_: str) -> None:
    own, other = (
        yaml.safe_load(
            documents(MANIFESTS / folder / "configuration.yaml")[0]["data"]["sidecar.yaml"]
        )
        for folder in (of, format_)
    )
    for sink in own["sinks"]:
        sink["format"] = "gatekeeper"
    assert other == own
