"""The published wheel: one package with its types and data, and without the tests."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from webhook import __version__

DEMONSTRATION = "webhook/cli/demo/data/"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """The wheel of this repository, made as an installer makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build; hatchling.build.build_wheel({str(folder)!r})"
    subprocess.run(
        [sys.executable, "-c", build],
        cwd=ROOT,
        check=True,
        timeout=PATIENCE_SECONDS,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl")
    assert made.name == f"waddle_admission-{__version__}-py3-none-any.whl"
    return zipfile.ZipFile(made)


def described(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"waddle_admission-{__version__}.dist-info/{name}").decode()


def test_a_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    tracked = subprocess.run(
        ["git", "ls-files", "webhook"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    own = {
        line.removeprefix("webhook/") if line.startswith("webhook/waddle/") else line
        for line in tracked.stdout.splitlines()
        if (ROOT / line).exists()
    }
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert own <= files
    shipped = {name for name in files if name.startswith(DEMONSTRATION)}
    policies = {name for name in files if name.startswith("waddle/policies/")}
    added = {PurePosixPath(name) for name in files - own - shipped - policies}
    assert not [name for name in added if not (ROOT / name).is_file()]
    assert {name.parts[0] for name in added} <= {"webhook"}
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]
    assert {"webhook/py.typed", "webhook/__init__.pyi"} <= files
    assert any(not name.endswith((".py", ".pyi", "py.typed")) for name in files), "pages, styles"


def test_a_wheel_has_what_a_demonstration_needs(wheel):
    """CRDs and a control plane's sources, as they are in the repository, and no test."""
    shipped = {
        name.removeprefix(DEMONSTRATION): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith(DEMONSTRATION)
    }
    folders = ("manifests/crds", "manifests/reports/wgpolicyk8s", "tests/testcluster")
    tracked = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    assert shipped == {name: (ROOT / name).read_bytes() for name in tracked}
    assert {Path(name).suffix for name in shipped} == {".yaml", ".go", ".mod", ".sum", ".md"}


def test_a_wheel_has_the_library_of_policies_without_its_samples(wheel):
    shipped = {
        name.removeprefix("waddle/"): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("waddle/policies/")
    }
    tracked = subprocess.run(
        ["git", "ls-files", "policies"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    assert shipped == {
        name: (ROOT / name).read_bytes() for name in tracked if "/samples/" not in name
    }


def test_a_wheel_says_what_it_needs_and_brings_the_command(wheel):
    metadata = Parser().parsestr(described(wheel, "METADATA"))
    project = tomllib.loads(Path(ROOT / "pyproject.toml").read_text())["project"]

    assert metadata["Name"] == "waddle-admission", "`waddle` is a stranger's"
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata["License-Expression"] == "Apache-2.0"
    required = [one for one in metadata.get_all("Requires-Dist") or () if "extra ==" not in one]
    assert len(required) == len(project["dependencies"])
    assert set(metadata.get_all("Provides-Extra") or ()) == set(project["optional-dependencies"])
    assert "waddle = webhook.cli.main:main" in described(wheel, "entry_points.txt")
    assert described(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()
