"""``waddle audit --once``: lists the violations in a cluster, from any machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import ask_cluster, cluster_options
from webhook.cli.formats import words
from webhook.cli.formats.words import Output, emit, outputs_option
from webhook.cli.policy_options import DISABLED_BUILTINS, PROVIDERS, InputPath
from webhook.cli.terminal import NoResult, complain, listed

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.audit.run import AuditOutcome, Request
    from webhook.cluster.client import ClusterClient
    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Review what is in a cluster by its policies, or by those of a directory.

Every object of every kind that a constraint can match is reviewed as an audit does
it, page by page; nothing is written to the cluster. With --policies the templates
and constraints of files are tried on a cluster before they are applied to it, with the
mutators and ExpansionTemplates of both.

\b
  waddle audit --once
  waddle audit --once --policies policies/ -o sarif > audit.sarif
"""


@click.command("audit", help=_HELP + exit_codes.paragraph("audit"))
@click.option("--once", is_flag=True, help="Audit now, once. It must be given.")
@cluster_options
@click.option(
    "-f",
    "--policies",
    metavar="DIR",
    multiple=True,
    type=InputPath(),
    help=(
        "A directory or file with templates and constraints, in place of the cluster's; its "
        "mutators and ExpansionTemplates are added to those of the cluster. Repeatable."
    ),
)
@click.option(
    "--kyverno-policies",
    "kyverno",
    type=click.Choice(["off", "audit"]),
    default="off",
    show_default=True,
    help=(
        "Whether to review by the cluster's Kyverno policies in CEL, too. Those of "
        "--policies always review."
    ),
)
@outputs_option(*words.FINDINGS)
@click.option(
    "--limit",
    metavar="N",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="Violations of each constraint that the table shows; 0 shows all.",
)
@click.option(
    "--admission-policies",
    is_flag=True,
    help="Review by the cluster's own ValidatingAdmissionPolicies, too.",
)
@click.option(
    "--audit-chunk-size",
    "page_objects",
    metavar="N",
    default=500,
    show_default=True,
    type=click.IntRange(min=0),
    help="The largest number of objects in a page of a list.",
)
@PROVIDERS
@DISABLED_BUILTINS
def command(  # noqa: PLR0913  # each is an option
    *,
    once: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    policies: tuple[Path, ...],
    admission_policies: bool,
    kyverno: str,
    outputs: tuple[Output, ...],
    limit: int,
    page_objects: int,
    answers: RecordedAnswers,
    disabled_builtins: tuple[str, ...],
) -> int:
    """Audit and report."""
    if not once:
        raise click.UsageError(
            "add --once; for a continuous audit run `waddle serve --kubernetes --operation=audit`"
        )
    # Imported here: these modules bring aiohttp and the event loop.
    from webhook.cli.audit import report as audit_report  # noqa: PLC0415
    from webhook.cli.audit.run import Request  # noqa: PLC0415

    request = Request(
        namespace,
        policies,
        page_objects,
        disabled_builtins,
        ask=answers.ask,
        kyverno=kyverno == "audit",
        admission_policies=admission_policies,
    )
    try:
        outcome = ask_cluster(kubeconfig, context, lambda client: _audit(client, request))
    except NoResult as error:
        from webhook.cli.formats.pipelines import emit_refusal  # noqa: PLC0415  # as above

        emit_refusal(outputs, error.lines)
        raise
    for output in outputs:
        if output.word == "table":
            emit(output, audit_report.as_table(outcome, limit))
        else:
            emit(output, audit_report.FORMATS[output.word](outcome))
    if outcome.skipped:
        complain(f"skipped, because it is not a Kubernetes object: {listed(outcome.skipped)}")
    advice = (f"WARNING - {line}" for line in outcome.advice)
    for line in (*advice, *outcome.repeated, *audit_report.missing(outcome)):
        complain(line)
    if not outcome.whole:
        return exit_codes.UNKNOWN
    return exit_codes.NO if outcome.denied else exit_codes.OK


async def _audit(client: ClusterClient, request: Request) -> AuditOutcome:
    from webhook import garbage  # noqa: PLC0415  # see command
    from webhook.cli.audit.progress import Progress  # noqa: PLC0415  # for terminals
    from webhook.cli.audit.run import audit  # noqa: PLC0415  # see command

    garbage.running()
    if not sys.stderr.isatty():
        return await audit(client, request)
    with Progress() as progress:
        return await audit(client, request, progress)
