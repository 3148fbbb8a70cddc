"""``make release``: what it makes is whole, agrees with itself, and can be used."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from tests.release import CannotRelease, chart, cut, notes_of
from webhook import __version__

REPOSITORY = "https://git.example/people/waddle"


def run(*command, cwd, check=True):
    return subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=check,
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A release of a clone: no tag is set here."""
    clone = tmp_path_factory.mktemp("release") / "clone"
    run("git", "clone", "--quiet", ROOT, clone, cwd=ROOT)
    for name in (".venv", ".venv-sbom"):
        if not (ROOT / name / ".done").exists():
            pytest.skip(f"{name} is not made: make release makes it")
        (clone / name).symlink_to(ROOT / name)
    (clone / ".git" / "info" / "exclude").write_text(".venv\n.venv-sbom\n")
    for key, value in (("user.name", "a"), ("user.email", "a@example.invalid")):
        run("git", "config", key, value, cwd=clone)
    done = run(
        sys.executable, "-m", "tests.release", "dist/release", REPOSITORY, cwd=clone, check=False
    )
    if "No matching distribution" in done.stderr or "kubectl" in done.stderr:
        pytest.skip(f"it needs a package registry and kubectl: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return clone / "dist" / "release"


@pytest.mark.slow(60)
def test_a_release_is_whole_and_agrees_with_itself(released):
    names = {file.name for file in released.iterdir()}
    packages = {f"waddle_admission-{__version__}{end}" for end in (".tar.gz", "-py3-none-any.whl")}
    papers = {"SHA256SUMS", "notes.md", "provenance.intoto.json", "sbom.cdx.json"}
    assert names == packages | papers | {"waddle.pyz", "install.yaml", f"waddle-{__version__}.tgz"}

    sums = dict(
        reversed(line.split()) for line in (released / "SHA256SUMS").read_text().splitlines()
    )
    assert sums.keys() == names - {"SHA256SUMS", "provenance.intoto.json"}
    for name, digest in sums.items():
        assert hashlib.sha256((released / name).read_bytes()).hexdigest() == digest
    statement = json.loads((released / "provenance.intoto.json").read_text())
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == sums
    wheel = released / f"waddle_admission-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(f"waddle_admission-{__version__}.dist-info/METADATA").decode()
    assert f"Project-URL: Source, {REPOSITORY}\n" in metadata
    assert f"]({REPOSITORY}/blob/main/docs/" in metadata, "on an index links are whole"
    assert "OWNER/REPOSITORY" not in metadata
    assert REPOSITORY in (released / "notes.md").read_text()
    (source,) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    tagged = run("git", "rev-list", "-n", "1", f"v{__version__}", cwd=released).stdout.strip()
    assert source == {"uri": f"git+{REPOSITORY}", "digest": {"gitCommit": tagged}}

    components = json.loads((released / "sbom.cdx.json").read_text())["components"]
    assert {"kubernetes", "cryptography"} <= {one["name"] for one in components}
    objects = list(yaml.safe_load_all((released / "install.yaml").read_text()))
    images = {
        container["image"]
        for one in objects
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"REGISTRY/waddle:{__version__}"}

    run(released / "waddle.pyz", "init", "shop", cwd=released.parent)
    tested = run(
        *(released / "waddle.pyz", "test", "shop/policies", "shop/manifests"),
        cwd=released.parent,
        check=False,
    )
    assert "the label owner is missing" in tested.stdout
    assert tested.returncode == 1


@pytest.mark.slow(60)
def test_a_second_release_of_a_version_says_why_there_is_none(released):
    clone = released.parents[1]
    again = run(sys.executable, "-m", "tests.release", released, cwd=clone, check=False)
    assert "is not empty" in again.stderr
    run("git", "commit", "--allow-empty", "-m", "more", cwd=clone)
    other = run(sys.executable, "-m", "tests.release", "dist/other", cwd=clone, check=False)
    assert f"v{__version__} is another commit" in other.stderr


def test_notes_are_the_version_s_section():
    notes = notes_of(
        "# C\n\n## 2.0.0\n\nlater\n\n## 1.0.0 (a day)\n\n- one\n\n## 0.9\n\nold", "1.0.0"
    )

    assert notes.startswith("# Waddle 1.0.0\n\n- one\n\n## To publish this")
    assert "REPOSITORY=" in notes, "nobody said where it is published"
    linked = notes_of("## 1.0.0\n", "1.0.0", REPOSITORY)
    assert f"`repo: {REPOSITORY}` and `rev: v1.0.0`" in linked
    assert "GitHub: `uses:" not in linked, "GitHub takes actions from nowhere else"
    at_github = notes_of("## 1.0.0\n", "1.0.0", "https://github.com/people/waddle")
    assert "`uses: people/waddle/manifests/pipelines/github@v1.0.0`" in at_github
    with pytest.raises(CannotRelease, match=r"no section 3\.0\.0"):
        notes_of("## 2.0.0\n", "3.0.0")


def test_a_release_names_no_place_that_is_none(tmp_path):
    with pytest.raises(CannotRelease, match="no address of a repository"):
        cut(tmp_path, "OWNER/REPOSITORY")


def test_the_packed_chart_has_files_in_place_of_links(tmp_path):
    chart(tmp_path / "chart.tgz")

    with tarfile.open(tmp_path / "chart.tgz") as packed:
        assert all(item.isfile() for item in packed)
        names = {item.name for item in packed}
    assert {"waddle/Chart.yaml", "waddle/values.yaml"} <= names
    assert any(name.startswith("waddle/crds/") for name in names)
    assert not [name for name in names if os.path.isabs(name)]  # noqa: PTH117  # names in an archive
