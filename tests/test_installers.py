"""The command, installed by those who keep each program in an environment of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installers import NO_NETWORK
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from webhook import __version__

INSTALLERS = {
    "pipx": (sys.executable, "-m", "pipx", "install", "."),
    "uv": (Path(sys.executable).with_name("uv"), "tool", "install", "."),
}

POD = """
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: default}
spec:
  containers:
    - {name: app, image: "registry.example/app:1", securityContext: {privileged: true}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("installer", INSTALLERS)
def test_what_an_installer_installs_says_what_it_is_and_tests(
    installer: str, tmp_path: Path
) -> None:
    places = {
        **dict.fromkeys(("PIPX_BIN_DIR", "UV_TOOL_BIN_DIR"), str(tmp_path / "bin")),
        **dict.fromkeys(("PIPX_HOME", "UV_TOOL_DIR"), str(tmp_path / "home")),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
    }
    done = subprocess.run(
        INSTALLERS[installer],
        cwd=ROOT,
        env={**os.environ, **places},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    if NO_NETWORK.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr

    def waddle(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "bin" / "waddle", *arguments],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    finished = waddle("version")
    assert finished.returncode == 0, finished.stderr
    assert re.search(rf"^waddle +{re.escape(__version__)}$", finished.stdout, re.MULTILINE)
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD)
    tested = waddle("test", "-f", ROOT / "policies", "-f", pod)
    assert tested.returncode == 1, tested.stderr
    assert "securityContext.privileged must not be true" in tested.stdout
