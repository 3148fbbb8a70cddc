"""A user sends slow objects in many namespaces, by many connections, beside other users."""

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

from loadtest.drill.attacks.large_objects import CONSTRAINT, TEMPLATE
from loadtest.drill.drill import LIMIT_MIB, Bystander, Row, library, limited, rss_mib, server
from loadtest.drill.floods import KEPT_MIB_MAX, REST_SECONDS, flooded, waits
from loadtest.drill.floor import apart, bare
from tests.behaviour.serving import Answer, pod, review, unverified
from tests.patience import PATIENCE_SECONDS

SECONDS = 10
CONNECTIONS = 96
NAMESPACES = 3
PER_SECOND = 5
"""Of reviews that are slow themselves: a few hundredths of a second each, beside the admission
thread."""


def subject(containers: int, namespace: str, **security: Any) -> dict[str, Any]:
    """A Pod of so many containers, each of which says where it is from."""
    found = pod(owner="me")
    found["metadata"]["namespace"] = namespace
    found["spec"] = {
        "containers": [
            {"name": f"c{number}", "image": f"registry/image-{number}", "securityContext": security}
            for number in range(containers)
        ]
    }
    return found


def slow(user: str, namespace: str, containers: int, **security: Any) -> bytes:
    """A review of it that a user asks for."""
    found = subject(containers, namespace, **security)
    document = review(found, userInfo={"username": user}, namespace=namespace)
    return json.dumps(document).encode()


def flood(port: int) -> None:
    """Opens as many connections as there are, again and again."""
    until = time.monotonic() + SECONDS

    def send(number: int) -> None:
        import http.client  # noqa: PLC0415  # this process is a client alone

        raw = slow("mallory", f"namespace-{number % NAMESPACES}", 3_000)
        while time.monotonic() < until:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", port, context=unverified(), timeout=PATIENCE_SECONDS
            )
            with contextlib.suppress(OSError, ssl.SSLError):
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/v1/admit?timeout=3s", raw, headers)
                Answer(connection.getresponse())
            connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run() -> Iterator[Row]:
    """Quiet, then beside the attack; and the same attack on a bare server."""
    name = f"{CONNECTIONS} connections of one user with Pods of 3,000 containers"
    bodies = slow("alice", "shop", 350), slow("alice", "shop", 350, privileged=True)
    with (
        server("--evaluation-budget=5s", documents=(*library(), TEMPLATE, CONSTRAINT)) as running,
        limited(running),
    ):
        with apart(running):
            with Bystander(
                running=running, per_second=PER_SECOND, good=bodies[0], bad=bodies[1]
            ) as quiet:
                time.sleep(SECONDS)
            others = flooded(running, flood, PER_SECOND, *bodies)
        time.sleep(REST_SECONDS)
        kept = rss_mib(running) - quiet.rest_mib
    with bare() as at_once, apart(at_once):
        floor = flooded(at_once, flood, PER_SECOND, *bodies)
    yield from waits(name, quiet, others, floor)
    yield Row(name, "others answered wrongly", others.wrong, 0)
    yield Row(name, "violations let through", others.let_in, 0)
    yield Row(name, "memory", others.peak_mib, LIMIT_MIB, "MiB")
    yield Row(name, "memory that stays", kept, KEPT_MIB_MAX, "MiB")
