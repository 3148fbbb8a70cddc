"""What a read set does not name makes no difference to any result: it is changed, and nothing differs."""

import json
import time
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
import yaml

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.opa_cases import load_cases
from tests.differential.grammar import policy
from tests.programs import ROOT
from tests.webhook.reads.scrambled import mutated, scrambled
from webhook.api.gvk import gvk_of
from webhook.constraint.constraint import is_constraint
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.reads import dependencies_of
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import PolicyError
from webhook.constraint.limits import Limits
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL, REGO, read_template
from webhook.external_data.exchange import Unanswered
from webhook.reads.read_set import ReadSet
from webhook.rego.engine import UNDEFINED, EvaluationContext, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.reads import read
from webhook.rego.run.values import key
from webhook.rego.syntax.parser import parse_module

FOLDERS = [ROOT / "policies", CONFORMANCE / "gatekeeper-library"]
DRIVERS: dict[str, RegoDriver | CelDriver] = {REGO: RegoDriver(), CEL: CelDriver()}
PATIENCE = 600
ROUNDS = 12


@cache
def documents(folder: Path):
    loaded = []
    for file in sorted(folder.rglob("*.yaml")):
        text = file.read_text()
        try:
            loaded += [
                (file, one)
                for one in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
                if isinstance(one, dict) and "kind" in one
            ]
        except yaml.YAMLError:
            continue  # one that is broken on purpose
    return loaded


@cache
def templates(folder: Path, engine: str):
    found = {}
    for file, document in documents(folder):
        if document["kind"] == "ConstraintTemplate":
            read_one = read_template(document)
            code = tuple(one for one in read_one.code if one.engine == engine)
            if code and read_one.target == admission.NAME:
                found[read_one.name] = (file.parent, replace(read_one, code=code))
    return list(found.values())


@cache
def parameters_by_kind(folder: Path):
    by_kind = defaultdict(list)
    for _, document in documents(folder):
        if is_constraint(gvk_of(document)):
            by_kind[document["kind"]].append((document.get("spec") or {}).get("parameters") or {})
    return by_kind


def objects_near(folder: Path, home: Path):
    objects = [
        (file, one)
        for file, one in documents(folder)
        if one["kind"] not in {"ConstraintTemplate", "Suite", "AdmissionReview"}
        and not is_constraint(gvk_of(one))
    ]
    near = [one for file, one in objects if file.is_relative_to(home)]
    return near or [one for _, one in objects][:20]


def inventory_of(objects):
    inventory = {"namespace": {}, "cluster": {}}
    for one in objects:
        metadata = one.get("metadata") or {}
        if metadata.get("name"):
            at = inventory["cluster"]
            if metadata.get("namespace"):
                at = inventory["namespace"].setdefault(metadata["namespace"], {})
            of_kind = at.setdefault(one.get("apiVersion", "v1"), {}).setdefault(one["kind"], {})
            of_kind[metadata["name"]] = one
    return inventory


def review_of(near, random: Random):
    whole = random.choice(near)
    of = mutated(whole, random) if random.random() < 0.7 else whole
    of = of if isinstance(of, dict) else whole
    return {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": of.get("kind")},
        "resource": {},
        "operation": random.choice(["", "CREATE", "UPDATE", "DELETE"]),
        "userInfo": random.choice([{}, {"username": "x", "groups": ["a"]}]),
        "object": of,
        "oldObject": random.choice([None, mutated(of, random)]),
        "namespaceObject": {},
        "name": "x",
    }


def result(evaluator, parameters, review, inventory):
    state = evaluator.begin(Limits(time.monotonic() + PATIENCE), inventory)
    try:
        told = evaluator.evaluate(parameters, review, state)
    except PolicyError as error:
        return str(error)
    except Unanswered as asked:  # of providers: what is asked hangs on what is read, too
        return repr(asked.requests)
    return [(json.dumps(one.msg), json.dumps(one.details)) for one in told]


def whole_review(review):
    """The form that every review has, whatever stands in it."""
    objects = {name: review.get(name) for name in ("object", "oldObject", "namespaceObject")}
    parts = {name: review.get(name) for name in ("kind", "resource", "userInfo")}
    objects["namespaceObject"] = objects["namespaceObject"] or {}
    shaped = {name: one if isinstance(one, dict) else {} for name, one in parts.items()}
    if not isinstance(objects["namespaceObject"], dict):
        objects["namespaceObject"] = {}
    return {**review, **objects, **shaped}


def all_of(told):
    return told


def differences(folder: Path, engine: str, reads_of=lambda of: of.reads, seen_of=all_of):
    """How many evaluations there were, how many found something, and those that differ.

    ``seen_of`` is what counts of a result.
    """
    counted = [0, 0]
    differing = []
    for home, of in templates(folder, engine):
        evaluator = DRIVERS[engine].compile(of, of.code[0])
        near = objects_near(folder, home)
        inventory = inventory_of(near[:4])
        for parameters in parameters_by_kind(folder)[of.kind][:4] or [{}]:
            for given in (None, parameters):
                reads = reads_of(dependencies_of(of, given))
                for number in range(ROUNDS):
                    random = Random(f"{of.name} {number}")
                    review = review_of(near, random)
                    before = result(evaluator, parameters, review, inventory)
                    seen = {"review": review, "parameters": parameters}
                    seen = scrambled(seen, reads.at("input") or ReadSet(), random)
                    data = scrambled({"inventory": inventory}, reads.at("data"), random)
                    data = data.get("inventory") if isinstance(data, dict) else {}
                    review = seen.get("review")
                    after = result(
                        evaluator,
                        parameters if given is not None else _object(seen.get("parameters")),
                        whole_review(_object(review)),
                        _object(data),
                    )
                    counted[0] += 1
                    counted[1] += bool(before)
                    if seen_of(before) != seen_of(after):
                        differing.append((of.name, number, before, after))
    return *counted, differing


def _object(value):
    return value if isinstance(value, dict) else {}


@pytest.mark.parametrize("engine", [REGO, CEL])
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_template_does_not_read_makes_no_difference(folder: Path, engine: str) -> None:
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE")
    evaluations, denied, differing = differences(folder, engine)
    assert evaluations > 100
    assert denied > evaluations / 10
    assert differing == []


def without_last(reads: ReadSet) -> ReadSet:
    """A set that lacks what is last in each of its branches."""
    kept = {name: without_last(below) for name, below in reads.children.items() if below.children}
    return ReadSet(children=kept)


@pytest.mark.parametrize("engine", [REGO, CEL])
def test_a_path_that_is_missing_is_found_out(engine: str) -> None:
    assert differences(ROOT / "policies", engine, lambda of: without_last(of.reads))[2]


@pytest.mark.parametrize("engine", [REGO, CEL])
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_does_not_decide_makes_no_violation_and_takes_none(folder: Path, engine: str) -> None:
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE")
    evaluations, denied, differing = differences(folder, engine, lambda of: of.deciding, bool)
    assert evaluations > 100
    assert denied > evaluations / 10
    assert differing == []


@pytest.mark.parametrize("engine", [REGO, CEL])
def test_a_path_that_decides_and_is_missing_is_found_out(engine: str) -> None:
    folder = ROOT / "policies"
    assert differences(folder, engine, lambda of: without_last(of.deciding), bool)[2]


def test_what_rules_of_opa_s_cases_do_not_read_makes_no_difference() -> None:
    folders = [CONFORMANCE / "opa" / version for version in ("v0", "v1")]
    if not all(folder.is_dir() for folder in folders):
        pytest.skip(f"no {CONFORMANCE / 'opa'}: set WADDLE_CONFORMANCE")
    evaluations, differing = 0, []
    for case in load_cases(folders):
        try:
            modules = [parse_module(text, "m", case.version) for text in case.modules]
            program = compile_modules(modules)
        except RegoErrors:
            continue
        compiled = program.compiled
        for rule in compiled.rules:
            node = compiled.tree.find(rule.path)
            if rule.args is not None or node.rules[0].args is not None:
                continue
            found = read(compiled.tree, compiled.builtins, node.path).dependencies
            if found.reads.whole or found.changing:
                continue
            given = case.input if case.has_input else UNDEFINED
            before = value(program.rule(node.path), given, case.data)
            for number in range(3):
                random = Random(number)
                changed = given
                if given is not UNDEFINED:
                    changed = scrambled(given, found.reads.at("input"), random)
                data = _object(scrambled(case.data, found.reads.at("data"), random))
                evaluations += 1
                if value(program.rule(node.path), changed, data) != before:
                    differing.append((case.name, rule.path))
    assert evaluations > 10_000
    assert differing == []


def test_what_random_rules_do_not_read_makes_no_difference() -> None:
    evaluations, differing = 0, []
    for number in range(400):
        question = policy(Random(number))
        try:
            modules = [parse_module(text, "m", question.version) for text in question.modules]
            program = compile_modules(modules)
        except RegoErrors:
            continue
        compiled = program.compiled
        node = compiled.tree.find(("t", "p"))
        found = read(compiled.tree, compiled.builtins, node.path).dependencies
        if found.reads.whole:
            continue
        rule = program.rule(node.path)
        for turn in range(4):
            random = Random(f"{number} {turn}")
            given = mutated(question.input, random)
            before = value(rule, given, question.data)
            changed = scrambled(given, found.reads.at("input"), random)
            data = _object(scrambled(question.data, found.reads.at("data"), random))
            evaluations += 1
            if value(rule, changed, data) != before:
                differing.append(number)
    assert evaluations > 200
    assert differing == []


def value(rule, given, data):
    try:
        evaluated = rule(given, data, EvaluationContext(deadline=time.monotonic() + PATIENCE))
    except EvaluationError as error:
        return str(error)
    return None if evaluated is UNDEFINED else key(evaluated)
