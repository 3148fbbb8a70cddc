"""Evaluates a query and prints the result as ``opa eval`` does."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import exit_codes
from webhook.cli.rego.context import (
    ActivationError,
    BundleError,
    LoadErrors,
    compile_options,
    read_capabilities,
    runtime,
    sources,
    version_of,
)
from webhook.cli.rego.eval_format import FORMATS, QueryOutcome
from webhook.cli.rego.report import error_document, evaluation_error_document, load_error_document
from webhook.cli.terminal import NoResult, complain, write
from webhook.policies.rego_files import read_input, system_words
from webhook.rego.engine import UNDEFINED, EvaluationContext, compile_modules
from webhook.rego.errors import BuiltinError, EvaluationError, RegoErrors
from webhook.rego.results import ResultQuery
from webhook.rego.run.limits import UNBOUNDED_STEPS
from webhook.rego.run.text import OrderedFields, indented
from webhook.rego.syntax.parser import parse_module, parse_query, parse_ref
from webhook.rego.syntax.unparse import unparse
from webhook.rego.trace.events import KINDS
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.cli.rego.context import Capabilities, RegoFiles
    from webhook.rego.engine import CompileOptions, Program
    from webhook.rego.syntax.ast import Import, RegoVersion

_ERRORS_MAX = 10
"""The number of errors printed at most; the default of OPA's compiler."""


@dataclass(slots=True)
class _Metrics:
    """The durations of the parts of the work."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0) + time.perf_counter() - begun

    def document(self) -> dict[str, int]:
        """Returns nanoseconds by OPA's names of timers."""
        return {f"timer_rego_{name}_ns": round(s * 1e9) for name, s in sorted(self.seconds.items())}


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The options of the command, by their names."""

    query: str | None
    query_stdin: bool
    paths: tuple[str, ...]
    input_path: str | None
    stdin_input: bool
    output: str
    package: str
    imported: tuple[str, ...]
    fail: bool
    fail_defined: bool
    strict: bool
    strict_builtin_errors: bool
    timeout: float
    bundles: tuple[str, ...]
    capabilities: str | None
    schema: str | None
    explain: str
    var_values: bool
    coverage: bool
    coverage_runs: tuple[str, ...] | None
    profile: bool
    profile_limit: int | None
    profile_sort: tuple[str, ...]
    metrics: bool
    pretty_limit: int
    disable_indexing: bool
    disable_early_exit: bool
    ignore: tuple[str, ...]
    v0_compatible: bool
    v1_compatible: bool

    @property
    def coverage_kinds(self) -> Sequence[str] | None:
        """Returns the reasons to report for unreached lines; None without a report of coverage."""
        if self.coverage_runs is not None:
            return self.coverage_runs
        return KINDS if self.coverage else None

    @property
    def is_profiled(self) -> bool:
        """Returns whether to report how long each line took."""
        return self.profile or self.profile_limit is not None or bool(self.profile_sort)


def run(options: EvalOptions) -> int:
    """Loads, evaluates and prints; returns the exit code."""
    output = options.output
    text = _query_text(
        options.query, query_stdin=options.query_stdin, stdin_input=options.stdin_input
    )
    known = read_capabilities(options.capabilities)
    if not text.strip():
        _refuse(LoadErrors(["cannot evaluate empty query"]), output)
        return exit_codes.UNKNOWN
    try:
        outcome = _evaluated(text, options, known)
    except RegoErrors as errors:
        _refuse(errors.limited(_ERRORS_MAX), output)
        return exit_codes.UNKNOWN
    except (BundleError, LoadErrors, EvaluationError, BuiltinError) as error:
        _refuse(error, output)
        return exit_codes.UNKNOWN
    lines = FORMATS[output](outcome)
    if lines:
        write(lines)
    failed = options.fail_defined if outcome.solutions else options.fail
    return exit_codes.NO if failed else exit_codes.OK


def _evaluated(text: str, options: EvalOptions, known: Capabilities | None) -> QueryOutcome:
    """Returns the solutions of the query, and the reports about its steps."""
    version = version_of(v0_compatible=options.v0_compatible)
    timers = _Metrics()

    def context() -> EvaluationContext:
        return EvaluationContext(
            deadline=time.monotonic() + options.timeout if options.timeout else None,
            steps=UNBOUNDED_STEPS,
            print_=lambda _, line: complain(line),
            strict=options.strict_builtin_errors,
            runtime=runtime(),
        )

    given = _input(options.input_path, stdin_input=options.stdin_input)
    compiling = _options(known, options.schema, strict=options.strict)
    with timers.of("load_files"):
        files = sources(
            options.paths,
            options.bundles,
            version=version,
            ignore=options.ignore,
            capabilities=known,
        )
    with timers.of("module_compile"):
        program = compile_modules(files.modules, options=compiling)
        program.check_data(files.data)
    imports = _imports(options.imported, version)
    with timers.of("query_compile"):
        package = _package(options.package)
        compiled = ResultQuery(program, text, version=version, package=package, imports=imports)
    with timers.of("query_eval"):
        outcome = QueryOutcome(list(compiled(given, files.data, context())))
    if options.metrics or options.is_profiled:
        outcome.metrics = timers.document()
    if options.explain != "off" or options.coverage_kinds is not None or options.is_profiled:
        body = parse_query(text, version)
        _follow(outcome, options, program, body, package, imports, files, given, context)
    return outcome


def _query_text(query: str | None, *, query_stdin: bool, stdin_input: bool) -> str:
    if query_stdin and (stdin_input or query is not None):
        raise click.UsageError(
            "--stdin reads the query: give no other query, and no --stdin-input."
        )
    if query_stdin:
        return sys.stdin.read()
    if query is None:
        raise click.UsageError("specify a query argument or --stdin")
    return query


def _follow(  # noqa: PLR0913, PLR0917  # all inputs of an evaluation
    outcome: QueryOutcome,
    options: EvalOptions,
    program: Program,
    body: Any,
    package: str,
    imports: tuple[Import, ...],
    files: RegoFiles,
    given: Any,
    context: Callable[[], EvaluationContext],
) -> None:
    """Evaluates the query once more for each report about its steps."""
    from webhook.rego.trace.coverage import Coverage  # noqa: PLC0415  # rarely used
    from webhook.rego.trace.events import StepRecorder, shown  # noqa: PLC0415
    from webhook.rego.trace.pretty import table  # noqa: PLC0415
    from webhook.rego.trace.profile import DEFAULT_ORDER, Profile  # noqa: PLC0415
    from webhook.rego.trace.query import TracedProgram  # noqa: PLC0415

    query = TracedProgram(program.compiled).query(body, package=package, imports=imports)

    def follow(tracer: Any, *, indexing: bool = True, early_exit: bool = True) -> None:
        query(
            given,
            files.data,
            context(),
            tracer,
            indexing=indexing and not options.disable_indexing,
            early_exit=early_exit and not options.disable_early_exit,
        )

    if options.explain != "off":
        recorder = StepRecorder(unifications=options.explain == "debug")
        follow(recorder)
        events = shown(recorder.events, options.explain)  # type: ignore[arg-type]
        outcome.explanation = table(events, values=options.var_values)
    if options.is_profiled:
        profile = Profile()
        follow(profile)
        order = [
            *options.profile_sort,
            *(k for k in DEFAULT_ORDER if k not in options.profile_sort),
        ]
        limit = 10 if options.profile_limit is None else options.profile_limit
        outcome.profile = profile.report(limit, order)
    if options.coverage_kinds is not None:
        reached = Coverage()
        follow(reached)
        others: list[tuple[Any, Coverage]] = [(kind, Coverage()) for kind in options.coverage_kinds]
        for kind, other in others:
            follow(other, indexing=kind != "index_excluded", early_exit=kind != "early_exit")
        outcome.coverage = reached.report(files.modules, others)


def _package(text: str) -> str:
    return unparse(parse_ref(text if text.startswith("data.") else f"data.{text}")) if text else ""


def _imports(paths: Sequence[str], version: RegoVersion) -> tuple[Import, ...]:
    lines = "".join(f"import {path}\n" for path in paths)
    return parse_module(f"package query\n{lines}", "", version).imports


def _options(known: Capabilities | None, schema: str | None, *, strict: bool) -> CompileOptions:
    try:
        return compile_options(known, schema, strict=strict)
    except LoadErrors as errors:
        raise NoResult(str(errors)) from None


def _input(path: str | None, *, stdin_input: bool) -> Any:
    if path is None and not stdin_input:
        return UNDEFINED
    try:
        if stdin_input or path == "-":
            text = sys.stdin.read()
        else:
            text = Path(str(path)).read_text("utf-8", "surrogateescape")
        return read_input(text)
    except OSError as error:
        doing = "read" if isinstance(error, IsADirectoryError) else "open"
        raise NoResult(f"{doing} {path}: {system_words(error)}") from None
    except BuiltinError as error:
        raise NoResult(f"unable to parse input: {error.message}") from None


def _refuse(error: Exception, output: str) -> None:
    """Prints an error where OPA does: in the result for JSON, else on standard error."""
    documents: list[dict[str, Any]]
    match error:
        case RegoErrors():
            documents = [error_document(fault) for fault in error.errors]
        case EvaluationError():
            documents = [evaluation_error_document(error)]
        case LoadErrors():
            documents = [*map(load_error_document, error.faults)]
        case BundleError():
            activated = isinstance(error, ActivationError)
            prefix = "bundle activation failed: " if activated else "loading error: "
            error = LoadErrors([f"{prefix}{error}"])
            documents = [OrderedFields(message=message) for message in error.messages]
        case _:
            documents = [OrderedFields(message=str(error))]
    if output in {"json", "discard"}:
        write(indented(OrderedFields(errors=documents)))
        return
    text = str(error)
    complain(text.replace(" during loading:", ":", 1) if isinstance(error, LoadErrors) else text)
