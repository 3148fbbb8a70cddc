"""Whether composed literals find faults put into the generator.

``python -m tests.differential.composition.mutants`` puts each fault of ``mutations`` into the
generator, writes the code of rules that go through the line and runs it: a mutant is killed when
an answer is not OPA's, and when code cannot be written, verified or run. What questions do not
kill the generator's own tests are asked about: some faults only make code slower, and are to be
found as well. Tables have the reasons of those that change no answer, ``survivors.txt`` of what
nothing finds and ``caught.txt`` of what the own tests alone find; all others are printed. The
questions are to kill 95 % of what can change an answer. Each mutant has a process of its own, forked
with all questions prepared.
"""

import argparse
import gc
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage

from tests.differential.composition.corners import corners
from tests.differential.composition.mutations import Mutant, mutants
from tests.differential.composition.prepared import Prepared, prepared
from tests.differential.composition.questions import some_bodies, some_pairs
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
from tests.programs import ROOT, build
from webhook.rego import engine

SURVIVORS: Final = Path(__file__).with_name("survivors.txt")
CAUGHT: Final = Path(__file__).with_name("caught.txt")

SHARE: Final = 0.95
"""Of the mutants that can change an answer: so many are to be killed by questions."""

OF_EXPRESSIONS: Final = "tests/webhook/rego/write/test_expression_trees.py"
OF_WHAT_IS_KNOWN: Final = "tests/webhook/rego/test_known.py"
"""Tests that do not compare code: what is joined, and what is known before an evaluation."""

UNIT_TESTS: Final = (
    OF_WHAT_IS_KNOWN,
    *(
        f"tests/webhook/rego/write/test_{name}.py"
        for name in (
            *("fast_ways", "forms_in_bodies", "grouped", "names_of_values"),
            *("reads", "rule_bodies"),
        )
    ),
)
"""Tests of the generator alone, which need no program of others."""

QUESTIONS: Final = 400
"""Through a mutant's line, besides all corners: those of the most common lines are too many."""

# Modules that decide an evaluation's charges, or only the cut of a body into functions.
LEFT_OUT: Final = {"statement.py", "payment.py", "common_reads.py", "__init__.py"}

SURVIVING: Final = (Fate.SURVIVED, Fate.EQUIVALENT)


def through_lines(questions: Sequence[Question]) -> dict[tuple[str, int], list[int]]:
    """Returns the numbers of the questions that go through each line of the generator."""
    measured = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{GENERATOR}/*"], branch=False
    )
    measured.start()
    for number, one in enumerate(questions):
        measured.switch_context(str(number))
        one.write()
    measured.stop()
    data = measured.get_data()
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for path in data.measured_files():
        for line, contexts in data.contexts_by_lineno(path).items():
            found[Path(path).name, line] = sorted(int(one) for one in contexts if one)
    return found


@dataclass(slots=True)
class Chooser:
    """Chooses the questions for a mutant, the most promising first."""

    questions: Sequence[Question]
    through: Mapping[tuple[str, int], list[int]]
    chance: random.Random
    killers: dict[Question, None] = field(default_factory=dict)
    """Questions that have killed another mutant, the latest last."""

    def chosen(self, mutant: Mutant) -> list[Question]:
        """Returns the questions that execute the mutant's line."""
        # Lines that run at import are on no question's path: a table, a constant.
        numbers = self.through.get((mutant.module, mutant.line), []) or range(len(self.questions))
        corners_: list[Question] = []
        others: list[Question] = []
        for one in map(self.questions.__getitem__, numbers):
            (corners_ if one.rule.rule.place.endswith("corner") else others).append(one)
        others = self.chance.sample(others, min(QUESTIONS, len(others)))
        within = {*corners_, *others}
        first = [one for one in reversed(self.killers) if one in within]
        return list(dict.fromkeys((*first, *others[:20], *corners_, *others)))

    def learn(self, killer: Question) -> None:
        """Remembers a question that has killed a mutant."""
        self.killers.pop(killer, None)
        self.killers[killer] = None


def all_mutants(modules: Sequence[str] = ()) -> Iterator[Mutant]:
    """Yields the mutants of each module, or of the given modules alone."""
    for path in sorted(GENERATOR.glob("*.py")):
        if path.name in LEFT_OUT or (modules and path.stem not in modules):
            continue
        yield from mutants(path.name, path.read_text())


def reasons(table: Path) -> dict[str, str]:
    """Returns the reasons why mutants change no answer, by name."""
    found = {}
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.rpartition(" | ")
            found[name.strip()] = reason.strip()
    return found


def agreed_questions(oracle: Oracle, seed: int, pairs: int, bodies: int) -> list[Question]:
    """Returns the questions that both engines answer alike."""
    compiling = engine.CompileOptions(compile_parts=WRITTEN.compile_parts)
    rules: list[Prepared] = []
    for some in (corners(), some_pairs(seed, pairs), some_bodies(seed, bodies)):
        rules += prepared(oracle, some, compiling)
    return [one for one in map(Question, rules) if one.is_as_real()]


@dataclass(slots=True)
class Tally:
    """The fates of the mutants so far, by module, and the reasons of missing ones."""

    mutants: Sequence[Mutant]
    survivors: Mapping[str, str]
    """Reasons of what nothing finds."""
    caught: Mapping[str, str]
    """Reasons of what the generator's own tests alone find."""
    fates: dict[str, Counter[Fate]] = field(default_factory=lambda: defaultdict(Counter))
    explained: Counter[str] = field(default_factory=Counter)
    """Names of those that no question kills, with a reason why they change no answer."""
    same: int = 0
    """The number of mutants that write the same code and that the generator's own tests find."""
    able: int = 0
    """The number of mutants without a reason that only the generator's own tests find."""
    unexplained: int = 0
    """The number of mutants without a reason that neither questions nor tests find."""

    def add(self, mutant: Mutant, fate: Fate, tried: int) -> None:
        """Count one more, tried with so many questions; print what has no reason, and what ends a module."""
        fates = self.fates[mutant.module]
        fates[fate] += 1
        if fate is not Fate.KILLED:
            self._not_killed(mutant, fate, tried)
        if fates.total() == sum(one.module == mutant.module for one in self.mutants):
            killed = fates.total() - sum(fates[one] for one in SURVIVING)
            print(f"{mutant.module}: {killed} of {fates.total()} killed", flush=True)

    def _not_killed(self, mutant: Mutant, fate: Fate, tried: int) -> None:
        is_caught = fate is Fate.CAUGHT
        if mutant.name in (self.caught if is_caught else self.survivors):
            self.explained[mutant.name] += 1
            self.same += is_caught
            return
        self.able += is_caught
        self.unexplained += not is_caught
        detail = f"line {mutant.line}, {tried} questions, {fate.value}"
        print(f"{mutant.name}   ({detail})", flush=True)

    @property
    def killed(self) -> int:
        """Returns the number of mutants that questions kill."""
        return sum(fates[Fate.KILLED] for fates in self.fates.values())

    @property
    def share(self) -> float:
        """Returns the killed share of the mutants that can change an answer."""
        return self.killed / max(self.killed + self.able + self.unexplained, 1)

    def report(self) -> None:
        """The figures: of all, and of those that can change an answer."""
        counted = sum(self.fates.values(), Counter[Fate]())
        for name, count in self.explained.items():
            if count > 1:
                print(f"{count} have one reason: {name}")
        surviving = sum(counted[fate] for fate in SURVIVING)
        print(f"{counted.total()} mutants")
        print(f"{self.killed} killed by questions")
        print(f"{self.same} found by the generator's own tests alone that change no answer")
        print(f"{self.able} found by the generator's own tests alone that may change one")
        print(f"{surviving - self.unexplained} survive and change no answer")
        print(f"{self.unexplained} survive without a reason")
        able = self.killed + self.able + self.unexplained
        print(f"{100 * self.share:.1f} % of {able} that may change an answer killed by questions")


def main(arguments: list[str]) -> int:
    """Put in each fault, and print what no question kills; 1 if it is more than may be."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.composition.mutants")
    parser.add_argument("modules", nargs="*", help="of the generator; all if none is named")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, by chance")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--bodies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at once")
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    began = time.monotonic()
    with Oracle(build("tests/oracles/opa")) as oracle:
        questions = agreed_questions(oracle, options.seed, options.pairs, options.bodies)
    chooser = Chooser(questions, through_lines(questions), chance)
    print(f"{len(questions)} questions, prepared in {time.monotonic() - began:.0f} s", flush=True)
    os.chdir(ROOT)
    gc.collect()
    gc.freeze()  # or each mutant's process would go through, and so copy, all that is prepared
    right = without_a_fault("function_requests.py")
    tests = (OF_EXPRESSIONS, *UNIT_TESTS)
    assert Trial(right, questions[:60], tests).outcome().fate is Fate.EQUIVALENT, "it is right"
    some = [one for one in all_mutants(options.modules) if chance.random() < options.share]
    tally = Tally(some, reasons(SURVIVORS), reasons(CAUGHT))
    trials = (begun(chooser, mutant) for mutant in tally.mutants)
    for trial in ended(trials, options.jobs):
        found = trial.outcome()
        tally.add(trial.mutant, found.fate, len(trial.questions))
        if found.killer is not None:
            chooser.learn(found.killer)
    assert Trial(right, questions[:60]).outcome().fate is Fate.EQUIVALENT, (
        "sources changed meanwhile"
    )
    everything = options.share == 1 and not options.modules
    known = {*tally.survivors, *tally.caught}
    for name in sorted(known - tally.explained.keys()) if everything else ():
        print(f"killed after all, or no longer there: {name}")
    tally.report()
    print(f"{time.monotonic() - began:.0f} s")
    return int(tally.unexplained > 0 or (everything and tally.share < SHARE))


def begun(chooser: Chooser, mutant: Mutant) -> Trial:
    """A process that tries a mutant with what it is to be tried with."""
    tests = (OF_EXPRESSIONS, *UNIT_TESTS) if mutant.module == "expression.py" else UNIT_TESTS
    return Trial(mutant, chooser.chosen(mutant), tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
