"""Known policies and what they are asked: OPA's cases, and the library's suites."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.opa import exclusions
from tests.conformance.opa_cases import load_cases
from tests.differential.agreement import Question

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def of_cases() -> tuple[tuple[str, Question], ...]:
    """OPA's cases by name; those that are excluded from the runner left out."""
    skipped = exclusions()
    found = []
    for case in load_cases([CONFORMANCE / "opa"]):
        if case.name in skipped or case.env or "test.sleep" in "".join(case.modules):
            continue
        question = Question(
            case.modules,
            case.query,
            case.version,
            case.input,
            case.has_input,
            case.input_term,
            case.data,
            case.strict_error,
        )
        found.append((case.name, question))
    return tuple(found)


@functools.cache
def of_library() -> tuple[tuple[str, Question], ...]:
    """Each case of the library's suites as the input of a review."""
    found = []
    for suite in sorted((CONFORMANCE / "gatekeeper-library").rglob("suite.yaml")):
        for test in _read(suite).get("tests") or []:
            modules, version = _modules(suite.parent / test["template"])
            if not modules:
                continue
            package = modules[0].split("package ", 1)[1].split(None, 1)[0]
            parameters = _read(suite.parent / test["constraint"]).get("spec", {}).get("parameters")
            for case in test.get("cases") or []:
                objects = _objects(suite.parent / case["object"])
                for review in map(_review, objects):
                    name = f"{suite.parent.name}/{test['name']}/{case['name']}"
                    input_value = {"review": review, "parameters": parameters or {}}
                    query = f"data.{package}.violation = x"
                    question = Question(
                        modules, query, version, input_value, has_input=True, data={"inventory": {}}
                    )
                    found.append((name, question))
    return tuple(found)


def _read(file: Path) -> Any:
    return yaml.load(file.read_text(), _Loader)


def _objects(file: Path) -> Iterator[Any]:
    yield from filter(None, yaml.load_all(file.read_text(), _Loader))


def _modules(template: Path) -> tuple[tuple[str, ...], Literal["v0", "v1"]]:
    """The Rego of a template; none where it has only CEL."""
    (target,) = _read(template)["spec"]["targets"]
    if "rego" in target:
        return (target["rego"], *target.get("libs", [])), "v0"
    for code in target.get("code", []):
        if code["engine"] == "Rego":
            source = code["source"]
            version: Any = source.get("version", "v0")
            return (source["rego"], *source.get("libs", [])), version
    return (), "v0"


def _review(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as a request; an AdmissionReview brings its own."""
    if obj.get("kind") == "AdmissionReview":
        request: dict[str, Any] = obj["request"]
        return request
    group, _, version = obj.get("apiVersion", "v1").rpartition("/")
    return {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": obj.get("kind", "")},
        "name": obj.get("metadata", {}).get("name", ""),
        "namespace": obj.get("metadata", {}).get("namespace", ""),
        "operation": "CREATE",
        "object": obj,
        "userInfo": {"username": "user"},
    }
