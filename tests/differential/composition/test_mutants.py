"""The tool that puts faults into the generator finds those that are, and no others."""

import ast

from tests.differential.composition.comparison import Asked
from tests.differential.composition.mutants import (
    GENERATOR,
    UNIT_TESTS,
    WRITTEN,
    Fate,
    Question,
    outcome,
    through_lines,
    without_a_fault,
)
from tests.differential.composition.mutations import Mutant
from tests.differential.composition.prepared import prepared
from tests.differential.oracle import Oracle
from webhook.rego.engine import CompileOptions

RULES = {
    "p": "p contains i if { some i, v in input.parameters.vs; is_number(v); v != 1 }",
    "f": "f contains i if { some i, v in input.parameters.vs; g(v) }\ng(v) if { count(v); not 1 in v }",
}


def test_a_generator_without_a_fault_writes_the_same_code_and_one_with_it_is_killed(opa: Oracle):
    options = CompileOptions(compile_parts=WRITTEN.compile_parts)
    rules = [Asked(name, "body", rule) for name, rule in RULES.items()]
    asked = [*map(Question, prepared(opa, rules, options))]
    assert all(one.is_as_real() for one in asked)
    assert through_lines(asked)
    for module in ("inline.py", "expression.py", "wanted.py"):
        assert outcome(without_a_fault(module), asked).fate is Fate.UNTOLD
    text = (GENERATOR / "expression.py").read_text()
    wrong = text.replace('" and ".join', '" or ".join')
    assert wrong != text
    mutant = Mutant("expression.py", 1, "or for and", "", ast.parse(wrong))
    assert outcome(mutant, asked).fate is Fate.KILLED


def test_a_fault_that_only_costs_time_is_killed_by_the_tests_of_fast_ways(opa: Oracle):
    options = CompileOptions(compile_parts=WRITTEN.compile_parts)
    rules = [Asked("p", "body", "p contains i if { some i, v in input.parameters.vs; v == null }")]
    asked = [*map(Question, prepared(opa, rules, options))]
    through_lines(asked)
    text = (GENERATOR / "unification.py").read_text()
    slower = text.replace("if a.value is None or", "if a.value is None and")
    assert slower != text
    mutant = Mutant("unification.py", 1, "and for or", "", ast.parse(slower))
    assert outcome(mutant, asked).fate is Fate.SURVIVED
    assert outcome(mutant, asked, unit_tests=UNIT_TESTS).fate is Fate.KILLED
