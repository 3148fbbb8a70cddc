"""Runs unit tests in Rego, and prints results as ``opa test`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.rego import report as rego_report
from webhook.cli.rego.context import (
    BundleError,
    LoadErrors,
    RegoFiles,
    compile_options,
    read_capabilities,
    runtime,
    sources,
    version_of,
)
from webhook.cli.terminal import complain, write
from webhook.rego.errors import BuiltinError, RegoErrors
from webhook.rego.run.patterns import pattern
from webhook.rego.tester import RegoTestResult, UnitTest, UnitTests
from webhook.rego.trace.events import KINDS
from webhook.values import dataclass


@dataclass(frozen=True, slots=True)
class UnitTestOptions:
    """The options of the command, by their names."""

    paths: tuple[str, ...]
    selection: str
    output: str
    verbose: bool
    explain: str | None
    var_values: bool
    coverage: bool
    coverage_runs: tuple[str, ...] | None
    threshold: float
    count: int
    timeout: float
    exit_zero_on_skipped: bool
    fail_on_empty: bool
    sort: str
    parallel: int
    max_errors: int
    bundle: bool
    capabilities: str | None
    schema: str | None
    ignore: tuple[str, ...]
    v0_compatible: bool
    v1_compatible: bool


def run(options: UnitTestOptions) -> int:
    """Runs the tests, prints the results, and returns the exit code."""
    name_matches = _selection(options.selection, options.threshold)
    if name_matches is None:
        return exit_codes.NO
    known = read_capabilities(options.capabilities)
    paths = options.paths
    try:
        files = sources(
            () if options.bundle else paths,
            paths if options.bundle else (),
            version=version_of(v0_compatible=options.v0_compatible),
            ignore=options.ignore,
            capabilities=known,
        )
        compiling = compile_options(known, options.schema)
        tests = UnitTests(files.modules, files.data, selects=name_matches, options=compiling)
    except BundleError as error:
        complain(f"unable to load bundle {error.path}: {error}" if error.path else str(error))
        return exit_codes.NO
    except (LoadErrors, RegoErrors) as errors:
        limited = errors.limited(options.max_errors) if isinstance(errors, RegoErrors) else errors
        complain(str(limited))
        return exit_codes.NO
    if options.output != "json" and options.sort != "none":
        complain("warning: --sort is only supported with JSON format")
    for _ in range(max(options.count, 1)):
        if code := _run_once(tests, files, options):
            return code
    return exit_codes.OK


def _run_once(tests: UnitTests, files: RegoFiles, options: UnitTestOptions) -> int:
    """Runs all tests and prints the results; returns the exit code."""
    results, code = list(tests.run(options.timeout, runtime=runtime())), exit_codes.OK
    if options.coverage or options.threshold > 0 or options.coverage_runs is not None:
        kinds = KINDS if options.coverage_runs is None else options.coverage_runs
        code = _report_coverage(
            tests,
            files,
            results,
            options.timeout,
            options.threshold,
            kinds,
            options.verbose,
        )
    elif options.output == "json":
        if options.sort == "duration":
            results.sort(key=lambda result: -result.seconds)
        write(rego_report.as_json(results))
    elif results:
        write(_as_text(tests, files, results, options))
    if not results and options.fail_on_empty:
        complain("no tests were run")
        return exit_codes.NO
    fine = all(
        result.passed or (result.skipped and options.exit_zero_on_skipped) for result in results
    )
    return code or (exit_codes.OK if fine else exit_codes.UNKNOWN)


def _as_text(
    tests: UnitTests,
    files: RegoFiles,
    results: Sequence[RegoTestResult],
    options: UnitTestOptions,
) -> str:
    shown = options.verbose or options.explain is not None
    explained = None
    if shown or options.var_values:
        explained = {
            number: _explained(
                tests, test, files, options.timeout, options.explain, shown, options.var_values
            )
            for number, (test, result) in enumerate(zip(tests.tests, results, strict=True))
            if result.failed
        }
    return rego_report.as_text(results, verbose=shown, explained=explained)


def _selection(filter_text: str, threshold: float) -> Callable[[str], bool] | None:
    """Returns the filter of test names.

    Prints an error and returns None for an invalid threshold.
    """
    if not 0 <= threshold <= 100:  # per cent
        complain("Code coverage threshold must be between 0 and 100")
        return None
    try:
        return pattern(filter_text).found_in if filter_text else bool
    except BuiltinError as error:
        raise click.BadParameter(error.message, param_hint="--run") from None


def _explained(  # noqa: PLR0917  # the test, and the parts of its evaluation to show
    tests: UnitTests,
    test: UnitTest,
    files: RegoFiles,
    timeout: float,
    explain: str | None,
    verbose: bool,  # as given
    values: bool,  # as given
) -> list[str]:
    """Returns the steps of a failed test's evaluation."""
    from webhook.rego.trace.events import StepRecorder, shown  # noqa: PLC0415  # as tests.follow
    from webhook.rego.trace.failure import failure_lines  # noqa: PLC0415
    from webhook.rego.trace.pretty import table  # noqa: PLC0415

    recorder = StepRecorder(unifications=explain == "debug")
    tests.follow(test, recorder, timeout, runtime=runtime(), compared=values)
    events = shown(recorder.events, explain or "default")  # type: ignore[arg-type]
    lines: list[str] = []
    if verbose:
        lines += ["", *table(events, values=values, indent="  ")]
    if values:
        lines += ["", *failure_lines(recorder.events, files.modules)]
    return lines


def _report_coverage(  # noqa: PLR0917  # the tests, and the options of the report
    tests: UnitTests,
    files: RegoFiles,
    results: Sequence[RegoTestResult],
    timeout: float,
    threshold: float,
    kinds: Sequence[str],
    verbose: bool,  # as given
) -> int:
    """Prints the coverage of the tests if all passed; returns the exit code."""
    from webhook.rego.trace.coverage import Coverage, spans  # noqa: PLC0415  # as tests.follow

    for result in results:
        if result.error is not None:
            complain(str(result.error))
            return exit_codes.NO
    failed = [result for result in results if result.failed]
    if failed:
        explained = None
        if verbose:
            test_of = {id(result): test for test, result in zip(tests.tests, results, strict=True)}
            explained = {
                number: _explained(tests, test_of[id(result)], files, timeout, None, True, False)
                for number, result in enumerate(failed)
            }
        write(rego_report.as_text(failed, verbose=verbose, explained=explained))
        complain(f"{rego_report.result_line(failed[0])}\n")
        return exit_codes.NO
    reached = Coverage()
    others: list[tuple[Any, Coverage]] = [(kind, Coverage()) for kind in kinds]
    for test in tests.tests:
        if test.skipped:
            continue
        tests.follow(test, reached, timeout, runtime=runtime())
        for kind, other in others:
            tests.follow(
                test,
                other,
                timeout,
                runtime=runtime(),
                indexing=kind != "index_excluded",
                early_exit=kind != "early_exit",
            )
    report = reached.report(files.modules, others)
    if report["coverage"] < threshold:
        complain(
            f"Code coverage threshold not met: got {report['coverage']:.2f} instead of "
            f"{threshold:.2f}"
        )
        if verbose:
            complain("Lines not covered:\n" + "\n".join(f"\t{span}" for span in spans(report)))
        return exit_codes.UNKNOWN
    write(rego_report.coverage_json(report))
    return exit_codes.OK
