"""``waddle serve``: the admission server.

Its flags have Go's syntax and are not parsed by click, because Gatekeeper's manifests use that
syntax.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from webhook import heap
from webhook.cli import exit_codes
from webhook.settings.flags import InvalidFlag, flags_of, usage
from webhook.settings.reading import read
from webhook.settings.serve import ServeSettings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_HELP = """Usage: waddle serve --policies DIR [FLAG]...
       waddle serve --kubernetes [FLAG]...

Answer admission reviews over HTTPS by the templates, constraints and data of
directories, or of a cluster. Flags that Gatekeeper has keep their names; -flag, --flag,
--flag=value and --flag value are accepted, lists are repeated or separated by
commas.
"""


class ServeCommand(click.Command):
    """Passes its arguments to the parser of the flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments unparsed."""
        ctx.params["arguments"] = tuple(args)
        return []

    def get_help(self, ctx: click.Context) -> str:
        """Returns the help with the flags, which click does not know."""
        del ctx
        codes = exit_codes.paragraph("serve").strip()
        return f"{_HELP}\n{codes}\n\n{usage(ServeSettings)}".rstrip("\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the flags, which click does not know, and file completion for their values."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # for this alone

        del ctx
        if incomplete and not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        return [
            CompletionItem(f"--{flag.name}", help=flag.help)
            for flag in flags_of(ServeSettings)
            if f"--{flag.name}".startswith(incomplete)
        ]


def run(arguments: tuple[str, ...]) -> None:
    """Reads the flags and serves."""
    if any(argument in ("-h", "-help", "--help") for argument in arguments):
        click.echo(command.get_help(click.get_current_context()))
        return
    try:
        settings = read(arguments)
    except InvalidFlag as error:
        raise click.UsageError(f"{error}\nSee 'waddle serve --help'.") from None
    # Imported here: --help and a mistyped flag do not need it. Windows lacks fcntl and other parts
    # that serving needs: signals, processes with limits.
    import fcntl  # noqa: F401, PLC0415

    from webhook.app import process  # noqa: PLC0415

    heap.bound()
    try:
        sys.exit(process.serve(settings))
    except process.CannotStart as error:
        raise click.ClickException(str(error)) from None


def _callback(**parameters: Any) -> None:
    run(parameters["arguments"])


command = ServeCommand(
    "serve",
    callback=_callback,
    help="Answer admission reviews over HTTPS.",
    add_help_option=False,
)
