"""Whether composed literals find faults put into the generator.

``python -m tests.differential.composition.mutants`` puts each fault of ``mutations`` into the
generator, writes the code of rules that go through the line and runs it: a mutant is killed when
an answer is not OPA's, and when code cannot be written or run. One that writes the very code of the
generator for all of them is none: nothing is wrong with it. The others survive and are printed;
``survivors.txt`` has the reasons for those whose code is another and as right.
"""

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import coverage

from tests.differential.composition.comparison import answered, answered_after_another
from tests.differential.composition.corners import corners
from tests.differential.composition.mutations import Mutant, mutants
from tests.differential.composition.prepared import GENERAL, Prepared, prepared
from tests.differential.composition.questions import some_bodies, some_pairs
from tests.differential.oracle import Oracle
from tests.programs import ROOT, build
from webhook.rego import engine, program

GENERATOR: Final = ROOT / "webhook" / "rego" / "write"
PACKAGE: Final = "webhook.rego.write"
SURVIVORS: Final = Path(__file__).with_name("survivors.txt")

FIRST, ALL = 60, 1500
"""Questions through a mutant's line that are asked at once, and of those that survive them."""

CPU_SECONDS, MEMORY_BYTES = 60, 3 << 30
"""Beyond them a mutant is killed: its code does not end."""

# What decides how much an evaluation pays, or only how a body is cut into functions.
LEFT_OUT: Final = {"statement.py", "payment.py", "common_reads.py", "__init__.py"}


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
        return engine.compile_parts(parts)


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


SAME_CODE, SURVIVED, KILLED = 0, 3, 1


def outcome(mutant: Mutant, questions: Sequence[Question]) -> int:
    """What the questions show, asked in a process with the fault."""
    child = os.fork()
    if child == 0:
        found = KILLED
        with contextlib.suppress(BaseException):  # whatever it is: the generator does not work
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            put_in(mutant)
            found = _asked(questions)
        os._exit(found)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code in (SAME_CODE, SURVIVED) else KILLED


def _asked(questions: Sequence[Question]) -> int:
    found = SAME_CODE
    for one in questions:
        WRITTEN.same = one.digest
        try:
            if _answer(one.rule) != one.rule.real:
                return KILLED
        except SameCodeError:
            continue
        found = SURVIVED
    return found


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


_ORDER: Final = (SAME_CODE, SURVIVED, KILLED)


def all_mutants(chance: random.Random, share: float) -> Iterator[Mutant]:
    """Those of each module, or a share of them."""
    for path in sorted(GENERATOR.glob("*.py")):
        if path.name not in LEFT_OUT:
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


def main(arguments: list[str]) -> int:
    """Put in each fault, and print what survives; 1 if there are such without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.composition.mutants")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, by chance")
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--bodies", type=int, default=800)
    parser.add_argument("--seed", type=int, default=20261122)
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)
    compiling = engine.CompileOptions(compile_parts=WRITTEN.compile_parts)
    rules: list[Prepared] = []
    with Oracle(build("tests/oracles/opa")) as oracle:
        for some in (
            some_pairs(options.seed, options.pairs),
            some_bodies(options.seed, options.bodies),
            corners(),
        ):
            rules += prepared(oracle, some, compiling)
    asked = [one for one in map(Question, rules) if one.is_as_real()]
    print(f"{len(asked)} questions", flush=True)
    through = through_lines(asked)
    counted: Counter[str] = Counter()
    known, used = reasons(), set()
    right = without_a_fault("wanted.py")
    assert outcome(right, asked[:FIRST]) == SAME_CODE, "what is right is not taken for it"
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    for mutant in all_mutants(chance, options.share):
        counted["mutants"] += 1
        numbers = through.get((mutant.module, mutant.line), [])
        # What runs while modules are imported is in no question's way: a table, a constant.
        chosen = chance.sample(numbers, min(ALL, len(numbers))) or chance.sample(
            range(len(asked)), min(ALL, len(asked))
        )
        questions = [asked[number] for number in chosen]
        found = outcome(mutant, questions[:FIRST])
        if found != KILLED:
            found = max(found, outcome(mutant, questions[FIRST:]), key=_ORDER.index)
        if found != SURVIVED:
            counted["killed" if found == KILLED else "write the same code"] += 1
            continue
        if mutant.name in known:
            used.add(mutant.name)
            counted["survive with a reason"] += 1
            continue
        counted["survive"] += 1
        reached = f"{len(numbers)} questions"
        print(f"{mutant.name}   (line {mutant.line}, {reached})", flush=True)
    assert outcome(right, asked[:FIRST]) == SAME_CODE, "the sources were changed meanwhile"
    for name in sorted(known.keys() - used) if options.share == 1 else ():
        print(f"killed after all, or no longer there: {name}")
    print(dict(counted))
    told = counted["killed"] + counted["survive"]
    print(f"{100 * counted['killed'] / max(told, 1):.1f} % of {told} killed")
    return int(counted["survive"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
