"""``waddle conftest doc``: pages about policies, from their annotations."""

from __future__ import annotations

import os.path
from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.conftest.options import CONFIG_FILE, ConftestExit, Flags

_HELP = """Write a page about the policies of each folder, from their METADATA annotations.

The page is named by its folder. A template is one of Go's, about a list of sections: each has
RegoPackageName, Depth, MarkdownHeading, and Annotations with Title, Description, Scope,
Entrypoint, Organizations, Authors, RelatedResources, Custom and Labels.

\b
  waddle conftest doc policy/
  waddle conftest doc -o docs -t page.tpl policy/
"""


@click.command(name="doc", cls=Flags, help=_HELP + exit_codes.paragraph("conftest doc"))
@click.argument("folders", metavar="FOLDER...", nargs=-1)
@click.option(
    "-o",
    "--outDir",
    "--out-dir",
    "out_dir",
    default=".",
    show_default=True,
    metavar="FOLDER",
    help="Where pages are written.",
)
@click.option("-t", "--template", default="", metavar="FILE", help="A Go template.")
@CONFIG_FILE
def command(folders: tuple[str, ...], *, out_dir: str, template: str, config_file: str) -> None:
    """Read, render and write."""
    del config_file
    if not folders:
        raise ConftestExit("missing required arguments")
    from webhook.conftest.documentation import documentation  # noqa: PLC0415  # not for --help
    from webhook.conftest.policies import ConftestPolicyError  # noqa: PLC0415

    for folder in folders:
        if not Path(folder).is_dir():
            missing = "is not a directory" if Path(folder).exists() else "there is no such folder"
            raise ConftestExit(f"{folder}: {missing}")
        name = os.path.basename(os.path.normpath(folder))  # noqa: PTH119  # Path drops a dot
        page = Path(out_dir) / f"{'policy' if name in {'.', '..', ''} else name}.md"
        try:
            text = documentation(folder, template)
            page.write_text(text, "utf-8")
        except ConftestPolicyError as error:
            raise ConftestExit(str(error)) from None
        except OSError as error:
            raise ConftestExit(f"opening {page} for writing output: {error.strerror}") from None
