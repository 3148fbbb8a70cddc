"""Violations whose reviews are made long, so that the call fails and Ignore lets them in."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadtest.drill.drill import Row
from loadtest.slow_objects import many_capabilities, many_containers
from tests.behaviour.serving import Server, review

POLICIES = Path(__file__).parents[3] / "policies"
FLOOD = 120
EACH = 5
PATH = "/v1/admit?timeout=3s"

Verdict = tuple[int, bool]
"""The code of the answer, and whether it allows."""


def run() -> Iterator[Row]:
    """Each must be denied, whatever failurePolicy is."""
    with Server(POLICIES) as running:
        running.ready()
        for name, verdicts in (
            ("3,000 containers", [_ask(running, many_containers(3_000))]),
            ("20,000 capabilities", [_ask(running, many_capabilities(20_000))]),
            (f"{FLOOD} threads of one user", _flood(running)),
        ):
            yield Row(
                "slow-reviews", f"{name}: let through with Ignore", sum(map(_ignored, verdicts)), 0
            )
            yield Row(
                "slow-reviews", f"{name}: let through with Fail", sum(map(_allowed, verdicts)), 0
            )


def _ask(running: Server, obj: dict[str, Any]) -> Verdict:
    return _post(running, json.dumps(review(obj)).encode())


def _post(running: Server, body: bytes) -> Verdict:
    answer = running.post(body, PATH)
    return answer.status, answer.status == 200 and bool(answer.verdict["allowed"])


def _flood(running: Server) -> list[Verdict]:
    body = json.dumps(review(many_containers(1_650))).encode()
    verdicts: list[Verdict] = []

    def ask() -> None:
        verdicts.extend(_post(running, body) for _ in range(EACH))

    threads = [threading.Thread(target=ask) for _ in range(FLOOD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


def _ignored(verdict: Verdict) -> bool:
    code, allowed = verdict
    return code != 200 or allowed


def _allowed(verdict: Verdict) -> bool:
    return verdict[1]
