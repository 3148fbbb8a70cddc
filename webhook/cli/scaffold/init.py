"""``waddle init``: a folder of policies that can be tried, tested and put into a pipeline."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.scaffold import writing
from webhook.cli.terminal import write

_HELP = """Make a folder with a policy, its tests, an object that it denies, and a pipeline.

\b
  waddle init shop
  waddle verify shop/policies                       # the policy's tests
  waddle test shop/policies shop/manifests          # denies the Deployment

Nothing that is there is overwritten.
"""
_PIPELINES = {"github": ".github/workflows/policies.yaml", "gitlab": ".gitlab-ci.yml"}


@click.command("init", help=_HELP + exit_codes.paragraph("init"))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option(
    "--pipeline",
    type=click.Choice(["github", "gitlab", "none"]),
    default="github",
    show_default=True,
    help="Whose pipeline to write.",
)
def command(folder: Path, pipeline: str) -> int:
    """Write the files and say what to type next."""
    words = writing.words_of("RequiredOwner")
    policy = folder / "policies" / words["folder"]
    files = {policy / name: name for name in ("template.yaml", "constraint.yaml", *writing.SUITE)}
    files[folder / "manifests" / "deployment.yaml"] = "deployment.yaml"
    if pipeline != "none":
        files[folder / _PIPELINES[pipeline]] = f"{pipeline}.yaml"
    code = writing.create(files, words)
    if code == exit_codes.OK:
        write(
            "\nTry it:\n"
            f"  waddle verify {folder / 'policies'}\n"
            f"  waddle test {folder / 'policies'} {folder / 'manifests'}"
        )
    return code
