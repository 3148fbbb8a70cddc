"""Options that commands about policies share, each said once."""

from __future__ import annotations

import click

FILENAMES = click.option(
    "-f",
    "--filename",
    "filenames",
    metavar="FILE",
    multiple=True,
    help="A file, a folder, or - for standard input. Repeatable.",
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
    help="A host that policies may reach with http.send; without it none. Repeatable.",
)
NATIVE_VALIDATION = click.option(
    "--enable-k8s-native-validation",
    "native_validation",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=True,
    show_default=True,
    metavar="BOOL",
    help="Whether code in CEL is evaluated, in place of Rego where a template has both.",
)
NATIVE_FAILURE_POLICY = click.option(
    "--default-k8s-native-validation-failure-policy",
    "native_failure_policy",
    type=click.Choice(("Fail", "Ignore")),
    default="Fail",
    show_default=True,
    help="What an error of CEL is where a template has no failurePolicy: Fail makes it a violation.",
)
