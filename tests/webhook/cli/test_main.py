"""The program itself: help, version, and command lines that cannot be understood."""

from __future__ import annotations

import subprocess
import sys

from tests.conformance.gatekeeper import waddle
from webhook import __version__


def test_help_names_every_subcommand():
    run = waddle("--help")

    assert run.returncode == 0
    for name in ("serve", "test", "verify"):
        assert f"  {name} " in run.stdout


def test_help_imports_no_subcommand():
    script = (
        "import sys; from webhook.cli.main import waddle\n"
        "waddle.main(['--help'], standalone_mode=False)\n"
        "print([name for name in sys.modules if name.startswith(('webhook.rego', 'yaml', 're2'))])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.splitlines()[-1] == "[]"


def test_the_version_is_the_packages():
    assert f"waddle, version {__version__}\n" == waddle("--version").stdout


def test_what_is_no_command_or_option_is_a_usage_error():
    for arguments in (["zork"], ["verify"], ["verify", "--zork", "."], ["test", "-o", "zork"]):
        run = waddle(*arguments)
        assert run.returncode == 64
        assert "Usage:" in run.stderr
