"""``waddle cel check``: checks CEL expressions and prints their types."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli import exit_codes
from webhook.cli.terminal import complain, write
from webhook.printable import printable

_HELP = """Check expressions: print the type of each, or what is wrong, with line, column and mark.

`object`, `oldObject`, `request`, `namespaceObject`, `variables.params`, `variables.anyObject` and
whatever is named with --variable may be read.

\b
  waddle cel check 'has(object.metadata.labels) && "a" in object.metadata.labels'
  waddle cel check --variable names 'size(variables.names) > 0'
"""


def run(expressions: tuple[str, ...], *, names: tuple[str, ...]) -> int:
    """Compiles and reports."""
    # The engine takes long to import; help and usage errors do not need it.
    from webhook.cel.check.types import DYN  # noqa: PLC0415
    from webhook.cel.engine import compile_expression  # noqa: PLC0415
    from webhook.cel.errors import CompileError  # noqa: PLC0415
    from webhook.cel.kubernetes import admission  # noqa: PLC0415

    declared = dict.fromkeys(("params", "anyObject", *names), DYN)
    environment = admission(declared, params=False)
    code = exit_codes.OK
    for expression in expressions:
        try:
            write(compile_expression(expression, environment).type.text)
        except CompileError as error:
            complain("\n".join(printable(line) for line in str(error).split("\n")))
            code = exit_codes.NO
    return code


@click.command(name="check", help=_HELP + exit_codes.paragraph("cel check"))
@click.argument("expressions", metavar="EXPRESSION...", nargs=-1, required=True)
@click.option(
    "--variable",
    "names",
    metavar="NAME",
    multiple=True,
    help="A variable that the template defines, of any type. Repeatable.",
)
def command(**options: Any) -> int:
    """Compile and report."""
    return run(**options)
