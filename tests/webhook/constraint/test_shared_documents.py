"""Common computations of a review's policies with the same library are done once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.constraint.policies import client, constraint, pod, template
from webhook.constraint.client import Client
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver, RegoEvaluator
from webhook.constraint.drivers.specialisation import Specialiser
from webhook.constraint.limits import UNLIMITED, Budget, Limits
from webhook.constraint.review import AugmentedObject
from webhook.constraint.targets.known import TARGETS
from webhook.constraint.template import Code, read_template

LIBRARY_FOLDER = Path(__file__).parents[3] / "policies"

POD_SECURITY = ("pod-security-baseline", "pod-security-restricted")

LIBRARY = """package lib.pods
containers := [c | some c in input.review.object.containers; not exempt(c.image)]
exempt(image) if { some prefix in input.parameters.exempt; startswith(image, prefix) }
names contains c.name if some c in containers
allowed := object.get(input.parameters, "allowed", "none")
shown := sprintf("%v", [input.parameters.shown])
"""

RULES = {
    "containers": "some c in pods.containers; msg := c.name",
    "names": "some msg in pods.names",
    "a name": 'pods.names["a"]; msg := "a"',
    "allowed": 'msg := sprintf("%v", [pods.allowed])',
    "shown": "msg := pods.shown",
    "all": 'msg := sprintf("%v %v %v", [pods.containers, pods.names, pods.allowed])',
}

PARAMETERS: list[Any] = [
    None,
    [],
    "x",
    *[{"exempt": value} for value in (["a"], ["b"], ["a", "b"], [], "a", {"x": "a"}, None)],
    *[{name: value} for name in ("allowed", "shown") for value in (1, 1.0, True, "1", [1], [True])],
    {"exempt": ["a"], "other": 1},
]

REVIEW = {
    "kind": "Pod",
    "object": {"containers": [{"name": "a", "image": "a1"}, {"name": "b", "image": "b1"}]},
}


def compiled(rule: str, library: str = LIBRARY, *, own: bool = False) -> RegoEvaluator:
    """A template's evaluator, whose constraints may have code of their own at once."""
    specialiser = Specialiser(lambda job: job(), evaluations=1) if own else None
    driver = RegoDriver(specialiser=specialiser)
    rego = f'package p\nimport data.lib.pods\nviolation contains {{"msg": msg}} if {{ {rule} }}'
    code = Code("Rego", {"rego": rego, "version": "v1", "libs": [library]})
    return driver.compile(read_template(template()), code)


def messages(evaluator: RegoEvaluator, given: Any, shared: dict[str, Any] | None) -> list[str]:
    """The messages of an evaluation."""
    state = evaluator.begin(UNLIMITED, {}, shared)
    return [one.msg for one in evaluator.evaluate(given, REVIEW, state)]


def test_answers_are_those_of_each_alone_whatever_was_asked_before():
    """With general code and with a constraint's own, each pair of policies and parameters."""
    evaluators = [compiled(rule, own=own) for rule in RULES.values() for own in (False, True)]
    alone = {
        (one, at): messages(evaluator, given, None)
        for one, evaluator in enumerate(evaluators)
        for at, given in enumerate(PARAMETERS)
    }
    for first, before in itertools.product(range(len(evaluators)), range(len(PARAMETERS))):
        shared: dict[str, Any] = {}
        messages(evaluators[first], PARAMETERS[before], shared)
        for (one, at), expected in alone.items():
            assert messages(evaluators[one], PARAMETERS[at], shared) == expected, (
                first,
                before,
                at,
            )


@pytest.mark.parametrize("own", [False, True])
def test_one_value_is_computed_for_all_that_are_given_alike(own: bool):
    shared: dict[str, Any] = {}
    for rule in ("containers", "names", "all"):
        for given in (None, {"other": 1}, {"allowed": 2}):
            messages(compiled(RULES[rule], own=own), given, shared)
    values = [value for value in shared.values() if type(value) is list and len(value) == 2]
    assert len(values) == 2, "the containers, and the names as a list"
    messages(compiled(RULES["containers"], own=not own), None, shared)
    assert [value for value in shared.values() if type(value) is list and len(value) == 2] == values


@pytest.mark.parametrize(
    "changed",
    {
        "asks the time": "time.now_ns() > 0",
        "asks for chance": 'rand.intn("x", 2) >= 0',
        "reads other objects": "count(data.inventory) == 0",
        "reads all parameters": "count(input.parameters) >= 0",
        "reads a field that parameters choose": "not input.parameters[input.review.kind]",
        "reads the whole input": "count(input) == 2",
        "reads what is no part of a review": "not input.other",
        "prints": 'print("x")',
        "puts a template's string together": '$"{1}" == "1"',
        "puts another input in place": "true with input.x as 1",
    }.items(),
    ids=lambda item: item[0],
)
def test_what_may_be_another_value_elsewhere_is_shared_by_none(changed: tuple[str, str]):
    shared: dict[str, Any] = {}
    library = LIBRARY.replace("some c in input.review", f"{changed[1]}; some c in input.review")
    assert messages(compiled(RULES["containers"], library), None, shared)
    assert shared == {}
    assert messages(compiled(RULES["containers"]), None, shared)
    assert len(shared) == 1


def test_libraries_of_another_text_share_nothing():
    shared: dict[str, Any] = {}
    messages(compiled(RULES["containers"]), None, shared)
    other = LIBRARY.replace("not exempt(c.image)", 'c.name != "a"')
    assert messages(compiled(RULES["containers"], other), None, shared) == ["b"]
    assert len(shared) == 2


def test_a_modifier_anywhere_in_a_policy_keeps_it_from_sharing():
    """Its documents have other values within it."""
    shared: dict[str, Any] = {}
    rule = 'x := pods.containers with input.review.object.containers as []; msg := "%v"'
    rule = f"{rule}; count(x) == 0; count(pods.containers) == 2"
    for _ in range(2):
        assert messages(compiled(rule), None, shared) == ["%v"]
        messages(compiled(RULES["containers"]), None, shared)


def test_each_object_under_review_is_judged_by_itself():
    """The same snapshot asked of one object after the other, with a budget and without."""
    rego = """package p
import data.lib.pods
violation contains {"msg": name} if some name in pods.names
"""
    library = LIBRARY.replace("object.containers", "object.spec.containers")
    target = {"libs": [library]}
    kinds = ("K8sOne", "K8sTwo")
    code = [{"engine": "Rego", "source": {"rego": rego, "version": "v1", **target}}]
    subject = client(
        *[template(kind, "", target={"code": code}) for kind in kinds],
        *[constraint(kind) for kind in kinds],
    )
    for name in ("a", "b"):
        one = {**pod(), "spec": {"containers": [{"name": name, "image": "x"}]}}
        for limits in (UNLIMITED, Limits(budget=Budget.of(1.0))):
            results = subject.snapshot.review(AugmentedObject(one), limits=limits).results
            assert [result.msg for result in results] == [name, name]


def test_the_library_s_policies_find_together_what_each_finds_alone():
    """Of the objects of all their suites: most have the library of pods."""
    folders = [LIBRARY_FOLDER / name for name in ("general", *POD_SECURITY)]
    paths = [path for folder in folders for path in sorted(folder.rglob("samples/*/*.yaml"))]
    objects = [document for path in paths for document in documents(path)]
    together = of_library(folders)
    alone = [
        of_library([template.parent])
        for folder in folders
        for template in folder.rglob("template.yaml")
    ]
    found = 0
    for document in objects:
        results = findings(together, document)
        assert results == sorted(one for single in alone for one in findings(single, document))
        found += len(results)
    assert len(objects) > 150
    assert found > 300


def of_library(folders: list[Path]) -> Client:
    """The policies of these folders, each with constraints whose parameters its samples have."""
    subject = Client(targets=TARGETS, drivers=(RegoDriver(), CelDriver()))
    paths = [path for folder in folders for path in sorted(folder.rglob("template.yaml"))]
    for path in paths:
        (document,) = documents(path)
        subject.add_template(document)
    for path in paths:
        for number, sample in enumerate(sorted(path.parent.rglob("samples/*/constraint*.yaml"))):
            (document,) = documents(sample)
            document["metadata"]["name"] += f"-{number}"
            document["spec"].pop("match", None)
            subject.add_constraint(document)
    return subject


def documents(path: Path) -> list[dict[str, Any]]:
    """Returns the documents of a file."""
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def findings(subject: Client, document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Kind, name and message of each result."""
    results = subject.snapshot.review(AugmentedObject(document)).results
    return sorted((one.constraint.kind, one.constraint.name, one.msg) for one in results)
