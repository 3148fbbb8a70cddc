"""``waddle``: the program's entry, and its subcommands by name.

:mod:`webhook.cli.exit_codes` has the exit codes.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Final, TextIO

import click

from webhook import __version__, garbage
from webhook.cli import exit_codes
from webhook.cli.subcommands import COMPLETE, Subcommands
from webhook.cli.terminal import NoResult, complain
from webhook.extras import extra_of, install_command

_COMMANDS: Final = {
    "audit": ("webhook.cli.audit.command", "Review the objects that are in a cluster."),
    "bench": ("webhook.cli.bench.command", "Measure how long policies take."),
    "cel": ("webhook.cli.cel", "Check and evaluate expressions in CEL, as Kubernetes does."),
    "check": (
        "webhook.cli.check.command",
        "Check policies before they are applied, and their effect.",
    ),
    "completion": ("webhook.cli.completion", "Print a script that completes commands in a shell."),
    "conftest": ("webhook.cli.conftest.group", "Test files of any format, as conftest does."),
    "console": (
        "webhook.cli.console.command",
        "Serve web pages about policies and their violations.",
    ),
    "decisions": ("webhook.cli.decisions", "Read, count, compare and replay the decision log."),
    "demo": ("webhook.cli.demo.command", "Run a complete demonstration on this machine."),
    "except": ("webhook.cli.except_.command", "Write exceptions for violations."),
    "expand": ("webhook.cli.extensions.expand", "Print the resources that other resources create."),
    "export": (
        "webhook.cli.export.command",
        "Write constraints as policies for an API server without a webhook.",
    ),
    "init": (
        "webhook.cli.scaffold.init",
        "Create a folder of policies, with tests and a pipeline.",
    ),
    "krm": (
        "webhook.cli.krm.command",
        "Validate a ResourceList, as a function of kustomize and kpt.",
    ),
    "man": ("webhook.cli.pages.man", "Print manual pages."),
    "migrate": ("webhook.cli.migrate", "Report which policies of another product run here."),
    "mutate": ("webhook.cli.extensions.mutate", "Print resources as mutators change them."),
    "new": ("webhook.cli.scaffold.new", "Write a new template, constraint, suite or mutator."),
    "policy": ("webhook.cli.policy", "Push policies to registries, and install them from there."),
    "provider": ("webhook.cli.images", "Run a provider of external data."),
    "rego": ("webhook.cli.rego", "Test, evaluate and check plain Rego, as OPA does."),
    "report": ("webhook.cli.report.command", "Show the top violations of policy reports."),
    "serve": ("webhook.cli.serve", "Serve admission decisions from directories of policies."),
    "sidecar": ("webhook.cli.sidecar", "Keep decisions on disk until every sink has them."),
    "simulate": ("webhook.cli.simulate.command", "Show how available and how fast N replicas are."),
    "size": ("webhook.cli.size.command", "Compute how many replicas a load needs."),
    "status": ("webhook.cli.status.command", "Show which replicas enforce which policies."),
    "sync": ("webhook.cli.sync", "Check the data that is synced for policies."),
    "test": (
        "webhook.cli.test.command",
        "Check manifests, or any JSON document, against policies.",
    ),
    "uninstall": ("webhook.cli.uninstall.command", "Remove Waddle from a cluster."),
    "verify": ("webhook.cli.verify.command", "Run the test suites of policies."),
    "verify-image": ("webhook.cli.images.verify", "Verify the signatures of images."),
    "version": ("webhook.cli.version", "Show the version of Waddle and of its parts."),
    "wait": ("webhook.cli.wait", "Wait until all replicas enforce a policy."),
}


_OF_UNIX: Final = frozenset({"fcntl", "resource"})
"""Modules that Python has everywhere but on Windows."""


@click.command(
    cls=Subcommands,
    listed=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="See 'waddle COMMAND --help' for the options of each.",
)
@click.version_option(__version__, prog_name="waddle")
def waddle() -> None:
    """Admission policies for Kubernetes: ConstraintTemplates as Gatekeeper runs them."""


def main() -> None:
    """Runs the program and exits."""
    garbage.starting()
    sys.stdout, sys.stderr = _whole(sys.stdout), _whole(sys.stderr)
    if COMPLETE in os.environ:  # a shell completes a command line
        from webhook.cli import completion  # noqa: PLC0415

        completion.enable()
    shown = sys.stdout
    try:
        code = _run()
        shown.flush()
    except OSError as error:
        if not _is_lost(shown):
            raise
        complain(f"standard output: {error.strerror}")
        sys.exit(exit_codes.IO_ERROR)
    except ModuleNotFoundError as error:
        complain(_lacking(error))
        sys.exit(exit_codes.UNAVAILABLE)
    except click.UsageError as error:
        error.show()
        sys.exit(exit_codes.USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(exit_codes.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _lacking(error: ModuleNotFoundError) -> str:
    """Reports the missing package and its installation.

    Raises the error itself for an internal fault.
    """
    extra = extra_of(error)
    if extra:
        return f"this command needs {error.name}, which is not installed: {install_command(extra)}"
    if error.name in _OF_UNIX:
        return "this command needs Linux or macOS; on Windows run it in WSL or a container"
    raise error


def _run() -> object:
    """Runs the command; returns its result."""
    shown, errors = sys.stdout, sys.stderr
    try:
        return waddle.main(prog_name="waddle", standalone_mode=False)
    except NoResult as error:
        error.show()
        return error.exit_code
    except SystemExit:
        if sys.stdout is shown:
            raise
        # Click replaces the streams for a closed pipe, and ends with 1, which has another meaning
        # here.
        sys.stdout, sys.stderr = shown, errors
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None


def _is_lost(stream: TextIO) -> bool:
    """Returns whether a stream cannot be written; its buffered rest is then dropped.

    Python would try once more at the end, and exit with its own code.
    """
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return True
    return False


def _whole(stream: TextIO) -> TextIO:
    """Returns a stream whose writes are complete.

    If Python does not buffer (PYTHONUNBUFFERED, as in the image), an interrupted write loses its
    rest.
    """
    raw = getattr(stream, "buffer", None)  # a stream that another program replaced may have none
    if not isinstance(raw, io.RawIOBase):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
