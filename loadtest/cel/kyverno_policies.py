"""Kyverno's own tests, reviewed by Waddle and by Kyverno's engine: CPU of one review by one policy.

Each policy of a folder with ``kyverno-test.yaml`` files reviews the objects of its test, those about
which both say the same. Both read the request's JSON each time. ClusterPolicies are those that their
rules become here, and as they are there.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

from tests.programs import ProgramUnavailableError, build
from webhook.api.encoding import decode
from webhook.api.gvk import gvk_of, name_of, plural_of
from webhook.kyverno.conversion import converted
from webhook.kyverno.kinds import CLUSTER_POLICY, InvalidPolicy, is_evaluated
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import SKIPPED, ValidatingPolicy
from webhook.kyverno.world import World, objects_known
from webhook.policies.kyverno_suite import find_kyverno_suites, namespace_of, placed
from webhook.policies.suite import InvalidSuite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from webhook.api.shapes import Json

ORACLE: Final = "tests/oracles/kyverno"
LOOPS: Final = 100
OBJECTS_MAX: Final = 10


class Kyverno:
    """Kyverno's engine, in a program that reviews in a loop. Raises ProgramUnavailableError."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [build(ORACLE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"GOMAXPROCS": "1"},
        )

    def ask(self, policies: list[Json], requests: list[Json], loops: int = 0) -> Json:
        """The verdicts, and the CPU seconds of so many loops over the requests."""
        assert self._process.stdin
        assert self._process.stdout
        question = {"policies": policies, "requests": requests, "loops": loops}
        self._process.stdin.write(json.dumps(question, default=str).encode() + b"\n")
        self._process.stdin.flush()
        while not (line := self._process.stdout.readline()).startswith(b"{"):
            if not line:
                raise RuntimeError("Kyverno's engine ended")
        answer: Json = json.loads(line)
        return answer

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=10)


def time_kyverno(folder: Path, rounds: int) -> tuple[list[dict[str, Any]], list[str]]:
    """A row for each policy that both have, and what is not timed with the reason."""
    try:
        kyverno = Kyverno()
    except ProgramUnavailableError as why:
        return [], [f"Kyverno's engine: {why}"]
    rows, left_out = [], []
    try:
        for name, policy, own, requests in _cases(folder):
            row = _timed(kyverno, name, policy, own, requests, rounds)
            if isinstance(row, str):
                left_out.append(f"{name}: {row}")
            else:
                rows.append(row)
    finally:
        kyverno.close()
    return rows, left_out


def _cases(folder: Path) -> Iterator[tuple[str, Json, list[ValidatingPolicy], list[Json]]]:
    """Each policy of the tests, what it is here, and the requests of its test."""
    for suite in find_kyverno_suites(folder):
        try:
            policies, objects = suite.given("policies"), suite.given("resources")
        except InvalidSuite:
            continue
        for policy in policies:
            try:
                own = list(_own(policy))
            except InvalidPolicy:
                continue
            if own:
                requests = [_request(item) for item in objects[:OBJECTS_MAX]]
                yield name_of(policy), policy, own, requests


def _own(policy: Json) -> Iterator[ValidatingPolicy]:
    if is_evaluated(policy):
        yield ValidatingPolicy(policy)
    elif policy.get("kind") == CLUSTER_POLICY:
        made = [one for _, one in converted(policy)]
        if not any(isinstance(one, Unwritable) for one in made):
            yield from (ValidatingPolicy(one) for one in made if isinstance(one, dict))


def _request(item: Json) -> Json:
    gvk, item = gvk_of(item), placed(item)
    return {
        "uid": "1",
        "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        "resource": {"group": gvk.group, "version": gvk.version, "resource": plural_of(gvk.kind)},
        "name": name_of(item),
        "namespace": namespace_of(item),
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": item,
    }


def _timed(
    kyverno: Kyverno,
    name: str,
    policy: Json,
    own: list[ValidatingPolicy],
    requests: list[Json],
    rounds: int,
) -> dict[str, Any] | str:
    """Microseconds of CPU of a review, by both; why it has none where they decide differently."""
    timed, fails = [], 0
    for request in requests:
        answer = kyverno.ask([policy], [request])
        if answer.get("error"):
            return str(answer["error"])
        theirs = sorted(
            one["status"] for one in answer["verdicts"] or () if one["status"] != "skip"
        )
        ours = [_say(one, request) for one in own]
        if theirs == sorted(one for one in ours if one != SKIPPED.result) and theirs:
            timed.append(request)
            fails += "fail" in theirs
    if not timed:
        return "no object about which both say the same"
    times: dict[str, list[float]] = {"waddle_us": [], "kyverno_us": []}
    run = _runner(own, timed)
    for turn in range(rounds + 1):
        ours_us = run() / (LOOPS * len(timed)) * 1e6
        theirs_us = kyverno.ask([policy], timed, LOOPS)["cpu"] / (LOOPS * len(timed)) * 1e6
        if turn:  # the first warms
            times["waddle_us"].append(ours_us)
            times["kyverno_us"].append(theirs_us)
    medians = {key: statistics.median(of) for key, of in times.items()}
    ratio = medians["waddle_us"] / medians["kyverno_us"]
    return {"name": name, "violations": fails, **medians, "ratio": ratio}


def _say(policy: ValidatingPolicy, request: Json) -> str:
    namespace = {"metadata": {"name": request["namespace"], "labels": {}}}
    return policy.say(PolicyQuestion(request, namespace, World(objects_known(())))).result


def _runner(own: list[ValidatingPolicy], requests: list[Json]) -> Callable[[], float]:
    """CPU seconds of as many reviews as Kyverno's engine makes."""
    bodies = [json.dumps(one, default=str).encode() for one in requests]

    def run() -> float:
        started = time.process_time()
        for _ in range(LOOPS):
            for body in bodies:
                request = decode(body)  # as the server reads it
                for policy in own:
                    _say(policy, request)
        return time.process_time() - started

    return run
