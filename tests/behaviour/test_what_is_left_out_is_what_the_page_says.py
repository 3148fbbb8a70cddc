"""docs/leaving-out.md: each way that it shows leaves out what the page says, and no more."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.first_policy import FILES as FIRST
from tests.behaviour.serving import Server
from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT

PAGE = (ROOT / "docs" / "leaving-out.md").read_text()
FILES = dict(re.findall(r"`(owners/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
(CONFIG,) = (
    text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kind: Config" in text
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (FIRST | FILES).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def deployment(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}


def test_one_is_denied_one_counted_and_one_left_out(folder: Path) -> None:
    (typed,) = re.findall(r"^\$ waddle (.*)$", PAGE, re.MULTILINE)
    done = waddle(*typed.split())
    assert done.returncode == 1
    assert re.findall(r"Deployment (\S+)\n  (\w+)", done.stdout) == [
        ("shop/web", "deny"),
        ("legacy-billing/invoices", "dryrun"),
    ]
    assert "in 3 reviewed objects" in done.stdout


def test_what_the_config_leaves_out_is_admitted_and_nothing_else_is(folder: Path) -> None:
    policies = folder / "served"
    policies.mkdir()
    for name in ("first/template.yaml", "owners/constraint.yaml"):
        (policies / Path(name).name).write_text((folder / name).read_text())
    (policies / "config.yaml").write_text(CONFIG)
    with Server(policies).ready() as server:

        def allowed(namespace: str) -> bool:
            thing = deployment("web", namespace)
            return bool(server.admit(thing, namespace=namespace)["allowed"])

        assert {one: allowed(one) for one in ("shop", "legacy-a", "kube-public", "ci-sandbox")} == {
            "shop": False,
            "legacy-a": True,
            "kube-public": True,
            "ci-sandbox": True,
        }
