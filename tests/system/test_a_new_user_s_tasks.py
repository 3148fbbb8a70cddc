"""Tasks of a new user, each a script in ``tests/tasks`` that runs in its own environment."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.behaviour.demonstrations import running
from tests.installers import NO_NETWORK
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT, Programs, of_the_system

TASKS = 10
SCRIPTS = sorted(
    (ROOT / "tests" / "tasks").glob("*.sh"), key=lambda file: int(file.name.partition("-")[0])
)

LONG_NAME = "temporary-files-of-somebody-whose-name-is-long" * 2
"""Below it no socket can be: the demonstration makes its own elsewhere."""

CPU_SECONDS_MAX = 60
"""From README to the first denial: installing takes some nine, the denial one."""

KEPT = ("PIP_", "UV_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "https_proxy", "no_proxy")
"""Of the environment: how packages are fetched here."""


class Laptop:
    """A folder, and an environment with no more than it needs."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        paths = (folder / "env" / "bin", Path(sys.executable).resolve().parent)
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PATH": f"{paths[0]}:{paths[1]}:/usr/local/bin:/usr/bin:/bin",
            "CHECKOUT": str(ROOT),
            **variables,
        }

    def type(self, script: Path) -> None:
        """Run a script; each of its commands must do what it says."""
        done = subprocess.run(
            ["sh", "-eu", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if NO_NETWORK.search(done.stderr):
            pytest.skip(f"no package registry can be reached: {done.stderr[-300:]}")
        assert done.returncode == 0, f"{script.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.timeout(900)  # all ten tasks are one: each goes on where the last one ended
@pytest.mark.slow(90)
def test_each_task_is_done_by_its_script(program: Programs, tmp_path: Path) -> None:
    numbers = [int(script.name.partition("-")[0]) for script in SCRIPTS]
    assert numbers == [*range(1, TASKS + 1)]
    if of_the_system("kubectl") is None:
        pytest.skip("no kubectl on this machine")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    laptop = Laptop(tmp_path, EXTRAS="")
    install, deny, *others = SCRIPTS
    laptop.type(install)
    laptop.type(deny)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert taken < CPU_SECONDS_MAX

    laptop.environment["EXTRAS"] = "[cluster]"
    laptop.type(install)
    folder = tmp_path / LONG_NAME
    folder.mkdir()
    with running(folder, f"--api-server={program('testcluster')}") as demonstration:
        demonstration.printed("(that is denied)")
        laptop.environment["KUBECONFIG"] = demonstration.printed("export KUBECONFIG=(.*)")
        laptop.environment["DECISIONS"] = (
            demonstration.printed(r"logs +(/\S+)/\*\.log") + "/decisions.jsonl"
        )
        for script in others:
            laptop.type(script)
