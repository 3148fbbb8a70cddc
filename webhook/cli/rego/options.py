"""Options that the subcommands of ``waddle rego`` share, named as OPA names them."""

from __future__ import annotations

from typing import Any

import click

from webhook.duration import duration_seconds


class Duration(click.ParamType[float]):
    """Seconds, written as Go writes durations: ``5s``, ``1m30s``, ``500ms``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds of a text; complains of what is no duration."""
        if isinstance(value, float):
            return value
        seconds = duration_seconds(str(value))
        if seconds is None:
            self.fail(f"{value!r} is no duration such as 5s or 500ms", param, ctx)
        return seconds


V0 = click.option(
    "--v0-compatible", is_flag=True, help="Read sources as Rego v0, as OPA before 1.0 did."
)
V1 = click.option("--v1-compatible", is_flag=True, help="Read sources as Rego v1, the default.")
IGNORE = click.option(
    "--ignore",
    metavar="PATTERN",
    multiple=True,
    help="File and folder names to pass over below a path, such as '.*'. Repeatable.",
)
BUNDLE = click.option(
    "-b",
    "--bundle",
    is_flag=True,
    help="Read paths as bundles: of data files only data.json and data.yaml.",
)
MAX_ERRORS = click.option(
    "-m", "--max-errors", default=10, show_default=True, help="Faults told at most; 0 for all."
)
