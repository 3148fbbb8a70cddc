"""A bounded part of all compositions, and that the search for differences would find one."""

from collections import Counter

import pytest

from tests.differential.composition import comparison
from tests.differential.composition.comparison import ComposedRule, Difference, batches, compared
from tests.differential.composition.corners import corners
from tests.differential.composition.known import reason
from tests.differential.composition.pairs import BODIES, OLDER, PAIRS, SEED
from tests.differential.composition.questions import some_bodies, some_pairs
from tests.differential.oracle import Oracle
from webhook.rego.builtins.registry import GATEKEEPER, LATEST


def differences(oracle: Oracle, questions, counted: Counter[str], level: str = LATEST) -> list[str]:
    """Returns the unknown differences; known differences are only counted."""
    found = []
    for batch in batches(questions, level):
        for one in compared(oracle, batch, counted):
            why = reason(one)
            counted[f"known: {why}"] += bool(why)
            if not why:
                found.append(one.shown())
    print(dict(counted))
    return found


@pytest.mark.slow(40)
@pytest.mark.timeout(600)
def test_pairs_of_literals_in_every_place_give_what_opa_gives(opa: Oracle):
    counted: Counter[str] = Counter()
    assert differences(opa, some_pairs(SEED, PAIRS), counted) == []
    assert counted["asked"] > 0.7 * PAIRS
    assert counted["other"] > 0.5 * counted["asked"], "most have an answer that shows something"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pairs_of_literals_give_what_gatekeeper_s_opa_gives(older_opa: Oracle):
    """At the level at which templates are compiled."""
    counted: Counter[str] = Counter()
    assert differences(older_opa, some_pairs(SEED + 1, OLDER), counted, GATEKEEPER) == []
    assert counted["asked"] > 0.6 * OLDER


@pytest.mark.slow(20)
@pytest.mark.timeout(600)
def test_random_bodies_give_what_opa_gives(opa: Oracle):
    counted: Counter[str] = Counter()
    assert differences(opa, some_bodies(SEED, BODIES), counted) == []
    assert counted["asked"] > 0.5 * BODIES


@pytest.mark.slow(20)
@pytest.mark.timeout(600)
def test_rare_rules_give_what_opa_gives(opa: Oracle):
    counted: Counter[str] = Counter()
    assert differences(opa, corners(), counted) == []
    assert counted["asked"] == len([*corners()]), "each is accepted, and asked"


def test_a_rule_that_answers_otherwise_is_found(opa: Oracle, monkeypatch: pytest.MonkeyPatch):
    """The comparison sees one wrong member, and rules that are refused do not hide the others."""
    questions = [
        ComposedRule("a", "body", "a contains v if some v in input.parameters.vs"),
        ComposedRule("b", "body", "b contains v if { v := 1; startswith(v, 2) }"),
        ComposedRule("c", "body", "c := x if x := 1"),
    ]
    real = comparison.answers_there

    def wrong(oracle, batch):
        found = real(oracle, batch)
        kind, members = found["a"]
        return found | {"a": (kind, members - {"ab"})}

    monkeypatch.setattr(comparison, "answers_there", wrong)
    counted: Counter[str] = Counter()
    (batch,) = batches(questions)
    (found,) = compared(opa, batch, counted)
    assert (found.rule.name, found.way) == ("a", "general")
    assert "ab" in found.shown()
    assert counted["refused"] == 1
    assert counted["asked"] == 2


def test_only_the_very_fault_of_opa_is_passed_over():
    """Another internal error of OPA is a difference."""
    question = ComposedRule("a", "body", "a := 1")
    message = "built-in function lt called with operand 1 that requires evaluation: __local1__"
    mine = ("set", frozenset())
    assert reason(Difference(question, "general", mine, ("error", "eval_internal_error", message)))
    assert not reason(Difference(question, "general", mine, ("error", "eval_internal_error", "x")))
    assert not reason(Difference(question, "general", mine, ("undefined", None)))
