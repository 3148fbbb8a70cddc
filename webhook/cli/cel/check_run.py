"""Whether expressions can be used, and of what type they are."""

from __future__ import annotations

from webhook.cel.check.types import DYN
from webhook.cel.engine import compile_expression
from webhook.cel.errors import CompileError
from webhook.cel.kubernetes import admission
from webhook.cli import exit_codes
from webhook.cli.terminal import complain, write
from webhook.printable import printable


def run(expressions: tuple[str, ...], *, names: tuple[str, ...]) -> int:
    """Compile and report."""
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
