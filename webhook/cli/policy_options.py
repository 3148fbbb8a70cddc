"""Options that commands about policies share: types of values, makers of options, the options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from webhook.duration import duration_seconds

_Command = Callable[..., Any]

STANDARD_INPUT: Final = "/dev/stdin"


class InputPath(click.Path):
    """A path to read; ``-`` is standard input."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"path_type": Path, "exists": True, **options})

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path; raises click's error where it does not exist."""
        return super().convert(STANDARD_INPUT if value == "-" else value, param, ctx)


class Duration(click.ParamType[float]):
    """A duration in Go's syntax: ``5s``, ``1m30s``, ``500ms``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Returns the seconds of a text; fails if it is no duration."""
        if isinstance(value, float):
            return value
        seconds = duration_seconds(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a duration such as 5s or 500ms", param, ctx)
        return seconds


def dash_is_standard_input(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
    """Returns the value of an option or argument with ``-`` replaced by standard input's path."""
    if isinstance(value, tuple):
        return tuple(STANDARD_INPUT if path == "-" else path for path in value)
    return STANDARD_INPUT if value == "-" else value


def together(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Combines several options into one decorator, in the order they are written."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def boolean_option(
    *names: str, default: bool | None = None, help_text: str
) -> Callable[[_Command], _Command]:
    """Makes an option that takes a value as Go's flags do: ``--name`` alone is true."""
    return click.option(
        *names,
        type=bool,
        is_flag=False,
        flag_value="true",
        default=default,
        show_default=default is not None,
        metavar="BOOL",
        help=help_text,
    )


def filenames_option(text: str) -> Callable[[_Command], _Command]:
    """Makes ``-f FILE``, and the same as arguments: the command gets both as ``filenames``."""

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def joined(*, filenames: tuple[str, ...], paths: tuple[str, ...], **options: Any) -> Any:
            return command(filenames=(*filenames, *paths), **options)

        option = click.option(
            "-f", "--filename", "filenames", metavar="FILE", multiple=True, help=text
        )
        return option(click.argument("paths", metavar="[FILE]...", nargs=-1)(joined))

    return decorate


FILENAMES = filenames_option(
    "A file, a folder, or - for standard input, as FILE alone is. Repeatable."
)
KUBECONFIG = click.option(
    "--kubeconfig",
    metavar="FILE",
    default=None,
    callback=dash_is_standard_input,
    help="The kubeconfig. The default is $KUBECONFIG, the Pod's own account, or the user's file.",
)


DISABLED_BUILTINS = click.option(
    "--disable-opa-builtin",
    "disabled_builtins",
    metavar="NAME",
    multiple=True,
    help="A built-in that templates must not call. Repeatable.",
)
HTTP_HOSTS = click.option(
    "--http-send-host",
    "http_hosts",
    metavar="HOST",
    multiple=True,
    help="A host that http.send may reach. Without it http.send is off. Repeatable.",
)
NATIVE_VALIDATION = boolean_option(
    "--enable-k8s-native-validation",
    "native_validation",
    default=True,
    help_text="Whether CEL is evaluated. A template with both CEL and Rego then uses its CEL.",
)
NATIVE_FAILURE_POLICY = click.option(
    "--default-k8s-native-validation-failure-policy",
    "native_failure_policy",
    type=click.Choice(("Fail", "Ignore")),
    default="Fail",
    show_default=True,
    help=(
        "The meaning of a CEL error if the template has no failurePolicy: Fail makes it a "
        "violation."
    ),
)


def _read_providers(context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
    """Reads ``NAME=FILE`` options, each name once, into recorded answers of providers."""
    if context.resilient_parsing:  # for completion, which reads no file
        return None
    # Here and not above: --help, completion and a mistyped option need none of it.
    from webhook.policies.recorded_answers import (  # noqa: PLC0415
        InvalidAnswers,
        RecordedAnswers,
        read_answers,
    )

    providers = {}
    for text in value:
        name, separator, file = text.partition("=")
        if not (name and separator and file):
            raise click.BadParameter(
                f"{text!r} must be NAME=FILE: a provider and the file with its answers"
            )
        if name in providers:
            raise click.BadParameter(f"the answers of the provider {name} are given twice")
        try:
            providers[name] = read_answers(Path(STANDARD_INPUT if file == "-" else file))
        except InvalidAnswers as error:
            raise click.BadParameter(str(error)) from None
    return RecordedAnswers(providers, "give its answers with --provider {}=FILE")


PROVIDERS = click.option(
    "--provider",
    "answers",
    metavar="NAME=FILE",
    multiple=True,
    callback=_read_providers,
    help=(
        "The answers of a provider of external data: a file with items, each with a value or "
        "an error by its key. Policies that need another provider give no verdict. "
        "Repeatable."
    ),
)
