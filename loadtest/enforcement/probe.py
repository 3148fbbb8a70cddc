"""Real admissions at each replica, asked again and again until the answer is the awaited one."""

import http.client
import json
import time
from collections.abc import Sequence

from tests.behaviour.serving import unverified
from tests.system.replicas import config_map, review_of

ANSWER_SECONDS_MAX = 30.0
ENFORCED_SECONDS_MAX = 60.0

PAUSE_SECONDS = 0.001
"""Between two rounds of questions: they must not take the processor from those who are measured."""


class Probe:
    """Connections to the admission ports of all replicas, kept open as an API server keeps them."""

    def __init__(self, ports: Sequence[int]) -> None:
        """Connect to each."""
        self._connections = [
            http.client.HTTPSConnection(
                "127.0.0.1", port, context=unverified(), timeout=ANSWER_SECONDS_MAX
            )
            for port in ports
        ]

    def close(self) -> None:
        """Leave."""
        for connection in self._connections:
            connection.close()

    def wait(self, word: str, *, denied: bool) -> list[float]:
        """When each replica denied the word, or allowed it, on the monotonic clock."""
        body = json.dumps(review_of(config_map(word))).encode()
        end = time.monotonic() + ENFORCED_SECONDS_MAX
        left, followed = list(self._connections), []
        while left:
            for connection in tuple(left):
                if _is_denied(connection, body, word) == denied:
                    followed.append(time.monotonic())
                    left.remove(connection)
            if time.monotonic() > end:
                raise TimeoutError(f"{len(left)} replicas never followed, word {word}")
            time.sleep(PAUSE_SECONDS)
        return followed


def _is_denied(connection: http.client.HTTPSConnection, body: bytes, word: str) -> bool:
    """Whether a ConfigMap with the word is denied, and for its word."""
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/admit?timeout=30s", body, headers)
    response = json.load(connection.getresponse())["response"]
    if response["allowed"]:
        return False
    assert f"denied by {word}" in response["status"]["message"], response
    return True
