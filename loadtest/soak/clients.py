"""Clients of a soak: each asks one replica after the other, and checks every answer."""

import http.client
import itertools
import json
import random
import threading
from dataclasses import dataclass
from typing import Any

from loadtest.soak.verdict import Tally
from tests.behaviour.serving import unverified
from tests.system.replicas import config_map, review_of

REQUESTS_EACH = 50
"""Requests on a connection before the next replica is asked."""

ANSWER_SECONDS_MAX = 30.0
HEADERS = {"Content-Type": "application/json"}

FORBIDDEN, FREE = "forbidden", "free"
"""Words of ConfigMaps: the constraint of the first never changes, the second has none."""


@dataclass(slots=True)
class Member:
    """A replica as clients know it."""

    name: str
    port: int
    serving: bool = True
    killed: bool = False


class Crowd:
    """The replicas that there are; changed by one thread, read by all."""

    def __init__(self) -> None:
        """None yet."""
        self.members: tuple[Member, ...] = ()

    def serving(self) -> list[Member]:
        """Returns the members that a Service would send requests to."""
        return [member for member in self.members if member.serving]


class Client:
    """A thread that asks until told to stop."""

    def __init__(self, crowd: Crowd, number: int, pause_seconds: float, seed: int) -> None:
        """The load of a client is bounded by the pause between its requests."""
        self.tally = Tally()
        self._crowd = crowd
        self._pause_seconds = pause_seconds
        self._random = random.Random(seed + number)
        self._numbers = itertools.count()
        self._name = number
        self._context = unverified()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"client-{number}")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request that is under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            serving = self._crowd.serving()
            if serving:
                self._visit(self._random.choice(serving))
            else:
                self._stop.wait(0.05)

    def _visit(self, member: Member) -> None:
        """Some requests on one connection."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", member.port, timeout=ANSWER_SECONDS_MAX, context=self._context
        )
        try:
            try:
                connection.connect()
            except OSError:
                # Before any request: a client goes elsewhere. A replica that serves is there.
                self._count_refusal(member)
                return
            for _ in range(REQUESTS_EACH):
                if self._stop.is_set() or not member.serving or not self._ask(connection, member):
                    return
                self._stop.wait(self._pause_seconds)
        finally:
            connection.close()

    def _count_refusal(self, member: Member) -> None:
        if member.serving and not member.killed:
            self.tally.failed.append(f"{member.name} serves and accepts no connection")
        else:
            self.tally.refused += 1

    def _ask(self, connection: http.client.HTTPSConnection, member: Member) -> bool:
        """Sends a request; returns whether the connection can take another."""
        word = self._random.choice((FORBIDDEN, FREE))
        review = review_of(config_map(word))
        review["request"]["uid"] = uid = f"{self._name}-{next(self._numbers)}"
        try:
            connection.request("POST", "/v1/admit?timeout=10s", json.dumps(review), HEADERS)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            if member.killed:
                self.tally.killed += 1
            else:
                self.tally.failed.append(f"{member.name}: {type(error).__name__}: {error}")
            return False
        if answer.status != http.client.OK:
            self.tally.failed.append(f"{member.name}: {answer.status}: {body[:200]!r}")
            return False
        self.tally.answered += 1
        fault = wrong(json.loads(body)["response"], word, uid)
        if fault:
            self.tally.wrong.append(f"{member.name}: {fault}")
        return not answer.will_close


def wrong(response: dict[str, Any], word: str, uid: str) -> str:
    """Returns the fault of an answer to a ConfigMap with this word."""
    if response["uid"] != uid:
        return f"uid {response['uid']}, not {uid}"
    if response["allowed"] != (word == FREE):
        return f"{word}: {response}"
    message = response["status"].get("message", "")
    expected = f"[forbidden] denied by {FORBIDDEN}" if word == FORBIDDEN else ""
    return "" if message == expected else f"{word}: message {message!r}"
