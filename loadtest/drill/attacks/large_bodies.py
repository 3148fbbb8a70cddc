"""Six connections without credentials, with the largest bodies that are taken, beside usual Pods."""

import json
import threading
import time
from collections.abc import Callable, Iterator

from loadtest.drill.attacks.bytes_in_flight import MIB, body, send, whole
from loadtest.drill.drill import LIMIT_MIB, Bystander, Row, elsewhere, library, limited, server
from tests.behaviour.serving import pod, review

SECONDS = 10
CONNECTIONS = 6
RATIO_MAX = 3.0
PER_SECOND = 20


def text() -> bytes:
    """One text of 38 MiB."""
    return body(b'"' + b"x" * (38 * MIB) + b'"')


def keys() -> bytes:
    """450,000 keys in 5 MB."""
    return body(b"{" + b",".join(b'"k%06d":1' % number for number in range(450_000)) + b"}")


BODIES: dict[str, Callable[[], bytes]] = {
    "6 bodies of 38 MiB at a time": text,
    "6 bodies of 450,000 keys at a time": keys,
}


def flood(port: int, name: str) -> None:
    """The same from each connection, again and again."""
    raw = whole(BODIES[name]())
    until = time.monotonic() + SECONDS

    def repeat() -> None:
        while time.monotonic() < until:
            send(port, raw)

    threads = [threading.Thread(target=repeat) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def usual(**security: bool) -> bytes:
    """A review of 100 KB."""
    found = pod(owner="me")
    found["metadata"]["annotations"] = {"notes": "x" * 95_000}
    found["spec"] = {"containers": [{"name": "a", "image": "a", "securityContext": security}]}
    return json.dumps(review(found)).encode()


def run() -> Iterator[Row]:
    """Each body in turn; then one alone."""
    bodies = usual(), usual(privileged=True)
    for name in BODIES:
        with server(documents=library()) as running, limited(running):
            with Bystander(running, PER_SECOND, *bodies) as quiet:
                time.sleep(SECONDS)
            with (
                elsewhere(flood, running.ports["admission"], name) as await_end,
                Bystander(running, PER_SECOND, *bodies) as beside,
            ):
                await_end()
            unanswered = running.post(keys(), "/v1/admit?timeout=10s").status != 200
        ratio = beside.milliseconds(0.99) / quiet.milliseconds(0.99)
        yield Row(name, "p99 of the others against quiet", ratio, RATIO_MAX, "times")
        yield Row(name, "others answered wrongly", beside.wrong, 0)
        yield Row(name, "violations let through", beside.let_in, 0)
        yield Row(name, "memory", beside.peak_mib, LIMIT_MIB, "MiB")
        yield Row(name, "450,000 keys alone that are not decided", unanswered, 0)
