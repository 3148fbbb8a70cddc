"""conftest's flags, given, defaulted and refused as its own command line does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import boolean_option, dash_is_standard_input, together
from webhook.conftest import settings


class Flags(click.Command):
    """A subcommand whose options also take values from the environment and a file.

    A usage error ends with exit code 1, as in conftest, not with 64.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Makes the context, with the defaults of the environment and the file."""
        file = _config_file(args) or (parent.params.get("config_file") or "" if parent else "")
        try:
            configured = settings.settings(file)
        except settings.SettingsError as error:
            raise ConftestExit(f"read in config: error reading config: {error}") from None
        defaults = {}
        for option in self.params:
            name = (option.name or "").replace("_", "-")
            if isinstance(option, click.Option) and configured.get(name) is not None:
                value = configured[name]
                defaults[option.name or ""] = (
                    settings.as_list(value) if option.multiple else str(value)
                )
        try:
            return super().make_context(info_name, args, parent, default_map=defaults, **extra)
        except click.UsageError as error:
            raise ConftestExit(error.format_message(), error.ctx) from None


class ConftestExit(click.ClickException):
    """An error for which conftest prints ``Error: …`` and ends with exit code 1."""

    exit_code = exit_codes.NO

    def __init__(self, message: str, ctx: click.Context | None = None) -> None:
        super().__init__(message)
        self.ctx = ctx


def is_coloured(*, no_color: bool) -> bool:
    """Returns whether results are coloured: unless the flag or NO_COLOR forbids it."""
    return not (no_color or os.environ.get("NO_COLOR"))


def _config_file(args: Sequence[str]) -> str:
    for position, argument in enumerate(args):
        if argument in {"-c", "--config-file"}:
            return args[position + 1] if position + 1 < len(args) else ""
        if argument.startswith("--config-file="):
            return argument.removeprefix("--config-file=")
    return ""


def lists(values: Sequence[str]) -> list[str]:
    """Return all values of a repeated flag; each may be a list separated by commas."""
    return [part for value in values for part in settings.separated(value)]


TLS = boolean_option(
    "-s",
    "--tls",
    help_text=(
        "Whether to use TLS for registries. Without TLS only this machine's registries may be used."
    ),
)

UPDATE = click.option(
    "-u",
    "--update",
    multiple=True,
    metavar="SOURCE",
    help="Policies to download first, as conftest pull does. Repeatable.",
)

CONFIG_FILE = click.option("-c", "--config-file", default="", help="Path to configuration file.")

LOADING = together(
    click.option(
        "-p",
        "--policy",
        multiple=True,
        default=("policy",),
        callback=dash_is_standard_input,
        metavar="PATH",
        help="Files and folders of Rego. Repeatable, or separated by commas.",
    ),
    click.option(
        "-d",
        "--data",
        multiple=True,
        callback=dash_is_standard_input,
        metavar="PATH",
        help="Files and folders of data for policies.",
    ),
    click.option(
        "--rego-version", default="v1", show_default=True, help="The syntax of Rego: v0 or v1."
    ),
    click.option(
        "--capabilities",
        default="",
        metavar="FILE",
        callback=dash_is_standard_input,
        help="A file of OPA's capabilities: the built-ins that policies may call.",
    ),
    click.option("--strict", is_flag=True, help="Refuse what Rego's strict mode refuses."),
    click.option("--show-builtin-errors", is_flag=True, help="Fail at an error of a built-in."),
    click.option("--trace", is_flag=True, help="Print on standard error how rules were evaluated."),
    click.option("--proto-file-dirs", multiple=True, hidden=True, help="Not supported."),
)

SHOWING = together(
    click.option(
        "-o",
        "--output",
        default="stdout",
        show_default=True,
        help="stdout, json, tap, table, junit, github, azuredevops or sarif.",
    ),
    click.option("--no-color", is_flag=True, help="No colours."),
    click.option("--quiet", is_flag=True, help="Print nothing if there is no failure."),
    click.option(
        "--junit-hide-message",
        is_flag=True,
        help="Leave messages out of the names of JUnit's cases.",
    ),
    click.option(
        "--github-hide-passed", is_flag=True, help="Print no group for a file that passed."
    ),
)
