"""Runs OPA's own cases against our engine: ``python -m tests.conformance.opa DIR...``.

A case is judged as OPA's runner judges it (v1/topdown/exported_test.go): modules are read as the
version that a folder named ``v0`` or ``v1`` gives, the query always as v1; the result is the set of
bindings, in JSON's terms; an error has the wanted code, and its text contains the wanted text. An
error of any other kind, or from loading, is a failure whatever the case wants. Each answer is judged by a
wrong expectation, too, to show that the runner can tell.
"""

import argparse
import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import verified_code
from tests.conformance.opa_cases import Case, load_cases
from tests.patience import PATIENCE_SECONDS
from webhook.rego.builtins.registry import make_builtin
from webhook.rego.engine import CompileOptions, compile_modules
from webhook.rego.errors import EvaluationError, RegoErrors
from webhook.rego.run.limits import EvaluationContext
from webhook.rego.run.text import to_json
from webhook.rego.run.values import UNDEFINED, key, ordered
from webhook.rego.syntax.parser import parse_module, parse_query
from webhook.rego.types import NULL, STRING

EXCLUSIONS = Path(__file__).with_name("opa_exclusions.txt")
SUPERSEDED = Path(__file__).with_name("opa_superseded.txt")
SENTINEL = "an expectation that nothing meets"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case: ``passed``, ``failed`` or ``skipped``, with the reason.

    ``fooled`` where the answer would have met a wrong expectation, too.
    """

    case: Case
    status: str
    reason: str = ""
    seconds: float = 0.0
    fooled: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The engine's answer: bindings, or an error of evaluation."""

    results: tuple[dict[str, Any], ...] = ()
    error: EvaluationError | None = None


def _sleep(duration: str) -> None:
    """Wait, as the built-in does that OPA's own runner adds for its cases."""
    time.sleep(float(duration.removesuffix("ms").removesuffix("s")) / 1000)


OPTIONS = CompileOptions(
    builtins={"test.sleep": make_builtin("test.sleep", [STRING], NULL, _sleep)}
)


def answer(case: Case) -> Answer:
    """Evaluate a case. Raises whatever an engine without faults does not raise."""
    modules = [
        parse_module(source, f"test-{number}.rego", case.version)
        for number, source in enumerate(case.modules)
    ]
    program = compile_modules(modules, options=OPTIONS)
    query = program.query(parse_query(case.query))
    input_value = case.input if case.has_input else UNDEFINED
    if case.input_term is not None:
        body = parse_query(f"x = {case.input_term}")
        (bindings,) = compile_modules([]).query(body)(UNDEFINED, {}, EvaluationContext())
        input_value = bindings["x"]
    context = EvaluationContext(
        strict=case.strict_error,
        deadline=time.monotonic() + PATIENCE_SECONDS,
        services={"resolver": _addresses},
    )
    try:
        return Answer(tuple(query(input_value, case.data, context)))
    except EvaluationError as error:
        return Answer(tuple(error.answer or ()), error)


def _addresses(name: str) -> list[str]:
    """The system's own resolver; the cases ask it for this machine's names only."""
    return sorted({str(found[4][0]) for found in socket.getaddrinfo(name, None)})


def judge(case: Case, found: Answer) -> str:
    """Returns the difference between the answer and the expectation; empty if there is none."""
    error = found.error
    if case.want_error is not None:
        if error is None:
            return f"wanted the error {case.want_error!r}, got {_shown(found)}"
        if case.want_error not in str(error):
            return f"wanted {case.want_error!r} in the error, got {error}"
    if case.want_error_code is not None:
        if error is None:
            return f"wanted an error with code {case.want_error_code}, got {_shown(found)}"
        if error.code != case.want_error_code:
            return f"wanted code {case.want_error_code}, got {error}"
    if error is not None and case.want_error is None and case.want_error_code is None:
        return f"unexpected error: {error}"
    if case.want_result is not None:
        expected = {key(to_json(bindings)) for bindings in case.want_result}
        if expected != {key(bindings) for bindings in _json(case, found)}:
            return f"wanted {case.want_result}, got {_shown(found)}"
    if case.want_result is None and case.want_error is None and case.want_error_code is None:
        return "the case expects nothing"
    return ""


def _json(case: Case, found: Answer) -> Iterator[dict[str, Any]]:
    for bindings in found.results:
        shown = {name: to_json(value) for name, value in bindings.items()}
        if case.sort_bindings:
            shown = {name: ordered(value) for name, value in shown.items()}
        yield shown


def _shown(found: Answer) -> str:
    return str(found.error) if found.error is not None else repr(list(found.results))


def mutated(case: Case) -> Case:
    """The case with every expectation made wrong."""
    results = case.want_result
    if results:
        results = (dict.fromkeys(results[0], SENTINEL) | {"x": SENTINEL}, *results[1:])
    elif results is not None:
        results = ({"x": SENTINEL},)
    return replace(
        case,
        want_result=results,
        want_error=None if case.want_error is None else case.want_error + SENTINEL,
        want_error_code=None if case.want_error_code is None else SENTINEL,
    )


class _TooLong(BaseException):
    """The time of a case is up; no handler of the engine's may catch it."""


def _ring(signum: int, frame: object) -> None:
    raise _TooLong


def run_case(case: Case) -> Outcome:
    """Evaluate and judge one case within its time."""
    started = time.monotonic()
    fooled = False
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        with patch.dict(os.environ, case.env):
            given = answer(case)
            reason = judge(case, given)
            fooled = not judge(mutated(case), given)
    except RegoErrors as errors:
        reason = f"does not load: {errors}"
    except _TooLong:
        reason = f"no answer within {PATIENCE_SECONDS} s"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a failure of this case
        reason = f"crashed: {type(error).__name__}: {error}{_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.monotonic() - started
    return Outcome(case, "failed" if reason else "passed", reason, seconds, fooled)


def _place(error: BaseException) -> str:
    """Returns the place in our code that raised the error."""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "webhook" in code.co_filename:
            place = f" ({Path(code.co_filename).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def run_cases(cases: list[Case]) -> list[Outcome]:
    """Run in this process, in order."""
    return [run_case(case) for case in cases]


def exclusions(file: Path = EXCLUSIONS) -> dict[str, str]:
    """Reasons by name of a case that is not judged; a line is ``v1/note # reason``."""
    found = {}
    for line in file.read_text().splitlines():
        name, separator, reason = line.rpartition(" # ")
        if line.startswith("#") or not line.strip():
            continue
        assert separator, f"{file}: no reason given: {line}"
        found[name.strip()] = reason
    return found


def run(
    folders: Iterable[Path],
    *,
    pattern: str = "",
    jobs: int = 2,
    superseded: Path | None = SUPERSEDED,
) -> list[Outcome]:
    """Run the cases of these folders in ``jobs`` processes.

    ``superseded`` lists those whose expectation is an older OPA's; None for OPA's own of today.
    """
    excluded = exclusions() | ({} if superseded is None else exclusions(superseded))
    cases = [case for case in load_cases(folders) if re.search(pattern, case.name)]
    outcomes = [
        Outcome(case, "skipped", excluded[case.name]) for case in cases if case.name in excluded
    ]
    cases = [case for case in cases if case.name not in excluded]
    size = 25
    chunks = [cases[at : at + size] for at in range(0, len(cases), size)]
    if jobs == 1:
        return outcomes + [outcome for chunk in chunks for outcome in run_cases(chunk)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for found in pool.map(run_cases, chunks):
            outcomes.extend(found)
    return outcomes


def summary(outcomes: list[Outcome]) -> str:
    """Returns a line for each version and one for all."""
    lines = []
    for version in sorted({outcome.case.version for outcome in outcomes}):
        part = [outcome for outcome in outcomes if outcome.case.version == version]
        lines.append(f"{version}: {_counts(part)}")
    return "\n".join([*lines, _counts(outcomes)])


def _counts(outcomes: list[Outcome]) -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    text = f"{counts['passed']} passed, {counts['failed']} failed"
    return f"{text}, {counts['skipped']} skipped" if counts["skipped"] else text


def main(arguments: list[str]) -> int:
    """Run and report; 1 if a case failed, or if an answer would meet a wrong expectation, too."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.opa", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases so named")
    parser.add_argument("-v", "--verbose", action="store_true", help="show passed cases too")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    verified_code.install()
    outcomes = run(options.folders, pattern=options.filter, jobs=options.jobs)
    for outcome in outcomes:
        if outcome.status == "skipped" or options.verbose:
            print(f"{outcome.status.upper()} {outcome.case.name}: {outcome.reason}")
        elif outcome.status == "failed":
            print(f"{outcome.status.upper()} {outcome.case.name}: {outcome.reason[:600]}")
        if outcome.fooled:
            print(f"FOOLED {outcome.case.name}: the answer meets a wrong expectation")
    print(summary(outcomes))
    wrong = any(outcome.status == "failed" or outcome.fooled for outcome in outcomes)
    return int(wrong or not outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
