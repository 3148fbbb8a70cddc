"""Writes starter files; existing files are never overwritten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

import click

from webhook.cli import exit_codes
from webhook.cli.terminal import complain, write

_FILES: Final = Path(__file__).parent / "files"
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUITE: Final = ("suite.yaml", "samples/allowed.yaml", "samples/disallowed.yaml")


def read_kind(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Returns the kind; raises click.BadParameter if it is no valid kind of Kubernetes."""
    if not _KIND.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a kind: write letters and digits, the first a capital, such as "
            "RequiredOwner",
            param=parameter,
        )
    return value


def read_name(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Returns the name; raises click.BadParameter if it is no valid object name."""
    if value is not None and not _NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a valid name: write lower-case letters, digits and -, such as "
            "required-owner",
            param=parameter,
        )
    return value


def words_of(kind: str, name: str | None = None) -> dict[str, str]:
    """Returns the substitutions for a policy's files.

    The name defaults to the kind in kebab case.
    """
    dashed = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind).lower()
    return {"kind": kind, "template": kind.lower(), "folder": dashed, "name": name or dashed}


def create(files: Mapping[Path, str], words: Mapping[str, str]) -> int:
    """Writes each file from its source here, all or none; returns the exit code."""
    there = [path for path in files if path.exists()]
    if there:
        complain(f"{there[0]} exists already: nothing was written")
        return exit_codes.NO
    try:
        for path, source in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (_FILES / source).read_text("utf-8")
            path.write_text(Template(text).safe_substitute(words), "utf-8")
            write(f"wrote {path}")
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}")
        return exit_codes.NO
    return exit_codes.OK
