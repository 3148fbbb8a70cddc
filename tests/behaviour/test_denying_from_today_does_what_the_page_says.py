"""docs/deny-from-today.md: what it shows is typed, and says what the page says."""

import re
from pathlib import Path

import pytest
import yaml

from tests.behaviour.first_policy import FILES as FIRST
from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "deny-from-today.md").read_text()
FILES = dict(re.findall(r"`(ratchet/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
(TYPED,) = re.findall(r"^\$ waddle (test .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (FIRST | FILES).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def actions() -> list[str]:
    """Returns the results of the command for the Deployment's update."""
    return re.findall(r"Deployment shop/web\n  (\w+)", waddle(*TYPED.split()).stdout)


def test_an_update_of_what_violated_before_is_warned_about(folder: Path) -> None:
    assert actions() == ["warn"]


def test_without_the_annotation_it_is_denied(folder: Path) -> None:
    file = folder / "ratchet" / "constraint.yaml"
    file.write_text(re.sub(r"  annotations: .*\n", "", file.read_text()))
    assert actions() == ["deny"]


def test_an_update_that_takes_the_label_is_denied(folder: Path) -> None:
    file = folder / "ratchet" / "update.yaml"
    review = yaml.safe_load(file.read_text())
    review["request"]["oldObject"]["metadata"]["labels"] = {"owner": "web"}
    file.write_text(yaml.safe_dump(review))
    assert actions() == ["deny"]
