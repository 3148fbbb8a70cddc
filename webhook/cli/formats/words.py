"""The words of ``-o``: they mean the same in every subcommand that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

MEANINGS: Final = {
    "table": "for people",
    "json": "everything, for programs",
    "yaml": "the same as YAML",
    "sarif": "SARIF 2.1.0, for code scanning",
    "junit": "JUnit's XML",
    "github": "annotations of GitHub's workflows",
    "text": "gator's own lines",
    "patch": "JSON Patches of what changes",
}
"""Every word there is, with what it gives."""

SHORT: Final = ("table", "json")
"""The words of a command that people ask."""

FINDINGS: Final = ("table", "json", "yaml", "sarif", "junit", "github")
"""The words of the commands that find something wrong in files or objects."""


def output_option(*words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``-o`` with these words, the first of which is the default."""
    meanings = ", ".join(f"{word} ({MEANINGS[word]})" for word in words)
    return click.option(
        "-o",
        "--output",
        type=click.Choice(words),
        default=words[0],
        show_default=True,
        help=f"The format: {meanings}.",
    )
