"""``waddle``: the program's entry, and its subcommands by name.

What it exits with stands in :mod:`webhook.cli.exit_codes`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

from webhook import __version__
from webhook.cli import exit_codes

_COMMANDS: Final = {
    "audit": ("webhook.cli.audit", "Review what is in a cluster already."),
    "check": ("webhook.cli.check", "Check policies before they are applied, and their effect."),
    "decisions": ("webhook.cli.decisions", "Read, count and replay the decision log."),
    "report": ("webhook.cli.report", "Show the top violations of policy reports."),
    "serve": ("webhook.cli.serve", "Serve admission decisions from directories of policies."),
    "sidecar": ("webhook.cli.sidecar", "Keep decisions on disk until every sink has them."),
    "simulate": ("webhook.cli.simulate", "Show what so many replicas give."),
    "size": ("webhook.cli.size", "Say how many replicas a load needs."),
    "status": ("webhook.cli.status", "Show which replicas enforce which policies."),
    "test": ("webhook.cli.test", "Check manifests, or any JSON document, against policies."),
    "verify": ("webhook.cli.verify", "Run the test suites of policies."),
    "wait": ("webhook.cli.wait", "Wait until all replicas enforce a policy."),
}


class _Subcommands(click.Group):
    """Lists the subcommands without importing them: ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(
    cls=_Subcommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="See 'waddle COMMAND --help' for the options of each.",
)
@click.version_option(__version__, prog_name="waddle")
def waddle() -> None:
    """Admission policies for Kubernetes: ConstraintTemplates as Gatekeeper runs them."""


def main() -> None:
    """Run the program and exit."""
    try:
        code = waddle.main(prog_name="waddle", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        sys.exit(exit_codes.USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(exit_codes.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
