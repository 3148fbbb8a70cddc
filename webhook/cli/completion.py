"""``waddle completion``: a shell script that completes commands, options and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook.cli import exit_codes
from webhook.cli.subcommands import COMPLETE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

SHELLS: Final = ("bash", "zsh", "fish")

_HELP = """Print the script that completes `waddle` in a shell.

\b
  bash: waddle completion bash > ~/.local/share/bash-completion/completions/waddle
  zsh:  waddle completion zsh > ~/.zfunc/_waddle         (with ~/.zfunc in $fpath)
  fish: waddle completion fish > ~/.config/fish/completions/waddle.fish
"""


@click.command("completion", help=_HELP + exit_codes.paragraph("completion"))
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print it."""
    # Here and not above: only a shell that completes needs it.
    from click.shell_completion import ShellComplete  # noqa: PLC0415

    program = click.get_current_context().find_root().command
    completion = _classes()[shell](program, {}, "waddle", COMPLETE)
    # Not its own `source`, which runs bash to ask for its version.
    click.echo(ShellComplete.source(completion))
    return exit_codes.OK


def enable() -> None:
    """Registers the classes below for completion."""
    from click.shell_completion import add_completion_class  # noqa: PLC0415

    for shell_class in _classes().values():
        add_completion_class(shell_class)


def _classes() -> dict[str, type[ShellComplete]]:
    """Returns Click's shells with completion of files wherever a value may be a file.

    Most file options are texts to Click (`-`, sources of a decision log), without completion; a
    shell without any candidates completes nothing.
    """
    from click.shell_completion import (  # noqa: PLC0415
        BashComplete,
        CompletionItem,
        FishComplete,
        ShellComplete,
        ZshComplete,
        _resolve_context,
        _resolve_incomplete,
    )

    class Files(ShellComplete):
        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
            context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
            completed, word = _resolve_incomplete(context, args, incomplete)
            items = completed.shell_complete(context, word)
            if items or not isinstance(completed, click.Parameter):
                return items
            is_text = isinstance(completed.type, click.types.StringParamType)
            return [CompletionItem(word, type="file")] if is_text else []

    class Bash(Files, BashComplete):
        pass

    class Zsh(Files, ZshComplete):
        pass

    class Fish(Files, FishComplete):
        # A command's description may contain commas.
        source_template = FishComplete.source_template.replace(
            'string split ","', 'string split --max 1 ","'
        )

    return {"bash": Bash, "zsh": Zsh, "fish": Fish}
