"""Mutators and ExpansionTemplates beside Gatekeeper's module: the same objects, errors and words."""

import os
import sys

import pytest

from tests.differential.mutators.search import search
from tests.differential.oracle import Oracle

SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
# The same questions in every run, so that a failure is a change's.
SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
QUESTIONS = 4000 if "FUZZ_SECONDS" not in os.environ else sys.maxsize


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
def test_random_mutators_make_of_objects_what_gatekeeper_makes(
    gatekeeper_mutation: Oracle,
) -> None:
    found: list[str] = []
    counted = search(gatekeeper_mutation, SEED, SECONDS, QUESTIONS, found.append)
    print(dict(counted))
    assert found == []
    assert counted["mutation, answered"] > 10
    assert counted["expansion, answered"] > 10
    assert counted["location, answered"] > 10
