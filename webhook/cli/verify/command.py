"""``waddle verify``: runs Gatekeeper test suites."""

from __future__ import annotations

import os.path
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import Output, emit, outputs_option
from webhook.cli.policy_options import (
    DISABLED_BUILTINS,
    HTTP_HOSTS,
    NATIVE_FAILURE_POLICY,
    NATIVE_VALIDATION,
    dash_is_standard_input,
)
from webhook.cli.registry_access import image_option
from webhook.cli.terminal import complain, write
from webhook.printable import printable_name

if TYPE_CHECKING:
    from webhook.constraint.drivers.rego_trace import RegoTrace
    from webhook.policies.kyverno_suite import KyvernoSuite
    from webhook.policies.suite import Suite
    from webhook.policies.suite_result import SuiteResult

_HELP = """Run the test suites (files of kind Suite, test.gatekeeper.sh) at PATH.

Kyverno's tests (kyverno-test.yaml) are run, too: of its policies in CEL, and of
ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.

A folder is searched with all below it; PATH/... means the same. Each case puts an
object under a constraint and says which violations are to be found. The files of a
suite in a pipe, or on standard input (-), are looked for from the working folder.

\b
  waddle verify policies
  waddle verify policies --run labels -v
  waddle verify suite.yaml --run 'probes//missing'
  waddle verify policies -o junit > report.xml
"""


@click.command(name="verify", help=_HELP + exit_codes.paragraph("verify"))
@image_option("paths", exit_codes.NO)
@click.argument("paths", metavar="PATH...", nargs=-1, callback=dash_is_standard_input)
@click.option(
    "-r",
    "--run",
    "selected",
    metavar="REGEX",
    default="",
    help="Run only tests and cases that match: CASE-OR-TEST, or TEST//CASE.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Show every test and case, and the output of print."
)
@click.option(
    "-t",
    "--trace",
    is_flag=True,
    help="Show each step of every Rego evaluation, on standard error.",
)
@outputs_option(*words.FINDINGS)
@DISABLED_BUILTINS
@HTTP_HOSTS
@NATIVE_VALIDATION
@NATIVE_FAILURE_POLICY
def command(  # noqa: PLR0913  # each is an option
    paths: tuple[str, ...],
    selected: str,
    *,
    verbose: bool,
    trace: bool,
    outputs: tuple[Output, ...],
    disabled_builtins: tuple[str, ...],
    http_hosts: tuple[str, ...],
    native_validation: bool,
    native_failure_policy: str,
) -> int:
    """Run suites and report."""
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    # Imported here: --help, completion and a mistyped option do not need it.
    from webhook.policies.suite_filter import Filter, InvalidFilter  # noqa: PLC0415

    try:
        filter_ = Filter(selected)
    except InvalidFilter as error:
        raise click.BadParameter(str(error), param_hint="--run") from None
    suites = _find(paths)
    if isinstance(suites, str):
        from webhook.cli.formats.pipelines import emit_refusal  # noqa: PLC0415  # as above

        emit_refusal(outputs, [suites])
        complain(suites)
        return exit_codes.NO
    # The engine is imported last: a missing suite is reported without it.
    from webhook.cli.clients import new_client  # noqa: PLC0415
    from webhook.cli.verify import report as verify_report  # noqa: PLC0415
    from webhook.policies.suite import Suite  # noqa: PLC0415
    from webhook.policies.suite_runner import SuiteRunner  # noqa: PLC0415

    runner = SuiteRunner(
        lambda targets: new_client(
            targets=targets,
            disabled_builtins=disabled_builtins,
            http_hosts=http_hosts,
            native_validation=native_validation,
            native_failure_policy=native_failure_policy,
            trace=_show_steps if trace else None,
        ),
        filter_,
    )
    # A terminal gets each suite when it has run; a file gets all suites at the end.
    at_once = Output("table") in outputs
    results: list[SuiteResult] = []
    warned: set[str] = set()
    for suite, shown in suites:
        result = runner.run(suite, shown) if isinstance(suite, Suite) else suite.run(shown, filter_)
        results.append(result)
        _warn(result, warned)
        if at_once and (verbose or result.ran or result.skipped):
            write(verify_report.suite_text(result, verbose=verbose))
    nothing = _nothing(paths, selected, bool(suites))
    return _report(results, outputs, nothing, verbose=verbose)


def _warn(result: SuiteResult, warned: set[str]) -> None:
    """Prints each warning about the policies of a suite's tests once."""
    for text in dict.fromkeys(text for test in result.tests for text in test.warnings):
        if text not in warned:
            warned.add(text)
            complain(f"WARNING - {text}")
    if not (result.skipped or result.tests):
        complain(f"WARNING - {printable_name(result.path)}: the suite has no tests")


def _show_steps(trace: RegoTrace) -> None:
    for line in trace.lines():
        complain(line)


def _report(
    results: list[SuiteResult], outputs: tuple[Output, ...], nothing: str, *, verbose: bool
) -> int:
    """Writes the results to all outputs, or ``nothing`` if no test ran; returns the exit code."""
    from webhook.cli.verify import report as verify_report  # noqa: PLC0415  # see command
    from webhook.policies.suite_result import summarize  # noqa: PLC0415  # see command

    summary = summarize(results)
    missing = [] if summary.ran else [nothing]
    for output in outputs:
        if output.word != "table":
            emit(output, verify_report.FORMATS[output.word](results, summary, missing))
        elif output.file is not None:
            emit(output, verify_report.table(results, summary, verbose=verbose))
        elif summary.ran:
            write(verify_report.summary_text(summary))
    for line in missing:
        complain(line)
    if missing:
        return exit_codes.UNKNOWN
    return exit_codes.OK if summary.ok else exit_codes.NO


def _find(paths: tuple[str, ...]) -> list[tuple[Suite | KyvernoSuite, str]] | str:
    """Returns the suites at the paths, each once, with its path to print.

    Or why they are unreadable.
    """
    from webhook.policies.suite import InvalidSuite, find_suites  # noqa: PLC0415  # see command

    suites: dict[str, tuple[Suite | KyvernoSuite, str]] = {}
    for path in paths:
        folder = _folder(path)
        try:
            read: list[Suite | KyvernoSuite] = [*find_suites(Path(folder))]
            if _has_kyverno_tests(Path(folder)):
                # It imports CEL.
                from webhook.policies.kyverno_suite import find_kyverno_suites  # noqa: PLC0415

                read += find_kyverno_suites(Path(folder))
            counted: Counter[str] = Counter()  # a Kyverno file may hold several tests
            for suite in read:
                file = os.path.realpath(suite.path)
                counted[file] += 1
                suites.setdefault(f"{file} {counted[file]}", (suite, str(suite.path)))
        except InvalidSuite as error:
            return f"listing test files: {error}"
        except OSError as error:
            return f"listing test files: {folder}: {error.strerror}"
    return list(suites.values())


def _has_kyverno_tests(path: Path) -> bool:
    """Whether a path has a Kyverno test; raises OSError."""
    from webhook.kyverno.kinds import TEST_FILES  # noqa: PLC0415  # see command
    from webhook.policies.manifests import find_files, is_stream  # noqa: PLC0415  # see command

    return not is_stream(path) and any(file.name in TEST_FILES for file in find_files(path))


def _folder(path: str) -> str:
    """Returns the path without Go's ``/...``: folders are searched recursively anyway."""
    if path == "...":
        return "."
    return (path[:-4] or "/") if path.endswith("/...") else path


def _nothing(paths: tuple[str, ...], selected: str, any_suite: bool) -> str:
    where = " ".join(paths)
    if not any_suite:
        return f"no test suite found in {where}"
    if selected:
        return f'no test or case in {where} matches "{selected}"'
    return f"no test of the suites in {where} can run: all are skipped or empty"
