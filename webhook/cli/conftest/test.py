"""``waddle conftest test``: configuration files against policies of ``deny`` and ``warn``."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from webhook import __version__
from webhook.cli import exit_codes
from webhook.cli.conftest.options import (
    CONFIG_FILE,
    LOADING,
    SHOWING,
    TLS,
    UPDATE,
    ConftestExit,
    Flags,
    is_coloured,
    lists,
)
from webhook.cli.terminal import complain

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.conftest.output import OutputOptions
    from webhook.conftest.run import TestRun

_HELP = """Test configuration files against Rego policies.

Each PATH is a file, a folder, or - for standard input. Rules named deny, violation and
warn, and those that begin with deny_, violation_ and warn_, are evaluated for each
document of each file.

\b
  waddle conftest test -p policy/ deployment.yaml
  terraform show -json plan | waddle conftest test --parser json -
  waddle conftest test --all-namespaces -o sarif Dockerfile main.tf
"""


@click.command(name="test", cls=Flags, help=_HELP + exit_codes.paragraph("conftest test"))
@click.argument("paths", metavar="PATH...", nargs=-1)
@LOADING
@click.option(
    "-n",
    "--namespace",
    multiple=True,
    default=("main",),
    metavar="NAME",
    help="The packages to evaluate; *, ? and [a-z] are wildcards.",
)
@click.option("--all-namespaces", is_flag=True, help="Evaluate every package.")
@click.option("--combine", is_flag=True, help="Give all files to policies as one input, an array.")
@click.option("--parser", default="", help="The parser for all files, whatever their names are.")
@click.option("--ignore", default="", metavar="REGEX", help="Paths to ignore.")
@click.option(
    "--stdin-filename", default="", metavar="NAME", help="The name of standard input in results."
)
@click.option("--fail-on-warn", is_flag=True, help="Exit with 1 for warnings, 2 for failures.")
@click.option("--no-fail", is_flag=True, help="Exit with 0 even if there are failures.")
@click.option("--suppress-exceptions", is_flag=True, help="Do not show exceptions.")
@UPDATE
@TLS
@SHOWING
@CONFIG_FILE
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Load, read, evaluate and report."""
    if not paths:
        raise ConftestExit("missing required arguments")
    # Here and not above: --help and a mistyped flag need none of it.
    from webhook.conftest.policies import ConftestPolicyError  # noqa: PLC0415

    try:
        return _run(list(paths), options)
    except ConftestPolicyError as error:
        raise ConftestExit(f"running test: {error}") from None


def _run(paths: list[str], options: dict[str, Any]) -> int:
    from webhook.conftest import output, result, run  # noqa: PLC0415  # as above

    test_run = _test_run(paths, options)
    if options["update"]:
        from webhook.conftest import fetched  # noqa: PLC0415  # as above

        fetched.update(test_run.policies[0], lists(options["update"]), tls=options["tls"])
    outcome = run.test(test_run)
    for fault in outcome.faults:
        complain(f"Error: running test: {fault}")
    if not outcome.results and outcome.faults:
        return exit_codes.NO
    code = result.exit_code(outcome.results, fail_on_warn=options["fail_on_warn"])
    if code or not options["quiet"]:
        output_options = output.OutputOptions(
            color=is_coloured(no_color=options["no_color"]),
            suppress_exceptions=options["suppress_exceptions"],
            junit_hide_message=options["junit_hide_message"],
            github_hide_passed=options["github_hide_passed"],
            version=__version__,
        )
        write_results(outcome.results, options["output"], output_options, trace=options["trace"])
        if options["no_fail"]:
            code = 0
    return code or (exit_codes.NO if outcome.faults else 0)


def write_results(
    results: list[Any], format_name: str, options: OutputOptions, *, trace: bool
) -> None:
    """Writes results to standard output; with ``trace``, their traces to standard error before.

    Traces stand for the results of two formats: ``stdout`` and unknown ones.
    """
    from webhook.conftest import output  # noqa: PLC0415  # as above
    from webhook.conftest.output.stdout import traced  # noqa: PLC0415  # as above

    if trace:
        sys.stderr.write(encodable(traced(results, options)))
        sys.stderr.flush()
        if format_name not in output.FORMATS or format_name == "stdout":
            return
    sys.stdout.write(encodable(output.written(format_name, results, options)))


def encodable(text: str) -> str:
    """Returns the text with lone surrogates replaced: no encoding takes them."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _test_run(paths: list[str], options: dict[str, Any]) -> TestRun:
    from webhook.cli.progress import watched  # noqa: PLC0415  # as above
    from webhook.conftest.run import TestRun  # noqa: PLC0415  # as above

    return TestRun(
        paths=paths,
        policies=lists(options["policy"]),
        data=lists(options["data"]),
        options=policy_options(options),
        namespaces=lists(options["namespace"]),
        all_namespaces=options["all_namespaces"],
        combine=options["combine"],
        parser=options["parser"],
        ignored=_ignored(options["ignore"]),
        stdin_name=options["stdin_filename"],
        watched=lambda paths: watched(paths, "files"),
    )


def policy_options(options: dict[str, Any]) -> Any:
    """Returns how policies are to be loaded."""
    from webhook.cli.rego.context import runtime  # noqa: PLC0415  # as above
    from webhook.conftest.policies import ConftestPolicyError, PolicyOptions  # noqa: PLC0415  # as above

    version = options["rego_version"].lower()
    if version not in {"v0", "v1"}:
        raise ConftestPolicyError(
            f"load: loading policies: invalid Rego version: {options['rego_version']}"
        )
    return PolicyOptions(
        version="v0" if version == "v0" else "v1",
        strict=options["strict"],
        capabilities=options["capabilities"],
        builtin_errors=options["show_builtin_errors"],
        runtime=runtime(),
        trace=options["trace"],
    )


def _ignored(pattern: str) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: False
    from webhook.rego.errors import BuiltinError  # noqa: PLC0415  # as above
    from webhook.rego.run.patterns import pattern as compiled  # noqa: PLC0415  # as above

    try:
        return compiled(pattern).found_in
    except (BuiltinError, re.error) as error:
        raise ConftestExit(
            f"running test: parse files: given regexp couldn't be parsed: {error}"
        ) from None
