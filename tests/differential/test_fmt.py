"""Our layout beside OPA's: a part of what ``python -m tests.differential.fmt`` compares."""

import os
import random

import pytest

from tests.conformance.gatekeeper import require
from tests.differential.fmt import Count, mutant, sources
from tests.differential.oracle import Oracle
from tests.programs import CONFORMANCE

require("opa")

SEED = int(os.environ.get("FUZZ_SEED", "20261128"))
EVERY = 20
MUTANTS = 400

QUIRKS = (
    "f(_) := 1 if { true } else := 2 if x\n",
    "p[_] := 1 if x\nf([_]) := 1 if { x } else := 2\n",
    "p.foo := 1\nq[1 + 2] := 3\n",
    "p contains x if {\n\tx := {1,\n\t# a\n\t2}\n}\n",
    "p if {\n\tx := -y # b\n\t-1 < {1, 1.0, 10e-1}[z]\n}\n",
    "p if not x with input as 1\n\twith data.a as {\n\t\t# c\n\t}\n",
    'p := $"a{ # d\nx }b{1}"\n',
    "p := {(a | b): (c | d) | a | b}\n",
    "import data.b\nimport data.a as x # e\n\nimport rego.v1\np := x\n",
    "import future.keywords.not\nimport future.keywords.or\np if { not { a; b } or (c and d) }\n",
    "p := plus(1)\n",
    "p if (a | b)\nq if { a | b == c }\n",
    "# METADATA\n# title: x\n# METADATA\n# title: y\np := 1\n",
    "p if { f(x, # g\n\ty) }\n# h",
)
"""Sources whose layout in OPA follows only from OPA's own code."""


@pytest.mark.slow(40)
def test_files_are_laid_out_as_by_opa(opa: Oracle):
    """FUZZ_SEED chooses other files and other mutants."""
    chance = random.Random(SEED)
    found = Count()
    files = [*sources([CONFORMANCE / "opa", CONFORMANCE / "gatekeeper-library"])]
    files += [*sources([CONFORMANCE / "rego-corpora", CONFORMANCE / "conftest"])]
    for name, source in chance.sample(files, len(files) // EVERY):
        found.compare(opa, name, source)
    small = [one for one in files if len(one[1]) < 2000]
    for _ in range(MUTANTS):
        name, source = chance.choice(small)
        found.compare(opa, name, mutant(source, chance), words=False)
    assert not found.differing, f"seed {SEED}\n{found.differing[0]}"
    assert found.counts["laid out"] > MUTANTS


def test_quirks_are_opas(opa: Oracle):
    found = Count()
    for source in QUIRKS:
        found.compare(opa, source, f"package p\n\n{source}")
    assert not found.differing, found.differing[0]
    assert found.counts["laid out"] > len(QUIRKS)
