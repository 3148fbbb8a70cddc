"""The tool that puts faults into the generator finds those that are, and no others."""

import ast
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

from tests.differential.composition import reached
from tests.differential.composition.comparison import ComposedRule
from tests.differential.composition.mutants import (
    CAUGHT,
    SURVIVORS,
    UNIT_TESTS,
    Tally,
    all_mutants,
    reasons,
    through_lines,
)
from tests.differential.composition.mutations import Mutant
from tests.differential.composition.prepared import prepared
from tests.differential.composition.trial import (
    GENERATOR,
    WRITTEN,
    Fate,
    Question,
    Trial,
    ended,
    without_a_fault,
)
from tests.differential.oracle import Oracle
from tests.programs import Programs
from webhook.rego.engine import CompileOptions


def alone(check: Callable[[Oracle], None]) -> Callable[[Programs], None]:
    """A test in a process of its own.

    A trial is a fork. In a worker of pytest's another thread may hold a lock at that moment, which
    the trial would wait for without end.
    """
    name = check.__name__

    def test(program: Programs) -> None:
        oracle = program("tests/oracles/opa")
        process = get_context("spawn").Process(target=_run, args=(name, oracle))
        process.start()
        process.join()
        assert process.exitcode == 0

    test.__name__ = name
    CHECKS[name] = check
    return test


def _run(name: str, program: Path) -> None:
    with Oracle(program) as opa:
        CHECKS[name](opa)


CHECKS: dict[str, Callable[[Oracle], None]] = {}
RULES = {
    "p": "p contains i if { some i, v in input.parameters.vs; is_number(v); v != 1 }",
    "f": "f contains i if { some i, v in input.parameters.vs; g(v) }\ng(v) if { count(v); not 1 in v }",
}


def questions(opa: Oracle, *rules: ComposedRule) -> list[Question]:
    """Prepared, and answered as by OPA."""
    options = CompileOptions(compile_parts=WRITTEN.compile_parts)
    prepared_questions = [*map(Question, prepared(opa, rules, options))]
    assert all(one.is_as_real() for one in prepared_questions)
    assert through_lines(prepared_questions)
    return prepared_questions


def fault(module: str, right: str, wrong: str) -> Mutant:
    """The module with other text."""
    text = (GENERATOR / module).read_text()
    assert right in text
    return Mutant(module, 1, wrong, "", lambda: ast.parse(text.replace(right, wrong)))


@alone
def test_a_generator_without_a_fault_writes_the_same_code_and_one_with_it_is_killed(opa: Oracle):
    batch = questions(opa, *(ComposedRule(name, "body", rule) for name, rule in RULES.items()))
    for module in ("inline.py", "expression.py", "function_requests.py"):
        assert Trial(without_a_fault(module), batch).outcome().fate is Fate.EQUIVALENT
    found = Trial(fault("expression.py", '" and ".join', '" or ".join'), batch).outcome()
    assert found.fate is Fate.KILLED
    assert found.killer in batch


@alone
def test_several_at_once_are_distinguished(opa: Oracle):
    batch = questions(opa, ComposedRule("p", "body", RULES["p"]))
    wrong = fault("expression.py", '" and ".join', '" or ".join')
    broken = fault("expression.py", '" and ".join', '" and ) ".join')
    some = [
        without_a_fault("inline.py"),
        wrong,
        broken,
        without_a_fault("function_requests.py"),
        wrong,
    ]
    begun: list[Trial] = []

    def trials() -> Iterator[Trial]:
        for one in some:
            begun.append(Trial(one, batch))
            yield begun[-1]

    over = []
    for trial in ended(trials(), jobs=2):
        assert len(begun) - len(over) <= 2
        over.append(trial)
        expected = Fate.EQUIVALENT if trial.mutant.description == "no fault" else Fate.KILLED
        assert trial.outcome().fate is expected
    assert sorted(map(id, over)) == sorted(map(id, begun))
    assert [one.mutant for one in begun] == some


@alone
def test_a_fault_that_only_costs_time_is_killed_by_the_tests_of_fast_ways(opa: Oracle):
    batch = questions(
        opa,
        ComposedRule(
            "p", "body", "p contains i if { some i, v in input.parameters.vs; v == null }"
        ),
    )
    mutant = fault("unification.py", "if a.value is None or", "if a.value is None and")
    assert Trial(mutant, batch).outcome().fate is Fate.SURVIVED
    assert Trial(mutant, batch, UNIT_TESTS).outcome().fate is Fate.CAUGHT


def test_each_fault_that_has_a_reason_can_be_put_in():
    names = {one.name for one in all_mutants()}
    for table in (SURVIVORS, CAUGHT):
        assert sorted(reasons(table).keys() - names) == [], (
            "no such line: it was changed, or is gone"
        )


def test_each_fault_has_one_reason_or_none():
    for table in (SURVIVORS, CAUGHT):
        lines = [one for one in table.read_text().splitlines() if one and not one.startswith("#")]
        assert len(lines) == len(reasons(table))
        assert all(reasons(table).values())


def test_what_may_change_an_answer_is_to_be_killed_by_questions(capsys):
    """Other tests that find it do not count, unless it is said why it changes no answer."""
    some = [Mutant("m.py", n, "a fault", f"line {n}", lambda: ast.parse("")) for n in range(8)]
    tally = Tally(some, {some[6].name: "only slower"}, {some[5].name: "only slower"})
    fates = [*[Fate.KILLED] * 4, *[Fate.CAUGHT] * 2, *[Fate.SURVIVED, Fate.EQUIVALENT]]
    for mutant, fate in zip(some, fates, strict=True):
        tally.add(mutant, fate, 3)
    assert (tally.killed, tally.same, tally.able, tally.unexplained) == (4, 1, 1, 1)
    assert tally.share == 4 / 6
    tally.report()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("m.py | a fault | line 4   (line 4, 3 questions, killed by the")
    assert lines[1].startswith("m.py | a fault | line 7 ")
    assert lines[-1] == "66.7 % of 6 that may change an answer killed by questions"


def test_each_line_that_has_a_reason_is_there():
    gone = [
        f"{file} | {source}"
        for file, source in reached.reasons()
        if source not in map(str.strip, (GENERATOR / file).read_text().splitlines())
    ]
    assert gone == [], "no such line: it was changed, or is gone"
