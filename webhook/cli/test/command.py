"""``waddle test``: checks manifests, or any JSON document, against policies."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import Output, emit, outputs_option
from webhook.cli.policy_options import (
    DISABLED_BUILTINS,
    FILENAMES,
    HTTP_HOSTS,
    NATIVE_FAILURE_POLICY,
    NATIVE_VALIDATION,
    PROVIDERS,
    InputPath,
)
from webhook.cli.registry_access import image_option
from webhook.cli.terminal import complain, write
from webhook.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.cli.sources import Sources
    from webhook.cli.test.run import CheckOutcome
    from webhook.constraint.drivers.rego_trace import RegoTrace
    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Check resources against ConstraintTemplates and constraints.

The files hold policies and resources alike; every resource is reviewed, and all
of them are the cluster's data for referential policies. They are mutated and expanded
first, by the mutators and ExpansionTemplates among the files; an AdmissionReview is
reviewed as the request that it holds. With --target=json the files besides policies are
any documents: a Terraform plan for instance. ValidatingAdmissionPolicies of the files
review objects beside constraints.

\b
  waddle test -f policies/ -f manifest.yaml
  helm template chart | waddle test -f policies/ -f -
  terraform show -json plan | waddle test --target=terraform -f policies/ -f -
  waddle test --target=json -f policies/ -f values.yaml
"""


@click.command(name="test", help=_HELP + exit_codes.paragraph("test"))
@image_option("filenames", exit_codes.NO)
@FILENAMES
@outputs_option(*words.FINDINGS, "text")
@click.option("--deny-only", is_flag=True, help="Show only violations that are denied.")
@click.option(
    "--target",
    metavar="NAME",
    default="admission",
    show_default=True,
    help=(
        "The kind of input: admission for Kubernetes objects, json for any document, "
        "terraform for the changes of a plan, gcp for assets, or a target that a file "
        "declares."
    ),
)
@click.option(
    "--library",
    "libraries",
    metavar="PATH",
    multiple=True,
    type=InputPath(exists=False),
    help=(
        "Libraries in Rego for config-validator's older templates: a file or a folder. Repeatable."
    ),
)
@click.option(
    "--stats",
    is_flag=True,
    help="Show how long each constraint's evaluations took: in table, json and yaml.",
)
@PROVIDERS
@click.option(
    "-t",
    "--trace",
    is_flag=True,
    help=(
        "Show each step of every Rego evaluation: on standard error, or in the output of "
        "json and yaml."
    ),
)
@click.option("-v", "--verbose", is_flag=True, help="Show the output of print in policies.")
@DISABLED_BUILTINS
@HTTP_HOSTS
@NATIVE_VALIDATION
@NATIVE_FAILURE_POLICY
def command(  # noqa: PLR0913  # each is an option
    filenames: tuple[str, ...],
    outputs: tuple[Output, ...],
    *,
    deny_only: bool,
    target: str,
    libraries: tuple[Path, ...],
    stats: bool,
    answers: RecordedAnswers,
    trace: bool,
    verbose: bool,
    **of_clients: Any,
) -> int:
    """Review and report."""
    # Imported here: --help, completion and a mistyped option do not need it.
    from webhook.cli.sources import CannotTest, NothingLeft, read_sources  # noqa: PLC0415

    printed: list[str] = []
    traces: list[RegoTrace] = []
    try:
        admission = target == "admission"
        paths = [Path(name) for name in filenames]
        sources = read_sources(paths, any_value=not admission, keep_going=True)
        # The engine is imported last: a missing file is reported without it.
        from webhook.cli import target_run  # noqa: PLC0415
        from webhook.cli.clients import new_client  # noqa: PLC0415
        from webhook.cli.test import run as review_run  # noqa: PLC0415
        from webhook.policies.advice import left_out  # noqa: PLC0415

        _warn((*sources.warnings, *left_out(sources.manifests)), sources, outputs)
        declared = target_run.declared_targets(sources)
        chosen = target_run.chosen_target(target, declared)
        texts = target_run.read_libraries(libraries)
        sources = replace(sources, manifests=target_run.modernise(sources.manifests, texts))
        collect_trace = traces.append if trace else None
        client = new_client(targets=tuple(declared.values()), trace=collect_trace, **of_clients)
        from webhook.cli.run_times import RunTimes  # noqa: PLC0415

        warned = len(sources.warnings)
        times = RunTimes(native=of_clients["native_validation"]) if stats else None
        if chosen is None:
            outcome = review_run.review_objects(client, sources, printed, answers, times)
        else:
            outcome = review_run.review_documents(client, sources, printed, chosen, answers, times)
        outcome = replace(outcome, deny_only=deny_only, traces=traces)
        for warning in sources.warnings[warned:]:
            complain(warning)
    except CannotTest as error:
        from webhook.cli.formats.pipelines import emit_refusal  # noqa: PLC0415  # as above

        emit_refusal(outputs, error.lines)
        code = exit_codes.UNKNOWN if isinstance(error, NothingLeft) else exit_codes.NO
        raise error.exiting(code) from None
    return _report(outcome, outputs, printed if verbose else [])


def _warn(warnings: Iterable[str], sources: Sources, outputs: tuple[Output, ...]) -> None:
    """Prints warnings, except about inputs that the last line of the results names, too.

    It does so where one terminal shows both.
    """
    from webhook.cli.sources import about_files  # noqa: PLC0415  # see command

    is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    has_summary = any(item.word in ("table", "github") and item.file is None for item in outputs)
    named = about_files(sources) if is_terminal and has_summary else []
    for warning in warnings:
        if warning not in named:
            complain(warning)


def _report(outcome: CheckOutcome, outputs: tuple[Output, ...], printed: list[str]) -> int:
    """Writes the results to all outputs, and the policies' prints; returns the exit code."""
    from webhook.cli.test import report as review_report  # noqa: PLC0415  # see command

    for output in outputs:
        text = review_report.FORMATS[output.word](outcome)
        if text or output.file is not None:
            emit(output, text)
    if any(output.word in {"text", "json", "yaml"} for output in outputs):
        for line in review_report.excused_notes(outcome):
            complain(line)
    if not any(output.word in {"json", "yaml"} for output in outputs):
        for line in (line for trace in outcome.traces for line in trace.lines()):
            complain(line)
    if printed:
        write("\n" + "\n".join(map(printable, printed)))
    for fault in outcome.faults:
        complain(fault)
    if outcome.nothing:
        complain(outcome.nothing)
        return exit_codes.UNKNOWN
    return exit_codes.NO if outcome.denied or outcome.faults else 0
