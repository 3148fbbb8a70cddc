"""`waddle man` prints manual pages with the text of `--help`, as man shows them."""

import os
import shutil
import subprocess

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cli.commands import commands
from tests.webhook.cli.in_process import waddle

COMMANDS = [path for path, _ in commands()]


def shown(page: str) -> str:
    """A page as a reader sees it, without its margin."""
    man = shutil.which("man")
    if man is None:
        pytest.skip("no man here")
    done = subprocess.run(
        [man, "-l", "--warnings", "-"],
        input=page.encode(),
        env={**os.environ, "MANWIDTH": "200", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("words", [[], *(path.split() for path in COMMANDS)], ids=" ".join)
def test_a_page_has_the_text_of_help_word_for_word(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    helped = waddle(*words, "--help").stdout
    page = waddle("man", *words)

    assert page.returncode == 0
    seen = [line.strip() for line in shown(page.stdout).splitlines()]
    lines = [line.strip() for line in helped.splitlines()]
    assert " ".join(" ".join(lines).split()) in " ".join(" ".join(seen).split())


def test_a_folder_gets_the_pages_of_all_commands(tmp_path):
    assert waddle("man", "--directory", str(tmp_path / "man1")).returncode == 0
    written = {path.stem for path in (tmp_path / "man1").glob("*.1")}
    assert {f"waddle-{path.replace(' ', '-')}" for path in COMMANDS} | {"waddle"} <= written


@pytest.mark.parametrize("words", [["nothing"], ["rego", "nothing"], ["test", "more"]])
def test_a_command_that_is_not_there_is_a_usage_error(words):
    run = waddle("man", *words)
    assert run.returncode == 64
    assert f"no such command: waddle {' '.join(words)}" in run.stderr
