"""``waddle rego parse``: prints the syntax tree of a source as ``opa parse`` does."""

from __future__ import annotations

from pathlib import Path

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import dash_is_standard_input
from webhook.cli.rego.options import V0, V1, format_option

_HELP = """Print the syntax tree of a Rego file: what the parser makes of it.

\b
  waddle rego parse policy.rego
  waddle rego parse --format json policy.rego
"""


def _include(ctx: click.Context, _: click.Parameter, value: str) -> bool:
    """Whether comments are printed."""
    shown = True
    for option in filter(None, value.split(",")):
        name = option.removeprefix("-")
        if name == "locations" and option == name:
            ctx.fail("--json-include locations is not supported: only comments have locations.")
        if name not in {"comments", "locations"}:
            ctx.fail(f"--json-include: {option!r} must be 'comments' or '-comments'")
        if name == "comments":
            shown = option == name
    return shown


@click.command(name="parse", help=_HELP + exit_codes.paragraph("rego parse"))
@click.argument("path", metavar="PATH", callback=dash_is_standard_input)
@format_option("pretty prints a line for each node, json prints OPA's JSON.")
@click.option(
    "--json-include",
    "comments",
    metavar="PARTS",
    default="",
    callback=_include,
    help="'-comments' leaves the comments out.",
)
@V0
@V1
def command(
    path: str, *, output: str, comments: bool, v0_compatible: bool, v1_compatible: bool
) -> int:
    """Parse and print."""
    from webhook.cli.rego.check_run import as_json  # noqa: PLC0415  # the engine: help does without
    from webhook.cli.rego.context import version_of  # noqa: PLC0415
    from webhook.cli.rego.report import error_document, load_error_document  # noqa: PLC0415
    from webhook.cli.rego.syntax_tree import pretty_lines  # noqa: PLC0415
    from webhook.cli.terminal import complain  # noqa: PLC0415
    from webhook.policies.rego_files import system_words  # noqa: PLC0415
    from webhook.rego.builtins.module_json import module_document  # noqa: PLC0415
    from webhook.rego.errors import RegoErrors  # noqa: PLC0415
    from webhook.rego.run.text import OrderedFields, indented  # noqa: PLC0415
    from webhook.rego.syntax.metadata import block_faults  # noqa: PLC0415
    from webhook.rego.syntax.parser import parse_module  # noqa: PLC0415

    del v1_compatible  # the default
    try:
        source = Path(path).read_text("utf-8", "surrogateescape")
        module = parse_module(source, path, version_of(v0_compatible=v0_compatible))
        if faults := block_faults(module):
            complain(as_json([*map(error_document, faults)]))
            return exit_codes.NO
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        complain(as_json([load_error_document(f"{verb} {path}: {system_words(error)}")]))
        return exit_codes.NO
    except RegoErrors as errors:
        complain(as_json([*map(error_document, errors.errors)]))
        return exit_codes.NO
    tree: OrderedFields = module_document(module, comments=comments)
    click.echo(indented(tree) if output == "json" else "\n".join(pretty_lines(tree)))
    return 0
