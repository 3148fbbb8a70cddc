"""Waddle, conftest, gator and registries read each other's artifacts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests import policies
from tests.oci_registry import serving
from tests.patience import PATIENCE_SECONDS, until
from tests.ports import free_ports
from tests.webhook.cli.in_process import Run, waddle
from webhook.registry.client import RegistryClient
from webhook.registry.errors import RegistryError
from webhook.registry.manifest import (
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
    described,
    written_manifest,
)
from webhook.registry.reference import parse_reference
from webhook.registry.transport import RegistryOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.programs import Programs

REGO = 'package main\n\n# METADATA\n# title: None\ndeny contains "no" if true\n'
LABELS = 'package k8slabels\nviolation[{"msg": "no owner"}] { not input.review.object.x }\n'


@pytest.fixture(params=["ours", "theirs"])
def host(request: pytest.FixtureRequest, program: Programs) -> Iterator[str]:
    """A registry: of the tests, or go-containerregistry's."""
    with contextlib.ExitStack() as stack:
        if request.param == "ours":
            yield stack.enter_context(serving()).host
            return
        (port,) = free_ports(1)
        process = subprocess.Popen(
            [program("registry"), "-port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(process.wait, PATIENCE_SECONDS)
        stack.callback(process.kill)
        host = f"127.0.0.1:{port}"
        until(lambda: ask(host, "none") is not None, "the registry answers")
        yield host


def ask(host: str, name: str) -> str | None:
    """Returns the registry's error for a missing artifact; None if it does not answer."""

    async def run() -> str | None:
        async with RegistryClient(RegistryOptions(insecure=frozenset((host,)))) as client:
            try:
                await client.fetch(parse_reference(f"{host}/{name}"))
            except RegistryError as error:
                return str(error) if "404" in str(error) else None
            return ""

    return asyncio.run(run())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy" / "data").mkdir(parents=True)
    (tmp_path / "policy" / "main.rego").write_text(REGO)
    (tmp_path / "policy" / "data" / "a.yaml").write_text("a: 1\n")
    return tmp_path


def real(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def contents(folder: Path) -> dict[str, str]:
    return {
        str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()
    }


def test_the_real_conftest_pulls_what_we_push_and_we_what_it_pushes(host, folder, program):
    conftest = program("conftest")

    def ours(*arguments: str) -> Run:
        return waddle("conftest", *arguments, cwd=folder)

    pushed = ours("push", f"{host}/ours", "-p", "policy")
    assert pushed.returncode == 0, pushed.stderr
    pulled = real(conftest, folder, "pull", f"{host}/ours", "-p", "a")
    assert pulled.returncode == 0, pulled.stderr
    assert real(conftest, folder, "push", f"{host}/theirs:v1", "-p", "policy").returncode == 0
    mine = ours("pull", f"oci://{host}/theirs:v1", "-p", "b")
    assert mine.returncode == 0, mine.stderr

    files = {"policy/main.rego": REGO, "policy/data/a.yaml": "a: 1\n"}
    assert contents(folder / "a") == contents(folder / "b") == files


def test_gator_tests_against_what_we_push(host, tmp_path, program):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "t.yaml").write_text(json.dumps(policies.template("K8sLabels", LABELS)))
    (tmp_path / "p" / "c.yaml").write_text(json.dumps(policies.constraint("K8sLabels", "a")))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    (tmp_path / "pod.yaml").write_text(json.dumps(pod))
    image = f"{host}/team/policies:v1"
    near = ("--registry-insecure", host)
    assert waddle("policy", "push", image, "-f", tmp_path / "p", *near).returncode == 0

    theirs = real(program("gator"), tmp_path, "test", "--image", image, "-f", "pod.yaml")
    ours = waddle("test", "--image", image, "-f", tmp_path / "pod.yaml", *near)

    assert (theirs.returncode, ours.returncode) == (1, 1)
    assert "no owner" in theirs.stdout
    assert "no owner" in ours.stdout


@pytest.mark.parametrize("host", ["theirs"], indirect=True)
def test_what_refers_to_an_artifact_is_listed(host):
    async def run() -> list[Descriptor]:
        async with RegistryClient(RegistryOptions(insecure=frozenset((host,)))) as client:
            reference = parse_reference(f"{host}/team/app:v1")
            config = described(b"{}", "application/vnd.oci.empty.v1+json")
            await client.push_blob(reference, config, b"{}")
            image = written_manifest([], artifact_type="x/app", config=config)
            digest = await client.push_manifest(reference, image, OCI_MANIFEST)
            signature = written_manifest(
                [],
                artifact_type="x/signature",
                config=config,
                subject=Descriptor(OCI_MANIFEST, digest, len(image)),
            )
            signed = reference.at(described(signature, OCI_MANIFEST).digest)
            await client.push_manifest(signed, signature, OCI_MANIFEST)
            listed = await client.referrers(reference.at(digest))
            if listed:
                return listed
            # A registry without such lists: tools keep one by a tag.
            entry = described(signature, OCI_MANIFEST).document() | {"artifactType": "x/signature"}
            kept = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
            tag = parse_reference(f"{host}/team/app:{digest.replace(':', '-')}")
            await client.push_manifest(tag, json.dumps(kept).encode(), OCI_INDEX)
            return await client.referrers(reference.at(digest))

    (found,) = asyncio.run(run())

    assert found.artifact_type == "x/signature"


def test_a_page_of_annotations_and_results_in_another_format_are_the_real_ones(folder, program):
    conftest = program("conftest")
    (folder / "pod.yaml").write_text("a: 1\n")
    (folder / "page.tpl").write_text(
        "{{ range . }}{{ .Depth }} {{ .RegoPackageName }} {{ .Annotations.Title }}|{{ end }}"
    )
    results = real(conftest, folder, "test", "-o", "json", "pod.yaml").stdout
    (folder / "results.json").write_text(results)
    for arguments in (["doc", "policy"], ["doc", "-t", "page.tpl", "policy"]):
        theirs = real(conftest, folder, *arguments)
        page = (folder / "policy.md").read_text()
        (folder / "policy.md").unlink()
        ours = waddle("conftest", *arguments, cwd=folder)
        assert ours.returncode == theirs.returncode == 0
        assert (folder / "policy.md").read_text() == page
        (folder / "policy.md").unlink()
    for output in ("stdout", "json", "tap", "table", "github", "azuredevops", "other"):
        theirs = real(conftest, folder, "reformat", "-o", output, "results.json")
        ours = waddle("conftest", "reformat", "-o", output, "results.json", cwd=folder)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), output
