"""docs/writing-policies.md: what a reader writes and types gives what the page says."""

import re
from pathlib import Path

import pytest

from tests.behaviour.serving import Server
from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "writing-policies.md").read_text()
FILES = dict(re.findall(r"`(tags/[\w./]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_policy_can_be_used_and_its_suite_passes(folder: Path) -> None:
    assert len(FILES) == 5
    check, verify, _ = (
        line.split() for line in re.findall(r"^\$ waddle (.*)$", PAGE, re.MULTILINE)
    )
    assert waddle(*check).returncode == 0
    verified = waddle(*verify)
    assert verified.returncode == 0, verified.stdout
    assert "2 cases: 2 passed" in verified.stdout


def test_the_page_shows_what_the_policies_read(folder: Path) -> None:
    reads = re.findall(r"^\$ waddle (.*--reads)$", PAGE, re.MULTILINE)[0].split()
    lines = waddle(*reads).stdout.splitlines()
    shown = re.search(r"```text\n(2 policies.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert {line for line in shown[1].splitlines() if "…" not in line} <= set(lines)


def test_the_suite_fails_when_the_message_changes(folder: Path) -> None:
    template = folder / "tags" / "template.yaml"
    template.write_text(template.read_text().replace("the tag %q", "%q"))
    assert waddle("verify", "tags").returncode == 1


def test_a_deletion_has_the_object_that_is_deleted_in_both_places(folder: Path) -> None:
    image = {"containers": [{"name": "app", "image": "app:latest"}]}
    policies = folder / "served"
    policies.mkdir()
    for name in ("template.yaml", "samples/constraint.yaml"):
        (policies / Path(name).name).write_text((folder / "tags" / name).read_text())
    with Server(policies).ready() as server:
        deleted = {**POD, "spec": image}
        answer = server.admit(
            None,
            operation="DELETE",
            oldObject=deleted,
            kind={"group": "", "version": "v1", "kind": "Pod"},
        )
        assert not answer["allowed"]
        assert not server.admit(deleted)["allowed"]
