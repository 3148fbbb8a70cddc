"""``waddle completion``: a script that has a shell complete commands, options and words."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli import exit_codes

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
    from click.shell_completion import ShellComplete, get_completion_class  # noqa: PLC0415

    shell_class = get_completion_class(shell)
    assert shell_class is not None, "click knows these shells"
    program = click.get_current_context().find_root().command
    made = shell_class(program, {}, "waddle", "_WADDLE_COMPLETE")
    # Not its own `source`, which runs bash to ask for its version.
    click.echo(ShellComplete.source(made))
    return exit_codes.OK
