"""`python -m tests.outdated`: which oracles and dependencies have newer versions.

Go modules are looked up by `go list`, at the proxies that it is configured with, and Python packages
by pip, at its index. Exit code 0 where nothing is newer, 1 where something is, 3 where a registry
does not answer.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tests.programs import (
    GO_DISTRIBUTION,
    PROGRAMS,
    ROOT,
    Jars,
    Module,
    ProgramUnavailableError,
    cache_folder,
    go,
)

NEWER, UNANSWERED = 1, 3
ASK_SECONDS_MAX = 120

FOLDERS: Final = tuple(
    str(file.parent.relative_to(ROOT))
    for file in sorted([*ROOT.glob("tests/**/go.mod"), *ROOT.glob("loadtest/**/go.mod")])
    # It holds an old version on purpose: what Gatekeeper's driver is made with.
    if file.parent.name != "opa-1.17.1"
)
"""Oracles of our own: what their modules ask for by name."""

_REQUIRED: Final = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w./-]+)\s+(v\S+)\s*$", re.MULTILINE)
_SUBPACKAGE: Final = re.compile(r"/cmd/[^/]+$")


class Unanswered(Exception):
    """A registry could not be asked; the text says why."""


class Used(NamedTuple):
    """A version that is used, and by what."""

    by: str
    name: str
    version: str


def used_modules() -> list[Used]:
    """Every Go module by which something is built or compared, with its version: one table."""
    found = [
        Used(f"program {name}", _SUBPACKAGE.sub("", source.package), source.version)
        for name, source in PROGRAMS.items()
        if isinstance(source, Module)
    ]
    for folder in FOLDERS:
        text = (ROOT / folder / "go.mod").read_text()
        # Replaced and indirect modules follow from the others.
        required = text.partition("replace")[0]
        found += [Used(folder, *match) for match in _REQUIRED.findall(required)]
    return found


def newest_module(name: str) -> str:
    """The newest version of a Go module; raises :class:`Unanswered`."""
    try:
        command = [str(go()), "list", "-m", "-json", f"{name}@latest"]
    except ProgramUnavailableError as error:
        raise Unanswered(f"there is no Go: {error}") from error
    return str(json.loads(_answer(command))["Version"])


def outdated_packages() -> dict[str, tuple[str, str]]:
    """Installed Python packages with a newer version: name, both versions; raises :class:`Unanswered`."""
    uv = [str(ROOT / ".venv/bin/uv"), "pip", "list", "--outdated", "--format=json"]
    listed = json.loads(_answer([*uv, f"--python={sys.executable}"]))
    return {one["name"]: (one["version"], one["latest_version"]) for one in listed}


def _answer(command: list[str]) -> str:
    try:
        finished = subprocess.run(
            command,
            cwd=cache_folder(),
            env={**os.environ, "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unanswered(f"{command[1]}: no answer within {ASK_SECONDS_MAX} s") from None
    if finished.returncode:
        lines = finished.stderr.strip().splitlines() or ["no reason"]
        raise Unanswered(lines[-1])
    return finished.stdout


def lines(
    newest: Callable[[str], str], packages: Callable[[], dict[str, tuple[str, str]]]
) -> Iterator[tuple[int, str]]:
    """Yields the messages, each with its part of the exit code."""
    known: dict[str, str] = {}
    for used in used_modules():
        try:
            version = known.get(used.name) or known.setdefault(used.name, newest(used.name))
        except Unanswered as error:
            yield UNANSWERED, f"the Go module proxy does not answer: {error}"
            break
        if version != used.version:
            yield NEWER, f"{used.name} {used.version} -> {version} ({used.by})"
    for name, source in PROGRAMS.items():
        if isinstance(source, Jars):
            yield 0, f"{source.group}:{source.artifact} {source.version}: not asked ({name})"
    yield 0, f"{GO_DISTRIBUTION}: not asked (the Go that builds all of these)"
    try:
        for name, (before, after) in sorted(packages().items()):
            yield NEWER, f"{name} {before} -> {after} (Python)"
    except Unanswered as error:
        yield UNANSWERED, f"the Python index does not answer: {error}"


def main() -> int:
    """Say it; the worst of the exit codes."""
    code = 0
    for part, line in lines(newest_module, outdated_packages):
        print(line, file=sys.stderr if part == UNANSWERED else sys.stdout)
        code = max(code, part)
    if not code:
        print("nothing is newer")
    return code


if __name__ == "__main__":
    sys.exit(main())
