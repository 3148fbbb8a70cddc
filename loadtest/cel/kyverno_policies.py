"""Kyverno's own tests, reviewed by Waddle and by Kyverno's engine: CPU of one review.

First each policy of a folder with ``kyverno-test.yaml`` files reviews the objects of its test by
itself. Then all of them review every object, as an admission in a cluster that has them. Only what
both decide alike is timed. Policies that ask a cluster or a registry are in no set: neither engine
gets an answer here, and what both do without one is no work of an admission.

Both read the request's JSON each time, find the policies that are about it, and evaluate these:
Kyverno by its engine's ``Handle``, Waddle by the stage that each admission passes through.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.programs import ProgramUnavailableError, build
from webhook.api.admission import read_request
from webhook.api.encoding import decode
from webhook.api.gvk import gvk_of, name_of, plural_of
from webhook.cli.clients import new_client
from webhook.constraint.enforcement import WEBHOOK
from webhook.constraint.limits import UNLIMITED
from webhook.constraint.result import Responses
from webhook.constraint.review import AugmentedReview
from webhook.kyverno.conversion import converted
from webhook.kyverno.kinds import CLUSTER_POLICY, InvalidPolicy, is_evaluated
from webhook.kyverno.patterns import Unwritable
from webhook.kyverno.policy import PolicyQuestion
from webhook.kyverno.validating_policy import SKIPPED, ValidatingPolicy
from webhook.kyverno.world import World, objects_known
from webhook.policies.kyverno_suite import find_kyverno_suites, namespace_of, placed
from webhook.policies.suite import InvalidSuite
from webhook.review.kyverno_policies import KyvernoPolicies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from webhook.api.admission import AdmissionRequest
    from webhook.api.shapes import Json
    from webhook.constraint.limits import Limits
    from webhook.constraint.snapshot import Snapshot

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


class Case(NamedTuple):
    """A policy of the tests, what it is here, and the requests of its test."""

    policy: Json
    own: list[ValidatingPolicy]
    requests: list[Json]

    @property
    def name(self) -> str:
        """The policy's name."""
        return name_of(self.policy)


class Timed(NamedTuple):
    """Rows of policies by themselves, the row of all of them, and what is not timed and why."""

    alone: list[dict[str, Any]]
    together: dict[str, Any] | None
    left_out: list[str]


def time_kyverno(folder: Path, rounds: int) -> Timed:
    """Times the policies of a folder of tests in both."""
    try:
        kyverno = Kyverno()
    except ProgramUnavailableError as why:
        return Timed([], None, [f"Kyverno's engine: {why}"])
    rows, left_out, decided = [], [], []
    try:
        for case in _cases(folder):
            row = _timed_alone(kyverno, case, rounds)
            if isinstance(row, str):
                left_out.append(f"{case.name}: {row}")
            else:
                rows.append(row)
                decided.append(case)
        return Timed(rows, _timed_together(kyverno, decided, rounds), left_out)
    finally:
        kyverno.close()


def _cases(folder: Path) -> Iterator[Case]:
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
                yield Case(policy, own, requests)


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


def _timed_alone(kyverno: Kyverno, case: Case, rounds: int) -> dict[str, Any] | str:
    """A row of one policy by itself; why there is none where they decide differently."""
    answer = kyverno.ask([case.policy], case.requests)
    if answer.get("error"):
        return str(answer["error"])
    timed, fails = [], 0
    for at, request in enumerate(case.requests):
        theirs = _statuses(answer, at)
        if theirs and theirs == sorted(_own_statuses(case, request)):
            timed.append(request)
            fails += "fail" in theirs
    if not timed:
        return "no object about which both say the same"
    if any(_lacks_facts(case, request) for request in timed):
        return "it asks a cluster or a registry"
    return {"name": case.name, "violations": fails, **_compared(kyverno, [case], timed, rounds)}


def _timed_together(kyverno: Kyverno, cases: Sequence[Case], rounds: int) -> dict[str, Any] | None:
    """The row of all policies, each about every object on which both agree; None without any."""
    policies = [case.policy for case in cases]
    requests = [request for case in cases for request in case.requests]
    answer = kyverno.ask(policies, requests)
    timed, matched = [], 0
    for at, request in enumerate(requests):
        theirs = _statuses(answer, at)
        if theirs == sorted(status for case in cases for status in _own_statuses(case, request)):
            timed.append(request)
            matched += len(theirs)
    if not timed:
        return None
    return {
        "policies": len(cases),
        "objects": len(timed),
        "matching": matched / len(timed),
        **_compared(kyverno, cases, timed, rounds, loops=LOOPS // 20),
    }


def _statuses(answer: Json, at: int) -> list[str]:
    """Returns the sorted verdicts of Kyverno's policies about the request at a place."""
    verdicts = (one for one in answer["verdicts"] or () if one["request"] == at)
    return sorted(one["status"] for one in verdicts if one["status"] != "skip")


def _own_statuses(case: Case, request: Json) -> list[str]:
    found = (policy.say(_question(request)).result for policy in case.own)
    return [result for result in found if result != SKIPPED.result]


def _lacks_facts(case: Case, request: Json) -> bool:
    question = _question(request)
    for policy in case.own:
        policy.say(question)
    return bool(question.world.missing)


def _question(request: Json) -> PolicyQuestion:
    namespace = {"metadata": {"name": request["namespace"], "labels": {}}}
    return PolicyQuestion(request, namespace, World(objects_known(())))


def _compared(
    kyverno: Kyverno,
    cases: Sequence[Case],
    requests: list[Json],
    rounds: int,
    loops: int = LOOPS,
) -> dict[str, float]:
    """Microseconds of CPU of a review by these policies: medians of both, and their ratio."""
    times: dict[str, list[float]] = {"waddle_us": [], "kyverno_us": [], "reading_us": []}
    policies = [case.policy for case in cases]
    reviews = loops * len(requests)
    for turn in range(rounds + 1):
        ours = _seconds(_reviewing(cases), requests, loops)
        read = _seconds(lambda _: None, requests, loops)
        theirs = kyverno.ask(policies, requests, loops)["cpu"]
        if turn:  # the first warms
            for name, taken in zip(times, (ours, theirs, read), strict=True):
                times[name].append(taken / reviews * 1e6)
    medians = {key: statistics.median(of) for key, of in times.items()}
    return {**medians, "ratio": medians["waddle_us"] / medians["kyverno_us"]}


class _Admission(NamedTuple):
    """An admission, as the stage of Kyverno's policies sees it."""

    snapshot: Snapshot
    value: AugmentedReview
    point: str = WEBHOOK
    limits: Limits = UNLIMITED

    @property
    def at(self) -> float:
        """Now."""
        return time.time()

    def again(self, value: Any) -> Responses:
        """Is never called: there is no stage before this one."""
        raise NotImplementedError


def _reviewing(cases: Sequence[Case]) -> Callable[[AdmissionRequest], object]:
    """Returns the function that reviews a request by these policies."""
    stage = KyvernoPolicies([policy for case in cases for policy in case.own])
    snapshot, nothing = new_client().snapshot, Responses()
    return lambda request: stage(_Admission(snapshot, AugmentedReview(request)), nothing)


def _seconds(
    review: Callable[[AdmissionRequest], object], requests: list[Json], loops: int
) -> float:
    """CPU seconds of as many reviews as Kyverno's engine makes."""
    bodies = [json.dumps(one, default=str).encode() for one in requests]
    for body in bodies:
        review(read_request(decode(body)))  # what is cached by resource is found once
    started = time.process_time()
    for _ in range(loops):
        for body in bodies:
            review(read_request(decode(body)))
    return time.process_time() - started
