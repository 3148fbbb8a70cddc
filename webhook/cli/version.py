"""``waddle version``: the versions for a fault report."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Final

import click

from webhook import __version__
from webhook.cli import exit_codes
from webhook.cli.formats import words
from webhook.cli.formats.words import output_option
from webhook.cli.table import table
from webhook.cli.terminal import write
from webhook.extras import installed_from

OPA_LEVEL: Final = "1.22.4"
"""The OPA version of this Rego."""

KUBERNETES_LEVEL: Final = "1.37"
"""The Kubernetes version of this CEL (docs/cel.md)."""


_COMMIT_CHARACTERS: Final = 40

_HELP = """Show what this is: version, commit where it is known, engines, Python.

The commit is known to an image that was built with it, to an installation from a repository,
and in a checkout.
"""


@click.command("version", help=_HELP + exit_codes.paragraph("version"))
@output_option(*words.SHORT)
def command(*, output: str) -> int:
    """Print it."""
    values = facts()
    if output == "json":
        write(json.dumps(values))
    else:
        write("\n".join(table(list(values.items()))))
    return exit_codes.OK


def facts() -> dict[str, str]:
    """Returns all facts by name; a commit only if it is known."""
    values = {"waddle": __version__}
    if revision := commit():
        values["commit"] = revision
    return values | {
        "rego": f"OPA {OPA_LEVEL}, v0 and v1",
        "cel": f"Kubernetes {KUBERNETES_LEVEL}",
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }


def commit() -> str:
    """Returns the commit of this installation; an empty text if it is unknown."""
    return _of_build() or _of_installation() or _of_checkout(Path(__file__).parents[2])


def _of_build() -> str:
    """Reads the commit from the file that the image's build writes beside the package."""
    try:
        text = Path(__file__).parents[1].joinpath("commit").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if _is_commit(text) else ""


def _of_installation() -> str:
    """Reads the commit that pip and uv record for installations from a repository (PEP 610)."""
    noted = installed_from().get("vcs_info", {}).get("commit_id", "")
    return noted if _is_commit(noted) else ""


def _of_checkout(root: Path) -> str:
    """Returns the checked-out commit, read without git; it need not exist."""
    try:
        git = root / ".git"
        if git.is_file():  # a work tree beside others
            git = root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if head.startswith("ref: "):
            head = _of_reference(git, head.removeprefix("ref: "))
    except (OSError, ValueError):
        return ""
    return head if _is_commit(head) else ""


def _of_reference(git: Path, name: str) -> str:
    try:
        common = git / (git / "commondir").read_text(encoding="utf-8").strip()
    except OSError:
        common = git
    try:
        return (common / name).read_text(encoding="utf-8").strip()
    except OSError:
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")


def _is_commit(text: str) -> bool:
    return len(text) == _COMMIT_CHARACTERS and not set(text) - set("0123456789abcdef")
