"""The image: its steps of installing, run where no image can be built, and what its lines promise."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

LINES = [
    line
    for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]

NO_NETWORK = re.compile(r"name resolution|NewConnectionError|ConnectTimeout|ProxyError")


def lines(instruction: str) -> list[str]:
    """The arguments of an instruction, in order."""
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_images_are_named_by_a_whole_version() -> None:
    """A tag that moves would change what is built: a digest does not."""
    assert re.fullmatch(r"BASE=python:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}", lines("ARG")[0])
    for image in lines("FROM"):
        assert re.fullmatch(r"\$\{BASE\}( AS \w+)?", image)


def test_it_runs_as_a_user_without_rights() -> None:
    """A number that is not 0: the kubelet can check it before it runs the image."""
    (user,) = lines("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_every_package_is_installed_by_its_hash() -> None:
    """Packages of a registry have hashes; packages built here come from no registry."""
    installing = [step for step in lines("RUN") if re.search(r" pip (install|sync) ", step)]
    assert len(installing) == 4
    for step in installing:
        assert "--require-hashes" in step or "--no-index" in step


@pytest.mark.slow(40)
@pytest.mark.timeout(900)
def test_the_steps_of_installing_give_a_program_that_runs(tmp_path: Path) -> None:
    """The build stage's steps, in fresh folders, end in a `waddle` that explains itself."""
    build = tmp_path / "build"
    for step in (line for line in LINES if line.startswith(("COPY", "RUN"))):
        instruction, arguments = step.split(maxsplit=1)
        if arguments.startswith("--from"):
            break  # the second stage copies what the first one made
        if instruction == "COPY":
            copy(arguments.split(), build)
        else:
            run(arguments, build, tmp_path)
    bill = json.loads((tmp_path / "opt" / "waddle" / "sbom.cdx.json").read_text())
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    named = {part["name"].lower().replace("_", "-") for part in bill["components"]}
    assert bill["bomFormat"] == "CycloneDX"
    assert {"waddle-admission", "uvloop", "cryptography"} <= named
    assert named - {name.lower() for name in pinned} == {"waddle-admission"}  # and no installer
    waddle = tmp_path / "opt" / "waddle" / "bin" / "waddle"
    for words in (["--help"], ["serve", "--help"]):
        shown = subprocess.run(
            [waddle, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        assert "serve" in shown.stdout
    verified = subprocess.run(
        [waddle, "verify", ROOT / "policies" / "general" / "probes"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


def copy(names: list[str], build: Path) -> None:
    """COPY of files and folders; a folder's content goes into the target."""
    *sources, target = names
    for source in sources:
        if source.endswith("/"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, build / target, ignore=ignored)
        else:
            folder = build / target
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, folder)


def run(command: str, build: Path, root: Path) -> None:
    """RUN with this Python, absolute paths below a folder, and the installers' caches in use."""
    command = command.replace("/opt/", f"{root}/opt/")
    command = re.sub(r"--no-cache(-dir)? ", "", command)
    command = re.sub(r"^python ", f"{sys.executable} ", command)
    finished = subprocess.run(
        ["sh", "-ec", command], cwd=build, capture_output=True, text=True, timeout=600, check=False
    )
    if NO_NETWORK.search(finished.stderr):
        pytest.skip(f"no package registry can be reached: {finished.stderr[-300:]}")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("folder", ["/usr/local/lib/python3.11", "/opt/waddle/lib"])
def test_a_start_compiles_nothing_whatever_becomes_of_times(folder: str, tmp_path: Path) -> None:
    """Of Python's own modules, which the base image has as sources alone, and of ours and others.

    Nothing may be written where it runs, so that every start would compile them again.
    """
    (step,) = (one for one in lines("RUN") if " compileall " in one and one.endswith(folder))
    module = tmp_path / "module.py"
    module.write_text("WHAT = 'compiled'")
    run(step.replace(folder, str(tmp_path)), tmp_path, tmp_path)
    module.write_text("WHAT = 'another time, and another size'")
    shown = subprocess.run(
        [sys.executable, "-c", "import module; print(module.WHAT)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert shown.stdout == "compiled\n"


def test_the_library_that_is_compiled_is_that_of_the_image() -> None:
    """Another version of Python has it in another folder."""
    steps = [one for one in lines("RUN") if " compileall " in one]
    (compiled,) = {found for one in steps for found in re.findall(r"/python([\d.]+)", one)}
    assert lines("ARG")[0].startswith(f"BASE=python:{compiled}.")


def test_what_is_copied_is_not_ignored() -> None:
    """.dockerignore lets in what the build stage copies, and nothing else."""
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:].rstrip("/") for line in ignore if line.startswith("!")}
    copied = {
        name.rstrip("/") if name.startswith("tests/") else name.rstrip("/").partition("/")[0]
        for arguments in lines("COPY")
        if not arguments.startswith("--from")
        for name in arguments.split()[:-1]
    }
    assert copied == let_in
