"""docs/external-data.md: its template is tried by the answers and the suite that it shows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.programs import ROOT
from tests.webhook.cli.in_process import waddle

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "external-data.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, each by the name that stands before it."""
    files = dict(re.findall(r"`(\w+\.yaml)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
    assert files.keys() == {
        f"{name}.yaml" for name in ("template", "constraint", "pod", "answers", "away", "suite")
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_command_of_the_page_finds_the_image_without_a_signature(folder: Path) -> None:
    (command,) = re.findall(r"^\$ waddle (.*--provider.*)$", PAGE, re.MULTILINE)
    typed = command.split()
    run = waddle(*typed, cwd=folder)
    assert run.returncode == 1
    assert "registry.example/db:v2: no signature" in run.stdout
    assert "1 violation" in run.stdout


def test_the_suite_of_the_page_passes(folder: Path) -> None:
    run = waddle("verify", "suite.yaml", cwd=folder)
    assert run.returncode == 0, run.stdout
    assert "2 cases" in run.stdout


def test_the_answers_of_the_page_are_those_that_a_provider_would_give(folder: Path) -> None:
    (response,) = (
        json.loads(one)["response"]
        for one in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
        if "ProviderResponse" in one
    )
    items = yaml.safe_load((folder / "answers.yaml").read_text())["items"]
    assert [{"key": key, **item} for key, item in items.items()] == response["items"]
