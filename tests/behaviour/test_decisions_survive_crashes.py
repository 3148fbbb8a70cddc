"""Each acknowledged record arrives at least once and in order, whatever is killed or fails.

``WADDLE_SOAK_SECONDS`` makes it longer, ``WADDLE_SOAK_SEED`` repeats a run.
"""

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.process import Replica, Sidecar
from tests.decisions.receiver import Mode, Receiver
from tests.ports import free_port

SECONDS = float(os.environ.get("WADDLE_SOAK_SECONDS", "5"))
SEED = int(os.environ.get("WADDLE_SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
MODES: tuple[Mode, ...] = ("ok", "ok", "refusing", "resetting", "slow", "down")
REPLICAS = 3


class Chaos:
    """Kills, fills and breaks at random moments, and in the end puts everything right."""

    def __init__(self, folder: Path, scheme: str, receiver: Receiver, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.receiver = receiver
        self.full = folder / "disk-is-full"
        listen = None if scheme == "unix" else [{"url": f"grpc://127.0.0.1:{free_port()}"}]
        batch = {
            "maxRecords": 200,
            "backoffInitialSeconds": 0.02,
            "backoffMaxSeconds": 0.2,
        }
        sink = {"name": "http", "type": "http", "settings": {"url": receiver.url}, "batch": batch}
        self.sidecar = Sidecar(
            folder / "sidecar",
            [sink],
            listen=listen,
            command=(sys.executable, "-m", "tests.decisions.volatile"),
            queue={
                "directory": str(folder / "sidecar" / "queue"),
                "segmentBytes": 64 * 1024,
                "maxBytes": 8 * 1024 * 1024,
            },
        )
        self.config = folder / "exporter.yaml"
        self.config.write_text(
            json.dumps(
                {
                    "sidecarURL": self.sidecar.url if listen is None else listen[0]["url"],
                    "queue": {"maxRecords": 3000},
                    "flushSeconds": 0.01,
                    "acknowledgeSeconds": 3.0,
                    "backoff": {"initialSeconds": 0.02, "maxSeconds": 0.2},
                }
            )
        )
        self.replicas: list[Replica] = []
        self.kills = {"sidecar": 0, "server": 0}

    def start_sidecar(self) -> None:
        self.sidecar.start(str(self.random.randrange(2**31)), str(self.full))

    def start_replica(self, number: int) -> Replica:
        return Replica(self.folder, self.config, f"pod-{number}")

    def run(self, seconds: float) -> list[dict[str, Any]]:
        self.start_sidecar()
        self.sidecar.ready()
        self.replicas = [self.start_replica(number) for number in range(REPLICAS)]
        until = time.monotonic() + seconds
        while time.monotonic() < until or not self.kills["sidecar"]:
            time.sleep(self.random.uniform(0.02, 0.5))  # a random moment is the point of it
            self.receiver.set(self.random.choice(MODES))
            if self.random.random() < 0.2:
                self.full.touch()
            else:
                self.full.unlink(missing_ok=True)
            self._kill(self.random.choice(("sidecar", "sidecar", "server", "both", "none")))
        self.receiver.set("ok")
        self.full.unlink(missing_ok=True)
        self.sidecar.ready()
        counters = [replica.stop() for replica in self.replicas]
        self.sidecar.await_metric('sink_lag_records{sink="http"}', 0)
        return counters

    def _kill(self, part: str) -> None:
        if part in {"sidecar", "both"}:
            self.sidecar.kill()
            self.kills["sidecar"] += 1
        if part in {"server", "both"}:
            number = self.random.randrange(REPLICAS)
            self.replicas[number].kill()
            self.kills["server"] += 1
            self.replicas[number] = self.start_replica(number)
        if part in {"sidecar", "both"}:
            self.start_sidecar()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("scheme", ["unix", "grpc"])
def test_each_acknowledged_record_arrives_and_each_loss_is_counted(
    scheme: str, tmp_path: Path
) -> None:
    """Random kills, a failing sink and a full disk: what was acknowledged arrives, in order."""
    if scheme == "grpc":
        pytest.importorskip("grpc")
    print(f"WADDLE_SOAK_SEED={SEED}")
    with Receiver() as receiver:
        chaos = Chaos(tmp_path, scheme, receiver, SEED)
        try:
            counters = chaos.run(SECONDS)
        finally:
            chaos.sidecar.stop()
        arrived = arrivals(receiver.records)
    processes = {path.stem for path in tmp_path.glob("*.acknowledged")}
    for process in processes:
        highest = max(numbers(tmp_path / f"{process}.acknowledged"), default=0)
        acknowledged = {
            number for number in numbers(tmp_path / f"{process}.queued") if number <= highest
        }
        missing = acknowledged - set(arrived.get(process, ()))
        assert missing == set(), (process, sorted(missing)[:20], SEED)
    for process, found in arrived.items():
        assert found == sorted(found), (process, SEED)
    for counter in counters:
        dropped = sum(counter["dropped"].values())
        assert counter["offeredByCaller"] == counter["offered"]
        assert counter["offered"] == counter["acknowledged"] + dropped + counter["queued"]
        # Everything still queued at the end was drained within the grace period.
        kept = set(numbers(tmp_path / f"{counter['process']}.queued"))
        assert kept - set(arrived[counter["process"]]) == set()
        assert counter["acknowledged"] == len(kept)
        assert dropped == counter["offeredByCaller"] - len(kept)
    assert chaos.kills["sidecar"] > 0
    print(f"{chaos.kills}, {len(receiver.records)} records of {len(processes)} processes")


def numbers(path: Path) -> list[int]:
    """The numbers in a replica's book; a kill may have cut off the last."""
    return [int(line) for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"]


def arrivals(records: list[dict[str, Any]]) -> dict[str, list[int]]:
    """For each process the numbers that arrived, in order of first arrival."""
    found: dict[str, dict[int, None]] = {}
    for record in records:
        assert record["id"] == f"{record['process']}-{record['sequence']}"
        found.setdefault(record["process"], {})[record["sequence"]] = None
    return {process: list(sequence) for process, sequence in found.items()}
