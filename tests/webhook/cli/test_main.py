"""The program itself: help, version, and command lines that cannot be understood."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.webhook.cli.commands import commands
from tests.webhook.cli.in_process import waddle as in_process
from tests.webhook.constraint.policies import constraint, pod, template
from webhook import __version__
from webhook.rego.builtins.families import HOMES


def test_help_names_every_subcommand():
    run = waddle("--help")

    assert run.returncode == 0
    for name in ("serve", "test", "verify"):
        assert f"  {name} " in run.stdout


def test_the_line_of_each_command_is_whole_in_a_narrow_terminal(monkeypatch):
    """Three were cut in the middle of a sentence."""
    monkeypatch.setenv("COLUMNS", "80")
    for group in sorted({name.rpartition(" ")[0] for name, _ in commands()}):
        lines = in_process(*group.split(), "--help").stdout.splitlines()
        assert [
            line for line in lines if not line.startswith("Usage") and line.endswith("...")
        ] == []


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
    """Returns the modules that are one of the packages, or inside one."""
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


def test_a_server_imports_no_library_of_which_it_needs_little():
    """Each costs every replica memory, and every start time."""
    code = "import sys, webhook.cli.main, webhook.app.process; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    little = ("cryptography", "difflib", "jinja2", "webhook.cel.engine", "webhook.console")
    assert below(run.stdout.split(), little) == []


def test_what_a_template_in_rego_reads_is_derived_without_the_engine_of_cel(tmp_path):
    path = tmp_path / "template.yaml"
    path.write_text(yaml.safe_dump(template()))
    code = (
        "import sys; from pathlib import Path\n"
        "from webhook.constraint.client import Client\n"
        "from webhook.constraint.drivers.reads import dependencies_of_evaluator\n"
        "from webhook.constraint.drivers.rego import RegoDriver\n"
        "from webhook.constraint.targets.known import TARGETS\n"
        "from webhook.policies.manifests import read_file\n"
        "client = Client(targets=TARGETS, drivers=[driver := RegoDriver()])\n"
        "client.add_template(read_file(Path(sys.argv[1]))[0].document)\n"
        "(template,) = client.usable_templates\n"
        "evaluator = driver.compile(template, template.code[0])\n"
        "assert dependencies_of_evaluator(evaluator, template, {}); print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )

    assert below(run.stdout.split(), ["webhook.cel.engine"]) == []


def test_a_check_imports_the_built_ins_that_its_policies_use_and_no_others(tmp_path):
    rego = 'package p\nviolation[{"msg": sprintf("%v", [1])}] { crypto.md5("x") != "" }'
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump_all([template(rego=rego), constraint(), pod()]))

    found = imported("test", "-f", path)

    families = {name for name in found if name in set(HOMES.values())}
    assert "webhook.rego.builtins.crypto" in families
    assert not below(found, ["cryptography", "webhook.rego.builtins.jwt", "http", "zoneinfo"])
    # Of objects what Gatekeeper's hook calls, which each template is checked with.
    assert families <= {
        f"webhook.rego.builtins.{name}" for name in ("crypto", "strings", "comparison", "objects")
    }


def test_the_version_is_the_packages():
    assert f"waddle, version {__version__}\n" == waddle("--version").stdout


def test_what_is_no_command_or_option_is_a_usage_error():
    for arguments in (["zork"], ["verify"], ["verify", "--zork", "."], ["test", "-o", "zork"]):
        run = waddle(*arguments)
        assert run.returncode == 64
        assert "Usage:" in run.stderr


@pytest.fixture
def checked(tmp_path):
    """A file with a policy and what it denies."""
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump_all([template(), constraint(), pod()]))
    return path


COMPILER = ["webhook.rego.program", "webhook.rego.check.checker", "webhook.rego.write.documents"]


def test_a_second_check_loads_what_the_first_has_compiled_and_says_the_same(checked, tmp_path):
    cache = {"WADDLE_CACHE": str(tmp_path / "cache")}
    first = waddle("test", "-f", checked, env={**os.environ, **cache})

    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.suffix == ".rego-code"
    assert below(imported("test", "-f", checked, environment=cache), COMPILER) == []
    again = waddle("test", "-f", checked, env={**os.environ, **cache})
    assert (again.stdout, again.returncode) == (first.stdout, first.returncode)
    assert first.returncode == 1


def test_the_cache_is_the_users_own_and_can_be_turned_off(checked, tmp_path):
    home = {name: value for name, value in os.environ.items() if name != "WADDLE_CACHE"}
    waddle("test", "-f", checked, env={**home, "XDG_CACHE_HOME": str(tmp_path / "xdg")})
    waddle("test", "-f", checked, env={**home, "XDG_CACHE_HOME": "", "HOME": str(tmp_path)})
    waddle("test", "-f", checked, env={**home, "HOME": str(tmp_path / "h"), "WADDLE_CACHE": ""})

    for folder in (tmp_path / "xdg", tmp_path / ".cache"):
        assert len(list((folder / "waddle" / "policies").iterdir())) == 1
        assert (folder / "waddle" / "policies").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "h").exists()


def test_a_cache_that_is_not_to_be_trusted_or_used_is_left_alone(checked, tmp_path):
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "file").write_text("")

    for name in ("open", "file", "file/below"):
        run = waddle(
            "test", "-f", checked, env={**os.environ, "WADDLE_CACHE": str(tmp_path / name)}
        )
        assert run.returncode == 1
        assert "Traceback" not in run.stderr
    assert list((tmp_path / "open").iterdir()) == []


def test_what_a_signal_cuts_short_is_written_to_its_end_where_python_does_not_buffer():
    """As in the image, which has PYTHONUNBUFFERED: half a report would be taken for the whole."""
    script = (
        "import atexit, signal, sys\n"
        "from webhook.cli.main import main\n"
        "atexit.register(lambda: signal.setitimer(signal.ITIMER_REAL, 0))\n"
        "signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
        "sys.argv = ['waddle', 'rego', 'eval', '--format', 'raw', 'concat(\"\", "
        '[s | numbers.range(1, 300000)[_]; s := "x"])\']\n'
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        written = b""
        # Slowly, so that it writes while it is interrupted.
        while piece := os.read(process.stdout.fileno(), 4096):
            written += piece
            select.select([], [], [], 0.01)
    assert process.returncode == 0
    assert written == b"x" * 300_000 + b"\n"
