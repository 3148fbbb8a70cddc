"""The machine and software of a result."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from tests.programs import PROGRAMS, ROOT, Module
from webhook import __version__


@cache
def describe() -> dict[str, str]:
    """The machine, the versions and the revision, as they were at the first call.

    A bench asks once for its page and once for its data: the page that it has written by then is a
    change of the tree, and would make the revision another.
    """
    gatekeeper = PROGRAMS["gatekeeper"]
    assert isinstance(gatekeeper, Module)
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "waddle": f"{__version__} ({_revision()})",
        "gatekeeper": gatekeeper.version,
    }


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def _revision() -> str:
    """Returns the commit, with ``-dirty`` if files differ from it; results are no difference."""
    commit = _git("describe", "--always") or "no revision"
    changes = _git("status", "--porcelain", "--", ".", ":!loadtest/results")
    return f"{commit}-dirty" if changes else commit


def _git(*arguments: str) -> str:
    finished = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    return finished.stdout.strip()
