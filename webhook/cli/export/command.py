"""``waddle export``: constraints in CEL as policies that an API server loads from files."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import filenames_option

_HELP = """Write constraints in CEL as policies that an API server enforces without a webhook.

\b
  waddle export --static DIR policies/
  waddle export --static DIR policies/ --allow-user ops@example.com --allow-group platform

The API server loads them from files (manifest-based admission control, Kubernetes 1.36 and later):
they hold while no webhook runs and before anything is read from etcd. DIR/validating-policies has a
ValidatingAdmissionPolicy and a binding for each constraint, with its parameters written into it.
DIR/admission-configuration.yaml names that folder by the place that --path says.

With --allow-user or --allow-group a guard is among them: nobody else changes or deletes Waddle's
webhook configurations, or deletes its namespace. Constraints without CEL, and those that an API
server cannot decide alike, are named with the reason.
"""


@click.command("export", help=_HELP + exit_codes.paragraph("export"))
@click.option(
    "--static",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write. Files of an earlier export are replaced.",
)
@click.option(
    "--path",
    "place",
    metavar="PATH",
    default="/etc/kubernetes/admission",
    show_default=True,
    help="The path of DIR on the hosts of the API servers.",
)
@click.option(
    "--allow-user",
    "users",
    metavar="USER",
    multiple=True,
    help="A user who may change Waddle's webhook configurations. Repeatable.",
)
@click.option(
    "--allow-group",
    "groups",
    metavar="GROUP",
    multiple=True,
    help="A group whose members may change them, such as system:masters. Repeatable.",
)
@click.option(
    "--name", default="waddle", show_default=True, help="The prefix of the installation's names."
)
@click.option(
    "-n",
    "--namespace",
    default="waddle-system",
    show_default=True,
    help="The namespace that Waddle runs in.",
)
@filenames_option(
    "A file, a folder, or - for standard input, as FILE alone is. Give templates and "
    "constraints, and for their scope a webhook configuration and a Config. Repeatable."
)
def command(  # each is an option
    *,
    folder: Path,
    place: str,
    users: tuple[str, ...],
    groups: tuple[str, ...],
    name: str,
    namespace: str,
    filenames: tuple[str, ...],
) -> int:
    """Write the files, and report what has none."""
    if not place.startswith("/"):
        raise click.BadParameter("give an absolute path", param_hint="--path")
    if not filenames:
        raise click.UsageError("give files or folders with policies")
    # Here and not above: --help, completion and a mistyped option need none of it.
    from webhook.cli.export.run import run  # noqa: PLC0415
    from webhook.generation.static import Guarded  # noqa: PLC0415

    guarded = Guarded(name, namespace, users, groups)
    return run([Path(filename) for filename in filenames], folder, place, guarded)
