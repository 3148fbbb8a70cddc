"""The program itself: help, version, and command lines that cannot be understood."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.webhook.cli.test_exit_codes import commands
from tests.webhook.constraint.policies import constraint, pod, template
from webhook import __version__
from webhook.rego.builtins.families import HOMES


def test_help_names_every_subcommand():
    run = waddle("--help")

    assert run.returncode == 0
    for name in ("serve", "test", "verify"):
        assert f"  {name} " in run.stdout


HEAVY = (
    "webhook.rego.engine",
    "webhook.rego.syntax",
    "webhook.constraint.client",
    "webhook.decisions.sidecar.process",
    "aiohttp",
)
HEAVIER = (*HEAVY, "webhook.rego", "yaml", "re2", "cryptography", "webhook.policies")
"""Modules and packages that take long to import."""


def imported(*arguments, environment=None):
    """The modules that a run in a process of its own has imported at its end."""
    script = (
        "import atexit, sys; sys.argv = ['waddle', *sys.argv[1:]]\n"
        "atexit.register(lambda: print('\\n' + ' '.join(sys.modules)))\n"
        "from webhook.cli.main import main; main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    assert "Traceback" not in run.stderr
    return run.stdout.splitlines()[-1].split()


def below(modules, packages):
    """Those of the modules that are one of the packages, or in one."""
    return [
        name
        for name in modules
        if any(name == item or name.startswith(f"{item}.") for item in packages)
    ]


@pytest.mark.parametrize("path", [path for path, _ in commands() if not path.startswith("rego ")])
def test_help_imports_nothing_heavy(path):
    assert below(imported(*path.split(), "--help"), HEAVIER) == []


@pytest.mark.parametrize("typed", ["waddle te", "waddle test --o", "waddle check --"])
def test_completion_imports_nothing_heavy(typed):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}

    assert (
        below(imported(environment={"_WADDLE_COMPLETE": "bash_complete", **words}), HEAVIER) == []
    )


@pytest.mark.parametrize("command", ["test", "check", "verify"])
def test_a_mistyped_option_imports_nothing_heavy_and_a_missing_file_no_engine(command, tmp_path):
    assert below(imported(command, "--zork"), HEAVIER) == []
    given = [tmp_path / "none.yaml"] if command == "verify" else ["-f", tmp_path / "none.yaml"]
    assert below(imported(command, *given), HEAVY) == []


def test_a_check_imports_the_built_ins_that_its_policies_use_and_no_others(tmp_path):
    rego = 'package p\nviolation[{"msg": sprintf("%v", [1])}] { crypto.md5("x") != "" }'
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump_all([template(rego=rego), constraint(), pod()]))

    found = imported("test", "-f", path)

    families = {name for name in found if name in set(HOMES.values())}
    assert "webhook.rego.builtins.crypto" in families
    assert not below(found, ["cryptography", "webhook.rego.builtins.jwt", "http", "zoneinfo"])
    assert families <= {
        f"webhook.rego.builtins.{name}" for name in ("crypto", "strings", "comparison")
    }


def test_the_version_is_the_packages():
    assert f"waddle, version {__version__}\n" == waddle("--version").stdout


def test_what_is_no_command_or_option_is_a_usage_error():
    for arguments in (["zork"], ["verify"], ["verify", "--zork", "."], ["test", "-o", "zork"]):
        run = waddle(*arguments)
        assert run.returncode == 64
        assert "Usage:" in run.stderr
