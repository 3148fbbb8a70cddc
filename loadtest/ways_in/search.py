"""A search for violating objects that get in: three replicas are asked in turn, as by an API server.

What gets in is what is allowed, and, since ``failurePolicy: Ignore`` lets it, whatever is answered
with another code than 200, or not in its time.
"""

import http.client
import itertools
import json
import os
import random
import shutil
import ssl
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadtest.ways_in.objects import BODY_BYTES_MAX, EXPANSION, MUTATORS, violating, written
from tests.behaviour.serving import Answer, Server, pod, review
from webhook.app.fault_injection import BLAME_NOBODY, VARIABLE

POLICIES = Path(__file__).parents[2] / "policies"

REPLICAS = 3

RETRIES = 10
"""The retries of client-go, at once, if an answer asks for it."""

LATE_SECONDS = 2.0
"""Beyond its timeout an answer counts as none. This process and the replicas share the machine with
a hundred threads that ask: less would measure those."""


STALL_SECONDS = 0.05
"""Of a sleep that shows how long threads of this process wait for a processor."""


@dataclass
class Found:
    """The findings of a search so far."""

    attempts: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    ways_in: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, how: str, answer: str, *, is_in: bool) -> None:
        """Records an attempt's answer."""
        with self.lock:
            self.attempts += 1
            self.answers[answer] += 1
            if is_in:
                self.ways_in.append(f"{answer}: {how}")


class Balancer:
    """Asks replicas in turn, on a new connection each, as an API server after a refusal."""

    def __init__(self, replicas: Sequence[Server]) -> None:
        self._turn = itertools.cycle(replicas)
        self._lock = threading.Lock()

    def post(self, body: bytes, path: str) -> tuple[int, dict[str, object] | None]:
        """The code and the verdict of the last answer."""
        code: int = 0
        for _ in range(RETRIES):
            with self._lock:
                replica = next(self._turn)
            try:
                answer = _post(replica, body, path)
            except (OSError, ssl.SSLError, http.client.HTTPException):
                code = 0
                continue
            code = answer.status
            if code == 200:
                return code, answer.verdict
            if answer.headers.get("retry-after") != "0":
                break
        return code, None


class Stalls:
    """The delays of this process's own threads, which do not make an answer late."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            time.sleep(STALL_SECONDS)
            self._longest = max(self._longest, time.monotonic() - began - STALL_SECONDS)

    def begin(self) -> None:
        """Look at what comes from here on."""
        self._longest = 0.0

    @property
    def longest(self) -> float:
        """Seconds that a thread waited beyond what it slept."""
        return self._longest


def _post(replica: Server, body: bytes, path: str) -> Answer:
    """Head and body in one piece, as Go's client writes them."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: waddle\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    with replica.raw() as connection:
        with suppress(OSError):  # It may be answered, and closed, before all is sent.
            connection.sendall(head.encode() + body)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Answer(response)


@contextmanager
def replicas(*, guarded: bool = True) -> Iterator[list[Server]]:
    """Three ready replicas of the shipped policies, and of what expands and mutates."""
    environment = dict(os.environ)
    if not guarded:
        environment[VARIABLE] = BLAME_NOBODY
    with tempfile.TemporaryDirectory(prefix="waddle-ways-in-") as folder, ExitStack() as stack:
        policies = Path(folder) / "policies"
        shutil.copytree(POLICIES, policies)
        (policies / "expansion.yaml").write_text(EXPANSION)
        (policies / "mutators.yaml").write_text(MUTATORS)
        running = [
            stack.enter_context(Server(policies, environment=environment)) for _ in range(REPLICAS)
        ]
        for replica in running:
            replica.ready()
        yield running


def choices(chance: random.Random) -> tuple[int, bool]:
    """Returns the number of concurrent attempts, and whether they use service accounts."""
    return chance.choice((1, 1, 2, 10, 60, 150)), chance.random() < 0.3


def search(running: Sequence[Server], seconds: float, seed: int, *, first_only: bool) -> Found:
    """Try ways in until the time is over, or with ``first_only`` one is found."""
    chance, found, balancer = random.Random(seed), Found(), Balancer(running)
    end = time.monotonic() + seconds
    done, stalls = threading.Event(), Stalls()
    other = threading.Thread(target=_others, args=(balancer, done), daemon=True)
    other.start()
    while time.monotonic() < end and not (first_only and found.ways_in):
        how, obj = violating(chance)
        timeout = chance.choice((1, 3, 3, 3, 10))
        at_once, accounts = choices(chance)
        body = written(review(obj, userInfo={"username": "mallory"}), chance)
        if len(body) > BODY_BYTES_MAX:
            continue
        if at_once * len(body) > 100_000_000:
            at_once = 10
        how += f", {len(body)} bytes, timeout {timeout} s, {at_once} at once"
        how += ", as service accounts of a namespace" if accounts else ""

        def attempt(
            number: int,
            how: str = how,
            body: bytes = body,
            timeout: int = timeout,
            accounts: bool = accounts,
        ) -> None:
            if accounts:
                name = f'"username": "system:serviceaccount:shop:a{number}"'.replace(": ", ":", 1)
                body = body.replace(b'"username":"mallory"', name.encode(), 1)
            if number % 3 == 0:
                balancer.post(body, f"/v1/mutate?timeout={timeout}s")
            began = time.monotonic()
            code, verdict = balancer.post(body, f"/v1/admit?timeout={timeout}s")
            late = time.monotonic() - began > timeout + LATE_SECONDS + stalls.longest
            if verdict is None:
                found.note(how, str(code), is_in=True)
            elif verdict["allowed"]:
                found.note(how, "allowed", is_in=True)
            elif late:
                found.note(how, "late", is_in=True)
            else:
                status = verdict["status"]
                assert isinstance(status, dict)
                found.note(how, f"refused {status['code']}", is_in=False)

        stalls.begin()
        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    done.set()
    other.join()
    return found


def _others(balancer: Balancer, done: threading.Event) -> None:
    """Sends other users' requests meanwhile."""
    body = json.dumps(review(pod(owner="me"), userInfo={"username": "bob"})).encode()
    while not done.wait(0.1):
        balancer.post(body, "/v1/admit?timeout=3s")
