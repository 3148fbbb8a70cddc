"""The pages' commands for a laptop run there, with the output that the pages show."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import scenes
from tests.pages.commands import commands
from tests.pages.elsewhere import HELD, LEFT
from tests.pages.walk import TAKEN_OVER, WALK
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

if TYPE_CHECKING:
    from tests.pages.scenes import Scene

TERRAFORM = '#!/bin/sh\n[ "$1 $2" = "show -json" ] && cat plan.json\n'
"""In the place of Terraform: a plan that it has shown."""


@dataclass(frozen=True)
class Typed:
    """A command's folder, exit code, and words of what it prints."""

    scene: Scene
    code: int
    words: str = ""


HERE = {
    "waddle test -f vap/ -f deployment.yaml": Typed(
        scenes.admission_policies, 1, "[binding replicas-everywhere] at most 3 replicas"
    ),
    "waddle check -f vap/ -f deployment.yaml": Typed(
        scenes.admission_policies, 0, "ValidatingAdmissionPolicy/replicas: 0 violations now, 1 then"
    ),
    "waddle mutate -f labels.yaml -f deployment.yaml -o patch": Typed(
        scenes.admission_policies, 0, "MutatingAdmissionPolicy/labels"
    ),
    "waddle verify suite.yaml": Typed(scenes.admission_policies, 0, "2 cases: 2 passed, 0 failed"),
    "waddle cel check 'object.spec.replicas > 1 && 1 == \"a\"'": Typed(
        scenes.cel, 1, "found no matching overload for '_==_' applied to '(int, string)'"
    ),
    "waddle cel eval --object pod.yaml 'object.spec.containers.map(c, c.image)'": Typed(
        scenes.cel, 0, "app:v1"
    ),
    "waddle check -f policies/ --vap template": Typed(scenes.cel, 0),
    "conftest test -p policy/ deployment.yaml Dockerfile main.tf": Typed(
        scenes.conftest, 1, "containers must not run as root"
    ),
    "terraform show -json plan | conftest test --parser json -": Typed(
        scenes.conftest, 1, "a public bucket"
    ),
    "conftest verify -p policy/ --report fails": Typed(scenes.conftest, 0),
    "conftest parse --parser hcl2 - < main.tf": Typed(scenes.conftest, 0, "aws_s3_bucket"),
    "waddle rego test policy/ --format json": Typed(scenes.rego, 0, "test_violation"),
    "waddle rego eval -d policy/ -i input.json 'data.k8s.violation'": Typed(
        scenes.rego, 0, "no owner"
    ),
    "waddle rego check --strict policy/": Typed(scenes.rego, 0),
    "waddle rego fmt --list --fail policy/": Typed(scenes.unformatted, 2, "p.rego"),
    "waddle rego fmt --write policy/": Typed(scenes.rego, 0),
    "conftest fmt --check policy/": Typed(scenes.unformatted, 1, "files not formatted"),
    "waddle rego parse --format json policy/p.rego": Typed(scenes.rego, 0, '"package"'),
    "waddle rego test policy/ --coverage --threshold 90": Typed(scenes.rego, 0, "coverage"),
    "waddle rego test policy/ --var-values": Typed(scenes.rego, 0, "PASS"),
    "waddle rego eval -b bundle.tar.gz -i input.json --explain fails -f pretty"
    " 'data.k8s.violation'": Typed(scenes.rego, 0, "no owner"),
    "waddle rego eval -d policy/ -i input.json --profile 'data.k8s.violation'": Typed(
        scenes.rego, 0, "num_eval"
    ),
    "waddle test -f policies/ -f manifests/ -o table -o junit=waddle.xml -o sarif=waddle.sarif": (
        Typed(scenes.pipelines, 1, "is required")
    ),
    "terraform show -json plan.out | waddle test --target=terraform -f policies/ -f -": Typed(
        scenes.pipelines, 1, "aws_s3_bucket_acl.logs"
    ),
    "waddle verify policies/ -o junit=suites.xml": Typed(scenes.pipelines, 0),
    "terraform show -json plan.out | waddle test --target=terraform -f policies/terraform-aws -f -": (
        Typed(scenes.checkout, 1, "aws_s3_bucket_acl.logs")
    ),
    "waddle test --target=dockerfile.waddle.dev -f policies/dockerfile -f Dockerfile": Typed(
        scenes.checkout, 1, "debian:latest"
    ),
    "waddle test --target=gcp -f policies/ -f assets.json -o sarif": Typed(
        scenes.targets, 1, "//a/one is an asset"
    ),
    "waddle test --target=gcp --library policy-library/lib -f policy-library/policies"
    " -f assets.json": Typed(scenes.targets, 1, "is only text"),
    "waddle migrate kubewarden -f groups.yaml --kind my-policy=MyPolicy > policies/groups.yaml": (
        Typed(scenes.kubewarden, 0)
    ),
    "waddle verify kyverno-policies/": Typed(scenes.kyverno, 0, "1 passed, 0 failed"),
    "waddle migrate kyverno -f kyverno-policies/": Typed(scenes.kyverno, 0, "as it is"),
    "waddle migrate kyverno -f kyverno-policies/ --converted policies.yaml": Typed(
        scenes.kyverno, 0, "as it is"
    ),
    "waddle migrate kyverno -f kyverno-policies/ --converted images/policies.yaml": Typed(
        scenes.kyverno_images, 0, "put trusted_root.json beside the policy"
    ),
    "waddle test -f kyverno-policies/ -f manifests/": Typed(scenes.kyverno, 1, "ValidatingPolicy/"),
    "waddle mutate -f kyverno-policies/ -f manifests/ -o patch": Typed(
        scenes.kyverno_mutating, 0, "MutatingPolicy/team"
    ),
    "waddle test --target json -f kyverno-policies/ -f plan.json": Typed(
        scenes.kyverno_plan, 1, "too large"
    ),
    "waddle migrate gatekeeper -f policies/": Typed(scenes.migrating, 0, "as it is"),
    "waddle test -f policies/ -f deployment.yaml": Typed(
        scenes.migrating, 1, "label <owner> is missing"
    ),
    "waddle check -f policies/ --decisions decisions.jsonl": Typed(
        scenes.migrating, 0, "1 recorded decision, 0 would be another"
    ),
    "waddle decisions compare decisions.jsonl --gatekeeper-log gatekeeper.log": Typed(
        scenes.migrating, 0, "1 violation that both found"
    ),
    "waddle decisions tail decisions.jsonl": Typed(
        scenes.migrating, 0, "DENY   CREATE Pod shop/web"
    ),
    "waddle decisions stats decisions.jsonl": Typed(scenes.migrating, 0, "1 decision, 0 delivered"),
    "waddle decisions replay decisions.jsonl --policies policies/": Typed(
        scenes.migrating, 0, "1 decision replayed, 0 verdicts changed"
    ),
    "waddle size --rate 2000 --constraints 50 --p99 25": Typed(scenes.nothing, 0, "replicas"),
}
"""By what is typed."""

ALIAS = "alias conftest='waddle conftest'"


@pytest.mark.parametrize("command", HERE)
def test_a_command_of_a_page_does_what_the_page_says(command: str, tmp_path: Path) -> None:
    typed, folder = HERE[command], tmp_path / "folder"
    folder.mkdir()
    typed.scene(folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "terraform").write_text(TERRAFORM)
    (programs / "terraform").chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"shopt -s expand_aliases\n{ALIAS}\n{command}"],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    output = done.stdout + done.stderr
    assert done.returncode == typed.code, output
    assert typed.words in output, output


def test_every_command_of_every_page_is_run_or_has_a_reason_why_not() -> None:
    """A new one is put into one of these tables, or a page has a command that nobody tried."""
    tables = (
        HERE.keys(),
        {step.command for step in (*WALK, *TAKEN_OVER)},
        HELD.keys(),
        LEFT.keys(),
    )
    known = [command for table in tables for command in table]
    shown = commands().keys() - {ALIAS}
    assert sorted(shown - set(known)) == [], "shown, and in no table"
    assert sorted(set(known) - shown) == [], "in a table, and on no page"
    assert len(known) == len(set(known)), "in one table alone"
    assert len(shown) > 100


@pytest.mark.parametrize("command", HELD)
def test_a_command_that_is_held_elsewhere_is_held_there(command: str) -> None:
    file, words = HELD[command]
    assert words in (ROOT / file).read_text(), f"{file} no longer speaks of it"
