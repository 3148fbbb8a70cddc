"""Policies of the libraries, objects and reviews near them, and what an evaluation comes to."""

import json
import time
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import yaml

from tests.conformance.gatekeeper import CONFORMANCE
from tests.programs import ROOT
from tests.webhook.reads.scrambled import mutated
from webhook.api.gvk import gvk_of
from webhook.constraint.constraint import is_constraint
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import PolicyError
from webhook.constraint.limits import Limits
from webhook.constraint.targets import admission
from webhook.constraint.template import CEL, REGO, read_template
from webhook.external_data.exchange import Unanswered
from webhook.rego.engine import UNDEFINED, EvaluationContext
from webhook.rego.errors import EvaluationError
from webhook.rego.run.values import key

FOLDERS = [ROOT / "policies", CONFORMANCE / "gatekeeper-library"]
DRIVERS: dict[str, RegoDriver | CelDriver] = {REGO: RegoDriver(), CEL: CelDriver()}
PATIENCE = 600


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
        outcome = evaluator.evaluate(parameters, review, state)
    except PolicyError as error:
        return str(error)
    except Unanswered as unanswered:  # of providers: what is asked hangs on what is read, too
        return repr(unanswered.requests)
    return [(json.dumps(one.msg), json.dumps(one.details)) for one in outcome]


def value(rule, given, data):
    try:
        evaluated = rule(given, data, EvaluationContext(deadline=time.monotonic() + PATIENCE))
    except EvaluationError as error:
        return str(error)
    return None if evaluated is UNDEFINED else key(evaluated)
