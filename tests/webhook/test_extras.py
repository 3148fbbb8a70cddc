"""A command that lacks an extra says how to install it from where this was installed."""

import json
import os
import subprocess
import sys

import pytest

from tests.programs import ROOT
from webhook import __version__
from webhook.extras import installed_from

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHOW = "from webhook.extras import install_command; print(install_command('cluster'))"


def command_of(folder, noted):
    """The command that an installation shows whose installer noted this."""
    info = folder / f"waddle_admission-{__version__}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: waddle-admission\nVersion: {__version__}\n"
    )
    if noted is not None:
        (info / "direct_url.json").write_text(noted)
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.parametrize(
    ("noted", "shown"),
    [
        (None, "waddle-admission[cluster]"),
        ("no JSON", "waddle-admission[cluster]"),
        ("[]", "waddle-admission[cluster]"),
        ({"url": f"{ROOT.as_uri()}", "dir_info": {}}, f"{ROOT}[cluster]"),
        ({"url": "file:///gone/a%20b.whl", "archive_info": {}}, "a b.whl[cluster]"),
        (
            {"url": "https://h/x.whl", "archive_info": {}},
            "waddle-admission[cluster] @ https://h/x.whl",
        ),
        (
            {"url": "https://h/x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"waddle-admission[cluster] @ git+https://h/x@{COMMIT}",
        ),
    ],
)
def test_each_source_of_an_installation_has_its_command(noted, shown, tmp_path):
    text = noted if noted is None or isinstance(noted, str) else json.dumps(noted)
    assert command_of(tmp_path, text) == f"pip install '{shown}'"


def test_this_environment_is_installed_from_the_checkout():
    assert installed_from()["url"] == ROOT.as_uri()
