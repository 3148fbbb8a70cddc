"""Fields outside of a read set have no effect: they are changed, and all results stay."""

from pathlib import Path
from random import Random

import pytest

from tests.conformance.gatekeeper import CONFORMANCE
from tests.conformance.opa_cases import load_cases
from tests.differential.grammar import policy
from tests.programs import ROOT
from tests.webhook.reads.evaluations import (
    DRIVERS,
    FOLDERS,
    inventory_of,
    objects_near,
    parameters_by_kind,
    result,
    review_of,
    templates,
    value,
)
from tests.webhook.reads.scrambled import mutated, scrambled
from webhook.constraint.drivers.reads import dependencies_of
from webhook.constraint.template import CEL, REGO
from webhook.reads.read_set import ReadSet
from webhook.rego.engine import UNDEFINED, compile_modules
from webhook.rego.errors import RegoErrors
from webhook.rego.reads import read
from webhook.rego.syntax.parser import parse_module

ROUNDS = 12


def whole_review(review):
    """The form that every review has, whatever stands in it."""
    objects = {name: review.get(name) for name in ("object", "oldObject", "namespaceObject")}
    parts = {name: review.get(name) for name in ("kind", "resource", "userInfo")}
    objects["namespaceObject"] = objects["namespaceObject"] or {}
    shaped = {name: one if isinstance(one, dict) else {} for name, one in parts.items()}
    if not isinstance(objects["namespaceObject"], dict):
        objects["namespaceObject"] = {}
    return {**review, **objects, **shaped}


def all_of(values):
    return values


def differences(folder: Path, engine: str, reads_of=lambda of: of.reads, seen_of=all_of):
    """Returns counts of evaluations and findings, with those that differ.

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


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_counts_for_equal_keys_alone_makes_no_difference_without_them(folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set WADDLE_CONFORMANCE")
    evaluations, denied, differing = differences(
        folder, REGO, lambda of: (of.distinct or of).deciding, bool
    )
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
