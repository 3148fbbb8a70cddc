"""Ports for servers that must be told theirs before they listen.

They lie below the range from which the system takes the port of each outgoing connection. There,
a port that was free a moment ago is taken by the next connection of anybody; and a client that
asks again and again for a server that is down may even get that very port, and so itself.

Each of a run's workers has a share of its own and goes through it once before it gives any again:
a server that is killed and started later finds its port free, whoever asked for one meanwhile.
"""

import contextlib
import itertools
import os
import secrets
import socket
from collections.abc import Iterator

FIRST, LAST = 10_000, 32_000
"""Linux takes ports of connections from 32,768 on, other systems from 49,152 on."""


def share(worker: str, workers: int) -> range:
    """The ports of a worker as pytest-xdist names it (``gw3``); a process by itself has all."""
    number = int(worker.removeprefix("gw")) if worker else 0
    size = (LAST - FIRST) // max(workers, 1)
    return range(FIRST + number * size, FIRST + (number + 1) * size)


def _candidates() -> Iterator[int]:
    """A worker's ports, again and again, from one by chance on: another run may be beside this one."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    own = share(worker, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    begin = secrets.randbelow(len(own))
    return itertools.cycle([*own[begin:], *own[:begin]])


_next_ports = _candidates()


def free_ports(count: int) -> list[int]:
    """Different ports on which nobody listens."""
    found: set[int] = set()
    while len(found) < count:
        port = next(_next_ports)
        with contextlib.suppress(OSError), socket.socket() as bound:
            bound.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


def free_port() -> int:
    """Returns a free port."""
    return free_ports(1)[0]
