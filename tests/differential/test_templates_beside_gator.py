"""Templates that gator takes or refuses, Waddle takes or refuses: result shapes and schemas."""

from __future__ import annotations

import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.differential import schemas
from tests.differential.beside_gator import ours
from tests.patience import PATIENCE_SECONDS
from tests.webhook.constraint.policies import constraint, pod, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.programs import Programs

SCHEMAS = int(os.environ.get("WADDLE_COMPARED_SCHEMAS", "150"))
SEED = int(os.environ.get("WADDLE_COMPARED_SEED", "1"))

HEADS = (
    "violation {{ x := {0} }}",
    "violation = x {{ x := {0} }}",
    "violation[x] {{ x := {0} }}",
    "violation[x] = 1 {{ x := {0} }}",
    "violation = {{x | x := {0}}}",
    "violation(y) = x {{ x := {0}; y == 1 }}",
    "default violation = {0}",
    "import future.keywords\nviolation[x] if {{ x := {0} }}",
    "violation[x][y] = 1 {{ x := {0}; y := 1 }}",
    "violation[x] {{ x := f(1) }}\nf(y) = x {{ x := {0}; y == 1 }}",
    'violation[x] {{ x := {0} }}\nviolation[{{"msg": "m"}}] {{ true }}',
)
VALUES = (
    "true",
    "5",
    "null",
    '"text"',
    '["a"]',
    '[{"msg": "x"}]',
    '{"a"}',
    '{{"msg": "x"}}',
    "{}",
    '{"a": {"msg": "x"}}',
    '{"msg": "x"}',
    '{"mgs": "x"}',
    '{"Msg": "x"}',
    '{"message": "x"}',
    '{"details": {}}',
    '{"msg": "x", "details": {"a"}}',
    '{"msg": "x", "other": 1}',
    "set()",
    'sprintf("%v", [1])',
    "input.review.object",
)
KEYWORDS = (
    "type",
    "items",
    "properties",
    "additionalProperties",
    "required",
    "enum",
    "default",
    "format",
    "nullable",
    "minimum",
    "maxLength",
    "allOf",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
)
LITERALS: tuple[Any, ...] = (
    None,
    True,
    5,
    1.5,
    "string",
    [],
    ["x"],
    [{}],
    [None],
    {},
    {"a": None},
    {"a": {}},
)


def shapes() -> Iterable[list[dict[str, Any]]]:
    for head in HEADS:
        for value in VALUES:
            if head.startswith("default") and "input" in value:
                continue
            yield [template(rego=f"package p\n{head.format(value)}"), constraint()]


def written_schemas() -> Iterable[list[dict[str, Any]]]:
    for version in ("v1", "v1beta1", "v1alpha1"):
        for keyword in KEYWORDS:
            for literal in LITERALS:
                inner = {"type": "array" if keyword == "items" else "object", keyword: literal}
                schema = {"type": "object", "properties": {"n": inner}}
                yield [template(schema=schema, version=version), constraint()]


def generated_schemas() -> Iterable[list[dict[str, Any]]]:
    chance = random.Random(SEED)
    for _ in range(SCHEMAS):
        schema = schemas.schema(chance) | ({"type": "object"} if chance.random() < 0.9 else {})
        yield [template(schema=schema, version=chance.choice(["v1", "v1", "v1beta1"]))]


def theirs(gator: Path, folder: Path, documents: list[dict[str, Any]]) -> tuple[str, list[str]]:
    file = folder / f"{id(documents)}.yaml"
    file.write_text("\n---\n".join(map(json.dumps, [*documents, pod()])))
    command = [str(gator), "test", "-o", "json", "-f", str(file)]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=PATIENCE_SECONDS
    )
    if "adding template" in done.stderr or "adding constraint" in done.stderr:
        return "refused", []
    if "converting unstructured" in done.stderr:
        return "refused", []
    if done.stderr:
        assert "reviewing" in done.stderr, (documents, done.stderr)
        return "no verdict", []
    found = json.loads(done.stdout or "[]") or []
    of_pod = [item for item in found if (item.get("violatingObject") or {}).get("kind") == "Pod"]
    return "taken", [item["msg"] for item in of_pod]


@pytest.mark.slow(60)
@pytest.mark.parametrize(
    "cases", [shapes, written_schemas, generated_schemas], ids=lambda cases: cases.__name__
)
def test_what_gator_takes_is_taken_and_what_it_refuses_is_refused(
    program: Programs,
    tmp_path: Path,
    cases: Callable[[], Iterable[list[dict[str, Any]]]],
) -> None:
    gator = program("gator")
    listed = list(cases())
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda item: theirs(gator, tmp_path, item), listed))
    different = [
        (documents[0]["spec"], mine, answer)
        for documents, answer in zip(listed, answers, strict=True)
        if (mine := ours(documents)) != answer
    ]
    assert different == [], f"{len(different)} of {len(listed)}"
