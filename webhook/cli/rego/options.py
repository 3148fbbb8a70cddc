"""The options shared by subcommands of ``waddle rego``, with OPA's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from webhook.cli.policy_options import dash_is_standard_input
from webhook.rego.trace.events import KINDS


class CoverageKinds(click.ParamType[tuple[str, ...]]):
    """Reasons for unreached lines, separated by commas."""

    name = "kinds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Returns the reasons; fails if one is unknown."""
        if isinstance(value, tuple):
            return value
        kinds = tuple(filter(None, str(value).split(",")))
        for kind in kinds:
            if kind not in KINDS:
                self.fail(f"{kind!r} is not {' or '.join(map(repr, KINDS))}", param, ctx)
        return kinds


def refused(*names: str, because: str, flag: bool = False) -> Callable[[Any], Any]:
    """Declares an option of OPA that Waddle refuses, with the alternative."""

    def complain(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{param.opts[-1]} is not supported: {because}", ctx)

    return click.option(
        *names,
        f"refused_{names[-1].strip('-').replace('-', '_')}",
        is_flag=flag,
        hidden=True,
        expose_value=False,
        callback=complain,
    )


_WASM: Final = "policies are evaluated as Rego, not as WebAssembly."
WASM = click.option(
    "-t",
    "--target",
    type=click.Choice(["rego", "wasm"]),
    hidden=True,
    expose_value=False,
    callback=lambda ctx, _, value: (
        ctx.fail(f"--target wasm is not supported: {_WASM}") if value == "wasm" else None
    ),
)
V0 = click.option(
    "--v0-compatible", is_flag=True, help="Read sources as Rego v0, as OPA before 1.0 did."
)
V1 = click.option("--v1-compatible", is_flag=True, help="Read sources as Rego v1, the default.")
IGNORE = click.option(
    "--ignore",
    metavar="PATTERN",
    multiple=True,
    help="Names of files and folders to ignore below a path, such as '.*'. Repeatable.",
)


def format_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes ``--format``, which is ``pretty`` or ``json``; the command gets it as ``output``."""
    return click.option(
        "-f",
        "--format",
        "output",
        type=click.Choice(["pretty", "json"]),
        default="pretty",
        show_default=True,
        help=help_text,
    )


BUNDLE = click.option(
    "-b",
    "--bundle",
    is_flag=True,
    help="Read each PATH as a bundle: a folder or a .tar.gz file.",
)
MAX_ERRORS = click.option(
    "-m",
    "--max-errors",
    default=10,
    show_default=True,
    help="The largest number of errors to show; 0 for all.",
)
CAPABILITIES = click.option(
    "--capabilities",
    metavar="FILE|VERSION",
    callback=dash_is_standard_input,
    help=(
        "The built-ins that may be used: a file of OPA's capabilities, or a version of OPA "
        "such as v1.0.0."
    ),
)
SCHEMA = click.option(
    "-s",
    "--schema",
    metavar="PATH",
    callback=dash_is_standard_input,
    help="The type of the input and data: a JSON schema of the input, or a folder of schemas.",
)
COVERAGE_RUNS = click.option(
    "--coverage-runs",
    type=CoverageKinds(),
    metavar="KINDS",
    help=(
        "The reasons to report why lines were not reached: index_excluded, early_exit, or "
        "none. Implies --coverage. Default: both."
    ),
)
VAR_VALUES = click.option(
    "--var-values", is_flag=True, help="Show the values of variables in explanations."
)
