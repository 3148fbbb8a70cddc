"""Writes results in conftest's formats, as text for standard output."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from webhook.printable import printable_name
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.conftest.result import CheckResult

FORMATS: Final = (
    "stdout",
    "json",
    "tap",
    "table",
    "junit",
    "github",
    "azuredevops",
    "sarif",
)
"""The values of ``--output``; an unknown one means the first, as with conftest."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The options of showing results."""

    color: bool = True
    suppress_exceptions: bool = False
    show_skipped: bool = False
    junit_hide_message: bool = False
    github_hide_passed: bool = False
    version: str = ""


def written(word: str, results: Sequence[CheckResult], options: OutputOptions) -> str:
    """Returns the results in a format; ends with a newline unless it is empty."""
    module = import_module(f"{__name__}.{word if word in FORMATS else FORMATS[0]}")
    write: Callable[[Sequence[CheckResult], OutputOptions], str] = module.write
    return write(results, options)


def indicated(result: CheckResult) -> str:
    """Returns a file and its namespace as lines of results show them."""
    name = printable_name(result.file)
    file = "-" if name == "-" else f"- {name}"
    namespace = "-" if result.namespace == "-" else f"- {printable_name(result.namespace)} -"
    return f"{file} {namespace}"
