"""``waddle except``: the narrowest exceptions for violations of a report, a record or a denial."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.cluster_access import CONTEXT, NAMESPACE
from webhook.cli.policy_options import KUBECONFIG, InputPath

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
    help=(
        "Instead of SOURCE: violations in the cluster now. An exception names the owning "
        "object, such as a Deployment, and holds for all objects that it creates."
    ),
)
@click.option("--reason", required=True, help="The reason, which is shown with the exception.")
@click.option(
    "--for",
    "duration",
    default="720h",
    show_default=True,
    metavar="DURATION",
    help="How long the exceptions last from now on, such as 720h for 30 days.",
)
@click.option(
    "--expires",
    default="",
    metavar="TIME",
    help="When the exceptions end, in RFC 3339; instead of --for.",
)
@click.option(
    "--effect",
    type=click.Choice(["skip", "warn", "dryrun"]),
    default="skip",
    show_default=True,
    help="What happens to the violations: skip ignores them, warn warns, dryrun records them.",
)
@click.option("--ticket", default="", help="Where the exception was agreed, such as a ticket.")
@click.option("--owner", default="", help="The team that removes the exception.")
@click.option(
    "--cluster",
    "of_cluster",
    is_flag=True,
    help=(
        "Write ClusterPolicyExceptions, for constraints that allow only these "
        "(waddle.dev/exceptions)."
    ),
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="NAME",
    help="Use only violations of constraints of this name. Repeatable.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    help="For a denial: the object's namespace. For --baseline: the only namespace to audit.",
)
@click.option(
    "--object",
    "named",
    default="",
    metavar="KIND[.GROUP]/NAME",
    help="For a denial: the object, such as Pod/web or Deployment.apps/web.",
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    type=InputPath(exists=False),
    help="For a denial: files with the constraints. Repeatable.",
)
@KUBECONFIG
@CONTEXT
@click.option(
    "--waddle-namespace",
    default=NAMESPACE,
    show_default=True,
    help="For --baseline: the namespace that Waddle runs in.",
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

    if not reason.strip():
        raise click.UsageError("--reason is empty: every exception has a reason")
    terms = ExceptionTerms(
        reason, run.end(duration, expires), effect, ticket, owner, of_cluster=of_cluster
    )
    if baseline:
        if source:
            raise click.UsageError("--baseline audits the cluster: remove SOURCE")
        # Here and not above: it brings aiohttp and the event loop.
        from webhook.cli.except_ import baseline as of_cluster_now  # noqa: PLC0415

        part = of_cluster_now.Baseline(
            kubeconfig, context, waddle_namespace, namespace, frozenset(constraints)
        )
        return of_cluster_now.write_baseline(part, terms)
    if not source:
        raise click.UsageError("give a SOURCE or --baseline")
    return run.write_exceptions(
        source, terms, run.Denied(namespace, named, filenames), frozenset(constraints)
    )
