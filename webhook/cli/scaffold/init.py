"""``waddle init``: writes a folder with a policy, its tests and a pipeline."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from webhook import __version__
from webhook.cli import exit_codes
from webhook.cli.scaffold import writing
from webhook.cli.terminal import write
from webhook.extras import installed_from, local_source, requirement

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
    help="The CI system to write a pipeline for.",
)
def command(folder: Path, pipeline: str) -> int:
    """Write the files and say what to type next."""
    package, advice = _package(folder)
    words = writing.words_of("RequiredOwner") | {"package": package}
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
        if advice and pipeline != "none":
            write(advice)
    return code


def _package(folder: Path) -> tuple[str, str]:
    """Returns the package that the pipeline installs with pip, and advice to print.

    The advice tells how to build the wheel if Waddle was installed from a local folder.
    """
    source = local_source(installed_from())
    if source is None:
        return requirement(), ""
    wheel = f"waddle_admission-{__version__}-py3-none-any.whl"
    make = f"pip wheel --no-deps --wheel-dir {shlex.quote(str(folder))} {shlex.quote(str(source))}"
    return (
        f"./{wheel}",
        f"\nThe pipeline installs {folder / wheel}. Build it, and commit it:\n  {make}",
    )
