"""`python -m loadtest.bench [--quick]`: measure, print the page and write it to results/."""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtest.bench import gatekeeper, report, start
from loadtest.bench.load import Generator, ask
from loadtest.bench.machine import describe
from loadtest.bench.servers import Cores, Server, waddle
from tests.programs import ProgramUnavailableError
from webhook.certs import self_signed

LOADTEST = Path(__file__).resolve().parent.parent
# The expected verdicts hold for every set; the real Gatekeeper is asked too, at each start.
BODIES = {"pod": "allowed", "pod_bad": "denied", "deployment": "allowed"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured and for how long."""

    bodies: tuple[str, ...]
    connections: tuple[int, ...]
    rounds: int
    seconds: float
    # Rounds and their seconds on a fixed schedule, at half of what Gatekeeper can do.
    schedule: tuple[int, float]
    # Requests before the first round, for each set: Gatekeeper takes half a minute for them.
    warm_up: dict[str, int]


# 3 sets x 3 bodies x 3 connections x 5 rounds x 2 servers x 4 s are 18 minutes, schedules 2.
FULL = Plan(tuple(BODIES), (1, 8, 32), 5, 4, (5, 4), {"p1": 10_000, "p12": 3_000, "p100": 600})
QUICK = Plan(("pod", "pod_bad"), (1, 8, 32), 3, 1, (3, 1), {"p1": 2_000, "p12": 500, "p100": 100})


def main() -> int:
    """Run the benchmark; 1 when it cannot be run here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--output", type=Path, default=LOADTEST / "results", help="folder")
    options = parser.parse_args()
    plan, name = (QUICK, "serving-quick") if options.quick else (FULL, "serving")
    command = "make bench-quick" if options.quick else "make bench"
    try:
        result = measure(plan)
    except ProgramUnavailableError as unavailable:
        print(f"the peer cannot be built here: {unavailable}", file=sys.stderr)
        return 1
    result = {"command": command, **result}
    page = report.markdown(result)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.output / f"{name}.md").write_text(page)
    print(page)
    return 0


def measure(plan: Plan) -> dict[str, Any]:
    """All figures of a run."""
    cores = Cores.of_this_machine()
    points: list[dict[str, Any]] = []
    scheduled: list[dict[str, Any]] = []
    memory: dict[str, dict[str, float]] = {}
    generator = Generator(cores.client)
    began = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="waddle-bench-") as scratch:
        folder = Path(scratch)
        certificates = _certificates(folder / "certificates")
        log = folder / "waddle.log"
        started: dict[str, float] = {}
        for policies in ("p1", "p12", "p100"):
            here = folder / policies
            here.mkdir()
            source = LOADTEST / "policies" / policies
            installation = gatekeeper.prepared(source, certificates, here, core=cores.server)
            ours = waddle(source, certificates, core=cores.server, log=log)
            with installation as installed, installed.gatekeeper() as peer, ours as server:
                _say(f"{policies}: both serve")
                if policies == "p12":
                    started["gatekeeper_seconds"] = peer.ready_seconds
                servers = [server, peer]
                here_points = _points(plan, policies, servers, generator, memory)
                scheduled.append(_schedule(plan, policies, servers, generator, here_points))
                points += here_points
        _say("starts")
        started |= start.measure(
            LOADTEST / "policies" / "p12", certificates, core=cores.server, log=log
        )
    return {
        "machine": describe(),
        "began": began.isoformat(timespec="seconds"),
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "plan": asdict(plan),
        "points": points,
        "schedule": scheduled,
        "memory": memory,
        "start": started,
    }


def _points(
    plan: Plan,
    policies: str,
    servers: list[Server],
    generator: Generator,
    memory: dict[str, dict[str, float]],
) -> list[dict[str, Any]]:
    """Every body and number of connections with one set of policies."""
    for body in BODIES:
        _same_answer(servers, _body(body))
    requests = plan.warm_up[policies]
    memory[policies] = {"requests": requests}
    for server in servers:
        generator.count(server, _body("pod"), connections=8, requests=requests, expected="allowed")
        memory[policies][server.name] = server.rss_mib()
    points = []
    for body in plan.bodies:
        for connections in plan.connections:
            rounds: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
            for number in range(plan.rounds):
                for server in servers if number % 2 == 0 else servers[::-1]:
                    measured = generator.closed(
                        server,
                        _body(body),
                        connections=connections,
                        seconds=plan.seconds,
                        expected=BODIES[body],
                    )
                    rounds[server.name].append(measured)
            medians = {name: report.median(measured) for name, measured in rounds.items()}
            point = {"set": policies, "body": body, "connections": connections, **medians}
            points.append({**point, "rounds": rounds})
            _say(_line(point))
    return points


def _schedule(
    plan: Plan,
    policies: str,
    servers: list[Server],
    generator: Generator,
    points: list[dict[str, Any]],
) -> dict[str, Any]:
    """The latencies of both at the same offered load, which neither can put off."""
    (saturation,) = (
        point["gatekeeper"]["requests_per_second"]
        for point in points
        if (point["body"], point["connections"]) == ("pod", 8)
    )
    count, seconds = plan.schedule
    rate = saturation / 2
    rounds: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
    for number in range(count):
        for server in servers if number % 2 == 0 else servers[::-1]:
            measured = generator.open(
                server, _body("pod"), connections=8, seconds=seconds, rate=rate, expected="allowed"
            )
            rounds[server.name].append(measured)
    medians = {name: report.median(measured) for name, measured in rounds.items()}
    _say(f"{policies}: {rate:.0f} requests/s offered")
    return {"set": policies, "body": "pod", "rate": rate, **medians, "rounds": rounds}


def _line(point: dict[str, Any]) -> str:
    cpu = {name: point[name]["server_cpu_ms_per_request"] for name in ("waddle", "gatekeeper")}
    return (
        f"{point['set']} {point['body']} {point['connections']}: CPU "
        f"{cpu['waddle']:.3f} / {cpu['gatekeeper']:.3f} ms, "
        f"{cpu['waddle'] / cpu['gatekeeper']:.3f} times"
    )


def _same_answer(servers: list[Server], body: Path) -> None:
    """Figures of servers that decide differently would compare nothing."""
    ours, theirs = (ask(server, body) for server in servers)
    for field in ("uid", "allowed", "status"):
        if _shown(ours, field) != _shown(theirs, field):
            raise RuntimeError(f"{body.name}: {ours} is not Gatekeeper's {theirs}")


def _shown(answer: dict[str, Any], field: str) -> Any:
    """A field as far as users see it: of the status, its message."""
    return answer.get(field, {}).get("message", "") if field == "status" else answer[field]


def _body(name: str) -> Path:
    return LOADTEST / "bodies" / f"{name}.json"


def _certificates(folder: Path) -> Path:
    pair = self_signed(["localhost"], datetime.now(UTC))
    folder.mkdir()
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return folder


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
