"""A process of its own for each fault: questions are asked of the generator that has it.

All is prepared before the process begins, which is forked from the one that knows OPA's answers.
"""

import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import io
import itertools
import os
import re
import resource
import select
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import CodeType, ModuleType
from typing import Any, Final

import pytest

from tests import verified_code
from tests.differential.composition.comparison import answered, answered_after_another
from tests.differential.composition.mutations import Mutant
from tests.differential.composition.prepared import GENERAL, Prepared
from tests.programs import ROOT
from webhook.rego import engine, program
from webhook.rego.write import generate

GENERATOR: Final = ROOT / "webhook" / "rego" / "write"
PACKAGE: Final = "webhook.rego.write"

LONG: Final = (
    "tests/webhook/rego/write/test_reads.py::test_what_was_read_before_is_what_would_be_read_again"
)
"""Left out: random policies, of which the compositions have more."""

CPU_SECONDS, MEMORY_BYTES = 4.0, 3 << 30
"""For one question; beyond them a mutant is killed: its code does not end."""

BEFORE_WRITING: Final = {"constants.py"}
"""Modules that also work while questions are prepared: they put parameters into the rules."""

CHECKED_AGAIN: Final = 1200
"""Questions of those, whose programs are checked once more for each mutant: all corners, too."""

ALIASES: Final = re.compile(r"\b[bc]\d+\b")
"""Names of built-ins in generated code."""


class Fate(Enum):
    """The fate of a mutant."""

    KILLED = "killed by questions"
    CAUGHT = "killed by the generator's own tests alone"
    SURVIVED = "survive"
    EQUIVALENT = "write the same code for all questions"


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
    sys.meta_path.insert(0, Finder(module, compile(mutant.tree(), mutant.module, "exec")))
    # The package, too: its attributes are the modules as they were.
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    # In place, so that programs which are checked already write with it.
    importlib.reload(program)


class SameCodeError(BaseException):
    """The code to be compiled equals the code of the generator without a fault."""


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


@dataclass(slots=True, eq=False)
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
    text = (GENERATOR / module).read_text()
    return Mutant(module, 1, "no fault", "", lambda: ast.parse(text))


@dataclass(slots=True)
class Outcome:
    """The fate of a mutant, with the question that killed it, if any."""

    fate: Fate
    killer: Question | None = None


@dataclass(slots=True)
class Trial:
    """A process with the fault: what the questions show there, and tests if they show nothing."""

    mutant: Mutant
    questions: Sequence[Question]
    unit_tests: Sequence[str] = ()
    answer: int = field(init=False)
    """The descriptor for the process's answer."""
    _process: int = field(init=False)

    def __post_init__(self) -> None:
        self.answer, writing = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            with contextlib.suppress(BaseException):
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                warnings.simplefilter("error")  # CPython's compiler has words for odd code
                signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
                os.write(writing, _tried(self.mutant, self.questions, self.unit_tests).encode())
            os._exit(0)
        os.close(writing)

    def outcome(self) -> Outcome:
        """Wait for the process."""
        with os.fdopen(self.answer) as answer:
            output = answer.read()
        os.waitpid(self._process, 0)
        if not output:  # it has ended: the generator, or its code, does not work or does not end
            return Outcome(Fate.KILLED)
        fate, _, killer = output.partition(":")
        return Outcome(Fate[fate], self.questions[int(killer)] if killer else None)


def ended(trials: Iterator[Trial], jobs: int) -> Iterator[Trial]:
    """The trials as they end; each begins when it is taken, and so many run at once."""
    running: dict[int, Trial] = {}
    while True:
        for trial in itertools.islice(trials, jobs - len(running)):
            running[trial.answer] = trial
        if not running:
            return
        readable, _, _ = select.select(list(running), (), ())
        for answer in readable:
            yield running.pop(answer)


def _tried(mutant: Mutant, questions: Sequence[Question], unit_tests: Sequence[str]) -> str:
    try:
        put_in(mutant)
    except Exception:  # noqa: BLE001  # whatever it is: the generator does not even begin
        return Fate.KILLED.name
    if mutant.module in BEFORE_WRITING:
        fate, killer = _fate_by(checked_again(questions[:CHECKED_AGAIN]))
    else:
        fate, killer = _fate_by(questions)
    if fate is not Fate.KILLED and unit_tests and _fails(unit_tests):
        fate = Fate.CAUGHT
    return f"{fate.name}:{killer}"


def checked_again(questions: Iterable[Question]) -> Iterator[Question]:
    """The questions as they are asked, prepared by the code that runs now."""
    programs: dict[int, Any] = {}
    for one in questions:
        at = id(one.rule.compiled)
        if at not in programs:
            programs[at] = one.rule.again()
        yield Question(replace(one.rule, compiled=programs[at]), one.digest)


def _fate_by(questions: Iterable[Question]) -> tuple[Fate, int | str]:
    fate = Fate.EQUIVALENT
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
    return fate, ""


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
