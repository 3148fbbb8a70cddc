"""``waddle mutate``: prints manifests after mutation, or only the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.formats.words import output_option
from webhook.cli.policy_options import FILENAMES, PROVIDERS
from webhook.cli.terminal import complain, write

if TYPE_CHECKING:
    from webhook.policies.recorded_answers import RecordedAnswers

_HELP = """Print resources as the mutators among the files would leave them.

MutatingAdmissionPolicies count, too, with their bindings and parameters: the API server applies
them before it asks webhooks. Kyverno's MutatingPolicies come before mutators. Each resource is taken for one that is being created. What nobody
changes is printed as it is; policies are not printed. With -o patch only what changes is, as
JSON Patches with the names of who changes it. If a file cannot be read, or a mutator cannot be used,
nothing is printed.

\b
  waddle mutate -f mutators/ -f manifest.yaml
  helm template chart | waddle mutate -f mutators/ -f - -o patch
"""


@click.command(name="mutate", help=_HELP + exit_codes.paragraph("mutate"))
@FILENAMES
@PROVIDERS
@output_option("yaml", "json", "patch")
def command(filenames: tuple[str, ...], answers: RecordedAnswers, output: str) -> int:
    """Mutate and print."""
    # Imported here: --help, completion and a mistyped option do not need it.
    from webhook.cli.extensions import run as extension_run  # noqa: PLC0415
    from webhook.cli.formats.document import as_json  # noqa: PLC0415
    from webhook.mutation.patch import make_patch  # noqa: PLC0415
    from webhook.policy_kinds.table import MUTATORS  # noqa: PLC0415

    sources, policies = extension_run.read_files(filenames, extension_run.read_mutating)
    for line in extension_run.advice_on_mutating(policies, sources.manifests):
        complain(line)
    objects = [item for item in sources.manifests if extension_run.is_object(item)]
    extending = extension_run.Extending(policies, ask=answers)
    results, faults = extension_run.at_each(extending.mutate, objects)
    for line in (line for result in results for line in result.warnings):
        complain(line)
    if sources.faults or faults:
        extension_run.refuse([*sources.faults, *faults])
    if results and not any(result.mutators for result in results):
        title = "mutator or mutating policy"
        complain(extension_run.untouched(sources.manifests, title, MUTATORS[0]))
    if output != "patch":
        write(extension_run.as_manifests([result.after for result in results], output))
        return exit_codes.OK
    patches = [
        {
            "resource": extension_run.shown(result.before),
            "mutators": result.mutators,
            "patch": patch,
        }
        for result in results
        if (patch := make_patch(result.before, result.after))
    ]
    write(as_json(patches))
    return exit_codes.OK
