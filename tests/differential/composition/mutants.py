"""Whether composed literals find faults put into the generator.

``python -m tests.differential.composition.mutants`` puts each fault of ``mutations`` into the
generator, writes the code of rules that go through the line and runs it: a mutant is killed when
an answer is not OPA's, when code cannot be written, verified or run, and when the generator's own
tests fail. All others survive: ``survivors.txt`` has the reasons of those that cannot be wrong, and
what is left is printed. Each mutant has a process of its own, forked with all questions prepared.
"""

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import io
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import coverage
import pytest

from tests import verified_code
from tests.differential.composition.comparison import answered, answered_after_another
from tests.differential.composition.corners import corners
from tests.differential.composition.mutations import Mutant, mutants
from tests.differential.composition.prepared import GENERAL, Prepared, prepared
from tests.differential.composition.questions import some_bodies, some_pairs
from tests.differential.oracle import Oracle
from tests.programs import ROOT, build
from webhook.rego import engine, program
from webhook.rego.write import generate

GENERATOR: Final = ROOT / "webhook" / "rego" / "write"
PACKAGE: Final = "webhook.rego.write"
SURVIVORS: Final = Path(__file__).with_name("survivors.txt")

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

LONG: Final = (
    "tests/webhook/rego/write/test_reads.py::test_what_was_read_before_is_what_would_be_read_again"
)
"""Left out: random policies, of which the compositions have more."""

QUESTIONS: Final = 400
"""Through a mutant's line, besides all corners: those of the most common lines are too many."""

CPU_SECONDS, MEMORY_BYTES = 4.0, 3 << 30
"""For one question; beyond them a mutant is killed: its code does not end."""

# What decides how much an evaluation pays, or only how a body is cut into functions.
LEFT_OUT: Final = {"statement.py", "payment.py", "common_reads.py", "__init__.py"}

BEFORE_WRITING: Final = {"constants.py"}
"""What works when questions are prepared, too: parameters are put into the rules."""

CHECKED_AGAIN: Final = 200
"""Questions of those, whose programs are checked once more for each mutant."""

ALIASES: Final = re.compile(r"\b[bc]\d+\b")
"""Names of built-ins in generated code."""


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survive"
    UNTOLD = "write the same code for all questions"


@dataclass(slots=True)
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module of the generator from other code."""

    module: str
    code: CodeType

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """For the one module."""
        if fullname == self.module:
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the other code."""
        exec(self.code, module.__dict__)


def put_in(mutant: Mutant) -> None:
    """Import the generator anew with the fault in it; the parser and checker stay as they are."""
    module = f"{PACKAGE}.{mutant.module.removesuffix('.py')}"
    sys.meta_path.insert(0, Finder(module, compile(mutant.tree, mutant.module, "exec")))
    # The package, too: its attributes are the modules as they were.
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    # In place, so that programs which are checked already write with it.
    importlib.reload(program)


class SameCodeError(BaseException):
    """What is to be compiled is what the generator writes without a fault."""


@dataclass(slots=True)
class Written:
    """Takes generated code on its way to CPython's compiler."""

    last: int = 0
    """The digest of what was written last."""
    same: int = 0
    """The digest of what need not be compiled."""

    def compile_parts(self, parts: Sequence[str]) -> tuple[CodeType, ...]:
        """Compile the source, unless nobody needs it; raises :class:`SameCodeError`."""
        self.last = hash(tuple(parts))
        if self.last == self.same:
            raise SameCodeError
        source = "\n".join(parts)
        names = generate.NAMESPACE
        verified_code.verify(
            source, {*names, *names["__builtins__"], "L", *ALIASES.findall(source)}
        )
        return generate.compile_parts(parts)


WRITTEN: Final = Written()


@dataclass(slots=True)
class Question:
    """A prepared rule, and the digest of the code that is written for it each time."""

    rule: Prepared
    digest: int = 0

    def is_as_real(self) -> bool:
        """Whether our answer is OPA's."""
        return bool(_answer(self.rule) == self.rule.real)

    def write(self) -> None:
        """Write the code, and learn its digest."""
        _forget(self.rule)
        self.rule.compiled.document(self.rule.path)
        self.digest = WRITTEN.last


def _forget(one: Prepared) -> None:
    """Let a program write as if for the first time."""
    one.compiled._documents.clear()
    one.compiled.places.clear()


def _answer(one: Prepared) -> Any:
    _forget(one)
    found = answered(
        lambda: engine.CompiledRule(one.compiled.document(one.path)).entry, one.input_value
    )
    if found != one.real or one.way != GENERAL:
        return found
    rule = engine.CompiledRule(one.compiled.document(one.path))
    parameters = one.input_value["parameters"]
    return answered(answered_after_another(rule.for_parameters, parameters), one.input_value)


def without_a_fault(module: str) -> Mutant:
    """The generator as it is: no question may tell it from itself."""
    return Mutant(module, 1, "no fault", "", ast.parse((GENERATOR / module).read_text()))


@dataclass(slots=True)
class Outcome:
    """What became of a mutant, and the number of the question that killed it."""

    fate: Fate
    killer: int = -1


def outcome(
    mutant: Mutant, questions: Sequence[Question], *, unit_tests: Sequence[str] = ()
) -> Outcome:
    """What the questions show, and tests if they show nothing, in a process with the fault."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            warnings.simplefilter("error")  # CPython's compiler has words for odd code
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
            os.write(writing, _tried(mutant, questions, unit_tests).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    if not told:  # the process has ended: the generator, or its code, does not work or does not end
        return Outcome(Fate.KILLED)
    fate, _, killer = told.partition(":")
    return Outcome(Fate[fate], int(killer or -1))


def _tried(mutant: Mutant, questions: Sequence[Question], unit_tests: Sequence[str]) -> str:
    try:
        put_in(mutant)
    except Exception:  # noqa: BLE001  # whatever it is: the generator does not even begin
        return Fate.KILLED.name
    if mutant.module in BEFORE_WRITING:
        questions = checked_again(questions[:CHECKED_AGAIN])
    fate, killer = _asked(questions)
    if fate is not Fate.KILLED and unit_tests and _fails(unit_tests):
        fate = Fate.KILLED
    return f"{fate.name}:{killer}"


def checked_again(questions: Sequence[Question]) -> list[Question]:
    """The questions, prepared by the code that runs now."""
    programs: dict[int, Any] = {}
    found = []
    for one in questions:
        at = id(one.rule.compiled)
        if at not in programs:
            programs[at] = one.rule.again()
        found.append(Question(replace(one.rule, compiled=programs[at]), one.digest))
    return found


def _asked(questions: Sequence[Question]) -> tuple[Fate, int]:
    fate = Fate.UNTOLD
    for number, one in enumerate(questions):
        WRITTEN.same = one.digest
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
        try:
            if _answer(one.rule) != one.rule.real:
                return Fate.KILLED, number
        except SameCodeError:
            continue
        except BaseException:  # noqa: BLE001  # code that cannot be written or verified
            return Fate.KILLED, number
        fate = Fate.SURVIVED
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return fate, -1


def _fails(unit_tests: Sequence[str]) -> bool:
    """Whether the generator's own tests find the fault."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        return pytest.main([*options, *unit_tests, "--deselect", LONG]) != pytest.ExitCode.OK


def through_lines(asked: Sequence[Question]) -> dict[tuple[str, int], list[int]]:
    """Which questions go through each line of the generator."""
    measured = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{GENERATOR}/*"], branch=False
    )
    measured.start()
    for number, one in enumerate(asked):
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
    """Which questions a mutant is tried with, the most promising first."""

    asked: Sequence[Question]
    through: Mapping[tuple[str, int], list[int]]
    chance: random.Random
    killers: dict[int, None] = field(default_factory=dict)
    """Questions that have killed another mutant, the latest last."""

    def chosen(self, mutant: Mutant) -> list[int]:
        """Their numbers."""
        # What runs while modules are imported is in no question's way: a table, a constant.
        numbers = self.through.get((mutant.module, mutant.line), []) or range(len(self.asked))
        corners_, others = [], []
        for number in numbers:
            place = self.asked[number].rule.asked.place
            (corners_ if place.endswith("corner") else others).append(number)
        others = self.chance.sample(others, min(QUESTIONS, len(others)))
        within = {*corners_, *others}
        first = [number for number in reversed(self.killers) if number in within]
        return list(dict.fromkeys((*first, *others[:20], *corners_, *others)))

    def learn(self, number: int) -> None:
        """That question has killed."""
        self.killers.pop(number, None)
        self.killers[number] = None


def all_mutants(chance: random.Random, share: float, modules: Sequence[str]) -> Iterator[Mutant]:
    """Those of each module, or a share of them."""
    for path in sorted(GENERATOR.glob("*.py")):
        if path.name in LEFT_OUT or (modules and path.stem not in modules):
            continue
        for mutant in mutants(path.name, path.read_text()):
            if chance.random() < share:
                yield mutant


def reasons() -> dict[str, str]:
    """Why a mutant survives, by its name."""
    found = {}
    for line in SURVIVORS.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.rpartition(" | ")
            found[name.strip()] = reason.strip()
    return found


def asked_questions(oracle: Oracle, seed: int, pairs: int, bodies: int) -> list[Question]:
    """Those that both engines answer alike."""
    compiling = engine.CompileOptions(compile_parts=WRITTEN.compile_parts)
    rules: list[Prepared] = []
    for some in (corners(), some_pairs(seed, pairs), some_bodies(seed, bodies)):
        rules += prepared(oracle, some, compiling)
    return [one for one in map(Question, rules) if one.is_as_real()]


def main(arguments: list[str]) -> int:
    """Put in each fault, and print what survives; 1 if there are such without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.composition.mutants")
    parser.add_argument("modules", nargs="*", help="of the generator; all if none is named")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, by chance")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--bodies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261122)
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    began = time.monotonic()
    with Oracle(build("tests/oracles/opa")) as oracle:
        asked = asked_questions(oracle, options.seed, options.pairs, options.bodies)
    chooser = Chooser(asked, through_lines(asked), chance)
    print(f"{len(asked)} questions, prepared in {time.monotonic() - began:.0f} s", flush=True)
    os.chdir(ROOT)
    right = without_a_fault("wanted.py")
    tests = (OF_EXPRESSIONS, *UNIT_TESTS)
    assert outcome(right, asked[:60], unit_tests=tests).fate is Fate.UNTOLD, "it is right"
    counted: Counter[Fate] = Counter()
    known, used, unexplained = reasons(), set(), 0
    for mutant in all_mutants(chance, options.share, options.modules):
        numbers = chooser.chosen(mutant)
        tests = (OF_EXPRESSIONS, *UNIT_TESTS) if mutant.module == "expression.py" else UNIT_TESTS
        found = outcome(mutant, [asked[number] for number in numbers], unit_tests=tests)
        counted[found.fate] += 1
        if found.fate is Fate.KILLED:
            if found.killer >= 0:
                chooser.learn(numbers[found.killer])
            continue
        if mutant.name in known:
            used.add(mutant.name)
            continue
        unexplained += 1
        tried = f"line {mutant.line}, {len(numbers)} questions, {found.fate.value}"
        print(f"{mutant.name}   ({tried})", flush=True)
    assert outcome(right, asked[:60]).fate is Fate.UNTOLD, "the sources were changed meanwhile"
    for name in sorted(known.keys() - used) if options.share == 1 and not options.modules else ():
        print(f"killed after all, or no longer there: {name}")
    report(counted, unexplained, time.monotonic() - began)
    return int(unexplained > 0)


def report(counted: Counter[Fate], unexplained: int, seconds: float) -> None:
    """The figures: of all, and of those that can be wrong."""
    for fate in Fate:
        print(f"{counted[fate]} {fate.value}")
    killed, everything = counted[Fate.KILLED], counted.total()
    explained = everything - killed - unexplained
    print(f"{explained} survive with a reason why they cannot be wrong, {unexplained} without")
    print(f"{100 * killed / max(everything, 1):.1f} % of all {everything} killed")
    able = killed + unexplained
    print(f"{100 * killed / max(able, 1):.1f} % of {able} that can be wrong killed")
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
