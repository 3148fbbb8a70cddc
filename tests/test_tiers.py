"""Fixtures that tests share end with the last of these tests, in one process and in a worker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT

CONFTEST = """
from pathlib import Path

import pytest

LOG = Path(__file__).with_name("log")


def say(text):
    with LOG.open("a") as log:
        log.write(text + "\\n")


@pytest.fixture(scope="session")
def base():
    say("base begins")
    yield
    say("base ends")


@pytest.fixture(scope="session")
def on_base(base):
    say("on_base begins")
    yield
    say("on_base ends")


@pytest.fixture(scope="session")
def other():
    say("other begins")
    yield
    say("other ends")
    assert not Path(__file__).with_name("fail").exists()


@pytest.fixture(autouse=True)
def told(request):
    say(request.node.name)
"""
FILES = {
    "conftest.py": CONFTEST,
    "test_first.py": "def test_1(base): ...\ndef test_2(other): ...\n",
    "test_second.py": "def test_3(on_base): ...\ndef test_4(other): ...\n",
    "test_third.py": "def test_5(): ...\ndef test_6(request): request.getfixturevalue('base')\n",
}
SHARED = (
    *("base begins", "test_1", "on_base begins", "test_3", "on_base ends", "base ends"),
    *("other begins", "test_2", "test_4", "other ends"),
)
ALONE = ("test_5", "test_6", "base begins", "base ends")
ONE_PROCESS, A_WORKER = (), ("--numprocesses=1", "--dist=loadgroup", "--no-loadscope-reorder")


def run(folder: Path, *options: str) -> str:
    """Runs the small suite with the tiers; returns what pytest says."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  programs\n  slow\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.tiers", "-p", "xdist", *options]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    finished = subprocess.run(
        [*command, f"--rootdir={folder}", str(folder)],
        cwd=ROOT,
        env={**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.stdout


@pytest.mark.parametrize("options", [ONE_PROCESS, A_WORKER], ids=["one process", "a worker"])
def test_what_tests_share_ends_with_the_last_of_them(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A fixture that a later test needs, without saying so before, is set up again."""
    assert "6 passed" in run(tmp_path, *options)
    assert (tmp_path / "log").read_text().split("\n")[:-1] == [*SHARED, *ALONE]


def test_an_end_that_fails_is_an_error_of_the_last_of_them(tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    printed = run(tmp_path)
    assert "6 passed, 1 error" in printed
    assert "ERROR at teardown of test_4" in printed
    assert (tmp_path / "log").read_text().split("\n")[:-1] == [*SHARED, *ALONE]
