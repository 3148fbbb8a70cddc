"""``waddle mutate``: print manifests as mutators would leave them, or only what would change."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import FILENAMES
from webhook.cli.terminal import complain, write

_HELP = """Print resources as the mutators among the files would leave them.

Each is taken for one that is being created. What no mutator changes is printed as it is; mutators
and other policies are not printed. With -o patch only what changes is, as JSON Patches with the
names of the mutators.

\b
  waddle mutate -f mutators/ -f manifest.yaml
  helm template chart | waddle mutate -f mutators/ -f - -o patch
"""


@click.command(name="mutate", help=_HELP + exit_codes.paragraph("mutate"))
@FILENAMES
@output_option("yaml", "json", "patch")
def command(filenames: tuple[str, ...], output: str) -> int:
    """Mutate and print."""
    # Here and not above: --help, completion and a mistyped option need none of it.
    from webhook.cli.extensions import run as extension_run  # noqa: PLC0415
    from webhook.cli.formats.document import as_json  # noqa: PLC0415
    from webhook.cli.sources import CannotTest, read_sources  # noqa: PLC0415
    from webhook.constraint.expansion import Expansion  # noqa: PLC0415
    from webhook.mutation.patch import make_patch  # noqa: PLC0415

    try:
        sources = read_sources([Path(name) for name in filenames], any_value=False)
        for warning in sources.warnings:
            complain(warning)
        mutations = extension_run.read_mutations(sources.manifests)
        namespaces = extension_run.namespaces_of(sources.manifests)
        objects = [item.document for item in sources.manifests if extension_run.is_object(item)]
        extending = extension_run.Extending(mutations, Expansion(), namespaces)
        results = [extending.mutate(obj) for obj in objects]
    except CannotTest as error:
        for line in error.lines:
            complain(line)
        return exit_codes.UNKNOWN
    if output != "patch":
        write(extension_run.as_manifests([one.after for one in results], output))
        return exit_codes.OK
    patches = [
        {"resource": extension_run.shown(one.before), "mutators": one.mutators, "patch": patch}
        for one in results
        if (patch := make_patch(one.before, one.after))
    ]
    write(as_json(patches))
    return exit_codes.OK
