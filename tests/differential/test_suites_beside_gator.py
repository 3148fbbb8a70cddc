"""Random test suites: `waddle verify` has the verdict of `gator verify` for each case."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.webhook.cli.in_process import waddle
from tests.webhook.constraint.policies import constraint, deployment, expands, pod, template

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs import Programs

SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "20261129"))
SUITES = 60 if "WADDLE_COMPARED_SEED" not in os.environ else 600
RUNS = ("", "test0", "//case1", "test1//", "^test0$//^case0$", "dup", "//sp ace")
REGO = """package p
violation[{"msg": msg}] { input.review.object.metadata.labels.bad; msg := "bad (label) on it" }
violation[{"msg": msg}] {
  data.inventory.namespace[ns][_]["ConfigMap"][name]
  input.review.object.metadata.labels.needs == name
  msg := sprintf("has %v/%v", [ns, name])
}"""
VERDICT = re.compile(r" *--- (PASS|FAIL|SKIP): (.*?)(?:\t| +\([0-9.]+m?s\)|$)")
SUITE = re.compile(r"(ok|FAIL)\t")


def _pod(**labels: str) -> dict[str, Any]:
    return pod(metadata={"name": "web", "namespace": "shop", "labels": labels})


def _request(operation: str, **objects: Any) -> dict[str, Any]:
    gvk = {"group": "", "version": "v1", "kind": "Pod"}
    request = {"uid": "u", "operation": operation, "kind": gvk, "name": "web", **objects}
    request |= {"namespace": "shop", "userInfo": {"username": "x"}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


BAD = _pod(bad="x")
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "k", "namespace": "n"}}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"env": "prod", "bad": "x"}},
}
PRODUCTION = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
UNKNOWN_OPERATOR = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Of"}]}}
DOCUMENTS: dict[str, list[Any]] = {
    "template": [template(rego=REGO)],
    "template-of-bad-rego": [template(rego="package p\nviolation[")],
    "constraint": [constraint()],
    "constraint-of-production": [constraint(match=PRODUCTION)],
    "constraint-that-warns": [constraint(enforcementAction="warn")],
    "constraint-of-another-kind": [constraint("K8sOther")],
    "constraint-of-bad-selector": [constraint(match=UNKNOWN_OPERATOR)],
    "bad": [BAD],
    "good": [_pod()],
    "needs": [_pod(needs="k")],
    "both": [_pod(needs="k", bad="x")],
    "two": [_pod(), BAD],
    "without-kind": [{"apiVersion": "v1", "metadata": {"name": "x"}}],
    "without-name": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"bad": "x"}}}],
    "namespace": [NAMESPACE],
    "config-map": [CONFIG_MAP],
    "deployment": [deployment()],
    "expands": [expands()],
    "list": [["a"]],
    "created": [_request("CREATE", object=BAD)],
    "deleted": [_request("DELETE", oldObject=BAD)],
    "updated": [_request("UPDATE", object=_pod(), oldObject=BAD)],
    "nothing-created": [_request("CREATE")],
    "nothing-deleted": [_request("DELETE")],
    "empty": [],
}
RARELY = ("missing", "broken", "empty", "two", "list", "without-kind", "")
OBJECTS = ("bad", "good", "needs", "both")
OTHER_OBJECTS = (
    *RARELY,
    "without-name",
    "namespace",
    "deployment",
    "created",
    "deleted",
    "updated",
    "nothing-created",
    "nothing-deleted",
)
VIOLATIONS = ("yes", "no", 0, 1, 2, -1, "5", "maybe", None, "YES", "", "0")
MESSAGES = (
    "bad",
    r"^bad \(label\) on it$",
    "bad (label) on it",
    "has",
    "n/k",
    "",
    "(?i)BAD",
    "[[:alpha:]]+",
    r"\bbad\b",
)


def _file(name: str) -> str:
    """Returns a file's name; gator reads each YAML file of a folder as it looks for suites."""
    suffix = "txt" if name in ("broken", "list") else "yaml"
    return f"{name}.{suffix}" if name else ""


class _Suites:
    """Makes suites by chance."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def suite(self) -> dict[str, Any]:
        tests = [self._test(number) for number in range(self._chance.randint(1, 3))]
        suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "tests": tests}
        return suite | ({"skip": True} if self._is(0.04) else {})

    def _is(self, share: float) -> bool:
        return self._chance.random() < share

    def _of(self, usual: tuple[str, ...], rare: tuple[str, ...], share: float) -> str:
        return _file(self._chance.choice(rare if self._is(share) else usual))

    def _test(self, number: int) -> dict[str, Any]:
        policies = ("constraint", "constraint", "constraint-of-production", "constraint-that-warns")
        wrong = ("constraint-of-another-kind", "constraint-of-bad-selector", "template", *RARELY)
        test: dict[str, Any] = {
            "name": self._chance.choice([f"test{number}", f"test{number}", "dup"]),
            "template": self._of(("template",), ("template-of-bad-rego", *RARELY), 0.08),
            "constraint": self._of(policies, wrong, 0.08),
            "cases": [self._case(index) for index in range(self._chance.randint(1, 3))],
        }
        if self._is(0.25):
            test["expansion"] = self._of(("expands",), RARELY, 0.2)
        if self._is(0.05):
            test["skip"] = True
        if self._is(0.05):
            # Without cases gator passes, and a test fails here (docs/compatibility/gator.md).
            del test[self._chance.choice(["template", "constraint"])]
        return test

    def _case(self, number: int) -> dict[str, Any]:
        case: dict[str, Any] = {
            "name": self._chance.choice([f"case{number}", f"case{number}", "same", "sp ace"]),
            "object": self._of(OBJECTS, OTHER_OBJECTS, 0.4),
        }
        if not self._is(0.05):
            count = self._chance.choice([0, 1, 1, 1, 1, 2])
            case["assertions"] = [self._assertion() for _ in range(count)]
        if self._is(0.3):
            inventories = ("config-map", "namespace", "deployment", "bad", "without-name")
            count = self._chance.randint(0, 2)
            case["inventory"] = [self._of(inventories, RARELY, 0.15) for _ in range(count)]
        if self._is(0.1):
            case["skip"] = self._chance.choice([True, True, False])
        return case

    def _assertion(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._is(0.9):
            usual = self._is(0.7)
            found["violations"] = self._chance.choice(VIOLATIONS[:4] if usual else VIOLATIONS)
        if self._is(0.5):
            found["message"] = self._chance.choice(MESSAGES)
        return found


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """A folder with suites and the files that they name."""
    chance = _Suites(SEED)
    for name, documents in DOCUMENTS.items():
        (tmp_path / _file(name)).write_text("\n---\n".join(map(json.dumps, documents)))
    (tmp_path / _file("broken")).write_text("a: [\n")
    for number in range(SUITES):
        (tmp_path / f"suite-{number:02}.yaml").write_text(json.dumps(chance.suite()))
    return tmp_path


def verdicts(output: str) -> list[list[tuple[str, str]]]:
    """Returns the verdicts of each suite in order: its tests and cases, and "ok" or "FAIL"."""
    found: list[list[tuple[str, str]]] = [[]]
    for line in output.splitlines():
        if match := VERDICT.match(line):
            found[-1].append((match[1], match[2]))
        elif match := SUITE.match(line):
            found[-1].append((match[1], "suite"))
            found.append([])
    return found


@pytest.mark.slow(60)
def test_each_case_has_gators_verdict(suites: Path, program: Programs) -> None:
    gator = str(program("gator"))
    for run in RUNS:
        arguments = ["verify", "-v", *(["--run", run] if run else []), str(suites)]
        theirs = subprocess.run(
            [gator, *arguments],
            capture_output=True,
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        ours = waddle(*arguments)

        pairs = zip(verdicts(theirs.stdout), verdicts(ours.stdout), strict=True)
        assert len(verdicts(theirs.stdout)) == SUITES + 1, theirs.stderr
        differences = [
            f"suite-{number:02}.yaml --run {run!r}: gator {one}, ours {other}"
            for number, (one, other) in enumerate(pairs)
            if one != other
        ]
        assert not differences, "\n".join(differences)
        assert ours.returncode == theirs.returncode, run
