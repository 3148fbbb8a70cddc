"""Config-validator's public policies on the assets in their own repository, as OPA has them.

The repository, GoogleCloudPlatform/policy-library, is read from where WADDLE_POLICY_LIBRARY says, or
from ``policy-library`` among the conformance data; without it nothing here runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.gatekeeper import CONFORMANCE
from tests.patience import PATIENCE_SECONDS

LIBRARY = Path(os.environ.get("WADDLE_POLICY_LIBRARY") or CONFORMANCE / "policy-library")
FIXTURES = LIBRARY / "validator" / "test" / "fixtures"

if not FIXTURES.is_dir():
    pytest.skip(f"no {FIXTURES}: set WADDLE_POLICY_LIBRARY", allow_module_level=True)

pytestmark = pytest.mark.slow

QUERY = """results := [found |
    some constraint, asset
    c := data.constraints[constraint]
    a := data.assets[asset]
    issues := data.templates.gcp[c.kind].deny with input.asset as a with input.constraint as c
    found := [constraint, asset, issues[_]]
]"""


def templates() -> dict[str, Path]:
    """The library's templates by the kind of their constraints."""
    found = {}
    for file in sorted((LIBRARY / "policies" / "templates").rglob("*.yaml")):
        found[yaml.safe_load(file.read_text())["spec"]["crd"]["spec"]["names"]["kind"]] = file
    return found


TEMPLATES = templates()


def documents(file: Path) -> list[Any]:
    """Returns the assets or constraints of a file: a list, or one document after another."""
    if file.suffix != ".json":
        return [one for one in yaml.safe_load_all(file.read_text()) if one]
    try:
        value = json.loads(file.read_text())
    except ValueError:  # two of them are broken, for OPA too
        return []
    return value if type(value) is list else [value]


def fixture(folder: Path) -> tuple[list[Any], list[Any]]:
    """A folder's constraints, each with a name of its own, and its assets.

    The repository's tests hand a constraint to its rules whatever it matches, and assets that no
    inventory gives: these get what the target asks for.
    """
    read = [one for file in sorted(folder.rglob("*.*")) for one in documents(file)]
    constraints, assets = [], []
    for one in read:
        if one.get("kind") in TEMPLATES:
            one["metadata"] = {"name": f"c{len(constraints)}"}
            one["spec"].pop("match", None)
            constraints.append(
                {name: one[name] for name in ("apiVersion", "kind", "metadata", "spec")}
            )
        elif "asset_type" in one and "name" in one:
            one["name"] = f"{one['name']}#{len(assets)}"
            one.pop("ancestors", None)
            one["ancestry_path"] = "organizations/1/projects/2"
            about = [name for name in ABOUT if one.get(name)]
            if not about:
                one["resource"] = {}
            for name in about[1:]:
                one.pop(name)
            assets.append(one)
    return constraints, assets


ABOUT = (
    "resource",
    "iam_policy",
    "org_policy",
    "access_policy",
    "access_level",
    "service_perimeter",
)


def of_opa(opa: Path, folder: Path, constraints: list[Any], assets: list[Any]) -> list[str]:
    """Constraint, asset and message with details of each violation that OPA finds."""
    data = folder / "data.json"
    data.write_text(json.dumps({"constraints": constraints, "assets": assets}))
    command: list[str | Path] = [opa, "eval", "--v0-compatible", "--format=json", QUERY]
    command += ["-d", data, "-d", LIBRARY / "lib"]
    for kind in {one["kind"] for one in constraints}:
        spec = yaml.safe_load(TEMPLATES[kind].read_text())["spec"]
        module = folder / f"{kind}.rego"
        module.write_text(spec["targets"]["validation.gcp.forsetisecurity.org"]["rego"])
        command += ["-d", module]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert finished.returncode == 0, finished.stdout
    results = json.loads(finished.stdout)["result"][0]["bindings"]["results"]
    return sorted(
        violation_text(
            constraints[number]["metadata"]["name"],
            assets[asset]["name"],
            issue["msg"],
            issue["details"],
        )
        for number, asset, issue in results
    )


def violation_text(constraint: str, asset: str, message: str, details: Any) -> str:
    return json.dumps([constraint, asset, message, details], sort_keys=True)


REFUSED = re.compile(r'auditing objects: adding constraint "(\w+)": schema validation failed: ')


def run(
    folder: Path, constraints: list[Any], assets: list[Any]
) -> subprocess.CompletedProcess[str]:
    """`waddle test` of the assets."""
    (folder / "constraints.yaml").write_text(yaml.safe_dump_all(constraints))
    (folder / "assets.json").write_text(json.dumps(assets))
    command = [sys.executable, "-m", "webhook", "test", "--target=gcp", "-o", "json"]
    command += ["--library", str(LIBRARY / "lib"), "-f", "constraints.yaml", "-f", "assets.json"]
    for kind in {one["kind"] for one in constraints}:
        command += ["-f", str(TEMPLATES[kind])]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, cwd=folder
    )


def refusals(finished: subprocess.CompletedProcess[str]) -> set[str]:
    """The constraints that do not fit the schema of their template; all others are of use."""
    found = [REFUSED.match(line) for line in finished.stderr.splitlines()]
    assert all(found), finished.stderr
    return {match[1] for match in found if match}


def results(finished: subprocess.CompletedProcess[str]) -> list[str]:
    """Constraint, asset and message with details of each violation."""
    return sorted(
        violation_text(
            one["constraint"]["metadata"]["name"],
            one["violatingObject"]["name"],
            one["msg"],
            one["metadata"]["details"],
        )
        for one in json.loads(finished.stdout)
    )


@pytest.mark.parametrize("name", sorted(folder.name for folder in FIXTURES.iterdir()))
def test_what_policies_find_in_their_own_assets_is_what_opa_finds(name, program, tmp_path):
    constraints, assets = fixture(FIXTURES / name)
    if not constraints or not assets:
        pytest.skip("its assets are broken JSON, or its constraints of no kind that has a template")

    finished = run(tmp_path, constraints, assets)
    refused = refusals(finished)
    fitting = [one for one in constraints if one["metadata"]["name"] not in refused]
    if refused:
        finished = run(tmp_path, fitting, assets)
    theirs = of_opa(program("opa"), tmp_path, fitting, assets)

    assert theirs
    assert results(finished) == theirs
    assert bool(refused) == (name == "restricted_firewall_rules")


def test_each_of_its_own_tests_ends_as_in_opa(program, tmp_path):
    def broken(folder: str, names: list[str]) -> set[str]:
        files = [Path(folder, name) for name in names if name.endswith(".json")]
        return {file.name for file in files if not documents(file)}

    for name in ("lib", "validator"):
        shutil.copytree(LIBRARY / name, tmp_path / name, ignore=broken)

    def outcomes(*command: str | Path) -> dict[str, str]:
        finished = subprocess.run(
            [
                *command,
                "test",
                "--v0-compatible",
                "--timeout=10m",
                "--format=json",
                "lib",
                "validator",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return {
            f"{one['package']}.{one['name']}": "fail" if one.get("fail") else one.get("error", "")
            for one in json.loads(finished.stdout)
        }

    theirs = outcomes(program("opa"))

    assert outcomes(sys.executable, "-m", "webhook", "rego") == theirs
    assert list(theirs.values()).count("") > 400
