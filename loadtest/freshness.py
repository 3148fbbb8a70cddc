"""`python -m loadtest.freshness`: which results are older than the code that they measure.

A result is as old as the last commit of its file. It is stale where a later commit touches what its
bench measures (:data:`MEASURED`) or the bench itself. Exit code 0 where none is, 1 where some are, 2
where there is no history to look at.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = "loadtest/results"
GIT_SECONDS_MAX = 60

_REVIEW: Final = ("webhook/constraint", "webhook/rego", "webhook/cel", "webhook/review")
_SERVED: Final = (*_REVIEW, "webhook/server", "webhook/api", "webhook/app")
_FOLLOWED: Final = ("webhook/controllers", "webhook/cluster", "webhook/watch", "webhook/trials")

MEASURED: Final[dict[str, tuple[str, ...]]] = {
    "audit": (*_REVIEW, "webhook/audit", "webhook/cluster", "loadtest/audit"),
    "cel": (
        *("webhook/cel", "webhook/constraint/drivers", "webhook/kyverno"),
        "loadtest/cel",
    ),
    "changes": (*_SERVED, *_FOLLOWED, "loadtest/changes"),
    "cluster": (*_SERVED, *_FOLLOWED, "loadtest/cluster"),
    "command_line": (*_REVIEW, "webhook/cli", "webhook/policies", "loadtest/command_line.py"),
    "configurations": (
        *("webhook/rego", "webhook/conftest", "webhook/parsers"),
        "loadtest/configurations.py",
    ),
    "curves": (*_SERVED, *_FOLLOWED, "loadtest/curves"),
    "decisions": (*_SERVED, "webhook/decisions", "loadtest/decisions"),
    "enforcement": (*_SERVED, *_FOLLOWED, "loadtest/enforcement"),
    "exceptions": (*_SERVED, "webhook/exceptions", "loadtest/exceptions.py"),
    "expiry": (*_SERVED, *_FOLLOWED, "webhook/exceptions", "loadtest/expiry.py"),
    "external_data": (
        *(*_SERVED, "webhook/external_data"),
        *("loadtest/provider", "loadtest/external_data.py"),
    ),
    "flame-p1": _SERVED,
    "flame-p12": _SERVED,
    "hostile": (*_SERVED, "loadtest/hostile"),
    "kyverno": (*_SERVED, "webhook/kyverno", "loadtest/kyverno"),
    "memo": (*_REVIEW, "webhook/reads", "loadtest/memo.py", "loadtest/traces.py"),
    "mutation": ("webhook/mutation", *_SERVED, "loadtest/mutation.py"),
    "rego": ("webhook/rego", "loadtest/rego"),
    "rego-bounds": ("webhook/rego", "loadtest/rego"),
    "reports": (*_REVIEW, "webhook/reports", "webhook/audit", "loadtest/reports"),
    "scale": (*_REVIEW, "webhook/audit", *_FOLLOWED, "loadtest/scale.py"),
    "serving": (*_SERVED, "webhook/metrics", "loadtest/bench", "loadtest/traces.py"),
    "serving-quick": (*_SERVED, "webhook/metrics", "loadtest/bench", "loadtest/traces.py"),
    "soak": (*_SERVED, *_FOLLOWED, "loadtest/soak"),
    "telemetry": (*_SERVED, "webhook/telemetry", "loadtest/telemetry"),
}
"""For each result the paths that decide its figures."""


class NoHistory(Exception):
    """There is no repository, or none of the file: the text says which."""


def results(root: Path = ROOT) -> dict[str, list[str]]:
    """The files of each result, from the repository's root; plots and points are of the one that they belong to."""
    found: dict[str, list[str]] = {}
    for file in sorted((root / RESULTS).iterdir()):
        name = file.stem
        if name not in MEASURED:
            name = next((one for one in MEASURED if name.startswith(f"{one}-")), name)
        found.setdefault(name, []).append(f"{RESULTS}/{file.name}")
    return found


def measured_at(files: list[str], root: Path = ROOT) -> str:
    """The last commit of some files; raises :class:`NoHistory`."""
    commit = _git(root, "log", "-1", "--format=%h", "--", *files)
    if not commit:
        raise NoHistory(f"{', '.join(files)}: no commit has them")
    return commit


def changes_since(commit: str, paths: tuple[str, ...], root: Path = ROOT) -> int:
    """Returns the number of later commits that touch the paths."""
    return int(_git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *paths))


def _git(root: Path, *arguments: str) -> str:
    finished = subprocess.run(
        ["git", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=GIT_SECONDS_MAX,
        check=False,
    )
    if finished.returncode:
        raise NoHistory(finished.stderr.strip() or f"git {arguments[0]} failed")
    return finished.stdout.strip()


def main(root: Path = ROOT) -> int:
    """Say it of each result, the stale ones first."""
    found = []
    try:
        for name, files in results(root).items():
            commit = measured_at(files, root)
            found.append((-changes_since(commit, MEASURED[name], root), name, commit))
    except NoHistory as error:
        print(f"the age of results is not known: {error}", file=sys.stderr)
        return 2
    for number, name, commit in sorted(found):
        state = f"older than {-number} changes of what it measures" if number else "up to date"
        print(f"{name}: {state} (measured at {commit})")
    return 1 if any(number for number, _, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main())
