"""``waddle except``: the narrowest exceptions for violations of a report, a record or a denial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import CONTEXT, NAMESPACE
from webhook.cli.policy_options import KUBECONFIG, InputPath

if TYPE_CHECKING:
    from pathlib import Path

_HELP = """Write exceptions for violations that somebody has to live with, each as narrow as can be.

SOURCE is a file, or - for standard input, with one of these:

\b
  policy reports     kubectl get policyreports -n shop -o yaml | waddle except - --reason ...
  decision records   waddle except decisions.ndjson --reason ...
  a denial           kubectl's message, with --object Deployment.apps/web -n shop, and the
                     constraints' files (-f), which say of which kind they are

With --baseline no SOURCE is read: the cluster is audited, and whatever violates a constraint today
gets an exception, so that the constraint can deny from today on without breaking what runs:

\b
  waddle except --baseline --constraint no-privileged --for 2160h --reason ... | kubectl apply -f -

Each exception names one constraint, one object and its messages. Look at them, widen what should be
wider (a name to web-*, for Pods that a controller names), and apply them: whoever does needs the verb
`except` on each constraint.
"""


@click.command("except", help=_HELP + exit_codes.paragraph("except"))
@click.argument("source", metavar="[SOURCE]", required=False, default="")
@click.option(
    "--baseline",
    is_flag=True,
    help="Of what is in the cluster now: by the Deployment or whatever else somebody wrote, for "
    "all that it makes.",
)
@click.option("--reason", required=True, help="Why; it is shown wherever the exception is.")
@click.option(
    "--for",
    "duration",
    default="720h",
    show_default=True,
    metavar="DURATION",
    help="How long they hold, from now on: 720h are 30 days.",
)
@click.option("--expires", default="", metavar="TIME", help="When they end, in RFC 3339 instead.")
@click.option(
    "--effect",
    type=click.Choice(["skip", "warn", "dryrun"]),
    default="skip",
    show_default=True,
    help="What becomes of the violations: they are skipped, warned about, or recorded (dryrun).",
)
@click.option("--ticket", default="", help="Where it was agreed.")
@click.option("--owner", default="", help="The team that takes it back.")
@click.option(
    "--cluster",
    "of_cluster",
    is_flag=True,
    help="ClusterPolicyExceptions, for constraints that allow no others (waddle.dev/exceptions).",
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="NAME",
    help="Only violations of constraints of this name; repeatable.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    help="Of a denial: the object's namespace. Of a baseline: this one alone.",
)
@click.option(
    "--object",
    "named",
    default="",
    metavar="KIND[.GROUP]/NAME",
    help="Of a denial: the object, as Pod/web or Deployment.apps/web.",
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    type=InputPath(exists=False),
    help="Of a denial: files with the constraints; repeatable.",
)
@KUBECONFIG
@CONTEXT
@click.option(
    "--waddle-namespace",
    default=NAMESPACE,
    show_default=True,
    help="Of a baseline: the namespace that Waddle runs in.",
)
def command(  # noqa: PLR0913  # each is an option
    *,
    source: str,
    baseline: bool,
    kubeconfig: str | None,
    context: str | None,
    waddle_namespace: str,
    reason: str,
    duration: str,
    expires: str,
    effect: str,
    ticket: str,
    owner: str,
    of_cluster: bool,
    constraints: tuple[str, ...],
    namespace: str,
    named: str,
    filenames: tuple[Path, ...],
) -> int:
    """Read what was found, and write exceptions for it."""
    # Imported here: reports and records import modules that no other help text needs.
    from webhook.cli.except_ import run  # noqa: PLC0415
    from webhook.exceptions.writing import ExceptionTerms  # noqa: PLC0415

    terms = ExceptionTerms(
        reason, run.end(duration, expires), effect, ticket, owner, of_cluster=of_cluster
    )
    if baseline:
        if source:
            raise click.UsageError("--baseline takes no SOURCE: it audits the cluster")
        # Here and not above: it brings aiohttp and the event loop.
        from webhook.cli.except_ import baseline as of_cluster_now  # noqa: PLC0415

        part = of_cluster_now.Baseline(
            kubeconfig, context, waddle_namespace, namespace, frozenset(constraints)
        )
        return of_cluster_now.write_baseline(part, terms)
    if not source:
        raise click.UsageError("name a SOURCE, or say --baseline")
    return run.write_exceptions(
        source, terms, run.Denied(namespace, named, filenames), frozenset(constraints)
    )
