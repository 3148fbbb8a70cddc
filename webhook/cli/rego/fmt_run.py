"""Finds and formats Rego files; prints, lists, compares or overwrites them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import exit_codes
from webhook.cli.policy_options import STANDARD_INPUT
from webhook.cli.rego.differences import coloured
from webhook.cli.terminal import complain
from webhook.policies.rego_files import system_words
from webhook.rego.errors import RegoErrors
from webhook.rego.format.module import Unformattable, error_text, formatted, lost
from webhook.rego.syntax.parser import parse_module
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.rego.format.options import Target
    from webhook.rego.syntax.ast import RegoVersion


class Stopped(Exception):
    """The reason why no further file is formatted, with the exit code."""

    def __init__(self, message: str, code: int = exit_codes.UNKNOWN) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The options of formatting: the Rego versions of the input and of the output."""

    version: RegoVersion
    target: Target
    write: bool
    listed: bool
    diff: bool
    fail: bool
    check_result: bool
    drop: bool


def run(
    paths: Sequence[str],
    *,
    both: bool,
    v0_compatible: bool,
    v1_compatible: bool,
    drop_v0_imports: bool,
    **options: bool,
) -> int:
    """Formats all files, up to the first that cannot be formatted."""
    v0 = v0_compatible or (both and not v1_compatible)
    layout = LayoutOptions(
        version="v0" if v0 else "v1",
        target="v0v1" if both else "v0" if v0 else "v1",
        drop=drop_v0_imports,
        **options,
    )
    try:
        if not paths:
            _standard_input(layout)
        for path in paths:
            for file in files_below(path):
                _file(file, layout)
    except Stopped as stopped:
        complain(str(stopped))
        return stopped.code
    return exit_codes.OK


def files_below(path: str) -> Iterator[str]:
    """Returns the path itself, or the ``.rego`` files below a folder, sorted by name.

    Raises Stopped if the path does not exist or cannot be read.
    """
    path = path.removeprefix("file://")
    try:
        os.lstat(path)
        if path == STANDARD_INPUT or not Path(path).is_dir():
            if not Path(path).is_file() or path.endswith(".rego"):  # a pipe has no suffix
                yield path
            return
        for name in (
            () if Path(path).is_symlink() else sorted(entry.name for entry in Path(path).iterdir())
        ):
            below = Path(path, name)
            if name.endswith(".rego") or (below.is_dir() and not below.is_symlink()):
                yield from files_below(str(below))
    except OSError as error:
        verb = "lstat" if isinstance(error, FileNotFoundError) else "open"
        raise Stopped(f"{verb} {path}: {system_words(error)}", exit_codes.NO) from None


def _standard_input(options: LayoutOptions) -> None:
    try:
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        _print(formatted(text, "stdin", options.version, options.target))
    except RegoErrors as errors:
        raise Stopped(error_text(errors), exit_codes.NO) from None
    except Unformattable as fault:
        raise Stopped(str(fault), exit_codes.NO) from None


def read(file: str) -> str:
    """Reads the text of a file; raises Stopped."""
    try:
        return Path(file).read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        message = f"open {file}: {system_words(error)}"
        raise Stopped(f"failed to open file: {message}") from None


def _file(file: str, options: LayoutOptions) -> None:
    source = read(file)
    try:
        text = formatted(source, file, options.version, options.target, drop=options.drop)
    except RegoErrors as errors:
        raise Stopped(f"failed to format Rego source file: {error_text(errors)}") from None
    except Unformattable as fault:
        raise Stopped(f"failed to format Rego source file: {fault}") from None
    changed = text != source
    refused = changed and options.fail and not (options.listed or options.diff)
    if options.check_result and not refused:
        _check(file, text, options)
    if changed and options.listed:
        click.echo(file)
    elif changed and options.diff:
        _print(f"{coloured(source, text)}\n")
    if changed and options.fail:
        raise Stopped("unexpected diff")
    if options.listed or options.diff:
        return
    if not options.write:
        _print(text)
    elif changed:
        write(file, source, text, options.version, options.target, check=options.check_result)


def _check(file: str, text: str, options: LayoutOptions) -> None:
    """Raises Stopped if the formatted text cannot be parsed."""
    try:
        parse_module(text, "formatted", "v1" if options.target == "v1" else "v0")
    except RegoErrors as errors:
        raise Stopped(
            f"{file} was successfully formatted, but the result is invalid: {errors}\n\n"
            "To inspect the formatted Rego, you can turn off this check with "
            "--check-result=false."
        ) from None


def write(
    file: str,
    source: str,
    text: str,
    version: RegoVersion,
    target: Target | None = None,
    *,
    check: bool = True,
) -> None:
    """Overwrites a file with its formatted text.

    Raises Stopped, also if a comment would be lost.
    """
    gone = lost(source, text, version, target or version) if check else []
    if gone:
        raise Stopped(
            f"{file} is not changed, since its formatted text would lose {', '.join(gone)}. Put "
            "comments within a term on lines of their own before it."
        )
    try:
        with Path(file).open("r+b") as stream:
            stream.truncate()
            stream.write(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        message = f"open {file}: {system_words(error)}"
        raise Stopped(f"failed to open file for writing: {message}") from None


def _print(text: str) -> None:
    sys.stdout.write(text)
