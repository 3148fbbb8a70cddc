"""``waddle test``: check manifests, or any JSON document, against policies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from webhook.cli import review_report
from webhook.cli.clients import new_client
from webhook.cli.review_run import review_documents, review_objects
from webhook.cli.sources import CannotTest, read_sources
from webhook.cli.terminal import complain, write

FAILED: Final = 1

_HELP = """Check resources against ConstraintTemplates and constraints.

The files hold policies and resources alike; every resource is reviewed, and all
of them are the cluster's data for referential policies. With --target=json the
files besides policies are any documents: a Terraform plan for instance.

\b
  waddle test -f policies/ -f manifest.yaml
  helm template chart | waddle test -f policies/ -f -
  waddle test --target=json -f policies/ -f plan.json

Exit codes: 0 nothing is denied, 1 something is, or the check could not be made.
"""


@click.command(name="test", help=_HELP)
@click.option(
    "-f",
    "--filename",
    "filenames",
    metavar="FILE",
    multiple=True,
    help="A file, a folder, or - for standard input. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The format of the violations.",
)
@click.option("--deny-only", is_flag=True, help="Show only what is denied.")
@click.option(
    "--target",
    type=click.Choice(["admission", "json"]),
    default="admission",
    show_default=True,
    help="What is reviewed: Kubernetes objects, or any document.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show what policies print.")
@click.option(
    "--disable-opa-builtin",
    "disabled_builtins",
    metavar="NAME",
    multiple=True,
    help="A built-in that templates must not call. Repeatable.",
)
def command(
    filenames: tuple[str, ...],
    output: str,
    *,
    deny_only: bool,
    target: str,
    verbose: bool,
    disabled_builtins: tuple[str, ...],
) -> int:
    """Review and report."""
    client = new_client(disabled_builtins=disabled_builtins)
    printed: list[str] = []
    review = review_objects if target == "admission" else review_documents
    try:
        sources = read_sources([Path(name) for name in filenames], any_value=target == "json")
        for warning in sources.warnings:
            complain(warning)
        told = len(sources.warnings)
        findings = review(client, sources, printed)
        for warning in sources.warnings[told:]:
            complain(warning)
    except CannotTest as error:
        for line in error.lines:
            complain(line)
        return FAILED
    denied = any("deny" in finding.result.actions for finding in findings)
    if deny_only:
        findings = [item for item in findings if "deny" in item.result.actions]
    if text := review_report.FORMATS[output](findings):
        write(text)
    if verbose and printed:
        write("\n" + "\n".join(printed))
    return FAILED if denied else 0
