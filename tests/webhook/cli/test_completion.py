"""Shells complete commands, flags and words by what `waddle completion` prints."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conformance.gatekeeper import waddle


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell):
    run = waddle("completion", shell)
    assert run.returncode == 0
    assert f"_WADDLE_COMPLETE={shell}_complete" in run.stdout


def test_another_shell_is_a_usage_error_that_names_those_there_are():
    run = waddle("completion", "tcsh")
    assert run.returncode == 64
    assert "'bash', 'zsh', 'fish'" in run.stderr


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("waddle ver", {"verify", "verify-image", "version"}),
        ("waddle rego ", {"check", "eval", "fmt", "parse", "test"}),
        ("waddle serve --polic", {"--policies"}),
        ("waddle serve --log-f", {"--log-file", "--log-format"}),
        ("waddle test --ta", {"--target"}),
        ("waddle completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_what_is_typed_is_completed(typed, expected):
    words = typed.split(" ")
    environment = {
        **os.environ,
        "_WADDLE_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    run = subprocess.run(
        [sys.executable, "-c", "from webhook.cli.main import main; main()"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert {line.partition(",")[2] for line in run.stdout.splitlines()} == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("waddle test -f poli", "file,poli\n"),
        ("waddle verify poli", "file,poli\n"),
        ("waddle serve --policies poli", "file,poli\n"),
        ("waddle rego eval -d poli", "file,poli\n"),
        ("waddle test -o x", "\n"),
        ("waddle nothing", "\n"),
    ],
)
def test_where_a_file_may_stand_the_shell_completes_files(typed, expected):
    """A shell without answers would complete nothing."""
    environment = {
        **os.environ,
        "_WADDLE_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    run = subprocess.run(
        [sys.executable, "-c", "from webhook.cli.main import main; main()"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.stdout == expected


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes_files_and_shows_what_a_command_does_to_its_end(tmp_path):
    (tmp_path / "waddle").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m webhook "$@"\n')
    (tmp_path / "waddle").chmod(0o755)
    (tmp_path / "policies").mkdir()
    (tmp_path / "waddle.fish").write_text(waddle("completion", "fish").stdout)
    script = "source waddle.fish; complete -C 'waddle conf'; complete -C 'waddle test -f poli'"
    run = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "conftest\tTest files of any format, as conftest does." in run.stdout
    assert "policies/" in run.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_takes_the_script():
    script = waddle("completion", "bash").stdout
    run = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p waddle"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "complete -o nosort -F _waddle_completion waddle\n"
