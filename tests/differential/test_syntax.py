"""Our parser beside OPA's: the same trees, and the same refusals."""

import json
import os
import random
import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from tests.conformance.gatekeeper import require
from tests.differential.opa_syntax import comparable
from tests.differential.oracle import Oracle
from tests.differential.policies import of_cases
from tests.properties.rego_words import WORDS
from webhook.rego.builtins.module_json import module_document
from webhook.rego.errors import RegoErrors
from webhook.rego.syntax.parser import parse_module

require("opa")

SECONDS = float(os.environ.get("FUZZ_SECONDS", "10"))
# The same modules in every run, so that a failure is a change's.
SEED = int(os.environ.get("FUZZ_SEED", "20261121"))
MUTANTS = 3000
TOKEN = re.compile(r'\s+|[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)*"|`[^`]*`|.', re.DOTALL)
# OPA confuses the operators with the keywords of the same name where those are imported, and
# takes the empty set for the name of a default rule.
ODDITIES = re.compile(r"\.[&|]|default\s+set\(")

Errors = list[tuple[str, int, int]]


def sources() -> list[tuple[str, str]]:
    """Every module of OPA's cases with its version."""
    return sorted({(one, q.version) for _, q in of_cases() for one in q.modules})


def ours(source: str, version: Any) -> tuple[Any, Errors]:
    """Our tree in OPA's form, or our errors."""
    try:
        module = parse_module(source, "test-0.rego", version)
    except RegoErrors as errors:
        return None, [(one.message, one.location.row, one.location.col) for one in errors.errors]
    return comparable(module_document(module)), []


def theirs(opa: Oracle, source: str, version: str) -> tuple[Any, Errors]:
    """OPA's tree, or its errors; neither where it cannot print the tree."""
    found = opa.ask(op="parse", version=version, modules=[source])
    if "modules" in found:
        return comparable(json.loads(json.dumps(found["modules"][0]))), []
    if found["stage"] == "encode":  # a number written `.5`, which Go does not print
        return None, []
    errors = found["errors"]
    return None, [
        (one["message"], int(one.get("row", 0)), int(one.get("col", 0))) for one in errors
    ]


def without_repetition(tree: Any) -> Any:
    """The tree with sets and objects in which equals stand once, as OPA builds them."""
    if isinstance(tree, dict):
        if tree.get("type") == "set" and isinstance(tree["value"], list):
            return {"type": "set", "value": len({_number(one) for one in tree["value"]})}
        if tree.get("type") == "object" and isinstance(tree["value"], list):
            keys = {_number(key) for key, _ in tree["value"]}
            if len(keys) < len(tree["value"]):
                return {"type": "object", "value": len(keys)}
        if tree.get("type") == "templatestring" and not tree["value"].get("parts"):
            return {"type": "templatestring"}
        return {name: without_repetition(one) for name, one in tree.items()}
    return [without_repetition(one) for one in tree] if isinstance(tree, list) else tree


def _number(term: Any) -> str:
    return repr(float(term["value"])) if term["type"] == "number" else repr(term)


@pytest.mark.slow
def test_every_module_of_the_cases_parses_as_in_opa(opa: Oracle):
    """To the same tree, or to an error at the same place."""
    for source, version in sources():
        mine, my_errors = ours(source, version)
        real, real_errors = theirs(opa, source, version)
        if mine is None or real is None:
            assert my_errors[:1] == real_errors[:1], source
        else:
            assert without_repetition(mine) == without_repetition(real), source


def mutants(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Modules with a few tokens dropped, doubled, swapped or replaced."""
    modules = [(source, version) for source, version in sources() if len(source) < 1500]
    while True:
        source, version = chance.choice(modules)
        tokens = TOKEN.findall(source)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
            kind = chance.randrange(4)
            if kind == 0:
                tokens[at] = ""
            elif kind == 1:
                tokens[at] = chance.choice(WORDS)
            elif kind == 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            else:
                tokens.insert(at, tokens[other])
        yield "".join(tokens), version if chance.random() < 0.7 else "v1"


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
def test_opa_refuses_the_mutants_that_we_refuse(opa: Oracle):
    """Other mutants are parsed as OPA parses them. FUZZ_SEED chooses other mutants."""
    deadline = time.monotonic() + SECONDS
    for source, version in islice(mutants(random.Random(SEED)), MUTANTS):
        if time.monotonic() > deadline:
            break
        if ODDITIES.search(source):
            continue
        mine, my_errors = ours(source, version)
        real, real_errors = theirs(opa, source, version)
        if not real_errors and real is None:
            continue
        refused = bool(my_errors), bool(real_errors)
        assert refused[0] == refused[1], f"seed {SEED}: {my_errors} {real_errors}\n{source}"
        if mine is not None:
            assert without_repetition(mine) == without_repetition(real), f"seed {SEED}\n{source}"
