"""``waddle new``: adds a template, constraint, suite or mutator to a folder of policies."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.scaffold import writing

_HELP = """Write a new template, constraint, suite or mutator, to be edited.

\b
  waddle new template RequiredOwner              # policies/required-owner/template.yaml
  waddle new constraint RequiredOwner            # constraint.yaml beside it
  waddle new suite RequiredOwner                 # suite.yaml and samples beside it
  waddle new mutator no-token                    # policies/no-token/mutator.yaml

Nothing that is there is overwritten.
"""

_FOLDER = click.option(
    "-d",
    "--directory",
    metavar="DIR",
    default="policies",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of policies.",
)
_KIND = click.argument("kind", callback=writing.read_kind)


@click.group("new", help=_HELP)
def command() -> None:
    """Write what a subcommand names."""


@command.command(
    "template", help="Write a template of this KIND.\n" + exit_codes.paragraph("new template")
)
@_KIND
@_FOLDER
def template(kind: str, directory: Path) -> int:
    """The rule."""
    words = writing.words_of(kind)
    return writing.create({directory / words["folder"] / "template.yaml": "template.yaml"}, words)


@command.command(
    "constraint",
    help="Write a constraint of this KIND, which enforces it.\n"
    + exit_codes.paragraph("new constraint"),
)
@_KIND
@click.argument("name", required=False, callback=writing.read_name)
@_FOLDER
def constraint(kind: str, name: str | None, directory: Path) -> int:
    """The rule in force; a second one of a kind has its name in that of its file."""
    words = writing.words_of(kind, name)
    file = "constraint.yaml" if name is None else f"{name}.yaml"
    return writing.create({directory / words["folder"] / file: "constraint.yaml"}, words)


@command.command(
    "suite",
    help="Write a test suite for the template of this KIND.\n" + exit_codes.paragraph("new suite"),
)
@_KIND
@_FOLDER
def suite(kind: str, directory: Path) -> int:
    """Its tests."""
    words = writing.words_of(kind)
    folder = directory / words["folder"]
    return writing.create({folder / name: name for name in writing.SUITE}, words)


@command.command(
    "mutator", help="Write a mutator of this NAME.\n" + exit_codes.paragraph("new mutator")
)
@click.argument("name", callback=writing.read_name)
@_FOLDER
def mutator(name: str, directory: Path) -> int:
    """Write a mutator."""
    return writing.create({directory / name / "mutator.yaml": "mutator.yaml"}, {"name": name})
