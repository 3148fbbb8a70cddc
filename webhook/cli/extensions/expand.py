"""``waddle expand``: prints the objects that ExpansionTemplates imply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.api.gvk import name_of, text
from webhook.cli import exit_codes
from webhook.cli.formats.words import Output, emit, output_option
from webhook.cli.policy_options import FILENAMES, PROVIDERS
from webhook.cli.terminal import complain

if TYPE_CHECKING:
    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Print the resources that those in the files would make, as gator expand does.

A Deployment's Pod, for instance, where an ExpansionTemplate among the files says so. The mutators
among them are applied to a resource before it is expanded, and to what comes of it. If a file cannot
be read, or a policy cannot be used, nothing is printed.

\b
  waddle expand -f expansion/ -f deployment.yaml
  waddle expand -f expansion/ -f deployment.yaml -o json
"""


@click.command(name="expand", help=_HELP + exit_codes.paragraph("expand"))
@FILENAMES
@PROVIDERS
@output_option("yaml", "json", also="--format")
@click.option(
    "--outputfile",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write to, instead of standard output.",
)
def command(
    filenames: tuple[str, ...], answers: RecordedAnswers, output: str, outputfile: Path | None
) -> int:
    """Expand and print."""
    # Imported here: --help, completion and a mistyped option do not need it.
    from webhook.cli.extensions import run as extension_run  # noqa: PLC0415
    from webhook.policy_kinds.table import EXPANSION_TEMPLATES  # noqa: PLC0415

    sources, policies = extension_run.read_files(filenames, extension_run.read_expanding)
    objects = [item for item in sources.manifests if extension_run.is_object(item)]
    extending = extension_run.Extending(policies, ask=answers)
    results, faults = extension_run.at_each(extending.implied, objects)
    if sources.faults or faults:
        extension_run.refuse([*sources.faults, *faults])
    resultants = [resultant for result in results for resultant in result]
    if results and not resultants:
        kind = EXPANSION_TEMPLATES
        complain(extension_run.untouched(sources.manifests, kind.gvk.kind, kind))
    if resultants or outputfile is not None:
        resultants.sort(key=_place, reverse=True)
        emit(Output(output, outputfile), extension_run.as_manifests(resultants, output))
    return exit_codes.OK


def _place(obj: dict[str, Any]) -> str:
    """Returns gator's sort key, the last field first."""
    return name_of(obj) + text(obj, "apiVersion") + text(obj, "kind")
