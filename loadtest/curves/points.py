"""Points of curves, a JSON file each."""

import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadtest.bench.load import Generator
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores, Server

Figures = dict[str, Any]

FIGURES = (
    "requests_per_second",
    "server_cpu_ms_per_request",
    "p50_ms",
    "p99_ms",
    "server_rss_mib",
    "server_cores",
)


@dataclass(frozen=True, slots=True)
class Effort:
    """The duration of a point's measurement."""

    quick: bool
    rounds: int
    seconds: float


QUICK = Effort(quick=True, rounds=2, seconds=1.5)
FULL = Effort(quick=False, rounds=4, seconds=4)


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of points; what is there is not measured again."""

    folder: Path
    effort: Effort
    again: bool = False
    """Whether to measure points that are there already."""
    measured: list[Path] = field(default_factory=list)

    def path(self, curve: str, at: float) -> Path:
        """Returns the file of a point."""
        return self.folder / curve / f"{at:g}.json"

    def lacks(self, curve: str, at: float) -> bool:
        """Whether a point is to be measured: it is not there, or was measured too briefly."""
        path = self.path(curve, at)
        if path in self.measured or not path.exists():
            return path not in self.measured
        kept = json.loads(path.read_text())
        return self.again or (kept["quick"] and not self.effort.quick)

    def keep(self, curve: str, at: float, figures: Figures) -> None:
        """Write a point with what it was measured on; a file is whole or not there."""
        path = self.path(curve, at)
        path.parent.mkdir(parents=True, exist_ok=True)
        point = {"curve": curve, "at": at, "quick": self.effort.quick, **figures}
        point["machine"] = describe()
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(point, indent=1) + "\n")
        partial.replace(path)
        self.measured.append(path)

    def points(self, curve: str) -> list[Figures]:
        """Returns the stored points of a curve, in order."""
        found = [json.loads(path.read_text()) for path in (self.folder / curve).glob("*.json")]
        return sorted(found, key=lambda point: float(point["at"]))


@dataclass(frozen=True, slots=True)
class Stand:
    """The equipment of the curves' measurements."""

    store: Store
    folder: Path
    certificates: Path
    cores: Cores
    say: Callable[[str], None]

    @property
    def effort(self) -> Effort:
        """Returns the duration of a measurement."""
        return self.store.effort

    @property
    def generator(self) -> Generator:
        """Clients."""
        return Generator(self.cores.client)

    def missing(self, curve: str, places: Iterable[float]) -> list[float]:
        """The points that are to be measured."""
        return [at for at in places if self.store.lacks(curve, at)]

    def alternated(
        self, servers: list[Server], body: Path, *, verdict: str = "allowed", connections: int = 8
    ) -> dict[str, dict[str, float]]:
        """Returns both servers' medians at saturation, in alternated rounds."""
        rounds: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
        for server in servers:  # the first round warms up
            self._round(server, body, verdict, connections, self.effort.seconds / 2)
        for number in range(self.effort.rounds):
            for server in servers if number % 2 == 0 else servers[::-1]:
                found = self._round(server, body, verdict, connections, self.effort.seconds)
                rounds[server.name].append(found)
        return {name: medians(found) for name, found in rounds.items()}

    def _round(
        self, server: Server, body: Path, verdict: str, connections: int, seconds: float
    ) -> dict[str, Any]:
        return self.generator.closed(
            server, body, connections=connections, seconds=seconds, expected=verdict
        )


def medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """The median of each figure."""
    return {figure: statistics.median(one[figure] for one in rounds) for figure in FIGURES}
