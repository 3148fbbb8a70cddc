"""The share of lines and branches that tests reach, for each package, with its floor.

`python -m tests.coverage_floors REPORT` reads what `coverage json` wrote, prints a line for each
package and ends with 1 where one is below its floor. `make coverage` makes the report, with the
processes that tests start.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.programs import ROOT

FLOOR = 90.0
"""Percent, of what is not named below."""

FLOORS = {
    "webhook/cluster": 95.0,
    "webhook/constraint": 95.0,
    "webhook/controllers": 95.0,
    "webhook/decisions": 95.0,
    "webhook/server": 95.0,
    "webhook/watch": 95.0,
}


@dataclass(slots=True)
class Share:
    """The reached share of lines and branches, which count alike."""

    reached: int = 0
    all: int = 0

    @property
    def percent(self) -> float:
        """Of a package without code, everything."""
        return 100.0 * self.reached / self.all if self.all else 100.0


def package_of(file: str | Path) -> str:
    """`webhook/NAME` for what lies below it, the module for what lies beside the packages."""
    return "/".join(Path(file).parts[:2])


def shares(report: dict) -> dict[str, Share]:
    """By package, from the JSON report."""
    found: defaultdict[str, Share] = defaultdict(Share)
    for file, entry in report["files"].items():
        summary = entry["summary"]
        share = found[package_of(file)]
        share.reached += summary["covered_lines"] + summary["covered_branches"]
        share.all += summary["num_statements"] + summary["num_branches"]
    return dict(found)


def packages(root: Path = ROOT) -> set[str]:
    """Returns the packages of the code, and the modules beside them."""
    files = (path.relative_to(root) for path in (root / "webhook").rglob("*.py"))
    return {name for name in map(package_of, files) if not Path(name).name.startswith("_")}


def below(found: dict[str, Share], packages: Collection[str]) -> list[str]:
    """Packages that are reached less than they should be; those that are asked for must be there."""
    missing = [f"{package}: not measured" for package in sorted(packages) if package not in found]
    return missing + [
        f"{package}: {share.percent:.1f} %, at least {FLOORS.get(package, FLOOR):.0f} are asked for"
        for package, share in sorted(found.items())
        if share.percent < FLOORS.get(package, FLOOR)
    ]


def main(path: str) -> int:
    """Print the table, then what is below its floor."""
    found = shares(json.loads(Path(path).read_text()))
    for package, share in sorted(found.items()):
        print(f"{package:32} {share.percent:6.1f} % of {share.all}")
    faults = below(found, packages())
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
