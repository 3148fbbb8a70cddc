"""docs/exceptions.md: what its files and commands do."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import split

import pytest
import yaml

from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "exceptions.md").read_text()
FILES = dict(re.findall(r"`(excused/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
TYPED = re.findall(r"^\$ waddle (.*)$", PAGE, re.MULTILINE)
(DENIAL,) = re.findall(r"`denial.txt`:\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(FILES) == 3
    (tmp_path / "excused").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "denial.txt").write_text(DENIAL)
    monkeypatch.chdir(tmp_path)


def test_one_container_is_excused_and_the_others_are_not() -> None:
    test, check, *_ = TYPED
    command = test
    done = waddle(*command.split())
    assert done.returncode == 1
    assert re.findall(r"^  (deny|excused) +\S+  (\w+)", done.stdout, re.MULTILINE) == [
        ("deny", "db"),
        ("excused", "agent"),
        ("excused", "agent"),
    ]
    command = check
    done = waddle(*command.split())
    assert "PolicyException shop/agent excuses 2 violations" in done.stdout


def test_check_counts_an_exception_that_excuses_nothing_too() -> None:
    """An exception with a misspelt container was not mentioned at all."""
    file = Path("excused/exception.yaml")
    file.write_text(file.read_text().replace("containers: [agent]", "containers: [agnet]"))
    done = waddle("check", "-f", "excused/")
    assert "PolicyException shop/agent excuses 0 violations" in done.stdout


def test_the_end_of_an_exception_is_named_beside_a_broken_one_with_a_longer_name() -> None:
    """The fault of ``agent2`` was taken for one of ``agent``, and nothing told of its end."""
    file = Path("excused/exception.yaml")
    ended = file.read_text().replace("2099-", "2020-")
    file.write_text(f"{ended}---\n{ended.replace('name: agent', 'name: agent2', 1)}  x: 1\n")
    done = waddle("test", "-f", "excused/")
    assert "PolicyException shop/agent2: unknown field" in done.stdout + done.stderr
    assert "PolicyException shop/agent: it ended at 2020-12-31T00:00:00Z" in done.stderr


def test_an_exception_for_a_refusal_lets_it_through() -> None:
    (command,) = (typed for typed in TYPED if typed.startswith("except"))
    made = waddle(*split(command))
    assert made.returncode == 0, made.stderr
    assert yaml.safe_load(made.stdout)["spec"]["reason"] == "moves in May"
    Path("excused/db.yaml").write_text(made.stdout)
    assert waddle("test", "-f", "excused/").returncode == 0
