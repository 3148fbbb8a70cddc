"""A wrong type in any field of what files hold: the verdict is gator's, or louder."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.differential.beside_gator import ours
from tests.patience import PATIENCE_SECONDS
from tests.webhook.constraint.policies import client, constraint, expands, pod, template
from tests.webhook.policies.wrong_types import (
    APPLY_TO,
    MATCH,
    WHOLE,
    changed,
    mutator,
    places,
    schema_of,
)
from webhook.api.shapes import object_of
from webhook.cli.extensions.run import Extending
from webhook.constraint import structural
from webhook.constraint.snapshot import Snapshot
from webhook.policies.extensions import Extensions
from webhook.policies.manifests import Manifest
from webhook.policies.suite import InvalidSuite, find_suites
from webhook.policies.suite_filter import Filter
from webhook.policies.suite_runner import SuiteRunner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.programs import Programs

VALUES: tuple[Any, ...] = (None, 5, True, "", [], ["x"], {}, {"a": "b"}, "UP_per")
LIBRARY = "package lib.texts\n\nx := 1"
SCOPED = {
    "enforcementAction": "scoped",
    "scopedEnforcementActions": [{"action": "deny", "enforcementPoints": [{"name": "*"}]}],
}


def wrong(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The document with each of the values in each field of its spec."""
    for path in places(document["spec"]):
        for value in VALUES:
            yield changed(document, ("spec", *path), value)


def constraints() -> list[dict[str, Any]]:
    plain, scoped = constraint(match=MATCH), constraint()
    plain["spec"]["enforcementAction"] = "deny"
    scoped["spec"].update(SCOPED)
    return [*wrong(plain), *wrong(scoped)]


def refused_or_messages(gator: Path, file: Path, documents: list[dict[str, Any]]) -> Any:
    """Returns "refused" or gator's messages about the Pod."""
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    done = subprocess.run(
        [str(gator), "test", "-o", "json", "-f", str(file)],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    # It panics at a source that is null: nothing of such a template is in force there.
    if any(
        word in done.stderr for word in ("adding", "converting unstructured", "expan", "panic:")
    ):
        return "refused"
    found = json.loads(done.stdout or "[]") or []
    return sorted(
        item["msg"] for item in found if (item.get("violatingObject") or {}).get("kind") == "Pod"
    )


def compared(listed: list[dict[str, Any]], mine: Any, theirs: Any) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(theirs, range(len(listed))))
    counts: Counter[bool] = Counter()
    different = []
    for document, answer in zip(listed, answers, strict=True):
        own = mine(document)
        counts[own == answer] += 1
        if own != answer:
            different.append((document["spec"], own, answer))
    assert different == [], (counts, "\n".join(map(str, different)))


@pytest.mark.slow(60)
def test_of_constraints(program: Programs, tmp_path: Path) -> None:
    gator, listed = program("gator"), constraints()

    def mine(document: dict[str, Any]) -> Any:
        verdict, messages = ours([template(), document])
        return sorted(messages) if verdict == "taken" else verdict

    def theirs(at: int) -> Any:
        documents = [template(), listed[at], pod()]
        return refused_or_messages(gator, tmp_path / f"{at}.yaml", documents)

    compared(listed, mine, theirs)


def whole_templates() -> list[dict[str, Any]]:
    """A template of each way to write one: code of its own or by engine, a schema of each version."""
    schema = {"type": "object", "properties": {"n": {"type": "string", "enum": ["a"]}}}
    plain = template(schema=schema, version="v1beta1", target={"libs": [LIBRARY]})
    plain["spec"]["crd"]["spec"]["names"]["shortNames"] = ["deny"]
    plain["spec"]["crd"]["spec"]["validation"]["legacySchema"] = False
    (target,) = template()["spec"]["targets"]
    source = {"version": "v0", "rego": target.pop("rego"), "libs": [LIBRARY]}
    by_engine = template(schema=schema, target={"code": [{"engine": "Rego", "source": source}]})
    del by_engine["spec"]["targets"][0]["rego"]
    return [plain, by_engine]


@pytest.mark.slow(60)
def test_of_templates(program: Programs, tmp_path: Path) -> None:
    gator = program("gator")
    listed = [*whole_templates(), *(one for whole in whole_templates() for one in wrong(whole))]

    def mine(document: dict[str, Any]) -> Any:
        verdict, messages = ours([document, constraint()])
        return sorted(messages) if verdict == "taken" else verdict

    def theirs(at: int) -> Any:
        documents = [listed[at], constraint(), pod()]
        return refused_or_messages(gator, tmp_path / f"{at}.yaml", documents)

    assert mine(listed[0]) == mine(listed[1]) != "refused"
    compared(listed, mine, theirs)


@pytest.mark.slow(30)
def test_of_expansion_templates(program: Programs, tmp_path: Path) -> None:
    gator, listed = program("gator"), list(wrong(expands(enforcementAction="warn")))

    def mine(document: dict[str, Any]) -> bool:
        return bool(Extensions().load([Manifest(document, "a.yaml")]))

    def theirs(at: int) -> bool:
        documents = [template(), constraint(), listed[at], pod()]
        refused = refused_or_messages(gator, tmp_path / f"{at}.yaml", documents) == "refused"
        # It takes a field that no CRD has, and resultants without a kind: here those are errors.
        generated = object_of(listed[at]["spec"]).get("generatedGVK")
        kindless = type(generated) is dict and not generated.get("kind")
        return (
            refused
            or kindless
            or bool(structural.unknown_fields(listed[at], crd_schema_of(listed[at])))
        )

    compared(listed, mine, theirs)


# --- mutators -------------------------------------------------------------------------------------

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "a"},
    "spec": {
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "main", "image": "x"}], "a": {}, "set": ["y"]},
        }
    },
}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "a", "labels": {"a": "b"}},
}
MADE_MATCH = MATCH | {"source": "All", "name": "web*"}
del MADE_MATCH["namespaceSelector"]  # whose fields are those of labelSelector
TESTED = [{"subPath": "spec.a", "condition": "MustExist"}]
MUTATORS = {
    "Assign": mutator(
        "Assign",
        "v1",
        "spec.a.b",
        {"assign": {"value": "x"}, "pathTests": TESTED},
        applyTo=APPLY_TO,
    ),
    "AssignMetadata": mutator(
        "AssignMetadata", "v1", "metadata.labels.c", {"assign": {"value": "x"}}
    ),
    "ModifySet": mutator(
        "ModifySet",
        "v1",
        "spec.set",
        {
            "operation": "merge",
            "values": {"fromList": ["x"]},
            "pathTests": [{"subPath": "spec.set", "condition": "MustExist"}],
        },
        applyTo=APPLY_TO,
    ),
    "AssignImage": mutator(
        "AssignImage",
        "v1alpha1",
        "spec.containers[name:main].image",
        {"assignDomain": "a.b", "assignPath": "c/d", "assignTag": ":v1"},
        applyTo=APPLY_TO,
    ),
}


def mutators(kind: str) -> list[dict[str, Any]]:
    """Returns the mutators: one kind with every field of a match, the others with none."""
    whole = MUTATORS[kind] | {"metadata": {"name": "m"}}
    spec = {**whole["spec"], "match": MADE_MATCH if kind == "Assign" else {"source": "All"}}
    return [whole | {"spec": spec}, *wrong(whole | {"spec": spec})]


def expanded_here(document: dict[str, Any]) -> Any:
    """Returns "refused" or the expanded and mutated Pod."""
    extensions = Extensions()
    manifests = [Manifest(one, "a.yaml") for one in (document, expands())]
    if extensions.load(manifests):
        return "refused"
    snapshot = Snapshot(targets={}, namespaces={"a": NAMESPACE})
    extending = Extending(extensions.policy_set(snapshot))
    (made,) = extending.implied(DEPLOYMENT)
    return made["metadata"].get("labels"), made["spec"]


def expanded_by_gator(gator: Path, file: Path, document: dict[str, Any]) -> Any:
    file.write_text("\n---\n".join(map(json.dumps, (document, expands(), DEPLOYMENT, NAMESPACE))))
    done = subprocess.run(
        [str(gator), "expand", "-n", str(file)],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    if done.returncode:
        return "refused"
    made = yaml.safe_load(done.stdout)
    return made["metadata"].get("labels"), made["spec"]


@pytest.mark.slow(40)
@pytest.mark.parametrize("kind", MUTATORS)
def test_of_mutators(program: Programs, tmp_path: Path, kind: str) -> None:
    gator, listed = program("gator"), mutators(kind)
    assert expanded_here(listed[0]) == expanded_by_gator(gator, tmp_path / "whole.yaml", listed[0])

    def theirs(at: int) -> Any:
        return expanded_by_gator(gator, tmp_path / f"{at}.yaml", listed[at])

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(theirs, range(len(listed))))
    silent, wrongly_loud = [], []
    for document, answer in zip(listed, answers, strict=True):
        own = expanded_here(document)
        if own == answer or has_no_operation(document):
            continue
        if own != "refused":
            silent.append((document["spec"], own, answer))
        elif not is_wrong_by_crd(document):
            wrongly_loud.append(document["spec"])
    assert silent == []
    assert wrongly_loud == []


def has_no_operation(document: dict[str, Any]) -> bool:
    """Whether it is a ModifySet that a cluster's CRD gives its operation, and gator does not."""
    parameters = document["spec"].get("parameters") if isinstance(document["spec"], dict) else None
    named = isinstance(parameters, dict) and parameters.get("operation") is not None
    return document["kind"] == "ModifySet" and not named


def is_wrong_by_crd(document: dict[str, Any]) -> bool:
    """Whether a value has another type than in the cluster's CRD, or a field that it does not have."""
    schema = crd_schema_of(document)
    faults, fields = structural.faults(document, schema), structural.unknown_fields
    return bool(faults or fields(document, schema))


def crd_schema_of(document: dict[str, Any]) -> Any:
    return schema_of(document["kind"].lower(), document["apiVersion"].split("/")[1])


# --- what is synchronised -------------------------------------------------------------------------


@pytest.mark.slow(20)
@pytest.mark.parametrize("kind", ["configs", "syncsets"])
def test_of_what_is_synchronised(program: Programs, tmp_path: Path, kind: str) -> None:
    """Objects that `gator sync test` cannot read are reported; the others fit a cluster's CRD."""
    gator = program("gator")
    listed = [WHOLE[kind], *wrong(WHOLE[kind])]

    def is_refused(at: int) -> bool:
        file = tmp_path / f"{at}.yaml"
        file.write_text("\n---\n".join(map(json.dumps, (listed[at], template()))))
        done = subprocess.run(
            [str(gator), "sync", "test", "-f", "-n", str(file)],
            capture_output=True,
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        return "cannot unmarshal" in done.stderr or "converting" in done.stderr

    with ThreadPoolExecutor(2) as threads:
        refused = list(threads.map(is_refused, range(len(listed))))
    faults = [bool(Extensions().load([Manifest(one, "a.yaml")])) for one in listed]
    pairs = list(zip(listed, refused, faults, strict=True))
    assert (refused[0], faults[0]) == (False, False)
    assert sum(refused) > 10
    assert [document["spec"] for document, theirs, ours in pairs if theirs and not ours] == []


# --- suites ---------------------------------------------------------------------------------------

SUITE = {
    "apiVersion": "test.gatekeeper.sh/v1alpha1",
    "kind": "Suite",
    "metadata": {"name": "s"},
    "skip": False,
    "tests": [
        {
            "name": "denied",
            "template": "template.yaml",
            "constraint": "constraint.yaml",
            "skip": False,
            "invalid": False,
            "cases": [
                {
                    "name": "a pod",
                    "object": "pod.yaml",
                    "inventory": ["namespace.yaml"],
                    "skip": False,
                    "assertions": [{"violations": 1, "message": "no"}],
                },
                {"name": "again", "object": "pod.yaml", "assertions": [{"violations": "yes"}]},
            ],
        }
    ],
}


SUITE_PLACES = [path for path in places(SUITE) if path[:1] in {("skip",), ("tests",)}]


def suites() -> list[dict[str, Any]]:
    values = (*VALUES, 0, 2, -1, 1.5, "yes", "no", "(", False, [5], [{}])
    return [SUITE, *(changed(SUITE, path, value) for path in SUITE_PLACES for value in values)]


@pytest.mark.slow(60)
def test_of_suites(program: Programs, tmp_path: Path) -> None:
    gator, listed = program("gator"), suites()
    parts = {
        "template": template(),
        "constraint": constraint(),
        "pod": pod(),
        "namespace": NAMESPACE,
    }
    for name, document in parts.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(document))

    def file_of(at: int) -> Path:
        return tmp_path / f"suite{at}.yaml"

    def theirs(at: int) -> bool:
        file_of(at).write_text(json.dumps(listed[at]))
        done = subprocess.run(
            [str(gator), "verify", str(file_of(at))],
            capture_output=True,
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        return done.returncode == 0

    def mine(at: int) -> str:
        try:
            found = find_suites(file_of(at))
        except InvalidSuite:
            return "refused"
        results = [SuiteRunner(lambda _: client(), Filter()).run(one) for one in found]
        return "failed" if any(one.failed for one in results) else "passed"

    with ThreadPoolExecutor(2) as threads:
        passed = list(threads.map(theirs, range(len(listed))))
    own = [mine(at) for at in range(len(listed))]
    pairs = list(zip(listed, passed, own, strict=True))
    assert pairs[0][1:] == (True, "passed")
    assert [
        one["tests"] for one, is_passed, here in pairs if here == "passed" and not is_passed
    ] == []
    louder = [one["tests"] for one, is_passed, here in pairs if is_passed and here != "passed"]
    # A test without cases; an assertion that is null; an unknown field.
    assert [
        tests
        for tests in louder
        if "null" not in (text := json.dumps(tests))
        and '{"a": "b"}' not in text
        and all(test.get("cases") for test in tests)
    ] == []
    assert len(louder) < len(listed) / 20, "most that gator runs is run"
